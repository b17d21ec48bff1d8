"""The line above the plots: which signal, which joints, how much time, and when."""

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QMenu, QSlider, QToolButton, QWidget

from twinstudio.gui import format as fmt
from twinstudio.gui.icons import icon
from twinstudio.gui.theme import GRID, Theme, number_font
from twinstudio.gui.timeline import WINDOWS, Timeline
from twinstudio.model.views import SignalChoice

_STEPS = 1000


class TimeBar(QWidget):
    """Live or held, how far back, and how much of it."""

    def __init__(self, timeline: Timeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._timeline = timeline
        self.live = QToolButton()
        self.live.setCheckable(True)
        self.live.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.live.setAccessibleName("Live or paused")
        self.live.clicked.connect(timeline.toggle)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _STEPS)
        self.slider.setAccessibleName("Scrub back in time")
        self.slider.setToolTip("Scrub back through history; new data keeps coming in")
        self.slider.valueChanged.connect(self._scrub)
        self.age = QLabel()
        self.age.setFont(number_font(self.font()))
        self.age.setFixedWidth(self.age.fontMetrics().horizontalAdvance("000.0 s ago  "))
        self.age.setAccessibleName("Age of what is shown")
        self.window_box = QComboBox()
        self.window_box.setAccessibleName("Length of the time window")
        self.window_box.setToolTip("How much time is shown (Ctrl+wheel in a plot)")
        for seconds in WINDOWS:
            self.window_box.addItem(fmt.figure(seconds, "s"), seconds)
        self.window_box.activated.connect(
            lambda k: timeline.set_window(float(self.window_box.itemData(k)))
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GRID)
        for widget in (self.live, self.slider, self.age, self.window_box):
            row.addWidget(widget, stretch=widget is self.slider)
        timeline.changed.connect(self.refresh)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._icons = {True: icon("pause", theme.text), False: icon("live", theme.text)}
        self.live.setText("")
        self.refresh()

    def refresh(self) -> None:
        """Show where the timeline stands."""
        timeline = self._timeline
        live = timeline.live
        if self.live.isChecked() == live or not self.live.text():
            self.live.setText("Pause" if live else "Live")
            self.live.setIcon(self._icons[live])
            self.live.setToolTip("Hold what is shown (Space)" if live else "Newest data (Space)")
        self.live.setChecked(not live)
        self.age.setText("live" if live else f"{fmt.figure(timeline.age, 's', 4)} ago")
        if not self.slider.isSliderDown():
            share = 1.0 - timeline.age / timeline.reach if timeline.reach else 1.0
            with QSignalBlocker(self.slider):
                self.slider.setValue(round(_STEPS * share))
        index = self.window_box.findData(timeline.window)
        if index != self.window_box.currentIndex() or index < 0:
            self.window_box.setCurrentIndex(index)
            self.window_box.setPlaceholderText(fmt.figure(timeline.window, "s"))

    def _scrub(self, value: int) -> None:
        if value >= _STEPS:
            self._timeline.resume()
        else:
            self._timeline.look_back((1.0 - value / _STEPS) * self._timeline.reach)


