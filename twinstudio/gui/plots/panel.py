"""One joint of one signal: a caption, twin and cell in one axis, the gap in a strip beneath.

The time axis counts seconds from the instant shown, so it stands still while
data runs through it: axes are painted once and kept as pixmaps, and a frame
costs three curves.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsSceneMouseEvent,
    QGraphicsWidget,
    QStyleOptionGraphicsItem,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.plots.lines import Floats, Lines
from twinstudio.gui.plots.scale import Scale, round_step
from twinstudio.gui.theme import Theme
from twinstudio.gui.timeline import Timeline
from twinstudio.model.views import Trace

AXIS_WIDTH = 44
AXIS_HEIGHT = 16
MINIMUM_HEIGHT = 88
_CAPTION = 15
_SMALL = 8
_MOST_TICKS = 11
# How far a number may stand out over the ends of its axis [px].
_OVER = {"bottom": 24, "left": 8}
# Least distance of ticks [px]: along the time axis, along a value axis.
_APART = (56.0, 13.0)


class NumberAxis(pg.AxisItem):
    """An axis with our numbers, painted once and kept as a pixmap."""

    def __init__(self, side: str, font: QFont) -> None:
        super().__init__(side)
        self.enableAutoSIPrefix(False)
        self.setStyle(
            tickFont=font,
            tickLength=-3,
            autoExpandTextSpace=False,
            tickTextOffset=2,
            maxTickLevel=0,
            hideOverlappingLabels=_OVER[side],
        )
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        if side == "left":
            self.setWidth(AXIS_WIDTH)
        else:
            self.setHeight(AXIS_HEIGHT)

    def tickValues(
        self,
        low: float,
        high: float,
        size: float,
    ) -> list[tuple[float, NDArray[np.float64]]]:
        """Round numbers, as many as have room: at least two, or one could not read a scale."""
        least = _APART[self.orientation == "left"] / max(size, 1.0)
        apart = (high - low) * max(least, 1.0 / _MOST_TICKS)
        spacing = round_step(apart)
        ticks = _multiples(spacing, low, high)
        for finer in (0.5, 0.2, 0.1):
            if len(ticks) >= 2:
                break
            step = round_step(finer * spacing * (1 - 1e-9))
            finest = _multiples(step, low, high)
            if len(finest) >= 2 and finest[-1] - finest[0] >= apart:
                return [(step, finest[[0, -1]])]
        return [(spacing, ticks)]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """The numbers at the ticks, with as many decimals as their spacing needs."""
        texts = self._numbers(values, scale, spacing)
        if self.orientation == "bottom" and texts and values[-1] == 0.0:
            texts[-1] += "\u00a0s"
        return texts

    def _numbers(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if not 1e-4 <= spacing * scale < 1e5:
            return [fmt.number(v * scale) for v in values]
        decimals = max(-math.floor(math.log10(spacing * scale) + 1e-9), 0)
        if not math.isclose(spacing * scale * 10**decimals % 1.0, 0.0, abs_tol=1e-6):
            decimals += 1  # steps of 2.5
        return [f"{v * scale + 0.0:.{decimals}f}".replace("-", "−") for v in values]


def _multiples(step: float, low: float, high: float) -> NDArray[np.float64]:
    return step * np.arange(math.ceil(low / step), math.floor(high / step) + 1, dtype=np.float64)


class TimeBox(pg.ViewBox):
    """Dragging scrubs through time, Ctrl+wheel changes how much is shown."""

    def __init__(self, timeline: Timeline, clicked: Callable[[], None]) -> None:
        super().__init__(enableMenu=False)
        self._timeline = timeline
        self._clicked = clicked
        self.setMouseEnabled(x=False, y=False)
        self.disableAutoRange()

    def wheelEvent(self, ev: object, axis: object = None) -> None:
        """More or less time in the window."""
        del axis
        if not ev.modifiers() & Qt.KeyboardModifier.ControlModifier:  # type: ignore[attr-defined]
            ev.ignore()  # type: ignore[attr-defined]
            return
        factor = 0.8 if ev.delta() > 0 else 1.25  # type: ignore[attr-defined]
        self._timeline.set_window(min(self._timeline.window * factor, 3600.0))
        ev.accept()  # type: ignore[attr-defined]

    def mouseDragEvent(self, ev: object, axis: object = None) -> None:
        """To the right is back in time."""
        del axis
        ev.accept()  # type: ignore[attr-defined]
        moved: QPointF = ev.pos() - ev.lastPos()  # type: ignore[attr-defined]
        seconds = moved.x() / max(self.width(), 1.0) * self._timeline.window
        self._timeline.look_back(self._timeline.age + seconds)

    def mouseClickEvent(self, ev: object) -> None:
        """A click selects the joint, a double click goes back to live."""
        if ev.double():  # type: ignore[attr-defined]
            self._timeline.resume()
        else:
            self._clicked()


class Caption(QGraphicsWidget):
    """A line over a plot: what it shows, and at the right end a note."""

    def __init__(self, font: QFont, clicked: Callable[[], None]) -> None:
        super().__init__()
        self.title = self.note = ""
        self._clicked = clicked
        self._font = QFont(font)
        self._colours = (QColor(), QColor())
        self.setMinimumHeight(_CAPTION)
        self.setMaximumHeight(_CAPTION)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def restyle(self, title: str, note: str, *, bold: bool) -> None:
        """Take these colours."""
        self._colours = (QColor(title), QColor(note))
        self._font.setBold(bold)
        self.update()

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        """The note whole, the title shortened to what is left."""
        del option, widget
        painter.setFont(self._font)
        metrics = painter.fontMetrics()
        box = self.rect().adjusted(AXIS_WIDTH, 0.0, -2.0, 0.0)
        room = box.width() - metrics.horizontalAdvance(self.note) - 8
        title = metrics.elidedText(self.title, Qt.TextElideMode.ElideMiddle, int(room))
        middle = Qt.AlignmentFlag.AlignVCenter
        for text, colour, side in (
            (title, self._colours[0], Qt.AlignmentFlag.AlignLeft),
            (self.note, self._colours[1], Qt.AlignmentFlag.AlignRight),
        ):
            painter.setPen(colour)
            painter.drawText(box, side | middle, text)

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """A click selects what the plot shows."""
        event.accept()
        self._clicked()


class Panel:
    """Draws the traces of one component; lives in a cell of a graphics layout."""

    def __init__(
        self,
        layout: pg.GraphicsLayout,
        timeline: Timeline,
        label: str,
        font: QFont,
        clicked: Callable[[str], None],
    ) -> None:
        self.label = label
        small = QFont(font)
        small.setPointSizeF(_SMALL)
        self.main, self.strip = (
            _plot(layout, TimeBox(timeline, lambda: clicked(label)), small, row) for row in (1, 2)
        )
        # Axes that say nothing are not there, only their room: each costs time a frame.
        self.strip.hideAxis("left")
        self.strip.layout.setColumnFixedWidth(0, AXIS_WIDTH)
        self.main.hideAxis("bottom")
        self._grid = layout.layout
        self._grid.setVerticalSpacing(2)
        self._caption = Caption(small, lambda: clicked(label))
        layout.addItem(self._caption, row=0, col=0)
        self._timed = True
        self._lines = {"main": Lines(thick=("cell",)), "gap": Lines(baseline=True)}
        self.main.vb.addItem(self._lines["main"], ignoreBounds=True)
        self.strip.vb.addItem(self._lines["gap"], ignoreBounds=True)
        self._span = timeline.window
        self._scales = {"main": Scale(), "gap": Scale(symmetric=True)}
        self._gap_unit = ""
        self._selected = False
        self._theme: Theme | None = None

    @property
    def width(self) -> int:
        """Pixels across the data."""
        return max(int(self.main.vb.width()), 2)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        line = pg.mkPen(theme.line, width=1)
        pens = {"cell": pg.mkPen(theme.cell, width=1), "twin": pg.mkPen(theme.twin, width=1)}
        self._lines["main"].set_pens(pens, line)
        self._lines["gap"].set_pens({"gap": pg.mkPen(theme.gap, width=1)}, line)
        for plot in (self.main, self.strip):
            plot.vb.setBorder(pg.mkPen(theme.line, width=1))
            plot.vb.setBackgroundColor(theme.base)
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(pg.mkPen(theme.line))
                plot.getAxis(side).setTextPen(pg.mkPen(theme.faint))
        self.select(on=self._selected)

    def select(self, *, on: bool) -> None:
        """Show that this joint is the selected one, by frame and weight."""
        self._selected = on
        if self._theme is None:
            return
        colour = self._theme.accent if on else self._theme.text
        self._caption.restyle(colour, self._theme.faint, bold=on)
        self.main.vb.setBorder(pg.mkPen(self._theme.accent if on else self._theme.line, width=1))

    def caption(self, unit: str, gap_unit: str) -> None:
        """Say what is drawn, in which units."""
        self._caption.title = f"{self.label}  {unit}".rstrip()
        self._gap_unit = gap_unit
        self._caption_gap()

    def _caption_gap(self) -> None:
        """The strip is too low for tick labels: its range stands in its caption."""
        reach = fmt.figure(self._scales["gap"].high, self._gap_unit)
        self._caption.note = f"gap ±{reach}"
        self._caption.update()

    @property
    def caption_texts(self) -> tuple[str, str]:
        """What the caption says: of the signal, and of the range of the gap."""
        return self._caption.title, self._caption.note

    def set_timed(self, *, on: bool) -> None:
        """Show the numbers of the time axis, or leave them to the panel beneath."""
        self._timed = on
        self.strip.showAxis("bottom", on)

    def set_height(self, height: float) -> None:
        """Divide `height` px: about a third is the strip, without the time axis."""
        axis = AXIS_HEIGHT if self._timed else 0
        strip = min(max(28.0, 0.3 * (height - axis)), 124.0)
        self._grid.setRowFixedHeight(2, strip + axis)

    def set_span(self, seconds: float) -> None:
        """Show `seconds` before the instant."""
        self._span = seconds
        for plot in (self.main, self.strip):
            plot.vb.setXRange(-seconds, 0.0, padding=0)
        self._frame_lines()

    def data_of(self, source: str) -> tuple[Floats, Floats]:
        """What is drawn of ``cell``, ``twin`` or ``gap``: time [s] and value, as shown."""
        return self._lines["gap" if source == "gap" else "main"].data_of(source)

    def draw(
        self, traces: list[Trace], factors: Callable[[Trace], float], *, shrink: bool = True
    ) -> None:
        """Draw `traces` [SI] times `factors`; their time 0 is the left end of the span.

        shrink: whether value axes may become shorter now. Axes that change are painted
        anew, a millisecond each: the stack lets one panel a frame do so.
        """
        ranges: dict[str, list[tuple[float, float]]] = {"main": [], "gap": []}
        missing = {"cell", "twin", "gap"}
        since = _compared_since(traces)
        for trace in traces:
            value = trace.value * factors(trace)
            part = "gap" if trace.source == "gap" else "main"
            self._lines[part].set_data(trace.source, trace.time - self._span, value)
            missing.discard(trace.source)
            counts = value[trace.time >= since] if trace.source == "twin" else value
            ranges[part].append(_range(counts))
        for source in missing:
            nothing = np.empty(0)
            self._lines["gap" if source == "gap" else "main"].set_data(source, nothing, nothing)
        for part, plot in (("main", self.main), ("gap", self.strip)):
            self._fit(part, plot, ranges[part], shrink)

    def _fit(
        self,
        part: str,
        plot: pg.PlotItem,
        ranges: list[tuple[float, float]],
        shrink: bool,
    ) -> None:
        scale = self._scales[part]
        low = min((low for low, _ in ranges), default=math.inf)
        high = max((high for _, high in ranges), default=-math.inf)
        if scale.fit(low, high, shrink=shrink):
            plot.vb.setYRange(scale.low, scale.high, padding=0)
            self._frame_lines()
            if part == "gap":
                self._caption_gap()

    def _frame_lines(self) -> None:
        for part, lines in self._lines.items():
            low, high = self._scales[part].low, self._scales[part].high
            lines.set_rect(QRectF(-self._span, low, self._span, high - low))


def _compared_since(traces: list[Trace]) -> float:
    """When the gap begins [s of the traces]; the twin was not yet set to the cell before.

    Where the twin stood until then says nothing, and must not set the scale.
    """
    begin = next((t.time[0] for t in traces if t.source == "gap" and len(t.time)), -math.inf)
    # The gap's first point is a sample or two after the twin was set.
    return float(begin)


def _range(value: Floats) -> tuple[float, float]:
    """Smallest and largest reading; infinities the wrong way round if there is none."""
    low, high = (float(value.min()), float(value.max())) if len(value) else (np.inf, -np.inf)
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    kept = value[np.isfinite(value)]
    return (float(kept.min()), float(kept.max())) if len(kept) else (np.inf, -np.inf)


def _plot(layout: pg.GraphicsLayout, box: TimeBox, font: QFont, row: int) -> pg.PlotItem:
    axes = {side: NumberAxis(side, font) for side in ("left", "bottom")}
    plot = pg.PlotItem(viewBox=box, axisItems=axes, enableMenu=False)
    plot.hideButtons()
    plot.layout.setContentsMargins(0, 0, 0, 0)
    layout.addItem(plot, row=row, col=0)
    return plot
