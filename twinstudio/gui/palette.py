"""The command palette: every command of session and window, by a few letters."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.runner import parsed
from twinstudio.gui.theme import GRID
from twinstudio.model.errors import TwinstudioError

_MOST = 60


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of the palette. args: what the session command takes, for the hint."""

    name: str
    help: str
    run: Callable[[], None] | None
    args: tuple[str, ...] = ()


def score(needle: str, text: str) -> float | None:
    """How well the letters of `needle` appear in order in `text`; None if they don't.

    Higher is better: letters that follow each other or begin a word count more.
    """
    text, total, at, previous = text.lower(), 0.0, -1, -2
    for letter in needle.lower().replace(" ", ""):
        at = text.find(letter, at + 1)
        if at < 0:
            return None
        begins = at == 0 or not text[at - 1].isalnum()
        total += 1.0 + 2.0 * (at == previous + 1) + 1.5 * begins
        previous = at
    return total - 0.01 * len(text)


class Palette(QFrame):
    """A line to type into and what fits it; Enter runs, Escape leaves."""

    def __init__(
        self, window: QWidget, bridge: Bridge, actions: Callable[[], list[QAction]]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._bridge = bridge
        self._actions = actions
        self._choices: list[Choice] = []
        self.setProperty("role", "popover")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.line = QLineEdit()
        self.line.setPlaceholderText("Command, e.g. record.start, or gap.window 10")
        self.line.setAccessibleName("Command")
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._go)
        self.line.installEventFilter(self)
        self.list = QListWidget()
        self.list.setAccessibleName("Matching commands")
        self.list.itemActivated.connect(lambda _item: self._go())
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hint = QLabel()
        self.hint.setProperty("role", "faint")
        self.hint.setWordWrap(True)
        self.list.currentRowChanged.connect(self._explain)
        box = QVBoxLayout(self)
        box.setContentsMargins(GRID, GRID, GRID, GRID)
        box.setSpacing(GRID)
        for widget in (self.line, self.list, self.hint):
            box.addWidget(widget)
        self.hide()

    def open(self) -> None:
        """Show it in the upper middle of the window, empty and ready to type."""
        parent = self._window
        width, height = min(560, parent.width() - 32), min(400, parent.height() - 96)
        self.setGeometry((parent.width() - width) // 2, 64, width, height)
        self._choices = self._collect()
        self.line.clear()
        self._filter("")
        self.show()
        self.raise_()
        self.line.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Up and down move in the list, Escape and a lost focus close it."""
        if event.type() == QEvent.Type.FocusOut:
            self.hide()
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if event.key() == Qt.Key.Key_Escape:
                self.hide()
                return True
            if step is not None:
                row = self.list.currentRow() + step
                self.list.setCurrentRow(max(0, min(row, self.list.count() - 1)))
                return True
            if event.key() == Qt.Key.Key_Tab:
                self._complete()
                return True
        return super().eventFilter(watched, event)

    def _collect(self) -> list[Choice]:
        commands = [
            Choice(info.name, info.help, None, tuple(info.args))
            for info in self._bridge.session.commands()
        ]
        actions = [
            Choice(_plain(action), action.toolTip() or _plain(action), action.trigger)
            for action in self._actions()
            if action.isEnabled() and action.isVisible() and action.text()
        ]
        return commands + actions

    def _filter(self, text: str) -> None:
        needle = text.split(" ", maxsplit=1)[0] if self._named(text) else text
        found = [(score(needle, c.name), c) for c in self._choices]
        ranked = sorted(((s, c) for s, c in found if s is not None), key=lambda pair: -pair[0])[
            :_MOST
        ]
        self.list.clear()
        for _, choice in ranked:
            args = " ".join(choice.args)
            item = QListWidgetItem(f"{choice.name}   {args}" if args else choice.name)
            item.setData(Qt.ItemDataRole.UserRole, choice)
            item.setToolTip(choice.help)
            self.list.addItem(item)
        if ranked:
            self.list.setCurrentRow(0)
        else:
            self.hint.setText("No command has these letters in this order")

    def _named(self, text: str) -> bool:
        """Whether the first word is a session command, the rest being its arguments."""
        return any(text.split(" ", maxsplit=1)[0] == c.name for c in self._choices if c.run is None)

    def _current(self) -> Choice | None:
        item = self.list.currentItem()
        return item.data(Qt.ItemDataRole.UserRole) if item else None

    def _explain(self, _row: int) -> None:
        choice = self._current()
        self.hint.setText(choice.help if choice else "")

    def _complete(self) -> None:
        choice = self._current()
        if choice is not None and choice.run is None:
            self.line.setText(choice.name + " ")

    def _go(self) -> None:
        choice, text = self._current(), self.line.text().strip()
        if choice is None:
            return
        if choice.run is not None:
            self.hide()
            choice.run()
            return
        if choice.args and not self._named(text):
            self._complete()
            return
        self.hide()
        try:
            name, args = parsed(
                text if self._named(text) else choice.name, self._bridge.session.commands()
            )
        except TwinstudioError as error:
            self._bridge.notices.say("alarm", "window", str(error))
        else:
            self._bridge.runner.run(name, **args)


def _plain(action: QAction) -> str:
    return action.text().split("\t")[0].replace("&", "").replace("…", "")
