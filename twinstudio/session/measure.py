"""The process in which one metric measures: ``python -m twinstudio.session.measure``.

It is told once what to load, then given one pair after the other. It speaks on its
first standard output; the plugin has standard error for both. A clock that needs no
Python ends it when the plugin takes too long, even one that never lets go.
"""

import faulthandler
import os
import resource
import struct
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from twinstudio.jobs import mishap, stored
from twinstudio.model.errors import ParamsError, PluginError
from twinstudio.model.pair import Pair
from twinstudio.model.params import from_text, make, plain
from twinstudio.model.results import Result
from twinstudio.model.signals import Layout
from twinstudio.plugin.kinds import Metric
from twinstudio.plugin.loading import load_class
from twinstudio.plugin.manifest import Offer

HEAD = struct.Struct(">I")
PATIENCE = 10
"""Added to the niceness of this process: the robot comes first."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What to load. params: plain values, or ``name=value`` words of a command line.

    path: of imports. limit: longest import [s].
    """

    offer: dict[str, Any]
    path: list[str]
    params: dict[str, Any] | list[str]
    limit: float


class Loaded(msgspec.Struct, frozen=True, kw_only=True, tag="loaded"):
    """The metric is ready; its parameters as plain values, or why it is not.

    fault: whose mistake it is.
    """

    params: dict[str, Any] = {}
    fault: str = ""
    error: str = ""
    where: str = ""
    hint: str = ""
    trace: str = ""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A pair to measure: `file` holds stamps, twin and cell as plain bytes one after the other.

    limit: longest time it may take [s].
    """

    file: str
    samples: int
    layout: Layout
    uncertainty: float
    limit: float


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """What the metric said; `error` in one line if it failed."""

    results: tuple[Result, ...] = ()
    error: str = ""
    trace: str = ""


Said = Loaded | Answer


def write_pair(pair: Pair, file: Path) -> None:
    """Put the samples of `pair` into `file`."""
    with file.open("wb") as stream:
        for array in (pair.stamps, pair.twin, pair.cell):
            stream.write(np.ascontiguousarray(array).data)


def framed(message: msgspec.Struct) -> bytes:
    """`message` with its length in front."""
    data = msgspec.msgpack.encode(message)
    return HEAD.pack(len(data)) + data


class Line:
    """The way to and from whoever started this process; the plugin gets neither end."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        self._in = os.fdopen(os.dup(0), "rb")
        os.dup2(nothing, 0)  # a plugin that reads its input finds its end
        os.close(nothing)
        self._process = os.getpid()

    def say(self, message: Said) -> None:
        """Send `message`. A copy of this process that the plugin forked ends here."""
        if os.getpid() != self._process:
            os._exit(0)
        rest = memoryview(framed(message))
        while rest:
            rest = rest[os.write(self._out, rest) :]

    def hear(self) -> bytes | None:
        """The next message; None when nobody is left to send one."""
        head = self._in.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        return self._in.read(HEAD.unpack(head)[0])


def main() -> None:
    """Load what is asked for, then measure until nobody asks any more."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    os.nice(PATIENCE)
    line = Line()
    told = line.hear()
    if told is not None:
        _serve(line, msgspec.msgpack.decode(told, type=Setup))
    os._exit(0)  # a thread that the plugin started does not keep us


def _serve(line: Line, setup: Setup) -> None:
    sys.path[:] = setup.path
    plugin = str(setup.offer["id"])
    faulthandler.dump_traceback_later(setup.limit, exit=True)
    try:
        metric, params = _loaded(setup)
    except (PluginError, ParamsError) as error:
        cause = error.__cause__ or error
        fault = "params" if isinstance(error, ParamsError) else "plugin"
        line.say(
            Loaded(
                fault=fault,
                error=error.what,
                where=error.where,
                hint=error.hint,
                trace=mishap.trace(cause),
            )
        )
        return
    except BaseException as error:  # noqa: BLE001 - a stranger's code may raise anything
        text = mishap.in_words(error, plugin).removeprefix(f"{plugin}: ")
        where = f"plugin '{plugin}'"
        line.say(Loaded(fault="plugin", error=text, where=where, trace=mishap.trace(error)))
        return
    faulthandler.cancel_dump_traceback_later()
    line.say(Loaded(params=plain(params)))
    while (told := line.hear()) is not None:
        line.say(_answer(metric, params, plugin, msgspec.msgpack.decode(told, type=Ask)))


def _loaded(setup: Setup) -> tuple[Metric[Any], Any]:
    place = setup.offer["place"]
    cls = load_class(Offer(**setup.offer | {"place": Path(place) if place else None}))
    assert issubclass(cls, Metric)
    given, where = setup.params, str(setup.offer["id"])
    if isinstance(given, list):
        return cls(), from_text(cls.params, given, where=where)
    return cls(), make(cls.params, given, where=where)


def _answer(metric: Metric[Any], params: Any, plugin: str, ask: Ask) -> Answer:
    """Measure once; nothing that the plugin raises gets past."""
    pair = _pair(ask)
    faulthandler.dump_traceback_later(ask.limit, exit=True)
    try:
        found = stored.check(metric.measure(pair, params), f"{plugin}.measure")
    except BaseException as error:  # noqa: BLE001 - whoever asked is told
        text = mishap.in_words(error, plugin).removeprefix(f"{plugin}: ")
        return Answer(error=text or type(error).__name__, trace=mishap.trace(error))
    finally:
        faulthandler.cancel_dump_traceback_later()
    return Answer(results=found)


def _pair(ask: Ask) -> Pair:
    width = ask.layout.width
    with Path(ask.file).open("rb") as stream:
        stamps = np.fromfile(stream, np.int64, ask.samples)
        twin, cell = (
            np.fromfile(stream, np.float64, ask.samples * width).reshape(ask.samples, width)
            for _ in range(2)
        )
    return Pair(ask.layout, stamps, twin, cell, ask.uncertainty)


if __name__ == "__main__":
    main()
