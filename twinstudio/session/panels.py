"""Plots of a report, from a live session or from a pair."""

from collections.abc import Mapping

import numpy as np

from twinstudio.model.health import Health
from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout
from twinstudio.model.views import Snapshot, TraceQuery
from twinstudio.report.page import Panel
from twinstudio.session.session import Session

PLOTTED = ("joint.position", "joint.velocity", "joint.effort")
PIXELS = 900


def panels_of_session(session: Session, *, layout: Layout, seconds: float) -> tuple[Panel, ...]:
    """The last `seconds` of every joint's signals in `layout`, from the histories."""
    _, end = session.extent()
    start = end - int(seconds * 1e9)
    panels = []
    for name in PLOTTED:
        if name not in layout:
            continue
        signal = layout.signal(name)
        found = session.traces(TraceQuery(name, signal.labels, start, end, PIXELS))
        for label, unit in zip(signal.labels, signal.units, strict=True):
            lines = {t.source: (t.time, t.value) for t in found if t.label == label}
            panels.append(
                Panel(
                    title=f"{label}, {name}",
                    unit=unit,
                    traces={role: lines[role] for role in ("cell", "twin") if role in lines},
                    gap=lines.get("gap"),
                )
            )
    return tuple(panels)


def panels_of_pair(pair: Pair) -> tuple[Panel, ...]:
    """Every joint's signals of a whole pair; times from its start."""
    time = (pair.stamps - pair.stamps[0]) / 1e9
    panels = []
    for name in PLOTTED:
        if name not in pair.layout:
            continue
        signal, start = pair.layout.signal(name), pair.layout.span(name).start
        for k, (label, unit) in enumerate(zip(signal.labels, signal.units, strict=True)):
            twin, cell = pair.twin[:, start + k], pair.cell[:, start + k]
            panels.append(
                Panel(
                    title=f"{label}, {name}",
                    unit=unit,
                    traces={"cell": (time, cell), "twin": (time, twin)},
                    gap=(time, np.subtract(twin, cell)),
                )
            )
    return tuple(panels)


def healths(snapshot: Snapshot) -> Mapping[str, Health]:
    """How each link did, by the source's role."""
    return {source.role: source.health for source in snapshot.sources}
