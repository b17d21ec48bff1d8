"""The drives of a scene's joints: mechanisms with parameters, as ``scene.toml`` names them.

One description for the twin, the fitters and the randomizers. A list has one value
a joint in the order of ``robot.joints``, or one for all; an empty list, or a section
that is not given, leaves its mechanism out. The page ``docs/mechanisms.md`` gives
each law with its formula and source.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.config import si
from twinstudio.model.errors import SceneError

Floats = NDArray[np.float64]
Positions = tuple[Annotated[float, si("rad|m")], ...]
Distances = tuple[Annotated[float, si("rad|m", low=0.0)], ...]
Speeds = tuple[Annotated[float, si("rad/s|m/s", low=0.0)], ...]
Efforts = tuple[Annotated[float, si("N m|N", low=0.0)], ...]
SignedEfforts = tuple[Annotated[float, si("N m|N")], ...]
Inertias = tuple[Annotated[float, si("kg m^2|kg", low=0.0)], ...]
Stiffnesses = tuple[Annotated[float, si("N m/rad|N/m", low=0.0)], ...]
Dampings = tuple[Annotated[float, si("N m s/rad|N s/m", low=0.0)], ...]
Quadratics = tuple[Annotated[float, si("N m s^2/rad^2|N s^2/m^2", low=0.0)], ...]
Ratios = tuple[Annotated[float, si("1", low=0.0)], ...]
Fractions = tuple[Annotated[float, si("1", low=-1.0, high=1.0)], ...]
Coefficients = tuple[Annotated[float, si("1/K", low=-0.1, high=0.1)], ...]
Times = tuple[Annotated[float, si("s", low=0.0)], ...]
Length = Annotated[float, si("m")]

Mechanism = Literal[
    "command",
    "controller",
    "saturation",
    "armature",
    "backlash",
    "compliance",
    "ripple",
    "kinematic_error",
    "friction",
    "thermal",
    "expansion",
    "payload",
    "cable",
    "sensors",
]
"""Names by which a mechanism is switched off."""


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class CommandPath(_Strict, frozen=True, kw_only=True):
    """From a command's stamp until the drive follows it.

    latency: transport delay of each joint. jitter: its spread: of *fixed* none, of
    *gamma* the standard deviation, of *spikes* the height of a rare late command.
    spike_share: share of commands that are late. hold: the drive takes a new command
    over at this period only; 0 takes every one.
    """

    latency: Times = ()
    jitter: Annotated[float, si("s", low=0.0, high=0.2)] = 0.0
    jitter_kind: Literal["fixed", "gamma", "spikes"] = "fixed"
    spike_share: Annotated[float, si("1", low=0.0, high=1.0)] = 0.01
    hold: Annotated[float, si("s", low=0.0, high=0.5)] = 0.0


class Controller(_Strict, frozen=True, kw_only=True):
    """The drive's position controller.

    effort = feedforward h(q, qd) + stiffness (q_ref - q)
    + damping (velocity_feedforward qd_ref - qd) + stiffness / integral_time integral.
    A cascade with position gain kp [1/s] and velocity gain kv has stiffness kp kv and
    damping kv. h: gravity, Coriolis and centrifugal effort. current_lag: time constant
    of the current loop. integral_time: empty for a controller without integral.
    """

    stiffness: Stiffnesses = ()
    damping: Dampings = ()
    integral_time: Times = ()
    feedforward: Annotated[float, si("1", low=0.0, high=1.5)] = 0.0
    velocity_feedforward: Annotated[float, si("1", low=0.0, high=1.5)] = 1.0
    current_lag: Times = ()


class Motor(_Strict, frozen=True, kw_only=True):
    """Motor and gear of each joint; all limits are at the joint, behind the gear.

    armature: inertia of rotor and gear seen at the joint. drive_gain: effort at the
    joint a ampere (torque constant times gear ratio).
    """

    armature: Inertias = ()
    drive_gain: tuple[Annotated[float, si("N m/A|N/A", low=0.0)], ...] = ()
    max_current: tuple[Annotated[float, si("A", low=0.0)], ...] = ()
    max_effort: Efforts = ()
    max_speed: Speeds = ()
    max_power: tuple[Annotated[float, si("W", low=0.0)], ...] = ()


class Transmission(_Strict, frozen=True, kw_only=True):
    """Between motor and link.

    backlash: whole width of the play. stiffness, damping: of the gear (compliance).
    ripple: amplitude of effort at `ripple_order` periods a joint turn (a metre);
    error: amplitude of position error at `error_order`; phases in rad.
    """

    backlash: Distances = ()
    stiffness: Stiffnesses = ()
    damping: Dampings = ()
    ripple: Efforts = ()
    ripple_order: Ratios = ()
    ripple_phase: tuple[Annotated[float, si("rad")], ...] = ()
    error: Distances = ()
    error_order: Ratios = ()
    error_phase: tuple[Annotated[float, si("rad")], ...] = ()


class Friction(_Strict, frozen=True, kw_only=True):
    """Friction of each joint at 25 degC.

    Sliding effort, against the motion: level + viscous |w| + quadratic w^2, where
    level = coulomb (1 + asymmetry sign w) + load_motor and load_external terms
    + exp(-|w / stribeck|^stribeck_exponent) (breakaway - coulomb + their stribeck terms).
    load terms: |load_motor tau_motor - load_external tau_external| (BAM M2 to M6).
    offset: constant effort whatever the direction. presliding: travel of the elastic
    contact before it slides; elements: Maxwell-slip springs side by side that share it.
    bristle_damping: of LuGre's contact. temperature: relative change of coulomb friction
    a kelvin; viscous_temperature: kelvins in which viscous friction falls to 1/e of its
    value at 25 degC, 0 for none.
    """

    coulomb: Efforts = ()
    viscous: Dampings = ()
    quadratic: Quadratics = ()
    breakaway: Efforts = ()
    stribeck: Speeds = ()
    stribeck_exponent: Ratios = ()
    asymmetry: Fractions = ()
    offset: SignedEfforts = ()
    contact: Literal["rigid", "maxwell", "lugre"] = "maxwell"
    presliding: Distances = ()
    elements: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    bristle_damping: Dampings = ()
    load_motor: Ratios = ()
    load_external: Ratios = ()
    stribeck_load_motor: Ratios = ()
    stribeck_load_external: Ratios = ()
    temperature: Coefficients = ()
    viscous_temperature: tuple[Annotated[float, si("K", low=0.0)], ...] = ()


class Thermal(_Strict, frozen=True, kw_only=True):
    """Two thermal nodes a joint: winding, heated by the current, and case.

    resistance: of the winding at 25 degC; it grows by `copper` a kelvin. Friction
    losses heat the case. magnet: relative change of the drive gain a kelvin of winding.
    """

    resistance: tuple[Annotated[float, si("ohm", low=0.0)], ...] = ()
    winding_capacity: tuple[Annotated[float, si("J/K", low=1e-3)], ...] = ()
    case_capacity: tuple[Annotated[float, si("J/K", low=1e-3)], ...] = ()
    winding_to_case: tuple[Annotated[float, si("K/W", low=1e-6)], ...] = ()
    case_to_ambient: tuple[Annotated[float, si("K/W", low=1e-6)], ...] = ()
    ambient: Annotated[float, si("degC", low=-40.0, high=80.0)] = 25.0
    start: tuple[Annotated[float, si("degC", low=-40.0, high=200.0)], ...] = ()
    copper: Annotated[float, si("1/K")] = 0.00393
    magnet: Annotated[float, si("1/K")] = 0.0


class Cable(_Strict, frozen=True, kw_only=True):
    """What cables and hoses do to each joint: a spring about `rest`, and a constant pull."""

    stiffness: Stiffnesses = ()
    rest: Positions = ()
    pull: SignedEfforts = ()


class Encoders(_Strict, frozen=True, kw_only=True):
    """What the twin's own sensors tell; noise is a white standard deviation.

    offset: mastering error, added to what is measured. secondary: whether the joint's
    position is measured behind the gear (link) instead of at the motor.
    """

    resolution: Distances = ()
    offset: Positions = ()
    noise: Distances = ()
    velocity_noise: Speeds = ()
    effort_noise: Efforts = ()
    secondary: bool = False


class Drive(_Strict, frozen=True, kw_only=True):
    """Every mechanism of the joints' drives. off: those that are switched off."""

    command: CommandPath = CommandPath()
    controller: Controller = Controller()
    motor: Motor = Motor()
    transmission: Transmission = Transmission()
    friction: Friction = Friction()
    thermal: Thermal = Thermal()
    cable: Cable = Cable()
    encoders: Encoders = Encoders()
    off: tuple[Mechanism, ...] = ()


