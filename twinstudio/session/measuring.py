"""A metric of a plugin as whoever wants its figures sees it: asked, timed, ended.

The code of a plugin runs in a process of its own, so that none can hold up, crash or
spoil the one that asks.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from twinstudio.model.errors import ParamsError, PluginError, TwinstudioError
from twinstudio.model.measured import Measured
from twinstudio.model.pair import Pair
from twinstudio.model.words import one_line
from twinstudio.plugin.catalog import Catalog
from twinstudio.session.measure import HEAD, Answer, Ask, Loaded, Said, Setup, framed, write_pair

IMPORT_SECONDS = 20.0
GRACE_SECONDS = 2.0
"""Given to a process to end itself and say where it hung, before it is killed."""
LONGEST_ANSWER = 64 * 2**20
_CHUNK = 65_536
_TAIL = 8_192
_HUNG = "Timeout ("
_AT = re.compile(r'File "([^"]*)", line (\d+) in (\S+)')
_decoder = msgspec.msgpack.Decoder(Said)


class Measuring:
    """One metric with its parameters in a process of its own. Used by one thread at a time.

    `close` may come from any thread; whoever waits for an answer then gets a failure.
    """

    def __init__(
        self, catalog: Catalog, plugin: str, params: Mapping[str, Any] | Sequence[str]
    ) -> None:
        """Start to load `plugin`; `ready` tells how that went.

        params: plain values, or ``name=value`` words. Raises PluginError for an
        unknown or disabled plugin, one that is no metric, or no process to be had.
        """
        offer = catalog.offer(plugin)
        if offer.kind != "metric":
            known = ", ".join(e.id for e in catalog.entries() if e.kind == "metric") or "none"
            raise PluginError(
                f"is of kind {offer.kind}, no metric",
                where=f"plugin '{plugin}'",
                hint=f"metrics: {known}",
            )
        self._catalog = catalog
        self.blank = Measured(plugin=offer.id, version=offer.version, title=offer.title)
        self._closed = False
        self._rest = b""
        self._printed = b""
        self._folder = tempfile.TemporaryDirectory(prefix="twinstudio-metric-")
        self._process = self._started()
        given = dict(params) if isinstance(params, Mapping) else list(params)
        known_of = asdict(offer) | {"place": str(offer.place) if offer.place else None}
        self._send(Setup(offer=known_of, path=sys.path, params=given, limit=IMPORT_SECONDS))

    def _started(self) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "twinstudio.session.measure"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONUNBUFFERED": "1"},
            )
        except OSError as error:
            self._folder.cleanup()
            raise PluginError(
                f"no process could be started: {error.strerror}",
                where=f"plugin '{self.blank.plugin}'",
            ) from error

    def ready(self) -> Measured:
        """Wait until it is loaded; its parameters, as checked.

        Raises ParamsError for parameters that do not fit, PluginError for a plugin
        that does not; the catalog keeps the latter.
        """
        said = self._hear(IMPORT_SECONDS, "its import")
        if isinstance(said, Loaded) and not said.fault:
            self.blank = msgspec.structs.replace(self.blank, params=said.params)
            return self.blank
        if isinstance(said, Loaded):
            kind = ParamsError if said.fault == "params" else PluginError
            problem = kind(said.error, where=said.where, hint=said.hint)
            trace = said.trace
        else:
            problem = PluginError(said.error, where=f"plugin '{self.blank.plugin}'")
            trace = said.trace
        if not isinstance(problem, ParamsError):
            self._note(problem.what, trace)
        raise problem

    def measure(self, pair: Pair, *, limit: float) -> Measured:
        """Figures of `pair`, or why there are none, after `limit` s at most; never raises for it.

        After a failure it can only be closed.
        """
        try:
            file = Path(self._folder.name) / "pair"
            write_pair(pair, file)
        except OSError as error:
            return msgspec.structs.replace(
                self.blank, error=f"the samples could not be handed over: {error.strerror}"
            )
        self._send(
            Ask(
                file=str(file),
                samples=len(pair),
                layout=pair.layout,
                uncertainty=pair.uncertainty,
                limit=limit,
            )
        )
        said = self._hear(limit, "measure")
        if not isinstance(said, Answer):
            said = Answer(error="it answered what it was not asked")
        if said.error:
            self._note(said.error, said.trace)
        return msgspec.structs.replace(
            self.blank, results=said.results, error=said.error, trace=said.trace
        )

    def check(self) -> None:
        """Raise PluginError if its plugin was switched off or uninstalled meanwhile."""
        self._catalog.offer(self.blank.plugin)

    def close(self) -> None:
        """End its process with all it started; that is no failure of the plugin."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def drop(self) -> None:
        """Close it and let go of its pipes, when nobody waits for it any more."""
        self.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.drop()

    def _note(self, text: str, trace: str) -> None:
        if self._closed:
            return
        with contextlib.suppress(TwinstudioError):  # it may be uninstalled by now
            self._catalog.note_failure(self.blank.plugin, text, trace)

    def _send(self, message: msgspec.Struct) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone, and the wait for its answer will say so
            self._process.stdin.write(framed(message))

    def _hear(self, limit: float, what: str) -> Said:
        """The next message; where there is none, an answer that says why."""
        out, err = self._process.stdout, self._process.stderr
        assert out is not None
        assert err is not None
        deadline = time.monotonic() + limit + GRACE_SECONDS
        with selectors.DefaultSelector() as both:
            both.register(out, selectors.EVENT_READ)
            both.register(err, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0.0:
                for key, _ in both.select(left):
                    data = os.read(key.fd, _CHUNK)
                    if not data:
                        both.unregister(key.fileobj)
                    if key.fileobj is err:
                        self._printed = (self._printed + data)[-_TAIL:]
                        continue
                    self._rest += data
                    if (said := self._message()) is not None:
                        return said
                    if not data:
                        return self._death(err, limit, what)
        text = f"{what} did not end within {limit:g} s"
        return Answer(error=text, trace=self._words())

    def _message(self) -> Said | None:
        """The first whole message of what has come."""
        if len(self._rest) < HEAD.size:
            return None
        (length,) = HEAD.unpack_from(self._rest)
        if length > LONGEST_ANSWER:
            return Answer(error=f"it answered {length / 1e6:.0f} MB; a metric gives figures")
        end = HEAD.size + length
        if len(self._rest) < end:
            return None
        data, self._rest = self._rest[HEAD.size : end], self._rest[end:]
        try:
            said: Said = _decoder.decode(data)
        except (msgspec.MsgspecError, TwinstudioError) as error:
            return Answer(error=one_line(f"its answer cannot be read: {error}"))
        return said

    def _death(self, err: IO[bytes], limit: float, what: str) -> Answer:
        """How its process ended, in one line, and where it was."""
        self._end()
        os.set_blocking(err.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while data := os.read(err.fileno(), _CHUNK):
                self._printed = (self._printed + data)[-_TAIL:]
        said = self._words()
        _, hung, stack = said.rpartition(_HUNG)
        place = _AT.search(stack if hung else said.partition("Current thread")[2])
        where = f" ({Path(place[1]).name}, line {place[2]}, in {place[3]})" if place else ""
        code = self._process.returncode
        if hung:
            how = f"{what} did not end within {limit:g} s"
        elif code < 0:
            how = f"{what} was ended by signal {signal.Signals(-code).name}"
        else:
            how = f"{what} ended the process with status {code}; a plugin returns or raises"
        return Answer(error=how + where, trace=said)

    def _words(self) -> str:
        return self._printed.decode(errors="replace")


_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
