"""The lines the window shows in its log: the session's, and its own complaints."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from time import time_ns
from typing import Literal

from PySide6.QtCore import QObject, Signal

from twinstudio.model.views import Entry

KEPT = 5000
Level = Literal["info", "warning", "alarm"]


@dataclass(slots=True)
class Line:
    """One line; `times` counts identical lines in a row, `stamp` is the newest [wall ns]."""

    stamp: int
    level: Level
    kind: str
    text: str
    times: int = 1


class Notices(QObject):
    """Keeps the newest `KEPT` lines; older ones go and `dropped` counts them.

    latest: the newest unread alarm, or warning while there is no alarm.
    changed: some lines came, emitted at most once a call.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.lines: deque[Line] = deque(maxlen=KEPT)
        self.total = 0
        self.dropped = 0
        self.unread = 0
        self.latest: Line | None = None

    def take(self, entries: Iterable[Entry]) -> None:
        """Append session log entries, oldest first."""
        lines = [Line(e.stamp, e.level, e.kind, e.text) for e in entries]
        if lines:
            for line in lines:
                self._append(line)
            self.changed.emit()

    def say(self, level: Level, kind: str, text: str) -> None:
        """A line of the window's own."""
        self._append(Line(time_ns(), level, kind, text))
        self.changed.emit()

    def read(self) -> None:
        """The user has seen the log."""
        self.unread = 0
        self.latest = None
        self.changed.emit()

    def _append(self, line: Line) -> None:
        last = self.lines[-1] if self.lines else None
        if last and (last.level, last.kind, last.text) == (line.level, line.kind, line.text):
            last.times += 1
            last.stamp = line.stamp
            line = last
        else:
            self.dropped += len(self.lines) == KEPT
            self.lines.append(line)
            self.total += 1
        if line.level != "info":
            self.unread += 1
            # A warning that follows from an alarm must not hide it.
            if self.latest is None or line.level == "alarm" or self.latest.level != "alarm":
                self.latest = line
