"""The one door between a session and Qt: a display tick that pulls pictures.

Nothing is signalled per sample. Every frame takes one snapshot and the new log
entries, and goes to those views that can be seen; each view says how often it
wants one. A frame is handed out in two ticks, and views are staggered over
frames, so that the event loop is never held up for long.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget

from twinstudio.gui.notices import Notices
from twinstudio.gui.runner import Runner
from twinstudio.gui.timeline import Timeline
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.views import Snapshot

if TYPE_CHECKING:
    from twinstudio.session.session import Session

TICK_MS = 16
PROBE_MS = 5
_BEHIND = 2.5 * TICK_MS / 1e3
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Frame:
    """What a view gets to draw: the newest snapshot, and which instant is shown."""

    snapshot: Snapshot
    timeline: Timeline
    number: int


@dataclass(frozen=True, slots=True)
class WindowStats:
    """How smoothly the window runs; times in s, NaN where nothing was measured.

    fps: frames handed out per second. work: spent in one tick, pulling and handing out.
    delay: how late the event loop got to a timer that was due (needs `probe`).
    """

    fps: float
    work_p50: float
    work_p99: float
    delay_p50: float
    delay_p99: float
    delay_max: float
    frames: int


@dataclass(slots=True)
class _Seat:
    widget: QWidget
    refresh: Callable[[Frame], None]
    every: int
    phase: int
    late: bool


class Bridge(QObject):
    """Pulls from `session` about 30 times a second while it is started."""

    def __init__(self, session: "Session", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.timeline = Timeline(self)
        self.notices = Notices(self)
        self.runner = Runner(session, self.notices)
        self.frame: Frame | None = None
        self._seats: list[_Seat] = []
        self._next_entry = 0
        self._number = 0
        self._late = False
        self._ticks: deque[float] = deque(maxlen=_KEPT)
        self._work: deque[float] = deque(maxlen=_KEPT)
        self._delays: deque[float] = deque(maxlen=_KEPT * 5)
        self._probed = 0.0
        self._timer = self._precise(TICK_MS, self._half)
        self._probe_timer = self._precise(PROBE_MS, self._probe)

    def add(
        self,
        widget: QWidget,
        refresh: Callable[[Frame], None],
        *,
        every: int = 1,
        late: bool = True,
    ) -> None:
        """Call `refresh` with every `every`-th frame while `widget` can be seen.

        late: in the second tick of the frame, so as to share the first with nothing else.
        """
        phase = sum(seat.every == every for seat in self._seats) % every
        self._seats.append(_Seat(widget, refresh, every, phase, late))

    def begin(self) -> None:
        """Start the session; why it does not start is a line in the log."""
        try:
            self.session.start()
        except TwinstudioError as error:
            self.notices.say("alarm", "session", str(error))

    def start(self) -> None:
        """Begin to tick."""
        self._timer.start()

    def stop(self) -> None:
        """Stop ticking and probing; no new command is begun."""
        self._timer.stop()
        self._probe_timer.stop()
        self.runner.refuse()

    def tick(self) -> None:
        """One whole frame."""
        self._late = False
        self._half()
        if self._late:
            self._half()

    def _half(self) -> None:
        """The next display tick: begin a frame, or hand out the rest of it.

        A window that is behind hands out the whole frame at once, or it would
        fall back to half the rate.
        """
        began = perf_counter()
        if not self._late:
            behind = bool(self._ticks) and began - self._ticks[-1] > _BEHIND
            self._begin()
            self._ticks.append(began)
            self._hand_out(late=False)
            if behind:
                self._hand_out(late=True)
            self._late = not behind
        else:
            self._hand_out(late=True)
            self._late = False
        self._work.append(perf_counter() - began)

    def _hand_out(self, *, late: bool) -> None:
        assert self.frame is not None
        for seat in self._seats:
            turn = self.frame.number % seat.every == seat.phase
            if turn and seat.late == late and seat.widget.isVisible():
                self._refresh(seat, self.frame)

    def _begin(self) -> None:
        """Pull a new frame."""
        self._drain()
        self.runner.collect()
        snapshot = self.session.snapshot()
        first, last = self.session.extent()
        self.timeline.advance(snapshot.now, first if last > first else snapshot.now)
        self.frame = Frame(snapshot, self.timeline, self._number)
        self._number += 1

    def show_now(self, widget: QWidget) -> None:
        """Give `widget` the newest frame out of turn, after a click for instance."""
        if self.frame is not None:
            for seat in self._seats:
                if seat.widget is widget and widget.isVisible():
                    self._refresh(seat, self.frame)

    def _refresh(self, seat: _Seat, frame: Frame) -> None:
        """One view that cannot draw its frame does not hold up the others."""
        try:
            seat.refresh(frame)
        except TwinstudioError as error:
            self.notices.say("warning", seat.widget.accessibleName() or "window", str(error))

    def probe(self, *, on: bool) -> None:
        """Measure from now on (or no longer) how late timers are served."""
        self._ticks.clear()
        self._work.clear()
        self._delays.clear()
        self._probed = perf_counter()
        if on:
            self._probe_timer.start()
        else:
            self._probe_timer.stop()

    def stats(self) -> WindowStats:
        """Figures since the last `probe`, or of the last two minutes."""
        ticks, work, delays = (np.array(d) for d in (self._ticks, self._work, self._delays))
        span = ticks[-1] - ticks[0] if len(ticks) > 1 else np.nan
        return WindowStats(
            fps=float((len(ticks) - 1) / span),
            work_p50=_percentile(work, 50),
            work_p99=_percentile(work, 99),
            delay_p50=_percentile(delays, 50),
            delay_p99=_percentile(delays, 99),
            delay_max=_percentile(delays, 100),
            frames=len(ticks),
        )

    def _drain(self) -> None:
        entries = self.session.entries(self._next_entry)
        if entries:
            self._next_entry = entries[-1].seq + 1
            self.notices.take(entries)

    def _probe(self) -> None:
        now = perf_counter()
        self._delays.append(max(now - self._probed - PROBE_MS / 1e3, 0.0))
        self._probed = now

    def _precise(self, interval: int, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setTimerType(Qt.TimerType.PreciseTimer)
        timer.setInterval(interval)
        timer.timeout.connect(slot)
        return timer


def _percentile(values: np.ndarray, q: float) -> float:
    return float(np.percentile(values, q)) if len(values) else float("nan")
