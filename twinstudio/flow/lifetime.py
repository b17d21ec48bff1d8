"""How long a process that serves a source lives."""

import json
import os
import signal
import sys
import threading
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def hold_signals() -> None:
    """Let signals that end a process wait for its `Lifetime`.

    While libraries are imported an interrupt may be swallowed by one of them, and
    the process would run on.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


class Lifetime:
    """Ends at SIGTERM, SIGINT, `end`, or, if attached, when standard input closes.

    Construct it on the main thread; signals reach no other.
    """

    def __init__(self, *, attached: bool) -> None:
        self._over = threading.Event()
        for number in SIGNALS:
            signal.signal(number, self._signalled)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if attached:
            threading.Thread(target=self._watch, name="stdin", daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether the process should end."""
        return self._over.is_set()

    def wait(self) -> None:
        """Return when the process should end."""
        while not self._over.wait(0.2):  # short, so that the main thread sees its signals
            continue

    def end(self) -> None:
        """Let the process end; from any thread."""
        self._over.set()

    def announce(self, control: str) -> None:
        """Tell the parent, in one line of JSON, that requests are answered at `control`."""
        sys.stdout.write(json.dumps({"control": control}) + "\n")
        sys.stdout.flush()

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._over.set()

    def _watch(self) -> None:
        # Not sys.stdin: its lock would be held here when the interpreter ends.
        while os.read(0, 4096):
            pass
        self._over.set()
