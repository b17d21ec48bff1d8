"""A worker process as its runner sees it: started, heard, and ended with all it started."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import msgspec

from twinstudio.jobs.capture import Capture
from twinstudio.jobs.messages import CANCEL, LONGEST_LINE, Message, decode
from twinstudio.jobs.mishap import one_line

CHUNK = 65_536
DRAIN_SECONDS = 1.0
_RAISED_AT = re.compile(r'File "([^"]*)", line (\d+) in (\S+)')


class Child:
    """``python -m twinstudio.jobs.worker FOLDER`` in a session and process group of its own."""

    def __init__(self, folder: Path, capture: Capture) -> None:
        """Start it; raises OSError if there can be no more processes."""
        self._capture = capture
        self._line = b""
        self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
            [sys.executable, "-P", "-m", "twinstudio.jobs.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=environment(),
        )
        for stream in (self.events, self.output):
            os.set_blocking(stream.fileno(), False)

    @property
    def pid(self) -> int:
        """Process id, also of the group."""
        return self._process.pid

    @property
    def events(self) -> IO[bytes]:
        """Where its messages come from."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def output(self) -> IO[bytes]:
        """Where what it prints comes from."""
        assert self._process.stderr is not None
        return self._process.stderr

    def hear(self) -> tuple[list[Message], int | None]:
        """Messages that have come, and how many bytes: None for none yet, 0 at the end.

        A line that is no message goes to the log.
        """
        data = _read(self.events)
        if data is None:
            return [], None
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > LONGEST_LINE:
            lines.append(self._line)
            self._line = b""
        messages = []
        for line in lines:
            try:
                messages.append(decode(line))
            except msgspec.MsgspecError:
                self._capture.write(b"[no message: " + line[:200] + b"]\n")
        return messages, len(data)

    def collect(self) -> int | None:
        """Log what it has printed; how many bytes, as in `hear`."""
        data = _read(self.output)
        if data is None:
            return None
        self._capture.write(data)
        return len(data)

    def ask_to_cancel(self) -> None:
        """Set its plugin's cancel flag; one that is gone needs no asking."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(CANCEL)
        except BrokenPipeError:
            return

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of its group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    @property
    def ended(self) -> bool:
        """Whether it has ended; it is not reaped yet, so that its group keeps its number."""
        if self._process.returncode is not None:
            return True
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, options) is not None

    def bury(self) -> list[Message]:
        """End what is left of its group, reap it, and return its last messages."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        messages: list[Message] = []
        deadline = time.monotonic() + DRAIN_SECONDS  # a process that left its group may go on
        more = True
        while more and time.monotonic() < deadline:
            heard, got = self.hear()
            messages += heard
            more = bool(self.collect()) or bool(got)
        for stream in (self._process.stdin, self.events, self.output):
            if stream is not None:
                stream.close()
        return messages

    def obituary(self) -> str:
        """How it ended, in one line, with where a crash was and its last output."""
        code = self._process.returncode
        said = self._capture.recent
        if code < 0:
            name = signal.Signals(-code).name
            how = f"its process was ended by signal {name}{_reason(name)}"
        else:
            how = (
                f"its process ended with exit status {code} and no result;"
                " a plugin returns, it does not end the process"
            )
        before, _, crash = said.partition("Fatal Python error")
        # Threads are listed one after the other; this heads the one that fell.
        place = _RAISED_AT.search(crash.partition("Current thread")[2])
        where = f" in {Path(place[1]).name}, line {place[2]}, {place[3]}" if place else ""
        last = before.strip().splitlines()[-1:]
        return one_line(f"{how}{where}{f'; last output: {last[0]}' if last else ''}")


def _read(stream: IO[bytes]) -> bytes | None:
    """What is there; None for nothing yet, nothing at the end."""
    try:
        return os.read(stream.fileno(), CHUNK)
    except BlockingIOError:
        return None


def _reason(name: str) -> str:
    reasons = {
        "SIGKILL": " (killed from outside, or the machine ran out of memory)",
        "SIGSEGV": " (segmentation fault)",
        "SIGABRT": " (aborted)",
        "SIGBUS": " (bus error)",
        "SIGFPE": " (arithmetic error)",
    }
    return reasons.get(name, "")


def environment() -> dict[str, str]:
    """What makes the same numbers come out again: one thread, and sets in one order."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(threads, "1"),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "agg",
    }
