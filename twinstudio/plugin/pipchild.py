"""pip in a process of its own that can be stopped and never outlives the one that began it.

The child reads its standard input, which closes when the parent ends, however it
ends. It then interrupts pip, and kills its whole process group if that is not enough.
"""

import contextlib
import os
import runpy
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

PATIENCE = 3.0
"""Seconds from an interrupt until what is left is killed."""
GRACE = 5.0
"""Seconds that pip gets to end by itself once it changes files: half a package is worst."""
_TURN = 0.05
_CHUNK = 65_536
_CHANGING = ("Installing collected packages:", "Found existing installation:")


@dataclass(slots=True)
class Ended:
    """How pip ended. status: negative for a signal. stopped: it was asked to."""

    status: int = 0
    lines: list[str] = field(default_factory=list)
    stopped: bool = False


def run(arguments: Sequence[str], say: Callable[[str], None], stop: threading.Event) -> Ended:
    """Run ``pip ARGUMENTS``; each line goes to `say` as it comes, and it ends soon after `stop`.

    Returns when pip and all that it started are gone; raises OSError if it cannot start.
    """
    with tempfile.TemporaryDirectory(prefix="twinstudio-pip-") as scratch:
        child = subprocess.Popen(  # noqa: S603 - our own Python and module
            [sys.executable, "-P", "-m", "twinstudio.plugin.pipchild", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, "TMPDIR": scratch, "PYTHONUNBUFFERED": "1"},
        )
        parent = _Parent(child, say, stop)
        try:
            parent.hear_all()
        finally:
            parent.end()
    return Ended(child.returncode, parent.lines, parent.stopped)


class _Parent:
    """The parent's side of one child."""

    def __init__(
        self, child: "subprocess.Popen[bytes]", say: Callable[[str], None], stop: threading.Event
    ) -> None:
        self._child = child
        self._say = say
        self._stop = stop
        self._rest = b""
        self._wanted = self._asked = 0.0  # when it was to stop, and when it was told
        self.stopped = False
        self.lines: list[str] = []
        os.set_blocking(self._output.fileno(), False)

    @property
    def _output(self) -> IO[bytes]:
        assert self._child.stdout is not None
        return self._child.stdout

    def hear_all(self) -> None:
        """Hand on its lines until it ends; not until its output does, which others may hold."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while not self._over():
                if selector.select(_TURN) and not self._hear():
                    selector.unregister(self._output)
                    self._wait_for_end()
                    return
                self._heed_stop()
        while self._hear():
            continue

    def end(self) -> None:
        """Interrupt it if it still runs, kill what is left of its group, and reap it."""
        self._interrupt()
        deadline = time.monotonic() + PATIENCE
        while not self._over() and time.monotonic() < deadline:
            time.sleep(_TURN / 5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._output.close()
        if self._rest:
            self._take(self._rest)

    def _over(self) -> bool:
        """Whether it has ended; unreaped, so that its group keeps its number."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child.pid, options) is not None

    def _wait_for_end(self) -> None:
        while not self._over():
            self._heed_stop()
            time.sleep(_TURN / 5)

    def _hear(self) -> bool:
        """Take what has come; whether there was something."""
        try:
            data = os.read(self._output.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        return bool(data)

    def _take(self, line: bytes) -> None:
        self.lines.append(line.decode(errors="replace").rstrip())
        self._say(self.lines[-1])

    def _heed_stop(self) -> None:
        if not self._stop.is_set():
            return
        now = time.monotonic()
        self._wanted = self._wanted or now
        if self.stopped and now > self._asked + PATIENCE + 1.0:  # it should have done that itself
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        elif not self.stopped and (not self._changing() or now > self._wanted + GRACE):
            self.stopped, self._asked = True, now
            self._interrupt()

    def _changing(self) -> bool:
        return any(line.strip().startswith(_CHANGING) for line in self.lines)

    def _interrupt(self) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()


def _watch(asked: threading.Event) -> None:
    """The child's thread: its input has ended, so it ends."""
    while os.read(0, 4096):
        pass
    asked.set()
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)
    time.sleep(PATIENCE)
    os.killpg(0, signal.SIGKILL)


def _main(arguments: Sequence[str]) -> None:
    """The child's part: be pip."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have ignored it
    asked = threading.Event()
    threading.Thread(target=_watch, args=(asked,), name="parent", daemon=True).start()
    sys.argv = ["pip", *arguments]
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    finally:
        if asked.is_set():  # builds that it had started go with it
            sys.stdout.flush()
            os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _main(sys.argv[1:])