class PlotBar(QWidget):
    """Everything one can choose about the plots."""

    changed = Signal()

    def __init__(self, timeline: Timeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices: list[SignalChoice] = []
        self._hidden: dict[str, set[str]] = {}
        self.signal = QComboBox()
        self.signal.setAccessibleName("Signal to plot")
        self.signal.setToolTip("Signal to plot")
        self.signal.setMinimumContentsLength(16)
        self.signal.activated.connect(lambda _k: self._rebuild())
        self.labels = _menu_button("Joints", "Which joints are plotted")
        self._menu = QMenu(self)
        self.labels.setMenu(self._menu)
        self.cursors = QToolButton()
        self.cursors.setText("A/B")
        self.cursors.setCheckable(True)
        self.cursors.setToolTip("Two cursors with differences (C)")
        self.cursors.setAccessibleName("A and B cursors")
        self.arrival = QToolButton()
        self.arrival.setText("Arrival")
        self.arrival.setCheckable(True)
        self.arrival.setToolTip("Draw samples when they arrived instead of when they were taken")
        self.arrival.setAccessibleName("Plot by time of arrival")
        self.arrival.toggled.connect(lambda _on: self.changed.emit())
        self.key = QLabel()
        self.time = TimeBar(timeline)
        row = QHBoxLayout(self)
        row.setContentsMargins(GRID, GRID // 2, GRID, 0)
        row.setSpacing(GRID)
        for widget in (self.signal, self.labels, self.key, self.time, self.cursors, self.arrival):
            row.addWidget(widget, stretch=widget is self.time)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`; the key says which curve is which."""
        self.key.setText(
            f"<span style='color:{theme.twin}'>──</span> twin &nbsp;"
            f"<span style='color:{theme.cell}'>━━</span> cell &nbsp;"
            f"<span style='color:{theme.gap}'>──</span> gap"
        )
        self.key.setToolTip("Twin: thin line. Cell: thick line beneath it. Gap: twin minus cell")
        self.time.restyle(theme)

    @property
    def choice(self) -> SignalChoice | None:
        """The chosen signal, if there is any."""
        name = self.signal.currentText()
        return next((choice for choice in self._choices if choice.name == name), None)

    @property
    def chosen_labels(self) -> tuple[str, ...]:
        """The components to draw, in order."""
        choice = self.choice
        if choice is None:
            return ()
        hidden = self._hidden.get(choice.name, set())
        return tuple(label for label in choice.labels if label not in hidden)

    def offer(self, choices: list[SignalChoice]) -> None:
        """Offer `choices`, keeping what was chosen if it is still there."""
        if choices == self._choices:
            return
        kept = self.signal.currentText()
        self._choices = choices
        with QSignalBlocker(self.signal):
            self.signal.clear()
            for choice in choices:
                self.signal.addItem(choice.name)
                self.signal.setItemData(
                    self.signal.count() - 1,
                    f"{choice.name}: {', '.join(choice.sources)}",
                    Qt.ItemDataRole.ToolTipRole,
                )
            self.signal.setCurrentIndex(max(self.signal.findText(kept), 0) if choices else -1)
        self._rebuild()

    def choose(self, signal: str) -> None:
        """Plot the signal called `signal`, if it is on offer."""
        index = self.signal.findText(signal)
        if index >= 0:
            self.signal.setCurrentIndex(index)
            self._rebuild()

    def only(self, label: str | None) -> None:
        """Draw `label` alone; None, or the same label again, draws all."""
        choice = self.choice
        if choice is None:
            return
        alone = {other for other in choice.labels if other != label}
        back = label is None or self._hidden.get(choice.name) == alone
        self._hidden[choice.name] = set() if back or label not in choice.labels else alone
        self._rebuild()

    def _rebuild(self) -> None:
        self._menu.clear()
        choice = self.choice
        if choice is not None:
            self._menu.addAction("All").triggered.connect(lambda: self.only(None))
            self._menu.addSeparator()
            shown = self.chosen_labels
            for label in choice.labels:
                action = QAction(label, self._menu, checkable=True, checked=label in shown)
                action.toggled.connect(self._toggler(choice.name, label))
                self._menu.addAction(action)
        self._count()
        self.changed.emit()

    def _count(self) -> None:
        choice = self.choice
        most = len(choice.labels) if choice else 0
        self.labels.setText(f"{len(self.chosen_labels)} of {most}")

    def _toggler(self, signal: str, label: str) -> Callable[[bool], None]:
        def toggle(on: bool) -> None:
            hidden = self._hidden.setdefault(signal, set())
            hidden.discard(label) if on else hidden.add(label)
            self._count()
            self.changed.emit()

        return toggle


def _menu_button(text: str, tip: str) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    button.setAccessibleName(tip)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    return button
