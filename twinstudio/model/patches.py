"""Parameter patches: what calibration promotes, kept beside the scene, never in it.

``scene.toml`` stays what a person wrote. Patches lie on top of it in
``patches.json``, each with the run it came from; the last one can be taken back.
"""

import time
from pathlib import Path
from typing import Any

import msgspec

from twinstudio.model import config
from twinstudio.model.drive import LinkInertia
from twinstudio.model.errors import SceneError
from twinstudio.model.results import Patch
from twinstudio.model.scene import Scene, check_scene, load_scene

FILE = "patches.json"


class Promoted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch in force.

    run: id of the run it came from. when: seconds since 1970. result: its number
    among the results of the run, from 1; 0 if that is not known.
    """

    patch: Patch
    run: str
    when: float
    result: int = 0


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """One patched value of a scene: what it was, what it is, and why."""

    key: str
    nominal: Any
    value: Any
    run: str
    reason: str


def load_patched(where: Path | str) -> Scene:
    """The scene at (or called) `where` with its patches applied; raises SceneError."""
    scene = load_scene(where)
    return patched(scene, patches_of(scene))


def patches_of(scene: Scene) -> tuple[Promoted, ...]:
    """Patches in force for `scene`, oldest first; raises SceneError for a broken file."""
    path = Path(scene.folder) / FILE
    if not path.exists():
        return ()
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Promoted, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise SceneError(
            f"cannot be read: {error}", where=str(path), hint="mend it, or delete it to go without"
        ) from error


def modified(scene: Scene) -> int:
    """When the patches of `scene` were last changed, ns since 1970; 0 without any."""
    try:
        return (Path(scene.folder) / FILE).stat().st_mtime_ns
    except OSError:
        return 0


def promote(scene: Scene, patch: Patch, *, run: str, result: int = 0) -> tuple[Promoted, ...]:
    """Put `patch` on top for good; raises SceneError if it does not fit or cannot be kept.

    scene: as written, without patches. result: number of the patch in the run.
    """
    added = Promoted(patch=patch, run=run, when=time.time(), result=result)
    stack = (*patches_of(scene), added)
    patched(scene, stack)
    _keep(scene, stack)
    return stack


def take_back(scene: Scene) -> Promoted:
    """Take the newest patch off again and return it; raises SceneError if there is none."""
    stack = patches_of(scene)
    if not stack:
        raise SceneError("there is no patch to take back", where=scene.folder)
    _keep(scene, stack[:-1])
    return stack[-1]


def patched(scene: Scene, stack: tuple[Promoted, ...]) -> Scene:
    """`scene` with all patches applied and checked like a file; raises SceneError."""
    if not stack:
        return scene
    raw = msgspec.to_builtins(scene)
    for promoted in stack:
        where = f"patch '{promoted.patch.name}' of run {promoted.run}"
        for change in promoted.patch.changes:
            holder, name = _place(raw, change.key, where)
            holder[name] = msgspec.to_builtins(change.value)
    where = f"{scene.folder}/{FILE}"
    fitted = config.convert(raw, Scene, where=where)
    check_scene(fitted, where)
    return fitted


def origins(scene: Scene, stack: tuple[Promoted, ...]) -> tuple[Origin, ...]:
    """Every patched value with its nominal value and the run that set it last."""
    found: dict[str, Origin] = {}
    raw = msgspec.to_builtins(scene)
    for promoted in stack:
        for change in promoted.patch.changes:
            holder, name = _place(raw, change.key, promoted.run)
            found[change.key] = Origin(
                key=change.key,
                nominal=holder[name],
                value=change.value,
                run=promoted.run,
                reason=promoted.patch.reason,
            )
    return tuple(found.values())


def _keep(scene: Scene, stack: tuple[Promoted, ...]) -> None:
    path = Path(scene.folder) / FILE
    fresh = path.with_suffix(".new")
    try:
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(stack), indent=2))
        fresh.replace(path)
    except OSError as error:
        raise SceneError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            hint="copy the scene into a folder of your own and work with that",
        ) from error


def _place(raw: dict[str, Any], key: str, where: str) -> tuple[dict[str, Any], str]:
    """The mapping that holds `key`, e.g. ``objects.cube.mass``, and the last name of it."""
    *path, name = key.split(".")
    here: Any = raw
    if len(path) == 2 and path[0] == "links":
        raw["links"].setdefault(path[1], msgspec.to_builtins(LinkInertia()))
    for step in path:
        here = _inside(here, step)
    if not isinstance(here, dict) or name not in here:
        there = f"there are {', '.join(here)}" if isinstance(here, dict) else ""
        raise SceneError(f"the scene has no '{key}'", where=where, hint=there)
    return here, name


def _inside(here: Any, step: str) -> Any:
    """The entry `step` of a mapping, or the object of that name in a list."""
    if isinstance(here, dict):
        return here.get(step)
    things = here if isinstance(here, list | tuple) else ()
    named = (t for t in things if isinstance(t, dict) and t.get("name") == step)
    return next(named, None)
