"""Scenes: one folder a cell, described by ``scene.toml``.

The page ``docs/scenes.md`` explains every key. Numbers are SI, or strings with
a unit such as ``"25 mm"``. Paths to models are relative to the scene's folder,
``package://NAME/...`` for a folder named in ``[packages]`` or an installed
Python package, and may contain ``${TWINSTUDIO_DATA}``.
"""

import importlib.util
import os
import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from twinstudio.model import config
from twinstudio.model.config import si
from twinstudio.model.drive import Drive, LinkInertia, Payload, check_drive
from twinstudio.model.errors import SceneError

Length = Annotated[float, si("m")]
Angle = Annotated[float, si("rad")]
JointPosition = Annotated[float, si("rad|m")]
Triple = tuple[Length, Length, Length]
FILE = "scene.toml"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Placement(_Strict, frozen=True):
    """position [m] and roll-pitch-yaw [rad] in the world."""

    position: Triple = (0.0, 0.0, 0.0)
    rpy: tuple[Angle, Angle, Angle] = (0.0, 0.0, 0.0)


class Robot(_Strict, frozen=True):
    """The robot: its model, and which of its joints are driven, in signal order.

    home: start position of `joints`, rad or m.
    held: other movable joints and the position at which they are held, rad or m.
    max_effort: largest effort of each drive, N m or N; the model's own if empty.
    """

    model: str
    joints: tuple[str, ...]
    tcp: str
    home: tuple[JointPosition, ...]
    base: Placement = Placement()
    held: dict[str, JointPosition] = {}
    max_effort: tuple[Annotated[float, si("N m|N", low=0.0)], ...] = ()


class Box(_Strict, frozen=True, tag="box", tag_field="kind"):
    """A box with edge lengths [m]."""

    size: Triple


class Sphere(_Strict, frozen=True, tag="sphere", tag_field="kind"):
    """A ball."""

    radius: Annotated[float, si("m", low=0.0)]


class Cylinder(_Strict, frozen=True, tag="cylinder", tag_field="kind"):
    """A cylinder along z."""

    radius: Annotated[float, si("m", low=0.0)]
    length: Annotated[float, si("m", low=0.0)]


class Object(_Strict, frozen=True):
    """A thing beside the robot: a model file or a primitive shape.

    mass 0 means fixed in the world; a model file keeps its own masses.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_\-]+$")]
    model: str = ""
    shape: Box | Sphere | Cylinder | None = None
    at: Placement = Placement()
    mass: Annotated[float, si("kg", low=0.0)] = 0.0
    friction: Annotated[float, si("1", low=0.0)] = 0.5
    fixed: bool = False
    color: tuple[float, float, float, float] = (0.62, 0.64, 0.67, 1.0)


class Simulation(_Strict, frozen=True):
    """Step and solver of the twin."""

    step: Annotated[float, si("s", low=1e-5, high=0.02)] = 0.001
    gravity: tuple[
        Annotated[float, si("m/s^2")], Annotated[float, si("m/s^2")], Annotated[float, si("m/s^2")]
    ] = (0.0, 0.0, -9.81)
    solver_iterations: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


TwinMode = Literal["commanded", "following", "resynchronised"]


class TwinSettings(_Strict, frozen=True):
    """How the twin runs beside the cell.

    mode: *commanded* drives its own joints with the cell's commands; *following*
        is set to the cell's measured joints; *resynchronised* is commanded, and
        set to the cell when a joint is off by more than `resync_above`.
    behind: how far the twin runs behind the cell's clock, so that every command
        is there before it is needed.
    position_gain, velocity_gain: of PyBullet's joint motors, per step.
    """

    mode: TwinMode = "commanded"
    behind: Annotated[float, si("s", low=0.0, high=2.0)] = 0.05
    resync_above: Annotated[float, si("rad|m", low=0.0)] = 0.1
    position_gain: Annotated[float, si("1", low=0.0, high=1.0)] = 0.1
    velocity_gain: Annotated[float, si("1", low=0.0, high=1.0)] = 1.0


class CellSettings(_Strict, frozen=True):
    """What stands for the cell when none is named on the command line.

    emulated: file of the emulated cell, relative to the scene.
    endpoint: control address of a running cell, e.g. ``tcp://127.0.0.1:5600``.
    """

    emulated: str = ""
    endpoint: str = ""


class Scene(_Strict, frozen=True):
    """One robot cell and its twin. Immutable; `folder` is where it was read.

    drive: mechanisms of the joints' drives; where it is empty, PyBullet's motors drive.
    links: links whose inertial parameters differ from the model's.
    """

    name: str
    robot: Robot
    drive: Drive = Drive()
    links: dict[str, LinkInertia] = {}
    payload: Payload = Payload()
    description: str = ""
    objects: tuple[Object, ...] = ()
    simulation: Simulation = Simulation()
    twin: TwinSettings = TwinSettings()
    cell: CellSettings = CellSettings()
    packages: dict[str, str] = {}
    folder: str = ""

    def path(self, reference: str) -> Path:
        """The file `reference` points to; raises SceneError if it is not there."""
        return resolve(reference, Path(self.folder), self.packages)


def load_scene(where: Path | str) -> Scene:
    """The scene in folder (or file, or built-in name) `where`, fully checked.

    Raises SceneError, in one line that names file, key and expectation, for an
    unknown key, a wrong unit or shape, or a model file that is missing.
    """
    path = find_scene(where)
    scene = config.load(path, Scene)
    if scene.folder:
        raise SceneError("unknown key 'folder'", where=str(path))
    scene = msgspec.structs.replace(scene, folder=str(path.parent))
    check_scene(scene, str(path))
    return scene


def find_scene(where: Path | str) -> Path:
    """The ``scene.toml`` meant by a path or by the name of a shipped scene."""
    path = Path(where)
    if path.is_file() and path.name != FILE:
        raise SceneError(f"a scene's file is called {FILE}, alone in its folder", where=str(path))
    # A path of the user's own that is not there must not mean one of ours.
    shipped = str(path.parent) in {".", "scenes"}
    for candidate in (path, path / FILE, *([scenes_folder() / path.name / FILE] * shipped)):
        if candidate.is_file():
            return candidate.resolve()
    raise SceneError(
        f"there is no scene '{where}'",
        hint=f"give a folder with a {FILE}, or one of: {', '.join(shipped_scenes()) or 'none'}",
    )


def scenes_folder() -> Path:
    """Where the shipped scenes lie: in the wheel, or beside the source tree."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "scenes"
    return installed if installed.is_dir() else package.parent / "scenes"


