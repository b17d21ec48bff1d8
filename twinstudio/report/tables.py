"""The gap table of a report as rows of text, missing figures with their reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag
from twinstudio.model.health import Health
from twinstudio.model.signals import Layout
from twinstudio.report.numbers import number, shown

KINDS = ("position", "velocity", "effort", "current")


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure as text; `reason` says why there is none; `share` (0-1) draws a bar."""

    text: str
    reason: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; `total` sets it apart from the others."""

    name: str
    cells: tuple[Cell, ...]
    total: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; `heads` stand over the cells, after the column of names."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]


def motion_tables(table: GapTable, layout: Layout) -> list[Table]:
    """One table for each kind of signal that twin and cell both have."""
    return [_motion(table, layout, kind) for kind in KINDS if f"joint.{kind}" in layout]


def absent(layout: Layout) -> list[str]:
    """The kinds of signal that cannot be compared."""
    return [kind for kind in KINDS if f"joint.{kind}" not in layout]


def timing_table(table: GapTable) -> Table | None:
    """Command-to-motion delay per joint, None when neither side has any."""
    every = [*table.joints, table.overall]
    if not any(j.command_to_motion or j.twin_command_to_motion for j in every):
        return None
    return Table(
        "Command to motion",
        ("cell\n[ms]", "correlation", "twin\n[ms]", "correlation"),
        tuple(
            Row(
                "median" if j is table.overall else j.name,
                (
                    *_delay(j.command_to_motion, "cell", j.name, table.notes),
                    *_delay(j.twin_command_to_motion, "twin", j.name, table.notes),
                ),
                total=j is table.overall,
            )
            for j in every
        ),
    )


def headlines(table: GapTable, layout: Layout) -> list[tuple[str, str]]:
    """The few figures to read first: (what, figure with unit)."""
    out = []
    for kind in KINDS:
        figures: Figures | None = getattr(table.overall, kind)
        if figures is not None:
            unit, factor = shown(layout.signal(f"joint.{kind}").units[0])
            out.append((f"{kind}, RMS over joints", f"{number(factor * figures.rmse)} {unit}"))
    if table.tcp is not None:
        out.append(("tool point, RMS", f"{number(1e3 * table.tcp.rmse)} mm"))
        out.append(("tool point, maximum", f"{number(1e3 * table.tcp.maximum)} mm"))
    for side, lag in (
        ("cell", table.overall.command_to_motion),
        ("twin", table.overall.twin_command_to_motion),
    ):
        if lag is not None:
            out.append((f"command to motion, {side}", f"{number(1e3 * lag.seconds)} ms"))
    if table.transport is not None:
        p50, p99 = number(1e3 * table.transport.p50), number(1e3 * table.transport.p99)
        out.append(("transport, median and 99 %", f"{p50} and {p99} ms"))
    return out


def health_table(health: dict[str, Health]) -> Table | None:
    """How the links did, a line a source."""
    heads = (
        "state", "rate\n[Hz]", "latency\np50 [ms]", "latency\np99 [ms]", "clock\noffset [ms]",
        "offset\n± [ms]",
        "received", "lost", "repeated", "reversed", "astray", "missing", "restarts",
    )  # fmt: skip
    rows = []
    for name, h in health.items():
        figures = (
            h.rate, 1e3 * h.latency_p50, 1e3 * h.latency_p99, 1e3 * h.offset, 1e3 * h.offset_bound
        )  # fmt: skip
        counts = (h.received, h.lost, h.repeated, h.reversed, h.astray, h.missing, h.restarts)
        texts = [h.text or h.state, *map(number, figures), *map(str, counts)]
        rows.append(Row(name, tuple(Cell(text) for text in texts)))
    return Table("Links", heads, tuple(rows)) if rows else None


def _motion(table: GapTable, layout: Layout, kind: str) -> Table:
    signal = layout.signal(f"joint.{kind}")
    units = [shown(unit)[0] for unit in signal.units]
    one = units[0] if len(set(units)) == 1 else ""
    floors = any(kind in joint.floor for joint in table.joints)
    top = _largest(table.joints, kind) if one else 0.0
    rows = [_row(j, kind, layout, top=top, one=one, floors=floors) for j in table.joints]
    if one:
        total = _row(table.overall, kind, layout, top=0.0, one=one, floors=floors)
        rows.append(Row("all joints", total.cells, total=True))
    suffix = f"\n[{one}]" if one else ""
    heads = [f"RMS{suffix}", f"max{suffix}", f"bias{suffix}", "relative\n[%]"]
    if floors:
        heads.append(f"floor{suffix}")
    return Table(kind.capitalize(), tuple(heads), tuple(rows))


def _row(joint: JointGap, kind: str, layout: Layout, *, top: float, one: str, floors: bool) -> Row:
    """`one`: the unit in the heading, if all joints share it; else each figure has its own."""
    signal = layout.signal(f"joint.{kind}")
    known = joint.name in signal.labels
    unit, factor = shown(signal.units[signal.labels.index(joint.name) if known else 0])
    tail = "" if one else f" {unit}"
    figures: Figures | None = getattr(joint, kind)
    if figures is None:
        reason = "twin and cell have no reading at the same time"
        cells = [Cell(number(None), reason)] * 4
    else:
        share = figures.rmse / top if top > 0.0 else 0.0
        # A mean far below the last digit of what it is the mean of is round-off.
        bias = figures.bias if abs(figures.bias) > 1e-12 * figures.maximum else 0.0
        size = [factor * v for v in (figures.rmse, figures.maximum, bias)]
        cells = [
            Cell(number(size[0]) + tail, share=share),
            Cell(number(size[1]) + tail),
            Cell(number(size[2]) + tail),
            _relative(figures.relative),
        ]
    if floors:
        floor = joint.floor.get(kind)
        cells.append(
            Cell(number(None), "no repeats are known")
            if floor is None
            else Cell(number(factor * floor) + tail)
        )
    return Row(joint.name, tuple(cells))


def _relative(relative: float | None) -> Cell:
    if relative is None:
        return Cell(number(None), "the cell's signal is zero throughout")
    return Cell(number(100.0 * relative))


def _largest(joints: Sequence[JointGap], kind: str) -> float:
    """The largest RMS, the length of a full bar."""
    every = [getattr(joint, kind) for joint in joints]
    return max((figures.rmse for figures in every if figures), default=0.0)


def _delay(lag: Lag | None, side: str, joint: str, notes: Sequence[str]) -> tuple[Cell, Cell]:
    if lag is not None:
        return Cell(number(1e3 * lag.seconds)), Cell(number(lag.correlation, digits=4))
    marks = (f"of {side} {joint}: ", f"of the {side}: ")
    found = [note.split(mark, 1)[1] for mark in marks for note in notes if mark in note]
    reason = found[0] if found else f"no command of the {side} is known"
    return Cell(number(None), reason), Cell(number(None), reason)
