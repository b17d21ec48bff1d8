"""Plots of a report as inline SVG, drawn by matplotlib.

Importing this module imports matplotlib, which takes its time.
"""

import io
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import NDArray

from twinstudio.model.errors import ReportError
from twinstudio.model.results import Series
from twinstudio.report.content import Panel, colour
from twinstudio.report.numbers import shown

Floats = NDArray[np.float64]

PIXELS = 860
HEIGHT = 260
_DPI = 100
_FEW = 50
# Stand-ins that become CSS colours, so that a plot follows light and dark.
_CSS = {"#010203": "currentColor", "#010204": "var(--rule)", "#010205": "var(--gap)"}
_TEXT, _RULE, _GAP = _CSS


def panel_svg(panel: Panel, *, prefix: str) -> str:
    """The plot of a panel as an ``<svg>`` element whose ids start with `prefix`.

    Twin and cell in one axis, the gap in a strip beneath. Raises ReportError when
    a trace has times and values of different lengths.
    """
    with _settings(prefix):
        figure = Figure(figsize=(PIXELS / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor="none")
        FigureCanvasSVG(figure)  # takes the place of the figure's canvas; no pyplot
        strip = panel.gap is not None
        rows = figure.subplots(2 if strip else 1, 1, sharex=True, squeeze=False,
                               height_ratios=[3, 1] if strip else [1])  # fmt: skip
        figure.subplots_adjust(left=0.085, right=0.992, top=0.93, bottom=0.155, hspace=0.24)
        _draw_traces(rows[0, 0], panel)
        if strip:
            _draw_gap(rows[1, 0], panel)
        rows[-1, 0].set_xlabel("time [s]", color=_TEXT)
        return _inline(_written(figure), prefix)


def curves_svg(curves: Mapping[str, Series], *, prefix: str) -> str:
    """Curves of the same units as an ``<svg>`` element whose ids start with `prefix`.

    curves: name -> curve; ``twin`` and ``cell`` have colours of their own. Gaps stay open.
    """
    first = next(iter(curves.values()))
    (x_unit, x_factor), (y_unit, y_factor) = shown(first.x_unit), shown(first.y_unit)
    with _settings(prefix):
        figure = Figure(figsize=(PIXELS / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor="none")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        figure.subplots_adjust(left=0.085, right=0.992, top=0.95, bottom=0.155)
        for k, (name, series) in enumerate(curves.items()):
            x, y = x_factor * np.array(series.x), y_factor * np.array(series.y)
            ink = colour(name if len(curves) > 1 else "twin", k)
            # A line needs two readings beside each other; a lone one is a dot.
            marker = "o" if len(x) < _FEW else ""
            width, order = (2.2, 1) if name == "cell" else (1.0, 2)
            axes.plot(x, y, color=ink, linewidth=width, zorder=order, marker=marker, markersize=3)
        _dress(axes, y_unit)
        axes.set_xlabel(x_unit, color=_TEXT)
        return _inline(_written(figure), prefix)


def _settings(prefix: str) -> AbstractContextManager[None]:
    return mpl.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": prefix,
            "font.size": 9.0,
            "text.parse_math": False,
        }
    )


def _written(figure: Figure) -> str:
    stream = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(stream, format="svg", metadata=nothing)
    return stream.getvalue()


def decimated(time: Floats, values: Floats, pixels: int) -> tuple[Floats, Floats]:
    """A line with at most two points a pixel column that looks the same.

    Minimum and maximum of each of `pixels` columns; NaN where a column has none.
    """
    if len(time) <= 2 * pixels:
        return time, values
    span = float(time[-1] - time[0])
    column = np.minimum((time - time[0]) * (pixels / span), pixels - 1).astype(np.int64)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(column)) + 1])
    low, high = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    return np.repeat(time[starts], 2), np.stack([low, high], axis=1).ravel()


def _draw_traces(axes: Axes, panel: Panel) -> None:
    for k, (name, (time, values)) in enumerate(panel.traces.items()):
        x, y = _checked(panel, name, time, values)
        # The cell is the broad line underneath: not told by colour alone.
        width, order = (2.2, 1) if name == "cell" else (1.0, 2)
        axes.plot(x, y, color=colour(name, k), linewidth=width, zorder=order)
    _dress(axes, shown(panel.unit)[0])


def _draw_gap(axes: Axes, panel: Panel) -> None:
    assert panel.gap is not None
    x, y = _checked(panel, "gap", *panel.gap)
    axes.fill_between(x, y, 0.0, color=_GAP, alpha=0.35, linewidth=0.0)
    axes.plot(x, y, color=_GAP, linewidth=0.9)
    _dress(axes, "gap", most=3)


def _checked(panel: Panel, name: str, time: Floats, values: Floats) -> tuple[Floats, Floats]:
    if time.shape != values.shape or time.ndim != 1:
        raise ReportError(
            f"trace '{name}' of '{panel.title}' has {list(time.shape)} times"
            f" and {list(values.shape)} values"
        )
    x, y = decimated(time, values, PIXELS)
    return x, shown(panel.unit)[1] * y


def _dress(axes: Axes, label: str, *, most: int = 5) -> None:
    """One look for all axes: thin rules, few ticks, text in the colour of the page."""
    axes.patch.set_visible(False)
    axes.set_ylabel(label, color=_TEXT)
    axes.yaxis.set_label_coords(-0.062, 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(most, min_n_ticks=2))
    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits((-2, 4))
    axes.yaxis.set_major_formatter(formatter)
    axes.yaxis.get_offset_text().set_color(_TEXT)
    axes.tick_params(colors=_TEXT, width=0.6, length=3)
    axes.grid(visible=True, color=_RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.0)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_TEXT)
        spine.set_linewidth(0.6)


def _inline(document: str, prefix: str) -> str:
    """The bare element of an SVG document, with ids of its own and CSS colours."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # In HTML an inline svg needs no namespaces.
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    for stand_in, css in _CSS.items():
        svg = svg.replace(stand_in, css)
    return svg
