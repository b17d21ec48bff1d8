"""How the connections are doing: cell and twin side by side, in figures and in words."""

from collections.abc import Callable

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QGridLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.icons import state_icon
from twinstudio.gui.theme import GRID, Theme, number_font, show_role
from twinstudio.model.health import Health
from twinstudio.model.views import ReplayView, SourceName, SourceView

_END_SECONDS = 0.1
_WELL = ("", "streaming", "paused", "ended")
ROLES: tuple[SourceName, ...] = ("cell", "twin")
FIGURES = (
    ("rate", "Rate", "Samples per second, over the last second or so"),
    ("latency_p50", "Latency p50", "From the source's stamp to arrival here, half are faster"),
    ("latency_p99", "Latency p99", "From the source's stamp to arrival here, 99 % are faster"),
    ("offset", "Clock", "Source clock minus ours, with its uncertainty"),
    ("age", "Newest", "How long ago the newest sample arrived"),
    ("lost", "Lost", "Samples missing by sequence number"),
)
COUNTS = (
    ("repeated", "Repeated", "Samples with the stamp of the one before"),
    ("reversed", "Reversed", "Samples stamped before the one before"),
    ("astray", "Astray", "Samples whose stamp the source's clock cannot have shown"),
    ("missing", "Missing", "Readings that are NaN"),
    ("garbage", "Garbage", "Messages that are none of ours"),
    ("foreign", "Foreign", "Messages of another protocol version"),
    ("restarts", "Restarts", "How often the source came back as a new instance"),
    ("relayouts", "New layouts", "How often the source changed its signals"),
    ("events_lost", "Events lost", "Events that could not be had again"),
)
STATES = {
    "connecting": "connecting",
    "streaming": "streaming",
    "silent": "silent",
    "incompatible": "does not fit",
    "closed": "closed",
    "dead": "died",
    "paused": "paused",
    "ended": "at its end",
}


def state_of(source: SourceView, replay: ReplayView | None = None) -> str:
    """The link state, unless the process behind it has died or a replay rests."""
    if not source.running:
        return "dead"
    state = source.health.state
    if state == "silent" and source.role == "cell" and replay is not None:
        if replay.paused:
            return "paused"
        if not replay.loop and replay.position >= replay.duration - _END_SECONDS:
            return "ended"
    return state


def figure_text(name: str, health: Health) -> str:
    """One figure of a link as the view shows it."""
    if name == "rate":
        return fmt.figure(health.rate, "Hz", 4)
    if name.startswith("latency"):
        return fmt.milliseconds(getattr(health, name))
    if name == "offset":
        return fmt.plus_minus(health.offset, health.offset_bound, 1e3, "ms")
    if name == "age":
        return age_text(health.age)
    count = getattr(health, name)
    return f"! {fmt.count(count)}" if count else "0"


def age_text(seconds: float) -> str:
    """How long ago, in whole ms or in s; tenths of a ms would only flicker."""
    if not seconds < 1e9:
        return "never"
    if seconds < 1.0:
        return f"{seconds * 1e3:.0f}\u00a0ms ago"
    return f"{fmt.figure(seconds, 's')} ago"


