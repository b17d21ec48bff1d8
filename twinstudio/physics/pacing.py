"""Steps in real time: when each is due, how late it was, and what was left out."""

import time
from collections.abc import Callable

import msgspec
import numpy as np

REMEMBERED = 10_000
MOST_BEHIND = 500_000_000
"""ns by which a pacer catches up; beyond that it leaves the time out."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How well steps kept time over the last ten thousand of them.

    real_time: stepped over elapsed time. lateness, lateness_p50: 99th percentile
    and median of how late steps began [s]; None before there are any.
    left_out: time that was left out since the start [s], and `stalls` how often.
    """

    real_time: float | None
    lateness: float | None
    lateness_p50: float | None
    left_out: float
    stalls: int
    steps: int


class Pacer:
    """Waits for one instant after the other, `step` seconds apart.

    free: do not wait at all, run as fast as possible. A pacer that is late does
    not wait either, until it has caught up; if it is later than MOST_BEHIND, the
    instants move on by that much, which `left_out` counts.
    """

    def __init__(
        self,
        step: float,
        *,
        free: bool = False,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._step = step * 1e9
        self._free = free
        self._clock, self._sleep = clock, sleep
        self._origin = clock()
        self._began = np.zeros(REMEMBERED, dtype=np.int64)
        self._late = np.zeros(REMEMBERED, dtype=np.int64)
        self.steps = 0
        self.left_out = 0
        self.stalls = 0

    def next(self) -> tuple[int, int]:
        """Wait for the next instant: when it was due, and what time it is, both ns."""
        due = self._origin + round(self.steps * self._step)
        now = self._clock()
        if not self._free:
            while now < due:
                # The system wakes us some 60 us late, far less than a step may be.
                self._sleep((due - now) / 1e9)
                now = self._clock()
            if now - due > MOST_BEHIND:
                self._leave_out(now - due)
                due = now
        slot = self.steps % REMEMBERED
        self._began[slot] = now
        self._late[slot] = now - due
        self.steps += 1
        return due, now

    def _leave_out(self, late: int) -> None:
        self._origin += late
        self.left_out += late
        self.stalls += 1

    def pace(self) -> Pace:
        """The figures now; from any thread, give or take a step."""
        count = min(self.steps, REMEMBERED)
        late = self._late[:count] / 1e9
        known = count > 1 and not self._free
        p50, p99 = np.percentile(late, (50.0, 99.0)) if known else (None, None)
        elapsed = int(self._began[:count].max() - self._began[:count].min()) if count else 0
        return Pace(
            real_time=(count - 1) * self._step / elapsed if elapsed else None,
            lateness=None if p99 is None else float(p99),
            lateness_p50=None if p50 is None else float(p50),
            left_out=self.left_out / 1e9,
            stalls=self.stalls,
            steps=self.steps,
        )
