"""Child processes: started, listened to, and ended without leaving anything behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import IO, Any

from twinstudio.model.errors import ProcessError

READY_SECONDS = 20.0
LAST_WORDS = 20


class Child:
    """One ``twinstudio`` process that announces itself with a line of JSON.

    The child ends by itself when this process ends, because its standard input
    closes then.
    """

    def __init__(self, title: str, arguments: Sequence[str]) -> None:
        """Start ``twinstudio ARGUMENTS --attached``; `title` names it in messages."""
        self.title = title
        self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
            [sys.executable, "-m", "twinstudio", *arguments, "--attached"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=_environment(),
        )
        self._words: deque[str] = deque(maxlen=LAST_WORDS)
        self._ready: dict[str, Any] | None = None
        self._announced = threading.Event()
        self._readers = [
            threading.Thread(target=self._listen, name=f"{title}-stdout", daemon=True),
            threading.Thread(target=self._collect, name=f"{title}-stderr", daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def ready(
        self, seconds: float = READY_SECONDS, *, unless: threading.Event | None = None
    ) -> dict[str, Any]:
        """What the child announced.

        Raises ProcessError if it dies, stays silent, or `unless` is set meanwhile.
        """
        deadline = time.monotonic() + seconds
        while not self._announced.wait(0.05) and time.monotonic() < deadline:
            if unless is not None and unless.is_set():
                raise ProcessError("start was given up", where=self.title)
        if self._ready is not None:
            return self._ready
        if self._announced.is_set():  # its output has ended: it is about to end itself
            self._wait(1.0)
        if self.running:
            raise ProcessError(
                f"did not get ready within {seconds:g} s", where=self.title, hint=self.last_words
            )
        for reader in self._readers:
            reader.join(1.0)
        raise ProcessError(self.obituary(), where=self.title)

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    @property
    def last_words(self) -> str:
        """The last lines of its error output, as one line."""
        return " | ".join(self._words)

    def obituary(self) -> str:
        """How the process ended, in words, with its last line; empty while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        if code < 0:
            how = f"was ended by signal {signal.Signals(-code).name}"
        else:
            how = f"ended with exit status {code}"
        last = f": {self._words[-1]}" if self._words else ""
        return f"{how}{last}"

    def stop(self, patience: float = 3.0) -> None:
        """Ask (close its input), then terminate, then kill; returns when it is gone."""
        for close in (self._close_input, self._process.terminate, self._process.kill):
            close()
            try:
                self._process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        for reader in self._readers:
            reader.join(patience)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _close_input(self) -> None:
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                return  # it died with our last words unread; there are none

    def _listen(self) -> None:
        for line in _lines(self._process.stdout):
            if self._ready is None and line.startswith("{"):
                self._ready = json.loads(line)
                self._announced.set()
        self._announced.set()

    def _collect(self) -> None:
        for line in _lines(self._process.stderr):
            self._words.append(line)


def _lines(stream: IO[str] | None) -> "list[str] | Any":
    assert stream is not None
    return (line.strip() for line in stream if line.strip())


def _environment() -> dict[str, str]:
    """One thread a process for linear algebra: a 7-joint robot needs no more."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
