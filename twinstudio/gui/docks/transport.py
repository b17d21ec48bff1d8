"""The transport of a replayed log: play, seek, rate, loop."""

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSlider,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.icons import icon
from twinstudio.gui.theme import GRID, Theme, number_font
from twinstudio.model.views import ReplayView

RATES = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
_STEPS = 2000


class Transport(QWidget):
    """Controls while the cell is a replay; a sentence when it is none."""

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._run = bridge.runner.run
        self._view: ReplayView | None = None
        self._theme = theme
        self.hint = QLabel("No replay: the cell is live, there is nothing to seek in")
        self.hint.setProperty("role", "faint")
        self.hint.setToolTip("Open a recording with Replay (Ctrl+O) to play, seek and loop it")
        self.play = QToolButton()
        self.play.setAccessibleName("Play or pause the log")
        self.play.clicked.connect(lambda _on: self._toggle())
        self.rewind = QToolButton()
        self.rewind.setToolTip("Back to the start of the log (replay.seek 0)")
        self.rewind.setAccessibleName("Back to the start")
        self.rewind.clicked.connect(lambda _on: self._run("replay.seek", seconds=0.0))
        self.seek = QSlider(Qt.Orientation.Horizontal)
        self.seek.setRange(0, _STEPS)
        self.seek.setToolTip("Seek in the log (replay.seek)")
        self.seek.setAccessibleName("Position in the log")
        self.seek.sliderReleased.connect(self._seek)
        self.seek.actionTriggered.connect(lambda _action: self._seek_by_key())
        self.place = QLabel()
        self.place.setFont(number_font(self.font()))
        self.rate = QComboBox()
        self.rate.setAccessibleName("Rate of the replay")
        self.rate.setToolTip("How fast the log plays (replay.rate)")
        for factor in RATES:
            self.rate.addItem(f"{fmt.number(factor)}×", factor)
        self.rate.activated.connect(
            lambda k: self._run("replay.rate", factor=float(self.rate.itemData(k)))
        )
        self.loop = QToolButton()
        self.loop.setText("Loop")
        self.loop.setCheckable(True)
        self.loop.setToolTip("Start again at the end (replay.loop)")
        self.loop.setAccessibleName("Start again at the end")
        self.loop.clicked.connect(lambda on: self._run("replay.loop", on=on))
        self._lay_out()
        self.restyle(theme)
        bridge.add(self, self.refresh, every=3)

    def _lay_out(self) -> None:
        controls = QWidget()
        row = QHBoxLayout(controls)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GRID // 2)
        for widget in (self.rewind, self.play, self.seek, self.place, self.rate, self.loop):
            row.addWidget(widget, stretch=widget is self.seek)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.hint)
        self.pages.addWidget(controls)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.pages)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self.rewind.setIcon(icon("start", theme.text))
        self._show_play(paused=self._view is None or self._view.paused)

    def refresh(self, frame: Frame) -> None:
        """Show where the replay is."""
        view = frame.snapshot.replay
        before, self._view = self._view, view
        self.pages.setCurrentIndex(0 if view is None else 1)
        if view is None:
            return
        self.place.setText(f"{fmt.clock(view.position)} / {fmt.clock(view.duration)}")
        self.place.setToolTip(view.log)
        if before is None or before.paused != view.paused:
            self._show_play(paused=view.paused)
        if not self.seek.isSliderDown():
            with QSignalBlocker(self.seek):
                self.seek.setValue(round(_STEPS * view.position / max(view.duration, 1e-9)))
        self.rate.setCurrentIndex(self.rate.findData(view.rate))
        self.loop.setChecked(view.loop)

    def _show_play(self, *, paused: bool) -> None:
        self.play.setIcon(icon("play" if paused else "pause", self._theme.text))
        self.play.setToolTip(
            "Play the log (replay.resume)" if paused else "Pause the log (replay.pause)"
        )

    def _toggle(self) -> None:
        if self._view is not None:
            self._run("replay.resume" if self._view.paused else "replay.pause")

    def _seek(self) -> None:
        if self._view is not None:
            share = self.seek.sliderPosition() / _STEPS
            self._run("replay.seek", seconds=share * self._view.duration)

    def _seek_by_key(self) -> None:
        if not self.seek.isSliderDown():
            self._seek()