def shipped_scenes() -> list[str]:
    """Names of the scenes that come with Twinstudio."""
    return sorted(file.parent.name for file in scenes_folder().glob(f"*/{FILE}"))


def resolve(reference: str, folder: Path, packages: dict[str, str]) -> Path:
    """The existing file meant by a model reference; raises SceneError if missing."""
    text = _VARIABLE.sub(_value_of, reference)
    if text.startswith("package://"):
        name, _, rest = text.removeprefix("package://").partition("/")
        path = _package_folder(name, folder, packages) / rest
    else:
        path = folder / text
    if not path.is_file():
        raise SceneError(
            f"'{reference}' is missing: there is no file {path}",
            hint="set TWINSTUDIO_DATA to the folder with the data sets"
            if "${TWINSTUDIO_DATA}" in (reference + str(packages))
            else "",
        )
    return path


def data_folder() -> Path:
    """Where logs of real robots are looked for: TWINSTUDIO_DATA or ../shared/data."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("TWINSTUDIO_DATA", default))


def _value_of(match: re.Match[str]) -> str:
    name = match.group(1)
    if name == "TWINSTUDIO_DATA":
        return str(data_folder())
    if name not in os.environ:
        raise SceneError(f"environment variable {name} is not set")
    return os.environ[name]


def _package_folder(name: str, folder: Path, packages: dict[str, str]) -> Path:
    if name in packages:
        return folder / _VARIABLE.sub(_value_of, packages[name])
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or found.origin is None:
        raise SceneError(
            f"package '{name}' is unknown",
            hint="name its folder under [packages], or install the Python package that ships it",
        )
    return Path(found.origin).parent


def check_scene(scene: Scene, where: str) -> None:
    """Raise SceneError, naming `where` and key, for what types alone cannot tell."""
    robot = scene.robot
    _same_length(len(robot.home), len(robot.joints), "robot.home", where)
    if robot.max_effort:
        _same_length(len(robot.max_effort), len(robot.joints), "robot.max_effort", where)
    if len(set(robot.joints)) != len(robot.joints):
        raise SceneError("key 'robot.joints': a joint is named twice", where=where)
    _must_exist(scene, robot.model, "robot.model", where)
    check_drive(scene.drive, len(robot.joints), where)
    _check_inertias(scene, where)
    _check_objects(scene, where)
    if scene.cell.emulated:
        _must_exist(scene, scene.cell.emulated, "cell.emulated", where)


def _check_objects(scene: Scene, where: str) -> None:
    seen: set[str] = set()
    for k, thing in enumerate(scene.objects):
        if thing.name in seen or thing.name == "robot":
            raise SceneError(f"key 'objects[{k}].name': '{thing.name}' is taken", where=where)
        seen.add(thing.name)
        if bool(thing.model) == (thing.shape is not None):
            raise SceneError(f"key 'objects[{k}]': give either model or shape", where=where)
        if thing.shape is not None and min(_extents(thing.shape)) <= 0.0:
            raise SceneError(f"key 'objects[{k}].shape': every length must be above 0", where=where)
        if thing.model:
            _must_exist(scene, thing.model, f"objects[{k}].model", where)


def _check_inertias(scene: Scene, where: str) -> None:
    parts = [(f"links.{name}", link.inertia) for name, link in scene.links.items()]
    for key, inertia in [*parts, ("payload", scene.payload.inertia)]:
        if inertia:
            _same_length(len(inertia), 6, f"{key}.inertia", where, "xx, xy, xz, yy, yz, zz")


def _extents(shape: Box | Sphere | Cylinder) -> tuple[float, ...]:
    if isinstance(shape, Box):
        return shape.size
    return (shape.radius, shape.length) if isinstance(shape, Cylinder) else (shape.radius,)


def _same_length(got: int, expected: int, key: str, where: str, each: str = "one a joint") -> None:
    if got != expected:
        raise SceneError(f"key '{key}': expected {expected} values, {each}, got {got}", where=where)


def _must_exist(scene: Scene, reference: str, key: str, where: str) -> None:
    try:
        scene.path(reference)
    except SceneError as error:
        raise SceneError(f"key '{key}': {error.what}", where=where, hint=error.hint) from error