class LinkInertia(_Strict, frozen=True, kw_only=True):
    """Inertial parameters of one link, in place of its model's.

    centre: of mass, in the link's frame. inertia: xx, xy, xz, yy, yz, zz about the
    centre, axes of the link's frame. expansion: relative growth of the distance to the
    next joint a kelvin of the joint's case.
    """

    mass: Annotated[float, si("kg", low=0.0)] | None = None
    centre: tuple[Length, Length, Length] | None = None
    inertia: tuple[Annotated[float, si("kg m^2")], ...] = ()
    expansion: Annotated[float, si("1/K", low=0.0, high=1e-3)] = 0.0


class Payload(_Strict, frozen=True, kw_only=True):
    """What hangs at the tool: centre [m] and inertia as in `LinkInertia`, tool frame."""

    mass: Annotated[float, si("kg", low=0.0, high=5000.0)] = 0.0
    centre: tuple[Length, Length, Length] = (0.0, 0.0, 0.0)
    inertia: tuple[Annotated[float, si("kg m^2")], ...] = ()


def per_joint(values: Sequence[float], joints: int, absent: float = 0.0) -> Floats:
    """`values` as float64[joints]; one value holds for all, none means `absent`."""
    given = np.asarray(values if len(values) else (absent,), dtype=np.float64)
    return np.broadcast_to(given, (joints,)).copy()


