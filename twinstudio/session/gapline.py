"""The live gap: pairs new samples of twin and cell as they come in.

One worker calls `advance` some twenty times a second; each sample is paired
once. The gap itself becomes a history, so that it can be drawn and scrubbed
like any signal.
"""

import threading
from collections import deque

import numpy as np
from msgspec import structs

from twinstudio.flow.align import pair
from twinstudio.flow.history import History
from twinstudio.flow.protocol import Event
from twinstudio.gap.table import RunAccumulator, Timing
from twinstudio.model.block import Block
from twinstudio.model.errors import AlignError
from twinstudio.model.gaps import GapTable, Spread
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout
from twinstudio.model.views import SourceName
from twinstudio.session.source import Source

COMPARED = ("joint.position", "joint.velocity", "joint.effort", "joint.current", "tcp.pose")
LONGEST_PIECE = 2_000_000_000
SETTLE_NS = 20_000_000
PART = 500_000_000
"""ns: the sliding window moves on in parts of this length."""
FIRST = int(np.iinfo(np.int64).min)
JUMPS = ("synchronised", "resynchronised", "reset", "seek", "loop", "log-clock")
"""Codes of events after which a source stands somewhere else without having moved there."""


class GapLine:
    """Pairs, gap history and figures of one twin and one cell."""

    def __init__(self, *, budget: int, window: float) -> None:
        """`budget`: bytes of the gap's history; `window`: sliding window [s]."""
        self.kinematics: Kinematics | None = None
        self._budget = budget
        self._lock = threading.Lock()
        self.window = window
        self._calm: dict[SourceName, int] = {}
        self._gap_from = FIRST
        self._seen: dict[SourceName, History] = {}
        self._begin(None)

    def _begin(self, layouts: tuple[Layout, Layout] | None) -> None:
        with self._lock:
            self._layouts = layouts
            self._names = shared_signals(*layouts) if layouts else ()
            self._history: History | None = None
            self._parts: deque[RunAccumulator] = deque()
            self._part_ends = 0
            self._run: RunAccumulator | None = None
            self._timed: GapTable | None = None
            self._cell_from = FIRST
            self._twin_from = FIRST
            self._paired = 0

    @property
    def history(self) -> History | None:
        """The gap as a history on session time; None before the first pair."""
        with self._lock:
            return self._history

    def learn(self, kinematics: Kinematics) -> None:
        """From now on tell the tool's distance too; the run starts anew with it."""
        self.kinematics = kinematics
        self.reset()

    def reset(self) -> None:
        """Start the run's figures anew; histories stay."""
        with self._lock:
            self._run = None
            self._parts.clear()

    def heard(self, role: SourceName, event: Event) -> None:
        """Mind an event of a source: a jump is no motion, so delays are taken after it.

        Until the twin was set to the cell for the first time there is no gap to tell.
        """
        if event.code not in JUMPS:
            return
        self._calm = {**self._calm, role: event.stamp}
        if role == "twin" and event.code == "synchronised":
            self._gap_from = event.stamp
            with self._lock:
                self._history = self._run = None
                self._parts.clear()

    def advance(self, twin: Source, cell: Source) -> None:
        """Pair what has come in since the last call, up to `LONGEST_PIECE` ns of it."""
        twin_history, cell_history = twin.history, cell.history
        if twin_history is None or cell_history is None:
            return
        layouts = (twin_history.layout, cell_history.layout)
        if layouts != self._layouts:
            self._begin(layouts)
        self._mind_new(twin_history, cell_history)
        if not self._names or twin.clock is None or cell.clock is None:
            return
        span = cell_history.span()
        if span is None:
            return
        cell_new = _piece(cell_history, max(self._cell_from, span[0]), span[1])
        twin_new = twin_history.window(max(self._twin_from, FIRST), np.iinfo(np.int64).max)
        if len(cell_new) < 2 or len(twin_new) < 2:
            return
        self._match(twin, cell, twin_new, cell_new)

    def _mind_new(self, twin: History, cell: History) -> None:
        """Pair from its start what began anew, with a clock that may be behind the old one."""
        if self._seen.get("cell") is not cell:
            self._cell_from = FIRST
        if self._seen.get("twin") is not twin:
            self._twin_from = FIRST
        self._seen = {"twin": twin, "cell": cell}

    def _match(self, twin: Source, cell: Source, twin_new: Block, cell_new: Block) -> None:
        """Pair the cell's samples that the twin has already passed."""
        assert twin.clock is not None
        assert cell.clock is not None
        twin_local = twin.clock.to_local(twin_new.stamps)
        cell_local = cell.clock.to_local(cell_new.stamps)
        upto = int(np.searchsorted(cell_local, twin_local[-1], side="right"))
        if upto == 0:
            return
        self._cell_from = int(cell_new.stamps[upto - 1]) + 1
        reach = int(np.searchsorted(twin_local, cell_local[upto - 1] - SETTLE_NS))
        self._twin_from = int(twin_new.stamps[max(0, reach - 1)])
        calm = int(np.searchsorted(twin_new.stamps, self._gap_from))
        if calm >= len(twin_new) - 1:
            return
        try:
            piece = pair(
                twin_new.part(slice(calm, len(twin_new))),
                cell_new.part(slice(0, upto)),
                twin_clock=twin.clock,
                cell_clock=cell.clock,
                names=self._names,
            )
        except AlignError:
            return  # no overlap yet: the twin started after these samples
        self._keep(piece)

    def _keep(self, piece: Pair) -> None:
        with self._lock:
            if self._history is None:
                self._history = History(piece.layout, self._budget)
            if self._run is None:
                self._run = RunAccumulator(kinematics=self.kinematics)
            self._history.append(
                Block(piece.layout, piece.stamps, np.array(piece.gap), self._paired)
            )
            self._paired += len(piece)
            self._run.add(piece)
            if not self._parts or piece.stamps[-1] >= self._part_ends:
                self._parts.append(RunAccumulator(kinematics=self.kinematics))
                self._part_ends = int(piece.stamps[-1]) + PART
            self._parts[-1].add(piece)
            oldest = int(piece.stamps[-1]) - int(self.window * 1e9)
            while self._parts[0].totals.end < oldest:
                self._parts.popleft()

    def tables(
        self, twin: Source, cell: Source, *, delays: bool
    ) -> tuple[GapTable | None, GapTable | None]:
        """Figures over the sliding window and over the run.

        delays: also find anew how far motions are behind their commands, lately;
            it takes three times as long as the rest. Without it the last ones stand.
        """
        with self._lock:
            parts, run = list(self._parts), self._run
        if not parts or run is None:
            return None, None
        # Only this thread adds to `run`, and nobody may wait for what takes this long.
        if delays or self._timed is None:
            timing = Timing(cell=self._recent(cell), twin=self._recent(twin))
            self._timed = run.table(timing=timing)
        window = run.like()
        for part in parts:
            window.absorb(part.totals)
        return _completed(window.table(), self._timed, cell), _completed(
            run.table(), self._timed, cell
        )

    def pair(self, twin: Source, cell: Source) -> Pair | None:
        """The pair that the sliding window's table is made of, None while there is none.

        Its samples may reach back less far than a long window, as far as history does.
        """
        with self._lock:
            totals = [part.totals for part in self._parts]
            names = self._names
        held = twin.history, cell.history, twin.clock, cell.clock
        twin_history, cell_history, twin_clock, cell_clock = held
        if not totals or twin_history is None or cell_history is None:
            return None
        if twin_clock is None or cell_clock is None:
            return None
        ends = np.array([totals[0].start, totals[-1].end], dtype=np.int64)
        first, last = map(int, cell_clock.to_source(ends))
        early, late = map(int, twin_clock.to_source(ends + np.array([-PART, PART])))
        cell_part = cell_history.window(first, last)
        twin_part = twin_history.window(max(early, self._gap_from), late)
        if len(cell_part) < 2 or len(twin_part) < 2:
            return None
        try:
            return pair(
                twin_part, cell_part, twin_clock=twin_clock, cell_clock=cell_clock, names=names
            )
        except AlignError:
            return None  # a source has begun anew meanwhile

    def _recent(self, source: Source) -> Block | None:
        """The source's samples in the sliding window, after its last jump."""
        history = source.history
        span = history.span() if history is not None else None
        if history is None or span is None:
            return None
        calm = self._calm.get(source.role, FIRST)
        start = span[1] - int(self.window * 1e9)
        # A jump that lies ahead was stamped by another clock than the samples.
        return history.window(max(start, calm) if calm < span[1] else start, span[1])


