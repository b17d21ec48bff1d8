"""Two cursors, A and B, across every panel, and what each curve does between them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import (
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.plots.panel import Panel
from twinstudio.gui.theme import GRID, Theme, number_font
from twinstudio.gui.timeline import Timeline
from twinstudio.model.views import Trace, TraceQuery

if TYPE_CHECKING:
    from twinstudio.session.session import Session

NEAR = 0.05
_PIXELS = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """One curve at both cursors, in SI; NaN where it has no reading."""

    source: str
    label: str
    unit: str
    a: float
    b: float

    @property
    def delta(self) -> float:
        """B minus A."""
        return self.b - self.a


class Cursors(QObject):
    """Positions of A and B in s from the instant shown, never positive.

    While live they stand still on the screen and data runs past; while time is
    held they stay on the data when one scrubs.
    """

    changed = Signal()

    def __init__(self, timeline: Timeline, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timeline = timeline
        self.shown = False
        self.a = -0.75 * timeline.window
        self.b = -0.25 * timeline.window
        self._lines: list[tuple[str, pg.InfiniteLine, Panel]] = []
        self._moving = False
        timeline.moved.connect(self._keep_on_data)

    def show(self, *, on: bool) -> None:
        """Put the cursors up inside the window, or take them away."""
        self.shown = on
        window = self._timeline.window
        if on and not all(-window <= x <= 0 for x in (self.a, self.b)):
            self.a, self.b = -0.75 * window, -0.25 * window
        self._place()

    def attach(self, panels: list[Panel], theme: Theme) -> None:
        """Draw the cursors in `panels`, and no longer in those before."""
        self._lines = []
        for panel in panels:
            for plot in (panel.main, panel.strip):
                for name in ("a", "b"):
                    line = pg.InfiniteLine(angle=90, movable=True)
                    style = Qt.PenStyle.SolidLine if name == "a" else Qt.PenStyle.DashLine
                    line.setPen(pg.mkPen(theme.text, width=1, style=style))
                    line.sigDragged.connect(self._dragged)
                    plot.addItem(line, ignoreBounds=True)
                    self._lines.append((name, line, panel))
        self._place()

    def move(self, name: str, seconds: float) -> None:
        """Put cursor ``a`` or ``b`` at `seconds` from the instant shown."""
        setattr(self, name, min(seconds, 0.0))
        self._place()

    def read(self, session: "Session", signal: str, labels: tuple[str, ...]) -> list[Reading]:
        """Every curve at both cursors, from samples at full rate around them."""
        before, after = (self._sample(session, signal, labels, x) for x in (self.a, self.b))
        units = {(t.source, t.label): t.unit for t in (*before.values(), *after.values())}
        return [
            Reading(
                source, label, unit,
                _at(before.get((source, label))), _at(after.get((source, label))),
            )
            for (source, label), unit in units.items()
        ]  # fmt: skip

    def _sample(
        self, session: "Session", signal: str, labels: tuple[str, ...], x: float
    ) -> dict[tuple[str, str], Trace]:
        stamp = self._timeline.end + round(x * 1e9)
        near = round(NEAR * 1e9)
        query = TraceQuery(signal, labels, stamp - near, stamp + near, _PIXELS)
        return {(trace.source, trace.label): trace for trace in session.traces(query)}

    def _dragged(self, line: pg.InfiniteLine) -> None:
        name = next(name for name, other, _ in self._lines if other is line)
        self.move(name, float(line.value()))

    def _keep_on_data(self, seconds: float) -> None:
        if not self._timeline.live:
            self.a -= seconds
            self.b -= seconds
            self._place()

    def _place(self) -> None:
        for name, line, _ in self._lines:
            line.setVisible(self.shown)
            line.setPos(getattr(self, name))
        self.changed.emit()


def _at(trace: Trace | None) -> float:
    """The curve at the middle of its query, between its two nearest samples."""
    if trace is None or len(trace.time) == 0 or not trace.time[0] <= NEAR <= trace.time[-1]:
        return float("nan")
    return float(np.interp(NEAR, trace.time, trace.value))


class Readout(QWidget):
    """The table beside the plots: each curve at A, at B, and the difference."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spans = QLabel()
        self._spans.setAccessibleName("Cursor times")
        self.table = QTableWidget(0, 5)
        self.table.setHorizontalHeaderLabels(["Curve", "A", "B", "B − A", ""])
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.table.setAccessibleName("Values at the cursors")
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(20)
        head = self.table.horizontalHeader()
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column, width in enumerate((60, 60, 64, 56), start=1):
            head.resizeSection(column, width)
        self.table.setFont(number_font(self.font()))
        self.table.setShowGrid(False)
        box = QVBoxLayout(self)
        box.setContentsMargins(GRID // 2, 0, 0, 0)
        box.setSpacing(GRID // 2)
        box.addWidget(self._spans)
        box.addWidget(self.table)
        self.setMinimumWidth(372)

    def show_readings(self, cursors: Cursors, readings: list[Reading], *, degrees: bool) -> None:
        """Fill in figures; rows are kept while the curves stay the same."""
        span = cursors.b - cursors.a
        rate = fmt.figure(1.0 / abs(span), "Hz") if span else fmt.NOTHING
        self._spans.setText(
            f"A {fmt.figure(cursors.a, 's')}   B {fmt.figure(cursors.b, 's')}"
            f"   Δt {fmt.figure(span, 's')}   1/Δt {rate}"
        )
        self.table.setRowCount(len(readings))
        for row, reading in enumerate(readings):
            small = reading.source == "gap"
            unit, factor = fmt.shown(reading.unit, degrees=degrees, small=small)
            self._set(row, 0, f"{reading.label} {reading.source}", left=True)
            for column, value in enumerate((reading.a, reading.b, reading.delta), start=1):
                self._set(row, column, fmt.number(value * factor))
            self._set(row, 4, unit, left=True)

    def _set(self, row: int, column: int, text: str, *, left: bool = False) -> None:
        item = self.table.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
            self.table.setItem(row, column, item)
        if item.text() != text:
            item.setText(text)
            item.setToolTip(text)