def check_drive(drive: Drive, joints: int, where: str) -> None:
    """Raise SceneError, naming `where` and key, unless every list fits the joints."""
    for section in drive.__struct_fields__:
        part = getattr(drive, section)
        if isinstance(part, msgspec.Struct):
            for key in part.__struct_fields__:
                _check_length(getattr(part, key), joints, f"drive.{section}.{key}", where)
    _check_together(drive, where)


def _check_length(value: object, joints: int, key: str, where: str) -> None:
    if isinstance(value, tuple) and len(value) not in (0, 1, joints):
        raise SceneError(
            f"key '{key}': expected {joints} values, one a joint, or one for all, got {len(value)}",
            where=where,
        )


_NEEDS = (
    ("controller", "damping", "controller", "stiffness"),
    ("controller", "integral_time", "controller", "stiffness"),
    ("motor", "max_current", "motor", "drive_gain"),
    ("transmission", "backlash", "motor", "armature"),
    ("transmission", "stiffness", "motor", "armature"),
    ("friction", "breakaway", "friction", "coulomb"),
    ("friction", "breakaway", "friction", "stribeck"),
    ("friction", "presliding", "friction", "coulomb"),
    ("transmission", "damping", "transmission", "stiffness"),
    ("transmission", "ripple", "transmission", "ripple_order"),
    ("transmission", "error", "transmission", "error_order"),
    ("thermal", "resistance", "motor", "drive_gain"),
    ("thermal", "resistance", "thermal", "winding_capacity"),
    ("thermal", "resistance", "thermal", "case_capacity"),
    ("thermal", "resistance", "thermal", "winding_to_case"),
    ("thermal", "resistance", "thermal", "case_to_ambient"),
)
"""Section and key, and section and key without which they mean nothing."""


def _check_together(drive: Drive, where: str) -> None:
    for section, key, other, needed in _NEEDS:
        if getattr(getattr(drive, section), key) and not getattr(getattr(drive, other), needed):
            raise SceneError(
                f"key 'drive.{section}.{key}' needs 'drive.{other}.{needed}' beside it",
                where=where,
            )
    path = drive.command
    if path.jitter_kind == "gamma" and path.jitter and not all(path.latency or (0.0,)):
        raise SceneError(
            "key 'drive.command.jitter' of kind 'gamma' needs a latency above zero on every "
            "joint in 'drive.command.latency': it is the mean of the delays",
            where=where,
        )
    friction = drive.friction
    if friction.contact == "lugre" and not friction.presliding:
        raise SceneError(
            "key 'drive.friction.contact': lugre needs 'drive.friction.presliding'", where=where
        )
