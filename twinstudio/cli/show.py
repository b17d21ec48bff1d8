"""Figures in the terminal."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from twinstudio.bench.row import Row
from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag
from twinstudio.model.measured import Measured
from twinstudio.model.results import Image, Patch, Result, Scalar, Series
from twinstudio.model.results import Table as TableResult
from twinstudio.report.metrics import interval
from twinstudio.report.numbers import DASH, number

HEADINGS = (
    "position RMS\n[mrad | mm]",
    "max\n[mrad | mm]",
    "velocity RMS\n[rad/s | m/s]",
    "effort RMS\n[N m | N]",
    "floor\n[mrad | mm]",
    "lag of cell\n[ms]",
    "lag of twin\n[ms]",
)
FLOOR = 4
NONE = "-"
UNBOUNDED = 10_000


def json(value: Any) -> None:
    """Print `value` as one JSON document."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def gap_table(table: GapTable) -> None:
    """Print the gap of every joint and overall."""
    view = Table(title=f"Gap, twin minus cell, {table.samples} samples")
    view.add_column("joint", no_wrap=True)
    rows = [(joint, _cells(joint)) for joint in (*table.joints, table.overall)]
    shown = [k for k in range(len(HEADINGS)) if k != FLOOR or any(c[k] != NONE for _, c in rows)]
    for k in shown:
        view.add_column(HEADINGS[k], justify="right")
    for joint, cells in rows:
        view.add_row(joint.name, *(cells[k] for k in shown), end_section=joint is table.joints[-1])
    console = _console()
    console.print(view)
    if table.tcp is not None:
        tcp = table.tcp
        console.print(f"tool point: RMS {tcp.rmse * 1e3:.3g} mm, max {tcp.maximum * 1e3:.3g} mm")
    for note in table.notes:
        console.print(f"note: {note}", highlight=False)


def metrics(measured: Sequence[Measured]) -> None:
    """Print what each metric of a plugin said, in SI; those that failed have a line elsewhere."""
    console = _console()
    for one in measured:
        if one.error:
            continue
        params = ", ".join(f"{name}={value}" for name, value in one.params.items())
        console.print(f"\n{one.title or one.plugin}: {one.name}", highlight=False)
        if params:
            console.print(f"with {params}", highlight=False)
        results(one.results, elsewhere=", see --html or --json")
        if not one.results:
            console.print("nothing to measure", highlight=False)


def results(found: Sequence[Result], *, unknown: str = DASH, elsewhere: str = "") -> None:
    """Print results of a plugin in SI: all figures first, then the rest in its order.

    A patch has its number, by which it is promoted. unknown: as in `figures`.
    elsewhere: said behind what a terminal cannot draw.
    """
    console = _console()
    scalars = [result for result in found if isinstance(result, Scalar)]
    if scalars:
        console.print(figures(scalars, unknown=unknown))
    for count, result in enumerate(found, 1):
        if isinstance(result, TableResult):
            console.print(_fitting(result, console))
        elif not isinstance(result, Scalar):
            text = _in_words(result, count)
            console.print(text if isinstance(result, Patch) else text + elsewhere, highlight=False)


def _in_words(result: Series | Image | Patch, count: int) -> str:
    if isinstance(result, Series):
        units = f"{_unit(result.y_unit) or '1'} over {_unit(result.x_unit) or '1'}"
        return f"{result.name}: a curve of {len(result.x)} points, {units}"
    if isinstance(result, Image):
        return f"{result.name}: a picture, {result.format}, {len(result.data)} bytes"
    changes = [f"  {change.key} = {change.value}" for change in result.changes]
    return "\n".join([f"{result.name} (result {count}): {result.reason}", *changes])


def figures(figures: Sequence[Scalar], *, title: str = "", unknown: str = DASH) -> Table:
    """Figures in SI with their intervals, and notes if there are any.

    unknown: said where there is no interval; a column of dashes is left out.
    """
    told = [interval(one) for one in figures]
    noted = any(one.note for one in figures)
    known = unknown != DASH or any(one != DASH for one in told)
    view = Table(title=title or None)
    view.add_column("figure")
    view.add_column("value", justify="right")
    view.add_column("unit")
    if known:
        view.add_column("95 % interval", justify="right")
    if noted:
        view.add_column("note")
    for one, span in zip(figures, told, strict=True):
        cells = [one.name, number(one.value, digits=4), _unit(one.unit)]
        cells += [unknown if span == DASH else span] if known else []
        cells += [one.note] if noted else []
        view.add_row(*cells)
    return view


def _fitting(table: TableResult, console: Console) -> Table:
    """`table` as it is, or on its side where its columns are too many to be read."""
    upright = result_table(table)
    wanted = console.measure(upright, options=console.options.update(width=UNBOUNDED)).maximum
    if wanted <= console.width or len(table.columns) <= len(table.rows) + 1:
        return upright
    view = Table(title=table.name)
    view.add_column("row", no_wrap=True)
    for k in range(len(table.rows)):
        view.add_column(f"{k + 1}", justify="right")
    for k, (column, unit) in enumerate(zip(table.columns, table.units, strict=True)):
        head = f"{column} [{unit}]" if _unit(unit) else column
        view.add_row(head, *(_cell(row[k]) for row in table.rows))
    return view


def _unit(name: str) -> str:
    return "" if name == "1" else name


def result_table(table: TableResult) -> Table:
    """A table of a plugin, numbers in SI to four digits."""
    view = Table(title=table.name)
    for column, unit in zip(table.columns, table.units, strict=True):
        words = not unit and any(isinstance(row[len(view.columns)], str) for row in table.rows)
        head = f"{column}\n[{unit}]" if _unit(unit) else column
        view.add_column(head, justify="left" if words else "right")
    for row in table.rows:
        view.add_row(*(_cell(cell) for cell in row))
    return view


def _cell(cell: float | str | None) -> str:
    if cell is None:
        return NONE
    return number(cell, digits=4) if isinstance(cell, float) else str(cell)


def bench_table(rows: Sequence[Row]) -> None:
    """Print measurements with goal and verdict."""
    view = Table(title="Measurements")
    view.add_column("what")
    view.add_column("figure", justify="right")
    view.add_column("unit")
    view.add_column("goal")
    view.add_column("verdict")
    for row in rows:
        view.add_row(
            row.name, f"{row.figure:.4g}", row.unit, row.goal, "met" if row.passed else "MISSED"
        )
    _console().print(view)


def _console() -> Console:
    """As wide as the terminal; a file or a pipe gets room for every column.

    Without markup: a unit in brackets is text, and so is a joint's name.
    """
    return Console(width=None if sys.stdout.isatty() else 140, markup=False)


def _cells(joint: JointGap) -> list[str]:
    position = joint.position
    return [
        _number(position.rmse if position else None, 1e3),
        _number(position.maximum if position else None, 1e3),
        _rmse(joint.velocity),
        _rmse(joint.effort),
        _number(joint.floor.get("position"), 1e3),
        _lag(joint.command_to_motion),
        _lag(joint.twin_command_to_motion),
    ]


def _rmse(figures: Figures | None) -> str:
    return _number(figures.rmse if figures else None)


def _lag(lag: Lag | None) -> str:
    return f"{lag.seconds * 1e3 + 0.0:.1f}" if lag else NONE


def _number(value: float | None, factor: float = 1.0) -> str:
    return NONE if value is None else f"{value * factor:.3g}"
