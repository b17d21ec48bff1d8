"""Drawable lines and moments, cut from the histories of a session."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from twinstudio.flow.history import History
from twinstudio.model.block import Stamps
from twinstudio.model.gaps import GapTable
from twinstudio.model.views import (
    Moment,
    SignalChoice,
    SourceName,
    Trace,
    TraceQuery,
    TraceSource,
)
from twinstudio.session.source import Source

Tables = tuple[GapTable | None, GapTable | None]
Sources = Mapping[SourceName, Source]


class Clock(Protocol):
    """Maps stamps of a source to the session's clock and back, int64[n] ns."""

    def to_local(self, stamps: Stamps) -> Stamps:
        """Session stamps of source stamps."""

    def to_source(self, stamps: Stamps) -> Stamps:
        """Source stamps of session stamps."""


class SameClock:
    """The clock of what is on session time already."""

    def to_local(self, stamps: Stamps) -> Stamps:
        """The stamps as they are."""
        return stamps

    to_source = to_local


def traces(query: TraceQuery, sources: Sources, gap: History | None) -> list[Trace]:
    """Lines of cell, twin and gap for one signal, at most two points a pixel."""
    found: list[Trace] = []
    for role, source in sources.items():
        history, clock = source.history, source.clock
        if history is not None and clock is not None:
            found += _lines(query, role, history, clock)
    if gap is not None and not query.by_arrival:
        found += _lines(query, "gap", gap, SameClock())
    return found


def choices(sources: Sources) -> list[SignalChoice]:
    """Every signal of any source, in the order of the layouts."""
    found: dict[str, SignalChoice] = {}
    for role, source in sources.items():
        layout = source.layout
        for signal in layout.signals if layout is not None else ():
            known = found.get(signal.name)
            roles = (*known.sources, role) if known else (role,)
            found[signal.name] = SignalChoice(signal.name, signal.labels, signal.units, roles)
    return list(found.values())


def moment(stamp: int, sources: Sources) -> Moment:
    """Twin and cell at session time `stamp` [ns]."""
    rows = {}
    for role, source in sources.items():
        if source.history is not None and source.clock is not None:
            there = source.clock.to_source(np.array([stamp], dtype=np.int64))
            rows[role] = source.history.at(int(there[0]))
    joints = {
        role: sources[role].joints_of(row) if row is not None else None
        for role, row in rows.items()
    }
    objects = {
        name: place
        for role in ("cell", "twin")
        if rows.get(role) is not None
        for name, place in sources[role].objects_of(rows[role]).items()
    }
    return Moment(stamp, joints.get("twin"), joints.get("cell"), objects)


def extent(sources: Sources) -> tuple[int, int]:
    """First and last instant held by any history, (0, 0) while there is none."""
    ends = []
    for source in sources.values():
        span = source.history.span() if source.history is not None else None
        if span is not None and source.clock is not None:
            ends.append(source.clock.to_local(np.array(span, dtype=np.int64)))
    if not ends:
        return 0, 0
    return int(min(end[0] for end in ends)), int(max(end[1] for end in ends))


def _lines(query: TraceQuery, role: TraceSource, history: History, clock: Clock) -> list[Trace]:
    layout = history.layout
    if query.signal not in layout or query.end <= query.start:
        return []
    signal = layout.signal(query.signal)
    labels = [label for label in query.labels if label in signal.labels]
    if not labels:
        return []
    ends = np.array([query.start, query.end], dtype=np.int64)
    start, end = ends if query.by_arrival else clock.to_source(ends)
    envelope = history.envelope(
        [layout.column(query.signal, label) for label in labels],
        int(start),
        int(end),
        query.pixels,
        by_arrival=query.by_arrival,
    )
    stamps, values = envelope.line()
    local = stamps if query.by_arrival else clock.to_local(stamps)
    time = (local - query.start) / 1e9
    return [
        Trace(role, label, signal.units[signal.labels.index(label)], time, values[:, k])
        for k, label in enumerate(labels)
    ]
