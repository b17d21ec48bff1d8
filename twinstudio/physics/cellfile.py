"""The hidden truth of an emulated cell, read from ``cell.toml``.

Nothing of the twin reads this file. Numbers are SI, or strings with a unit.
A value per joint is a list in the order of the scene's joints; a list of one
value holds for all of them. The page ``docs/emulated.md`` explains every key.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model import config
from twinstudio.model.config import si
from twinstudio.model.errors import SceneError

Floats = NDArray[np.float64]

Positions = tuple[Annotated[float, si("rad|m")], ...]
Distances = tuple[Annotated[float, si("rad|m", low=0.0)], ...]
Speeds = tuple[Annotated[float, si("rad/s|m/s", low=0.0)], ...]
Accelerations = tuple[Annotated[float, si("rad/s^2|m/s^2", low=0.0)], ...]
Efforts = tuple[Annotated[float, si("N m|N", low=0.0)], ...]
SignedEfforts = tuple[Annotated[float, si("N m|N")], ...]
Inertias = tuple[Annotated[float, si("kg m^2|kg", low=0.0)], ...]
Stiffnesses = tuple[Annotated[float, si("N m/rad|N/m", low=0.0)], ...]
Dampings = tuple[Annotated[float, si("N m s/rad|N s/m", low=0.0)], ...]
Ratios = tuple[Annotated[float, si("1", low=0.0)], ...]
Fractions = tuple[Annotated[float, si("1", low=-1.0, high=1.0)], ...]
Coefficients = tuple[Annotated[float, si("1/K", low=0.0, high=0.1)], ...]
Length = Annotated[float, si("m")]
NONE = (0.0,)


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class FrictionTruth(_Strict, frozen=True, kw_only=True):
    """Friction of each joint at 25 degC; an effect that is not given is absent.

    coulomb, breakaway: sliding and largest holding effort; without `breakaway`
        the two are equal. stribeck: speed at which the difference has fallen to 1/e.
    presliding: travel of the elastic contact before it slides.
    asymmetry: share by which Coulomb friction is larger forwards than the mean.
    temperature: relative fall of all friction a kelvin of case temperature.
    """

    presliding: Distances
    viscous: Dampings = NONE
    coulomb: Efforts = NONE
    breakaway: Efforts = ()
    stribeck: Speeds = (0.05,)
    asymmetry: Fractions = NONE
    temperature: Coefficients = NONE


class MotorTruth(_Strict, frozen=True, kw_only=True):
    """Motor and gear of each joint.

    armature: inertia of rotor and gear, seen at the joint.
    torque_constant: at the motor shaft; gear: motor turns a joint turn (or
        1/m for an axis that moves along); effort = torque_constant gear current.
    """

    armature: Inertias
    torque_constant: tuple[Annotated[float, si("N m/A|N/A", low=1e-6)], ...]
    gear: tuple[Annotated[float, si("1", low=1e-6)], ...] = (1.0,)
    max_effort: Efforts


class ControllerTruth(_Strict, frozen=True, kw_only=True):
    """The drive's own position controller, with model-based feed-forward.

    effort = feedforward * model(q, qd, qdd_ref) + stiffness (q_ref - q)
    + damping (velocity_feedforward qd_ref - qd) + stiffness / integral_time * integral.
    The model knows the arm, not the payload and not the friction.
    integral_time: leave it out for a controller without integral.
    """

    stiffness: Stiffnesses
    damping: Dampings
    feedforward: Annotated[float, si("1", low=0.0, high=1.0)] = 1.0
    velocity_feedforward: Annotated[float, si("1", low=0.0, high=1.0)] = 1.0
    integral_time: Annotated[float, si("s", low=1e-3)] | None = None


class CommandTruth(_Strict, frozen=True, kw_only=True):
    """Time from a command's stamp until the drive follows it: mean and spread.

    The delay is normal with standard deviation `jitter`, drawn a command; a
    late command never overtakes an earlier one.
    """

    latency: Annotated[float, si("s", low=0.0, high=0.2)] = 0.0
    jitter: Annotated[float, si("s", low=0.0, high=0.05)] = 0.0


class SensorTruth(_Strict, frozen=True, kw_only=True):
    """Sensors of each joint; noise is a standard deviation, white.

    resolution: one encoder count at the joint. offset: mastering error, added to
        what is measured. effort_side: *motor* is what the motor gives, *link*
        what arrives behind gear friction and rotor inertia.
    pose: noise of measured positions of tool and objects.
    """

    resolution: Distances = NONE
    position: Distances = NONE
    offset: Positions = NONE
    velocity: Speeds = NONE
    effort: Efforts = NONE
    effort_bias: SignedEfforts = NONE
    effort_side: Literal["motor", "link"] = "link"
    current: tuple[Annotated[float, si("A", low=0.0)], ...] = NONE
    temperature: Annotated[float, si("K", low=0.0)] = 0.0
    pose: Annotated[float, si("m", low=0.0)] = 0.0


class ThermalTruth(_Strict, frozen=True, kw_only=True):
    """Two thermal nodes a joint: winding, heated by the current, and case.

    resistance: of the winding at 25 degC; it grows by 0.393 % a kelvin.
    Friction losses heat the case. start: of both nodes; ambient if left out.
    """

    resistance: tuple[Annotated[float, si("ohm", low=0.0)], ...]
    winding_capacity: tuple[Annotated[float, si("J/K", low=1e-3)], ...]
    case_capacity: tuple[Annotated[float, si("J/K", low=1e-3)], ...]
    winding_to_case: tuple[Annotated[float, si("K/W", low=1e-6)], ...]
    case_to_ambient: tuple[Annotated[float, si("K/W", low=1e-6)], ...]
    ambient: Annotated[float, si("degC", low=-40.0, high=80.0)] = 22.0
    start: tuple[Annotated[float, si("degC", low=-40.0, high=200.0)], ...] = ()


class LinkTruth(_Strict, frozen=True, kw_only=True):
    """How one link differs from the robot's model; `inertia` replaces the model's."""

    mass_scale: Annotated[float, si("1", low=0.01, high=100.0)] = 1.0
    inertia: tuple[Annotated[float, si("kg m^2", low=1e-9)], ...] = ()


class PayloadTruth(_Strict, frozen=True, kw_only=True):
    """What hangs at the tool; `centre` in the tool's frame."""

    mass: Annotated[float, si("kg", low=0.0, high=1000.0)] = 0.0
    centre: tuple[Length, Length, Length] = (0.0, 0.0, 0.0)


