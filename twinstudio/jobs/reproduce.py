"""A run once more: what has changed since, and whether the same numbers come out."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import structs

from twinstudio.jobs.compare import (
    ABSENT,
    Difference,
    comparable,
    differences,
    environment,
    versions,
)
from twinstudio.jobs.inputs import check_kept, source_of
from twinstudio.jobs.job import JobView
from twinstudio.jobs.loading import code_digest, load_class
from twinstudio.jobs.record import FORMAT, Run
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.spec import JobSpec, scene_digest, specify
from twinstudio.model.errors import JobError, PluginError, TwinstudioError
from twinstudio.model.provenance import digest, provenance

WAIT_SECONDS = 0.2


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """How running `original` again, as `run`, went.

    changed: what it ran on that is not what it was then. results: what came out
    differently. same: whether both are done with the same numbers to the last bit.
    """

    original: str
    run: str
    state: str
    error: str
    same: bool
    changed: tuple[Difference, ...] = ()
    results: tuple[Difference, ...] = ()


def changed_since(run: Run, folder: Path) -> tuple[Difference, ...]:
    """What a run depended on and is not what it was, `one` then and `other` now.

    folder: of the run, which may hold copies of its inputs.
    """
    spec = run.spec
    then = environment(run)
    if run.provenance is None:
        # It failed before it could tell what it ran on.
        then = {name: value for name, value in then.items() if name != "plugin code"}
        now = {}
    else:
        now = versions(provenance()) | {"plugin code": _code(spec)}
    now |= {"plugin version": spec.version, "scene": _scene(spec)}
    now |= {
        f"input {name}": _content(source_of(name, given, folder))
        for name, given in spec.inputs.items()
    }
    now |= {"hash rule": f"format {FORMAT}"}
    return differences(*comparable(then, now))


def again(run: Run, folder: Path) -> JobSpec:
    """The specification of `run` for what is there now.

    folder: of the run; copies of its inputs there are used. Raises JobError for an
    input that is gone or a copy that is not what was read, and whatever `specify` raises.
    """
    spec = run.spec
    check_kept(spec.inputs, folder)
    _check_plugin(spec)
    found = {
        name: structs.replace(given, path=str(source_of(name, given, folder)))
        for name, given in spec.inputs.items()
    }
    return specify(
        spec.source,
        spec.params,
        seed=spec.seed,
        plugin=spec.plugin,
        scene=spec.scene,
        inputs={name: given.given for name, given in found.items()},
        title=spec.title,
        version=spec.version,
        draws=spec.draws,
        limit=spec.limit,
        split=spec.split,
        duration=spec.duration,
        memory=spec.memory,
    )


def reproduce(
    identity: str, runner: Runner, *, watch: Callable[[JobView], None] | None = None
) -> Reproduction:
    """Run a run of the runner's store again, and compare.

    watch: called with how it stands, several times a second. Blocks until it is
    over. Raises JobError if it cannot be run again.
    """
    store = runner.store
    original = store.load(identity)
    folder = store.path(identity)
    changed = changed_since(original, folder)
    job = runner.submit(again(original, folder), of=identity)
    view = job.wait(WAIT_SECONDS)
    while not view.over:
        if watch is not None:
            watch(view)
        view = job.wait(WAIT_SECONDS)
    return _outcome(original, runner, view, changed)


def _outcome(
    original: Run, runner: Runner, view: JobView, changed: tuple[Difference, ...]
) -> Reproduction:
    try:
        results = runner.store.compare(original.id, view.id).results
    except JobError as error:
        results = (Difference(name="results", one=ABSENT, other=str(error)),)
    return Reproduction(
        original=original.id,
        run=view.id,
        state=view.state,
        error=view.error,
        same=original.state == view.state == "done" and not results,
        changed=changed,
        results=results,
    )


def _check_plugin(spec: JobSpec) -> None:
    try:
        load_class(spec.source)
    except PluginError as error:
        what = f"its plugin {f'{spec.plugin} {spec.version}'.rstrip()} cannot be loaded: {error}"
        raise JobError(what, hint="install it again, then reproduce") from error


def _code(spec: JobSpec) -> str:
    try:
        return code_digest(spec.source)
    except (TwinstudioError, OSError, ImportError):
        return ABSENT


def _scene(spec: JobSpec) -> str:
    if not spec.scene:
        return ""
    scene = Path(spec.scene)
    return scene_digest(scene, spec.kind) if scene.is_file() else ABSENT


def _content(path: Path) -> str:
    return digest(path) if path.exists() else ABSENT
