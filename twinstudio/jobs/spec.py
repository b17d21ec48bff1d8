"""What a job is to do: a plugin, its parameters, its inputs by content, its seed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from twinstudio.jobs.loading import kind_of, load_class, source_of
from twinstudio.model.errors import JobError
from twinstudio.model.params import make, plain
from twinstudio.model.patches import FILE as PATCHES
from twinstudio.model.provenance import digest, tree_digest
from twinstudio.model.scene import find_scene
from twinstudio.plugin.kinds import Plugin
from twinstudio.plugin.slots import belonging, check_inputs, declared

N = TypeVar("N", int, float)
RUNNABLE = ("command", "calibrator", "randomizer", "metric", "residual", "bridge", "hil")
"""Kinds of plugin that run as jobs."""
NEEDS_SCENE = ("calibrator", "randomizer")
PATCHED = ("metric", "residual", "calibrator")
"""Kinds that run a twin of the scene with its patches; others start from the nominal scene."""
SPLITS = ("calibrator", "residual")
"""Kinds that hold a part of their logs out, unless logs are given for that."""
NOT_RUN = {"mechanism": "it is checked by 'twinstudio plugins validate'; no twin uses it yet"}
"""Kinds that are no jobs, and what becomes of them."""
HELD_OUT = "held_out"
"""The input whose logs are for validation alone."""
DEFAULT_SPLIT = 0.75
LARGEST_SEED = 2**63 - 1
_SCENE_FILES = frozenset(
    f".{suffix}"
    for suffix in (
        *("toml", "urdf", "xml", "xacro", "sdf", "obj", "mtl", "stl", "dae", "ply"),
        *("glb", "gltf", "png", "jpg", "jpeg"),
    )
)


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that a job reads, and the SHA-256 of its content when it was named.

    format: of a log, "" to recognise it by its content.
    """

    path: str
    digest: str
    format: str = ""

    @property
    def given(self) -> str:
        """As it is written: ``PATH``, or ``FORMAT:PATH``."""
        return f"{self.format}:{self.path}" if self.format else self.path


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that decides a job's result, apart from the versions of what computes it.

    plugin: its id. kind: one of `RUNNABLE`. version: of the plugin, "" if unknown.
    source: ``module:Class`` or ``/path/to/file.py:Class``, so that the process that
        runs it need not discover anything.
    params: plain values in SI. scene: path of a scene.toml, or "".
    draws: how often a randomizer draws. limit: longest duration, s; 0 for none.
    split: share of each log that is solved with, the rest being held out; None
        where nothing is split.
    duration: how long a bridge records, s; 0 until it is cancelled.
    memory: most that its processes may use together, bytes; 0 for no limit.
    """

    plugin: str
    kind: str
    source: str
    params: dict[str, Any]
    seed: int
    scene: str = ""
    scene_digest: str = ""
    inputs: dict[str, Input] = {}
    title: str = ""
    version: str = ""
    draws: int = 1
    limit: float = 0.0
    split: float | None = None
    duration: float = 0.0
    memory: int = 0


def specify(  # noqa: PLR0913 - one argument a field
    source: str | type[Plugin[Any]],
    params: Mapping[str, Any],
    *,
    seed: int | None,
    plugin: str = "",
    scene: str | Path = "",
    inputs: Mapping[str, str | Path] | None = None,
    title: str = "",
    version: str = "",
    draws: int = 1,
    limit: float = 0.0,
    split: float | None = None,
    duration: float = 0.0,
    memory: int = 0,
) -> JobSpec:
    """A checked specification; hashes the inputs, so keep it off the window's thread.

    source: the plugin's class, or where it is (see `JobSpec`). plugin: its id, by
    default that of the class, or its name. params: values as `model.params.make` takes them.
    inputs: name -> path, or ``FORMAT:PATH`` for a log whose format is not to be recognised.
    split: for kinds that hold a part of their logs out; None is `DEFAULT_SPLIT`.
    duration: for bridges.
    Raises ParamsError, PluginError, SceneError, or JobError for a kind that does
    not run as a job, a missing seed, or inputs that the plugin does not declare,
    that are missing or not there.
    """
    cls = load_class(source) if isinstance(source, str) else source
    where = source_of(cls) if isinstance(source, type) or ".py" in source else source
    name = plugin or getattr(cls, "id", "") or cls.__name__
    kind = kind_of(cls)
    _check_kind(kind, name)
    if kind in NEEDS_SCENE and not scene:
        raise JobError(f"a {kind} needs a scene", where=name, hint="give one")
    file = str(find_scene(scene)) if scene else ""
    slots = declared(cls.inputs, name)
    given = {key: written(str(path)) for key, path in (inputs or {}).items()}
    check_inputs({key: path for key, (_, path) in given.items()}, slots, name)
    return JobSpec(
        plugin=name,
        kind=kind,
        source=where,
        params=plain(make(cls.params, params, where=name)),
        seed=_checked_seed(seed, name),
        scene=file,
        scene_digest=scene_digest(Path(file), kind) if file else "",
        inputs={key: _input(key, path, format_, name) for key, (format_, path) in given.items()},
        title=title or name,
        version=version,
        draws=_checked_draws(draws, kind, name),
        limit=_at_least(limit, 0.0, "limit", name),
        duration=_checked_duration(duration, kind, name),
        memory=_at_least(memory, 0, "memory", name),
        split=_checked_split(split, kind, belonging(given, HELD_OUT, slots), name),
    )


def scene_digest(scene: Path, kind: str) -> str:
    """SHA-256 over ``scene.toml`` and the models, meshes and textures of its folder.

    For a `kind` of plugin that works with patches (`PATCHED`) these count too.
    Recordings and other files that happen to lie there do not.
    """
    folder = scene.parent
    files = [p for p in folder.rglob("*") if p.suffix.lower() in _SCENE_FILES and p.is_file()]
    patches = folder / PATCHES
    if kind in PATCHED and patches.is_file():
        files.append(patches)
    return tree_digest(files, folder)


def _check_kind(kind: str, where: str) -> None:
    if kind not in RUNNABLE:
        what = f"a plugin of kind {kind} does not run as a job"
        hint = NOT_RUN.get(kind, f"these do: {', '.join(RUNNABLE)}")
        raise JobError(what, where=where, hint=hint)


def _checked_seed(seed: object, where: str) -> int:
    if seed is None:
        raise JobError("a job needs a seed", where=where, hint="give a whole number, e.g. 1")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= LARGEST_SEED:
        raise JobError(
            f"seed {seed!r} is no seed", where=where, hint=f"a whole number, 0 to {LARGEST_SEED}"
        )
    return seed


def written(text: str) -> tuple[str, Path]:
    """Format and path of an input written as ``PATH`` or ``FORMAT:PATH``."""
    if ":" not in text:
        return "", Path(text)
    from twinstudio.flow.importers import FORMATS  # noqa: PLC0415 - they bring many readers

    format_, colon, path = text.partition(":")
    return (format_, Path(path)) if colon and path and format_ in FORMATS else ("", Path(text))


def _checked_split(split: float | None, kind: str, held_out: list[str], where: str) -> float | None:
    if kind not in SPLITS or held_out:
        if split is None:
            return None
        why = f"'{held_out[0]}' is held out already" if held_out else f"a {kind} holds nothing out"
        raise JobError(f"split {split:g} has no use: {why}", where=where, hint="leave it out")
    share = DEFAULT_SPLIT if split is None else split
    if not 0.0 < share < 1.0:
        raise JobError(
            f"split is {share:g}", where=where, hint="a share to solve with, above 0 and below 1"
        )
    return float(share)


def _checked_draws(draws: int, kind: str, where: str) -> int:
    if draws != 1 and kind != "randomizer":
        what = f"{draws} draws have no use: a {kind} draws nothing"
        raise JobError(what, where=where, hint="leave draws out")
    return _at_least(draws, 1, "draws", where)


def _checked_duration(duration: float, kind: str, where: str) -> float:
    if duration and kind != "bridge":
        raise JobError(
            f"duration {duration:g} has no use: a {kind} ends by itself",
            where=where,
            hint="limit is what ends a job that takes too long",
        )
    return _at_least(duration, 0.0, "duration", where)


def _input(name: str, path: Path, format_: str, where: str) -> Input:
    if not path.exists():
        raise JobError(f"input '{name}' is missing: there is no {path}", where=where)
    try:
        return Input(path=str(path.resolve()), digest=digest(path), format=format_)
    except OSError as error:
        raise JobError(
            f"input '{name}' cannot be read: {error.strerror}: {path}", where=where
        ) from error


def _at_least(value: N, low: N, name: str, where: str) -> N:
    if not value >= low:
        raise JobError(f"{name} is {value}, allowed {low} and more", where=where)
    return value