def _piece(history: History, start: int, end: int) -> Block:
    """Samples from `start` on [ns], up to `LONGEST_PIECE`, over a hole if there is one."""
    piece = history.window(start, min(start + LONGEST_PIECE, end))
    if len(piece) >= 2 or start + LONGEST_PIECE >= end:
        return piece
    rest = history.window(start, end)
    if len(rest) < 2:
        return rest
    # The first may be all there is before the hole: the second begins the piece.
    upto = int(np.searchsorted(rest.stamps, rest.stamps[1] + LONGEST_PIECE, side="right"))
    return rest.part(slice(0, upto))


def _completed(table: GapTable, timed: GapTable, cell: Source) -> GapTable:
    """`table` with the delays of `timed` and the latency of the link to the cell."""
    delays = {joint.name: joint for joint in (*timed.joints, timed.overall)}
    joints = [
        structs.replace(
            joint,
            command_to_motion=delays[joint.name].command_to_motion,
            twin_command_to_motion=delays[joint.name].twin_command_to_motion,
        )
        for joint in (*table.joints, table.overall)
    ]
    return structs.replace(
        table,
        joints=tuple(joints[:-1]),
        overall=joints[-1],
        transport=_transport(cell),
        notes=timed.notes,
    )


def shared_signals(twin: Layout, cell: Layout) -> tuple[str, ...]:
    """Signals both have with the same components, of those that are compared."""
    return tuple(
        name
        for name in COMPARED
        if name in twin and name in cell and twin.signal(name).labels == cell.signal(name).labels
    )


def _transport(source: Source) -> Spread | None:
    health = source.link.health()
    if np.isnan(health.latency_p50):
        return None
    return Spread(p50=health.latency_p50, p99=health.latency_p99)
