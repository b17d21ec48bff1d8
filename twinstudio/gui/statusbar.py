"""The line at the bottom: connection, twin, machine, recording, and unread trouble."""

from time import monotonic
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QStatusBar, QToolButton, QWidget

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.sources import STATES, state_of
from twinstudio.gui.icons import icon, state_icon
from twinstudio.gui.theme import Theme, number_font
from twinstudio.model.views import RecordingView, Snapshot

_EVERY_S = 2.0


class StatusBar(QStatusBar):
    """Figures on the right, the newest trouble on the left; it never pops up.

    log_wanted: the user clicked on the trouble.
    """

    log_wanted = Signal()

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._notices = bridge.notices
        self._theme = theme
        self._machine = Machine()
        self.setSizeGripEnabled(False)
        self.badge = QToolButton()
        self.badge.setAutoRaise(True)
        self.badge.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.badge.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.badge.setAccessibleName("Unread warnings and alarms")
        self.badge.clicked.connect(self.log_wanted)
        self.cell, self.twin, self.machine = QLabel(), QLabel(), QLabel()
        for label, name in ((self.cell, "Cell"), (self.twin, "Twin"), (self.machine, "Machine")):
            label.setAccessibleName(name)
        self.record = QLabel()
        self.record.setAccessibleName("Recording")
        self.addWidget(self.badge, 1)
        for label in (self.cell, self.twin, self.machine, self.record):
            label.setFont(number_font(self.font()))
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setProperty("role", "alarm" if label is self.record else "field")
            self.addPermanentWidget(label)
        bridge.notices.changed.connect(self._show_trouble)
        bridge.add(self, self.refresh, every=6)
        self.restyle(theme)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self._show_trouble()

    def refresh(self, frame: Frame) -> None:
        """Show the newest figures."""
        snapshot = frame.snapshot
        _put(self.cell, cell_text(snapshot), "The cell's connection; more under Sources")
        late = fmt.milliseconds(snapshot.lateness)
        _put(
            self.twin,
            twin_text(snapshot),
            f"Twin: simulated over real time; how late steps are, p99 {late}",
        )
        _put(
            self.machine,
            self._machine.text(),
            "Processor (100 % is one core) and memory of all our processes",
        )
        text, tip = recording_text(snapshot.recording)
        self.record.setVisible(bool(text))
        _put(self.record, text, tip)

    def _show_trouble(self) -> None:
        latest, unread = self._notices.latest, self._notices.unread
        if latest is None:
            self.badge.setText("")
            self.badge.setIcon(icon("dot", "#00000000"))
            self.badge.setToolTip("No unread warnings or alarms")
            self.badge.setEnabled(False)
            return
        self.badge.setEnabled(True)
        self.badge.setIcon(state_icon(latest.level, self._theme))
        first = latest.text.splitlines()[0] if latest.text else latest.kind
        more = f"({unread})  " if unread > 1 else ""
        room = max(self.badge.width() - 32, 160)
        whole = f"{more}{latest.kind}: {first}"
        self.badge.setText(
            self.badge.fontMetrics().elidedText(whole, Qt.TextElideMode.ElideRight, room)
        )
        self.badge.setToolTip(f"{latest.level}: {latest.text}\nClick to open the log")


class Machine:
    """Processor and memory of this process and its children, asked for seldom."""

    def __init__(self) -> None:
        self._asked = 0.0
        self._text = ""
        self._known: dict[int, Any] = {}

    def text(self) -> str:
        """``cpu 42 %  mem 310 MB``, at most two seconds old."""
        now = monotonic()
        if now - self._asked >= _EVERY_S:
            self._asked = now
            self._text = self._measure()
        return self._text

    def _measure(self) -> str:
        import psutil  # noqa: PLC0415 - not needed for the first frame

        me = psutil.Process()
        cpu = memory = 0.0
        alive = {}
        for process in (me, *me.children(recursive=True)):
            known = self._known.get(process.pid, process)
            try:
                cpu += known.cpu_percent()
                memory += known.memory_info().rss
            except psutil.Error:
                continue  # it ended between being listed and being asked
            alive[process.pid] = known
        self._known = alive
        return f"cpu {cpu:.0f}{chr(0xA0)}%  mem {fmt.size(memory)}"


def cell_text(snapshot: Snapshot) -> str:
    """The cell's connection in one line."""
    source = snapshot.source("cell")
    if source is None:
        return "no cell"
    health = source.health
    state = state_of(source, snapshot.replay)
    if state != "streaming":
        return f"cell {STATES[state]}"
    offset = fmt.plus_minus(health.offset, health.offset_bound, 1e3, "ms")
    return (
        f"cell {fmt.figure(health.rate, 'Hz', 4)}   p99 {fmt.milliseconds(health.latency_p99)}"
        f"   offset {offset}   {'! ' if health.lost else ''}lost {fmt.count(health.lost)}"
    )


def twin_text(snapshot: Snapshot) -> str:
    """The twin's pace, or why it has none."""
    source = snapshot.source("twin")
    if source is None:
        return "no twin"
    state = state_of(source)
    if state != "streaming":
        return f"twin {STATES[state]}"
    return f"twin {fmt.number(snapshot.real_time)}×"


def recording_text(view: RecordingView | None) -> tuple[str, str]:
    """What the status bar says of a recording, and its tooltip."""
    if view is None or not (view.active or view.alarm):
        return "", ""
    if view.alarm:
        return "⨯ recording stopped", f"{view.alarm}\n{view.path}"
    dropped = f"   dropped {fmt.count(view.dropped)}" if view.dropped else ""
    return (
        f"● REC {fmt.clock(view.seconds)}   {fmt.size(view.bytes)}{dropped}",
        f"Recording to {view.path}",
    )


def _put(label: QLabel, text: str, tip: str) -> None:
    if label.text() != text:
        label.setText(text)
        # Only ever wider: figures that come and go would push their neighbours about.
        label.setMinimumWidth(max(label.minimumWidth(), label.sizeHint().width()))
    if label.toolTip() != tip:
        label.setToolTip(tip)


def spacer() -> QWidget:
    """An empty widget that takes what room there is."""
    widget = QWidget()
    widget.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    return widget
