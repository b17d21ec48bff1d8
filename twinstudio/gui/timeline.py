"""Which stretch of session time the window shows: live, or held in the past."""

from PySide6.QtCore import QObject, Signal

WINDOWS = (2.0, 5.0, 10.0, 30.0, 60.0, 300.0)


class Timeline(QObject):
    """The instant shown, and how much before it; data comes in regardless.

    changed: mode, instant or window were changed by someone, not by time passing.
    moved: the held instant moved by so many seconds, positive is later.
    """

    changed = Signal()
    moved = Signal(float)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.window = 10.0
        self._held: int | None = None
        self._now = 0
        self._first = 0

    @property
    def live(self) -> bool:
        """Whether the newest data is shown."""
        return self._held is None

    @property
    def end(self) -> int:
        """The instant shown [ns, session clock]."""
        return self._now if self._held is None else self._held

    @property
    def start(self) -> int:
        """Where the shown stretch begins [ns, session clock]."""
        return self.end - round(self.window * 1e9)

    @property
    def age(self) -> float:
        """How old the instant shown is [s], 0 when live."""
        return (self._now - self.end) / 1e9

    @property
    def reach(self) -> float:
        """How far back history goes [s]."""
        return max(self._now - self._first, 0) / 1e9

    def advance(self, now: int, first: int) -> None:
        """Time has come to `now`; history holds from `first` on [ns].

        When history has forgotten the instant shown, the oldest it has is shown.
        """
        self._now, self._first = now, min(first, now)
        if self._held is not None and self._held < self._first:
            self._hold(self._first)

    def pause(self) -> None:
        """Hold what is shown now."""
        if self._held is None:
            self._held = self._now
            self.changed.emit()

    def resume(self) -> None:
        """Show the newest data again."""
        if self._held is not None:
            self._held = None
            self.changed.emit()

    def toggle(self) -> None:
        """Pause when live, and the other way round."""
        if self.live:
            self.pause()
        else:
            self.resume()

    def look_back(self, seconds: float) -> None:
        """Hold the instant `seconds` before now, as far as history goes."""
        wanted = self._now - round(seconds * 1e9)
        self._hold(max(min(wanted, self._now), self._first))

    def set_window(self, seconds: float) -> None:
        """Show `seconds` before the instant; at least 0.05 s."""
        self.window = max(seconds, 0.05)
        self.changed.emit()

    def _hold(self, stamp: int) -> None:
        before = self.end
        self._held = stamp
        if stamp != before:
            self.moved.emit((stamp - before) / 1e9)
        self.changed.emit()
