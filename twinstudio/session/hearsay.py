"""Events of a source on their way to the session log, a flood held back."""

import threading
import time
from collections.abc import Callable

from twinstudio.flow.protocol import Event
from twinstudio.model.views import SourceName
from twinstudio.session.journal import Journal

MOST = 100
"""Events of one source that are told within a `SPAN`; beyond that they are counted."""
SPAN = 1.0


class Hearsay:
    """Writes events into the journal; a source that floods it cannot drown the rest.

    What is held back is counted and told; a recording has all of it.
    """

    def __init__(self, journal: Journal, clock: Callable[[], float] = time.monotonic) -> None:
        self._journal = journal
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[SourceName, float] = {}
        self._told: dict[SourceName, int] = {}

    def tell(self, role: SourceName, event: Event) -> None:
        """Write `event` into the journal, or count it."""
        self.catch_up(role)
        with self._lock:
            told = self._told[role] = self._told.get(role, 0) + 1
        if told <= MOST:
            self._journal.write(event.level, role, event.text or event.code)

    def catch_up(self, role: SourceName) -> None:
        """Tell of what was held back, once its span is over."""
        now = self._clock()
        with self._lock:
            if now - self._since.get(role, -SPAN) < SPAN:
                return
            held = self._told.get(role, 0) - MOST
            self._since[role], self._told[role] = now, 0
        if held > 0:
            self._journal.write(
                "warning",
                role,
                f"{held} more events within {SPAN:g} s are not shown; a recording holds them",
            )
