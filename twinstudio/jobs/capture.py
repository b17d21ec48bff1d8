"""What a job prints: written to its log as it comes, head and tail of it."""

from collections import deque
from pathlib import Path

HEAD_BYTES = 262_144
TAIL_BYTES = 262_144
SHOWN_BYTES = 65_536


class Capture:
    """A log of bounded size. The head goes to disk at once, the tail at the end.

    problem: why the log could not be written, "" while all is well; a full disk
    does not end the job.
    """

    def __init__(self, path: Path, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self.problem = ""
        self._room = head
        self._limit = tail
        self._tail: deque[bytes] = deque()
        self._held = 0
        self._skipped = 0
        self._last = b""
        self._stream = path.open("wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Take what was printed."""
        self._last = (self._last + data)[-SHOWN_BYTES:]
        head, rest = data[: self._room], data[self._room :]
        self._room -= len(head)
        if head:
            self._put(head)
        if rest:
            self._tail.append(rest)
            self._held += len(rest)
        while self._tail and self._held - len(self._tail[0]) >= self._limit:
            gone = len(self._tail.popleft())
            self._held -= gone
            self._skipped += gone

    def close(self) -> None:
        """Write the tail, and how much is missing before it."""
        tail = b"".join(self._tail)
        extra = max(0, len(tail) - self._limit)
        if self._skipped + extra:
            self._put(f"\n[... {self._skipped + extra} bytes left out ...]\n".encode())
        self._put(tail[extra:])
        self._tail.clear()
        self._stream.close()

    @property
    def recent(self) -> str:
        """The end of what was printed so far."""
        return self._last.decode(errors="replace")

    def _put(self, data: bytes) -> None:
        if self.problem or not data:
            return
        try:
            written = self._stream.write(data)
            if written < len(data):
                self._stream.write(data[written:])  # tells why
        except OSError as error:
            self.problem = f"the log is incomplete: {error.strerror}"
