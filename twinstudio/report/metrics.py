"""What metrics of plugins said, as text and drawings of a report; every text is a stranger's."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass

from twinstudio.model.measured import Measured
from twinstudio.model.results import (
    Image,
    Patch,
    Result,
    Scalar,
    Series,
    Table,
    grouped,
    name_in,
)
from twinstudio.report.content import colour
from twinstudio.report.numbers import DASH, number, shown

MOST_ROWS = 500
_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts under `heads`; `left` says which columns are words."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[bool, ...]
    more: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """Curves as an ``<svg>`` element that may stand in the page as it is.

    keys: (name, colour) of each, where there are several.
    """

    title: str
    svg: object
    keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a plugin as a ``data:`` address, which runs nothing."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class Said:
    """One metric: who measured, with which parameters, and the parts it gave."""

    measured: Measured
    params: str
    parts: tuple[Grid | Drawing | Picture, ...]


def said(measured: Measured, prefix: str) -> Said:
    """`measured` made ready to be shown; ids in its drawings start with `prefix`."""
    params = ", ".join(f"{name} = {value}" for name, value in measured.params.items())
    return Said(measured, params, parts_of(measured.results, prefix))


def parts_of(
    results: Sequence[Result], prefix: str, *, unknown: str = DASH
) -> tuple[Grid | Drawing | Picture, ...]:
    """`results` made ready to be shown, figures first; ids in drawings start with `prefix`.

    Curves that follow each other and are called ``TITLE: NAME`` share one drawing.
    unknown: said where a figure has no interval.
    """
    figures = [result for result in results if isinstance(result, Scalar)]
    parts: list[Grid | Drawing | Picture] = [_figures(figures, unknown)] if figures else []
    for k, (title, group) in enumerate(grouped(results)):
        result = group[0]
        if isinstance(result, Table):
            parts.append(_table(result))
        elif isinstance(result, Series):
            parts.append(_drawing(title, group, f"{prefix}{k}-"))
        elif isinstance(result, Image):
            data = base64.b64encode(result.data).decode()
            parts.append(Picture(result.name, f"data:{_TYPES[result.format]};base64,{data}"))
        elif isinstance(result, Patch):
            parts.append(_patch(result))
    return tuple(parts)


def interval(scalar: Scalar, factor: float = 1.0) -> str:
    """The interval of a figure times `factor`, as far as it can be told."""
    low, high = scalar.low * factor, scalar.high * factor
    if math.isfinite(low) and math.isfinite(high):
        return f"{number(low)} to {number(high)}"
    if math.isfinite(low):
        return f"\u2265 {number(low)}"
    return f"\u2264 {number(high)}" if math.isfinite(high) else DASH


def _figures(figures: Sequence[Scalar], unknown: str) -> Grid:
    rows = []
    for scalar in figures:
        unit, factor = shown(scalar.unit)
        value = f"{number(scalar.value * factor)} {_named(unit)}".rstrip()
        told = interval(scalar, factor)
        rows.append((scalar.name, value, unknown if told == DASH else told, scalar.note))
    heads = ("figure", "value", "interval", "note")
    return Grid("", heads, tuple(rows), (True, False, False, True))


def _table(table: Table) -> Grid:
    units = [shown(unit) if unit else ("", 1.0) for unit in table.units]
    heads = tuple(
        f"{column}\n[{unit}]" if _named(unit) else column
        for column, (unit, _) in zip(table.columns, units, strict=True)
    )
    rows = tuple(
        tuple(_cell(cell, factor) for cell, (_, factor) in zip(row, units, strict=True))
        for row in table.rows[:MOST_ROWS]
    )
    left = tuple(
        any(isinstance(row[k], str) for row in table.rows) for k in range(len(table.columns))
    )
    rest = len(table.rows) - MOST_ROWS
    return Grid(table.name, heads, rows, left, f"and {rest} more rows" if rest > 0 else "")


def _cell(cell: object, factor: float) -> str:
    if isinstance(cell, int) and factor == 1.0:
        return str(cell)
    if isinstance(cell, int | float):
        return number(cell * factor)
    return number(None) if cell is None else str(cell)


def _patch(patch: Patch) -> Grid:
    rows = tuple((change.key, _value(change.value)) for change in patch.changes)
    return Grid(patch.name, ("key of the scene", "would become"), rows, (True, True), patch.reason)


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _drawing(title: str, group: Sequence[Result], prefix: str) -> Drawing:
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    from twinstudio.report.plots import curves_svg  # noqa: PLC0415 - matplotlib loads slowly

    curves = {name_in(one.name, title): one for one in group if isinstance(one, Series)}
    inks = {name: colour(name, k) for k, name in enumerate(curves)} if len(curves) > 1 else {}
    svg = Markup(curves_svg(curves, prefix=prefix))  # noqa: S704 - our own drawing
    return Drawing(title, svg, tuple(inks.items()))


def _named(unit: str) -> str:
    return "" if unit == "1" else unit
