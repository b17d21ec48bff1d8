"""The session log: bounded, ordered, safe to write from any thread."""

import threading
import time
from collections import deque
from typing import Literal

from twinstudio.model.views import Entry
from twinstudio.model.words import one_line

Level = Literal["info", "warning", "alarm"]
KEPT = 10_000


class Journal:
    """Entries numbered from 0; the oldest go when `kept` are there."""

    def __init__(self, kept: int = KEPT) -> None:
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._next = 0
        self._lock = threading.Lock()

    def write(self, level: Level, kind: str, text: str) -> None:
        """Add one line; `kind` is what it is about (cell, twin, recording, ...)."""
        text = one_line(text) or "(no text)"
        with self._lock:
            self._entries.append(Entry(self._next, time.time_ns(), level, kind, text))
            self._next += 1

    def since(self, seq: int) -> list[Entry]:
        """Entries with number >= `seq` that are still kept, oldest first."""
        with self._lock:
            wanted = min(len(self._entries), self._next - seq)
            if wanted <= 0:
                return []
            return [self._entries[k] for k in range(-wanted, 0)]