class SourcesDock(QWidget):
    """One column a source; a count that is not zero stands out by a mark and weight."""

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._theme = theme
        self._shown: dict[tuple[str, str], str] = {}
        self.labels: dict[tuple[str, str], QLabel] = {}
        self.captions: dict[str, QLabel] = {}
        self.words = _text("What is wrong, in words")
        self._counts = _text("Counts that are zero")
        self._counts.setProperty("role", "faint")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(GRID)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnStretch(2, 1)
        self._fill()
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        column.setSpacing(GRID // 2)
        column.addWidget(self.words)
        column.addLayout(self._grid)
        column.addWidget(self._counts)
        column.addStretch()
        self.pages = QStackedWidget()
        self.empty = Empty("No source yet", "Twin and cell appear here when the session starts.")
        self.pages.addWidget(self.empty)
        self.pages.addWidget(_scrolled(inner))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.pages)
        bridge.add(self, self.refresh, every=6)

    def _fill(self) -> None:
        for k, role in enumerate(ROLES, start=1):
            head = self._label(role, "title", 0, k)
            head.setProperty("role", "title")
            self._label(role, "state", 1, k)
        for row, (name, title, tip) in enumerate((*FIGURES, *COUNTS), start=3):
            caption = QLabel(title)
            caption.setProperty("role", "faint")
            caption.setToolTip(tip)
            self._grid.addWidget(caption, row, 0)
            self.captions[name] = caption
            for k, role in enumerate(ROLES, start=1):
                label = self._label(role, name, row, k)
                label.setFont(number_font(self.font()))
                label.setAlignment(Qt.AlignmentFlag.AlignRight)
                label.setAccessibleName(f"{title} of the {role}")
        self.restart: dict[str, QToolButton] = {}
        for k, role in enumerate(ROLES, start=1):
            button = QToolButton()
            button.setText("Restart")
            button.setToolTip(f"Restart the {role} ({role}.restart)")
            button.setAccessibleName(f"Restart the {role}")
            button.clicked.connect(self._restarter(role))
            button.hide()
            self.restart[role] = button
            self._grid.addWidget(button, 2, k, Qt.AlignmentFlag.AlignLeft)

    def _label(self, role: str, name: str, row: int, column: int) -> QLabel:
        label = QLabel()
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        label.setMinimumWidth(1)
        self.labels[role, name] = label
        self._grid.addWidget(label, row, column)
        return label

    def _restarter(self, role: SourceName) -> Callable[[], object]:
        return lambda: self._bridge.runner.run(f"{role}.restart")

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self._shown.clear()

    def refresh(self, frame: Frame) -> None:
        """Show the newest health of every source."""
        sources = frame.snapshot.sources
        self.pages.setCurrentIndex(1 if sources else 0)
        words = []
        for role in ROLES:
            source = frame.snapshot.source(role)
            state = "" if source is None else state_of(source, frame.snapshot.replay)
            self._show_source(role, source, state)
            trouble = bool(source and source.note) or state not in _WELL
            self.restart[role].setVisible(trouble)
            if source is not None and trouble:
                words.append(f"{role}: {source.note or source.health.text}")
        self._show_counts(sources)
        label = self.words
        label.setVisible(bool(words))
        text = "\n".join(word if len(word) < 300 else word[:300] + "…" for word in words)
        if text != label.text():
            label.setText(text)
            label.setToolTip("\n".join(words))

    def _show_source(self, role: str, source: SourceView | None, state: str) -> None:
        if source is None:
            for name in ("title", "state", *(n for n, _, _ in (*FIGURES, *COUNTS))):
                self._put(role, name, fmt.NOTHING)
            self._put(role, "title", role.capitalize())
            self._shown.pop((role, "state"), None)
            return
        title = self.labels[role, "title"]
        where = f"{source.title}\n{source.control}"
        if title.toolTip() != where:
            title.setToolTip(where)
        self._put(role, "title", role.capitalize())
        colour = {"streaming": self._theme.good, "silent": self._theme.warning}.get(
            state, self._theme.alarm if state in ("dead", "incompatible") else self._theme.faint
        )
        label = self.labels[role, "state"]
        if self._shown.get((role, "state")) != state:
            label.setTextFormat(Qt.TextFormat.RichText)
            self._shown[role, "state"] = state
            label.setText(_with_icon(state_icon(state, self._theme), STATES[state], colour))
            label.setAccessibleName(f"State of the {role}: {STATES[state]}")
        label.setToolTip(source.note or source.health.text)
        for name, _, _ in (*FIGURES, *COUNTS):
            text = figure_text(name, source.health)
            self._put(role, name, text, "warning" if text.startswith("!") else "")

    def _show_counts(self, sources: tuple[SourceView, ...]) -> None:
        """Rows of counts that are zero everywhere give way to one line."""
        zero = []
        for name, title, _ in COUNTS:
            some = any(getattr(source.health, name) for source in sources)
            for label in (self.captions[name], *(self.labels[role, name] for role in ROLES)):
                label.setVisible(some)
            if not some:
                zero.append(title.lower())
        text = f"None {', '.join(zero)}" if zero else ""
        if text != self._counts.text():
            self._counts.setText(text)

    def _put(self, role: str, name: str, text: str, look: str | None = None) -> None:
        label = self.labels[role, name]
        if label.text() != text:
            label.setText(text)
        if look is not None:
            show_role(label, look)


def _text(name: str) -> QLabel:
    """A label that wraps and takes what width there is."""
    label = QLabel()
    label.setWordWrap(True)
    label.setMinimumWidth(1)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    label.setAccessibleName(name)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _scrolled(widget: QWidget) -> QScrollArea:
    scroll = QScrollArea()
    scroll.setWidgetResizable(True)
    scroll.setAccessibleName("Health of the sources")
    scroll.setFrameShape(QScrollArea.Shape.NoFrame)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(widget)
    return scroll


def _with_icon(icon: QIcon, words: str, colour: str) -> str:
    """Rich text: the icon as an inline image, then the words."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    icon.pixmap(32, 32).save(buffer, "PNG")
    image = bytes(data.toBase64().data()).decode()
    return (
        f"<img src='data:image/png;base64,{image}' width=12 height=12>"
        f" <b style='color:{colour}'>{words}</b>"
    )
