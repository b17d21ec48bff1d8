"""What the gap is made of: figures per joint and overall."""

import msgspec


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Twin minus cell over one stretch of one signal, in the signal's SI unit.

    relative: ||twin - cell|| / ||cell||, None when the cell's norm is zero.
    n: samples in which both had a reading.
    """

    rmse: float
    maximum: float
    bias: float
    relative: float | None
    n: int


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a response is behind its command.

    seconds: the delay. correlation: at that delay, 1 is a perfect copy.
    signal: what was compared, e.g. ``velocity``.
    """

    seconds: float
    correlation: float
    signal: str


class JointGap(msgspec.Struct, frozen=True, kw_only=True):
    """One joint. A figure is None when twin or cell has no such signal.

    command_to_motion: of the cell; twin_command_to_motion: of the twin.
    floor: RMS spread of repeats of the cell itself, signal -> SI, where known.
    """

    name: str
    position: Figures | None = None
    velocity: Figures | None = None
    effort: Figures | None = None
    current: Figures | None = None
    command_to_motion: Lag | None = None
    twin_command_to_motion: Lag | None = None
    floor: dict[str, float] = {}


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Median and 99th percentile of a duration [s]."""

    p50: float
    p99: float


class GapTable(msgspec.Struct, frozen=True, kw_only=True):
    """The gap of one pair, or of a whole run.

    overall: the same figures over all joints together, where units allow it.
    tcp: distance of the tool points [m]. transport: source stamp to arrival.
    start, end: ns on the common time base. notes: caveats a reader must know.
    """

    joints: tuple[JointGap, ...]
    overall: JointGap
    samples: int
    start: int
    end: int
    tcp: Figures | None = None
    transport: Spread | None = None
    notes: tuple[str, ...] = ()