class MountTruth(_Strict, frozen=True, kw_only=True):
    """Where base and tool really are, off from the scene, in the scene's frames."""

    base: tuple[Length, Length, Length] = (0.0, 0.0, 0.0)
    tool: tuple[Length, Length, Length] = (0.0, 0.0, 0.0)


class MotionLimits(_Strict, frozen=True, kw_only=True):
    """Limits that the motion program keeps at speed 1."""

    velocity: Speeds
    acceleration: Accelerations


class WayPoint(_Strict, frozen=True, kw_only=True):
    """Go to `to` at a share of the speed limit, then stay for `dwell`."""

    to: Positions
    speed: Annotated[float, si("1", low=0.01, high=1.0)] = 1.0
    dwell: Annotated[float, si("s", low=0.0)] = 0.0


class CellTruth(_Strict, frozen=True, kw_only=True):
    """All that is hidden in an emulated cell, and the motion it performs."""

    friction: FrictionTruth
    motor: MotorTruth
    controller: ControllerTruth
    thermal: ThermalTruth
    motion: MotionLimits
    program: tuple[WayPoint, ...]
    command: CommandTruth = CommandTruth()
    sensors: SensorTruth = SensorTruth()
    payload: PayloadTruth = PayloadTruth()
    mount: MountTruth = MountTruth()
    links: dict[str, LinkTruth] = {}
    description: str = ""
    block: Annotated[float, si("s", low=2e-3, high=0.1)] = 0.005


def load_cell(path: Path, joints: Sequence[str]) -> CellTruth:
    """The truth in file `path` for a robot with `joints`, fully checked.

    Raises SceneError, in one line that names file, key and expectation.
    """
    truth = config.load(path, CellTruth)
    check(truth, len(joints), where=str(path))
    return truth


def parse_cell(text: str, joints: Sequence[str], *, where: str) -> CellTruth:
    """As `load_cell`, from TOML `text`; `where` names its origin in messages."""
    truth = config.parse(text, CellTruth, where=where)
    check(truth, len(joints), where=where)
    return truth


def check(truth: CellTruth, joints: int, *, where: str) -> None:
    """Raise SceneError unless every list has one value a joint, or one for all."""
    for name in ("friction", "motor", "controller", "sensors", "thermal", "motion"):
        section = getattr(truth, name)
        for key in section.__struct_fields__:
            value = getattr(section, key)
            if isinstance(value, tuple):
                _check_length(value, joints, f"{name}.{key}", where, optional=key in _OPTIONAL)
    if not truth.program:
        raise SceneError("key 'program': expected at least one way-point", where=where)
    for k, point in enumerate(truth.program):
        if len(point.to) != joints:
            raise SceneError(
                f"key 'program[{k}].to': expected {joints} values, one a joint,"
                f" got {len(point.to)}",
                where=where,
            )
    _check_positive(truth, where)
    for link, values in truth.links.items():
        if len(values.inertia) not in (0, 3):
            raise SceneError(
                f"key 'links.{link}.inertia': expected 3 principal moments,"
                f" got {len(values.inertia)}",
                where=where,
            )


def per_joint(values: Sequence[float], joints: int) -> Floats:
    """`values` as float64[joints]; one value holds for all."""
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (joints,)).copy()


_OPTIONAL = ("breakaway", "start")
_POSITIVE = (
    ("friction", "presliding"),
    ("friction", "stribeck"),
    ("motor", "max_effort"),
    ("controller", "stiffness"),
    ("motion", "velocity"),
    ("motion", "acceleration"),
)


def _check_length(
    value: tuple[float, ...], joints: int, key: str, where: str, *, optional: bool
) -> None:
    if len(value) in (1, joints) or (optional and not value):
        return
    raise SceneError(
        f"key '{key}': expected 1 value for all joints or {joints}, one a joint, got {len(value)}",
        where=where,
    )


def _check_positive(truth: CellTruth, where: str) -> None:
    for section, key in _POSITIVE:
        if min(getattr(getattr(truth, section), key)) <= 0.0:
            raise SceneError(f"key '{section}.{key}': expected values above 0", where=where)
    friction = truth.friction
    if friction.breakaway and any(
        high < low for high, low in zip(*_paired(friction.breakaway, friction.coulomb), strict=True)
    ):
        raise SceneError(
            "key 'friction.breakaway': expected at least the Coulomb friction", where=where
        )


def _paired(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[list[float], list[float]]:
    count = max(len(first), len(second))
    return per_joint(first, count).tolist(), per_joint(second, count).tolist()
