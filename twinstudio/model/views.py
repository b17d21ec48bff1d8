"""Read-only pictures of a session, made for whoever looks: window, console, report."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.gaps import GapTable
from twinstudio.model.health import Health
from twinstudio.model.measured import Measured

Floats = NDArray[np.float64]
SourceName = Literal["cell", "twin"]
TraceSource = Literal["cell", "twin", "gap"]


@dataclass(frozen=True, slots=True, eq=False)
class SourceView:
    """One source of a session.

    joints: newest joint positions, rad or m, NaN where there is none yet.
    objects: newest object poses, name -> float64[7].
    note: what the process last said, when it died.
    """

    role: SourceName
    title: str
    control: str
    health: Health
    joints: Floats
    objects: dict[str, Floats]
    running: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class RecordingView:
    """A recording in progress; `alarm` says why it stopped by itself."""

    path: str
    seconds: float
    bytes: int
    dropped: int
    active: bool
    alarm: str = ""


@dataclass(frozen=True, slots=True)
class ReplayView:
    """The transport of a replayed cell; times in s from the start of the log."""

    log: str
    position: float
    duration: float
    rate: float
    paused: bool
    loop: bool


@dataclass(frozen=True, slots=True, eq=False)
class MetricView:
    """A metric that the user chose, and what it last said of the sliding window.

    key: names it in commands. state: *waiting* for a first answer, *measuring*, or
    *failed* and taken out, with the reason in ``measured.error``.
    start, end: the stretch its figures are over, ns on the session clock; 0 before the first.
    """

    key: str
    title: str
    state: Literal["waiting", "measuring", "failed"]
    measured: Measured
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A session at one instant; `now` is ns on the session clock.

    window, run: the gap over the sliding window and since the start.
    metrics: of plugins, in the order in which they were chosen.
    real_time: simulated over real time of the twin, 1.0 is real time.
    lateness: 99th percentile of how late twin steps are [s].
    """

    now: int
    sources: tuple[SourceView, ...]
    window: GapTable | None = None
    run: GapTable | None = None
    recording: RecordingView | None = None
    replay: ReplayView | None = None
    real_time: float = float("nan")
    lateness: float = float("nan")
    metrics: tuple[MetricView, ...] = ()

    def source(self, role: SourceName) -> SourceView | None:
        """The source of that role, if there is one."""
        return next((source for source in self.sources if source.role == role), None)


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """Which traces to draw: components of one signal over a stretch of session time.

    start, end: ns on the session clock. pixels: width of the plot.
    by_arrival: use receive stamps instead of mapped source stamps.
    """

    signal: str
    labels: tuple[str, ...]
    start: int
    end: int
    pixels: int
    by_arrival: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A drawable line: at most two points a pixel column, NaN where data is missing.

    time: float64[m], s, session time (ns / 1e9 minus the query's start).
    value: float64[m], SI.
    """

    source: TraceSource
    label: str
    unit: str
    time: Floats
    value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Twin and cell at one instant, for drawing: joints rad or m, object poses [7]."""

    stamp: int
    twin: Floats | None
    cell: Floats | None
    objects: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SignalChoice:
    """A signal that can be plotted and which sources have it."""

    name: str
    labels: tuple[str, ...]
    units: tuple[str, ...]
    sources: tuple[SourceName, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the session log. `seq` counts up; `stamp` is wall-clock ns.

    kind: what it is about, e.g. ``cell``, ``twin``, ``recording``, ``command``.
    """

    seq: int
    stamp: int
    level: Literal["info", "warning", "alarm"]
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandInfo:
    """A named command of the session; `args` name -> help, required ones first."""

    name: str
    help: str
    args: dict[str, str]
