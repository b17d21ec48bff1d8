"""Tries an import in a process of its own: some faults take their whole process with them.

A broken compiled module ends in a segmentation fault, a loop never ends, and
``os._exit`` asks nobody. After a probe the window knows before it imports.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from twinstudio.model.errors import PluginError
from twinstudio.model.words import sayable, trace_of
from twinstudio.plugin.loading import load_class
from twinstudio.plugin.manifest import Offer

LONGEST = 20.0
_TAIL = 4000


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why a plugin cannot be imported; `trace` is a traceback or the last output."""

    what: str
    hint: str = ""
    trace: str = ""


class _Answer(msgspec.Struct, frozen=True):
    fault: Fault | None


def probe(offer: Offer, *, timeout: float = LONGEST) -> Fault | None:
    """Load `offer` in a child process; None if it fits. Takes at most `timeout` s and a bit."""
    with tempfile.TemporaryDirectory(prefix="twinstudio-probe-") as name:
        folder = Path(name)
        (folder / "question.json").write_bytes(
            msgspec.json.encode({"offer": asdict(offer), "path": sys.path}, enc_hook=str)
        )
        ended = _run(folder, timeout)
        answer = folder / "answer.json"
        if ended == 0 and answer.exists():
            return msgspec.json.decode(answer.read_bytes(), type=_Answer).fault
        trace = (folder / "output").read_text(errors="replace")[-_TAIL:]
    what = f"the import of {offer.module or offer.origin} {_how(ended, timeout)}"
    return Fault(what=what, hint="it was tried in a process of its own", trace=trace or what)


def _run(folder: Path, timeout: float) -> int | None:
    """Exit status of the child, None if it had to be stopped; ends all that it started."""
    with (folder / "output").open("wb") as output:
        child = subprocess.Popen(  # noqa: S603 - our own Python and module
            [sys.executable, "-m", "twinstudio.plugin.probing", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + timeout
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT  # unreaped, it still keeps its group's number
    while (ended := os.waitid(os.P_PID, child.pid, look)) is None:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    return None if ended is None else status


def _how(ended: int | None, timeout: float) -> str:
    if ended is None:
        return f"did not end within {timeout:g} s"
    if ended < 0:
        return f"was killed by {signal.Signals(-ended).name}"
    return f"ended the process with status {ended}"


def _answer(folder: Path) -> None:
    """The child's part."""
    question: dict[str, Any] = msgspec.json.decode((folder / "question.json").read_bytes())
    sys.path[:] = question["path"]
    place = question["offer"].pop("place")
    offer = Offer(**question["offer"], place=Path(place) if place else None)
    fault = None
    try:
        load_class(offer)
    except PluginError as error:
        trace = trace_of(error.__cause__ or error)
        fault = Fault(what=sayable(error.what), hint=sayable(error.hint), trace=trace)
    except KeyboardInterrupt as error:  # nobody interrupts a probe
        what = "its import raised KeyboardInterrupt, though nobody interrupted it"
        fault = Fault(what=what, trace=trace_of(error))
    partial = folder / "partial.json"
    partial.write_bytes(msgspec.json.encode(_Answer(fault)))
    partial.replace(folder / "answer.json")


if __name__ == "__main__":
    _answer(Path(sys.argv[1]))
    os._exit(0)  # a thread that the plugin started does not keep us waiting
