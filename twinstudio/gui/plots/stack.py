"""All plots of one signal in one graphics scene: a panel a joint, in a grid that fits.

One scene instead of one widget a panel: measured at 21 curves of 500 points it
takes two thirds of the processor time.
"""

import math

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QScrollArea, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.plots.bar import PlotBar
from twinstudio.gui.plots.cursor import Cursors, Readout
from twinstudio.gui.plots.panel import AXIS_HEIGHT, MINIMUM_HEIGHT, Panel
from twinstudio.gui.selection import Selection
from twinstudio.gui.theme import Theme, number_font
from twinstudio.model.views import Trace, TraceQuery

_WIDTH = 300
_READ_EVERY = 6


class PlotStack(QWidget):
    """The plots dock: choose a signal, see twin, cell and gap of every joint."""

    def __init__(self, bridge: Bridge, selection: Selection, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._selection = selection
        self._theme = theme
        self.degrees = False
        self.panels: list[Panel] = []
        self._drawn: object = None
        self._stale = False
        self._columns = 0
        self._turn = 0
        self.bar = PlotBar(bridge.timeline)
        self.cursors = Cursors(bridge.timeline, self)
        self.readout = Readout()
        self._build()
        self.bar.changed.connect(self._arrange)
        self.bar.cursors.toggled.connect(self._show_cursors)
        self.cursors.changed.connect(self._read)
        bridge.timeline.changed.connect(self._set_span)
        selection.changed.connect(self._select)
        # Half of the panels a tick: neither of the two holds up the event loop for long.
        bridge.add(self, self.refresh, late=False)
        bridge.add(self, lambda _frame: self._draw_half(late=True))
        self.restyle(theme)

    def _build(self) -> None:
        self.view = pg.GraphicsLayoutWidget()
        self.view.setAccessibleName("Plots of twin and cell")
        self.view.ci.setContentsMargins(4, 2, 16, 2)
        self.view.ci.setSpacing(6)
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        # One stop for the keyboard, the view, and not three.
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.viewport().setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setFrameShape(QScrollArea.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(self.view)
        self.empty = Empty(
            "Nothing to plot yet",
            "Plots fill as soon as twin or cell stream a signal.",
        )
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.area)
        split = QSplitter()
        split.addWidget(self.pages)
        split.addWidget(self.readout)
        split.setStretchFactor(0, 1)
        split.setChildrenCollapsible(False)
        self.readout.hide()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2)
        box.addWidget(self.bar)
        box.addWidget(split, stretch=1)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self.view.setBackground(theme.window)
        self.bar.restyle(theme)
        for panel in self.panels:
            panel.restyle(theme)
        self.cursors.attach([], theme)
        self._arrange()

    @property
    def curves(self) -> int:
        """How many curves hold data."""
        sources = ("cell", "twin", "gap")
        return sum(len(p.data_of(s)[0]) > 0 for p in self.panels for s in sources)

    def set_degrees(self, *, on: bool) -> None:
        """Show angles in degrees, or in rad."""
        self.degrees = on
        self._arrange()

    def refresh(self, frame: Frame) -> None:
        """Begin to draw a frame; what is held and drawn already is left alone."""
        if frame.number % 15 == 0 or not self.panels:
            self.bar.offer(self._bridge.session.signals())
        timeline = frame.timeline
        self.bar.time.refresh()
        if not self.panels:
            return
        pixels = self.panels[0].width
        state = (timeline.end, timeline.window, pixels, self.bar.arrival.isChecked())
        self._stale = state != self._drawn
        self._drawn = state
        self._draw_half(late=False)
        if self.cursors.shown and frame.number % _READ_EVERY == 0:
            self._read()

    def _draw_half(self, *, late: bool) -> None:
        """Draw the first or the second half of the panels, if the frame has something new."""
        timeline, choice = self._bridge.timeline, self.bar.choice
        middle = (len(self.panels) + 1) // 2
        panels = self.panels[middle:] if late else self.panels[:middle]
        if choice is None or not panels or not self._stale:
            return
        query = TraceQuery(
            choice.name,
            tuple(panel.label for panel in panels),
            timeline.start,
            timeline.end,
            self.panels[0].width,
            self.bar.arrival.isChecked(),
        )
        found: dict[str, list[Trace]] = {panel.label: [] for panel in panels}
        for trace in self._bridge.session.traces(query):
            found[trace.label].append(trace)
        self._turn = (self._turn + 1) % (2 * len(self.panels))
        for panel in panels:
            shrink = panel is self.panels[self._turn // 2]
            panel.draw(found[panel.label], self._factor, shrink=shrink)

    def _factor(self, trace: Trace) -> float:
        small = trace.source == "gap"
        return fmt.shown(trace.unit, degrees=self.degrees, small=small)[1]

    def _arrange(self) -> None:
        """Build the panels anew, after another choice of signal or joints."""
        choice, labels = self.bar.choice, self.bar.chosen_labels
        self.view.clear()
        self.panels = []
        self._drawn = None
        self.pages.setCurrentWidget(self.area if labels else self.empty)
        if choice is None or not labels:
            return
        self._columns = self._fitting(len(labels))
        font = number_font(self.font())
        for k, label in enumerate(labels):
            cell = self.view.addLayout(row=k // self._columns, col=k % self._columns)
            cell.setContentsMargins(0, 0, 0, 0)
            panel = Panel(cell, self._bridge.timeline, label, font, self._selection.select)
            panel.restyle(self._theme)
            unit = choice.units[choice.labels.index(label)]
            panel.caption(
                fmt.shown(unit, degrees=self.degrees)[0],
                fmt.shown(unit, degrees=self.degrees, small=True)[0],
            )
            self.panels.append(panel)
        rows = math.ceil(len(labels) / self._columns)
        self.view.setMinimumHeight(rows * MINIMUM_HEIGHT)
        self.cursors.attach(self.panels, self._theme)
        self._set_heights()
        self._set_span()
        self._select()

    def _set_heights(self) -> None:
        """Rows of equal height, but the last one has the time axis too."""
        rows = math.ceil(len(self.panels) / self._columns)
        grid = self.view.ci.layout
        whole = max(self.area.viewport().height(), rows * MINIMUM_HEIGHT) - 6.0 * rows
        height = (whole - AXIS_HEIGHT) / rows
        for row in range(rows):
            last = row == rows - 1
            grid.setRowFixedHeight(row, height + AXIS_HEIGHT * last)
        for k, panel in enumerate(self.panels):
            last = k // self._columns == rows - 1
            panel.set_timed(on=k + self._columns >= len(self.panels))
            panel.set_height(height + AXIS_HEIGHT * last)

    def _fitting(self, count: int) -> int:
        """Columns so that panels are wide enough and rows evenly filled."""
        most = max(min(self.pages.width() // _WIDTH, count), 1)
        return math.ceil(count / math.ceil(count / most))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width may want another number of columns."""
        super().resizeEvent(event)
        if self.panels and self._fitting(len(self.panels)) != self._columns:
            self._arrange()
        elif self.panels:
            self._set_heights()

    def _set_span(self) -> None:
        for panel in self.panels:
            panel.set_span(self._bridge.timeline.window)
        self._drawn = None

    def _show_cursors(self, on: bool) -> None:
        self.readout.setVisible(on)
        self.cursors.show(on=on)

    def _read(self) -> None:
        choice = self.bar.choice
        if self.cursors.shown and choice is not None and self.panels:
            labels = tuple(panel.label for panel in self.panels)
            readings = self.cursors.read(self._bridge.session, choice.name, labels)
            self.readout.show_readings(self.cursors, readings, degrees=self.degrees)

    def _select(self) -> None:
        for panel in self.panels:
            on = panel.label == self._selection.joint
            panel.select(on=on)
            if on:
                place = panel.main.mapRectToScene(panel.main.rect()).center()
                self.area.ensureVisible(0, int(place.y()), 0, MINIMUM_HEIGHT)
