"""Plays a recorded source as if it were live.

Time. Samples leave when they are due: `rate` times as densely as they were
recorded. Their stamps tell when that is, on this process's monotonic clock, so
that they agree with the answers to ping at every rate; at a rate other than 1 a
velocity in the log is therefore not the derivative of the positions over the
stamps. `status` and an event tell the rate.

What the log holds is replayed as it is: NaN, missing samples (as a pause of the
same length), repeated and reversed stamps. Two things are changed, and an event
says so: a clock that jumped back by over a second (the source had restarted)
goes on from where it was, and a few stamps far ahead of those around them are set
beside them. After a seek, a pause or a loop the stamps go on
rising.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.protocol import Operation
from twinstudio.flow.record import RecordedSource, Recording
from twinstudio.flow.security import Security
from twinstudio.flow.serve import Endpoint, Handler
from twinstudio.model.errors import RecordingError
from twinstudio.model.views import ReplayView

SLOWEST, FASTEST = 0.1, 10.0
BATCH = 5_000_000
"""Samples are sent together when they fall due within this time [ns]."""

JUMP = 10**9
"""A stamp this much [ns] before its predecessor's is a restart of the source."""

MOST = 4096
"""Samples in one message at most; more are due only after a stall."""

_IDLE = 0.5  # s between looks at the clock while nothing is due
Stamps = NDArray[np.int64]


class Timeline:
    """When each sample of a source is due, from the first one [ns, at rate 1].

    offsets: int64[n], stamps counted from the first; due: int64[n], the same but
    never falling. duration: to the end of the last sample's hold. jumps: rows
    before which the source's clock had jumped back and was set on. wild: how many
    stamps lay far ahead of those around them and were set beside them.
    """

    def __init__(self, source: RecordedSource) -> None:
        blocks = [stretch.block for stretch in source.stretches]
        stamps = np.concatenate([block.stamps for block in blocks])
        steps = stamps[1:] - stamps[:-1]
        forward = steps[steps > 0]
        self.period = int(np.median(forward)) if len(forward) else BATCH
        self.wild = _tame(steps, self.period)
        self.jumps = tuple((np.flatnonzero(steps < -JUMP) + 1).tolist())
        steps[steps < -JUMP] = self.period
        self.offsets: Stamps = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(steps)])
        self.due: Stamps = np.maximum.accumulate(self.offsets)
        self.duration = int(self.due[-1]) + self.period
        self.values = [block.values for block in blocks]
        self.layouts = [block.layout for block in blocks]
        self.starts = np.cumsum([0, *map(len, blocks)]).tolist()

    def __len__(self) -> int:
        return len(self.offsets)

    def stretch(self, row: int) -> int:
        """Which stretch `row` lies in."""
        return bisect_right(self.starts, row) - 1

    def row_at(self, position: int) -> int:
        """The first row due at `position` [ns] or later."""
        return int(np.searchsorted(self.due, position, side="left"))


class Replay:
    """Publishes one source of a recording over an endpoint; a thread of its own plays it.

    rate: 0.1 to 10, log time over real time. loop: start over at the end.
    name: what the endpoint is called, by default what the source was called.
    Operations: pause, resume, seek(seconds), rate(factor), loop(on), status.
    Raises RecordingError for a source without samples or a rate out of bounds.
    """

    def __init__(  # noqa: PLR0913 - what is played and where are that many facts
        self,
        recording: Recording,
        *,
        source: str = "cell",
        rate: float = 1.0,
        loop: bool = False,
        paused: bool = False,
        name: str = "",
        scene: str = "",
        host: str = "127.0.0.1",
        control_port: int = 0,
        telemetry_port: int = 0,
        security: Security | None = None,
    ) -> None:
        recorded = recording.source(source)
        if not recorded.stretches:
            raise RecordingError(f"source '{source}' has no samples", where=str(recording.path))
        self._log = recording.path.name
        self._timeline = timeline = Timeline(recorded)
        self._rate = _checked_rate(rate)
        self._loop = loop
        self._paused = paused
        self._closed = False
        self._row = 0
        self._stretch = 0
        self._done = False
        self._last = self._sent = 0
        self._changed = threading.Condition(threading.RLock())
        self._position, self._since = 0, time.monotonic_ns()
        self._endpoint = Endpoint(
            role="twin" if recorded.role == "twin" else "cell",
            name=name or recorded.name,
            layout=timeline.layouts[0],
            rate=recorded.rate or 1e9 / timeline.period,
            scene=scene,
            host=host,
            control_port=control_port,
            telemetry_port=telemetry_port,
            security=security,
            operations=self._operations(),
        )
        if timeline.wild:
            self._endpoint.event(
                "warning",
                "log-clock",
                f"{timeline.wild} stamps of the log lie far ahead of those around them; they are"
                " set beside them",
            )
        if timeline.jumps:
            self._endpoint.event(
                "warning",
                "log-clock",
                f"the log's clock jumps back {len(timeline.jumps)} times; it is set on there",
                rows=list(timeline.jumps[:100]),
            )
        self._thread = threading.Thread(target=self._run, name=f"replay {source}", daemon=True)
        self._thread.start()

    @property
    def control(self) -> str:
        """Where requests go, ``tcp://host:port``."""
        return self._endpoint.control

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint that publishes."""
        return self._endpoint

    def status(self) -> ReplayView:
        """Where the replay is; times in s from the start of the log."""
        with self._changed:
            return ReplayView(
                log=self._log,
                position=min(self._now(time.monotonic_ns()), self._timeline.duration) / 1e9,
                duration=self._timeline.duration / 1e9,
                rate=self._rate,
                paused=self._paused,
                loop=self._loop,
            )

    def pause(self) -> None:
        """Publish nothing until `resume`."""
        with self._changed:
            self._anchor()
            self._paused = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Go on from where it was paused."""
        with self._changed:
            self._anchor()
            self._paused = False
            self._changed.notify_all()

    def seek(self, seconds: float) -> None:
        """Go on from `seconds` after the start of the log; raises RecordingError."""
        duration = self._timeline.duration / 1e9
        if not 0 <= seconds <= duration:
            raise RecordingError(f"cannot seek to {seconds:g} s; the log has 0 to {duration:g} s")
        with self._changed:
            self._go(round(seconds * 1e9))
            self._changed.notify_all()
        self._endpoint.event("info", "seek", f"replay goes on from {seconds:.3f} s")

    def rate(self, factor: float) -> None:
        """Play `factor` times as fast as recorded; raises RecordingError."""
        factor = _checked_rate(factor)
        with self._changed:
            self._anchor()
            self._rate = factor
            self._changed.notify_all()
        self._endpoint.event("info", "rate", f"replay runs at {factor:g} times real time")

    def loop(self, on: bool) -> None:
        """Start over at the end of the log, or hold there."""
        with self._changed:
            self._loop = on
            self._done = self._done and not on
            self._changed.notify_all()

    def close(self) -> None:
        """Stop playing and close the endpoint; may be called again."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _now(self, clock: int) -> int:
        """Position in the log [ns] at local time `clock`."""
        if self._paused:
            return self._position
        return self._position + round((clock - self._since) * self._rate)

    def _anchor(self) -> None:
        """Count from here and now; call it before anything about time changes."""
        now = time.monotonic_ns()
        if not self._paused and not self._done:
            # All of them up to this very instant: under the new reckoning a sample
            # left behind could get a stamp before one that is out already.
            self._send_due(now)
        self._position = min(self._now(now), self._timeline.duration)
        self._since = max(now, self._last + 1)

    def _go(self, position: int) -> None:
        self._anchor()
        self._position = position
        self._row = self._timeline.row_at(position)
        self._done = False

    def _when(self, offset: int) -> int:
        """Local time [ns] at which position `offset` [ns] is due."""
        return self._since + round((offset - self._position) / self._rate)

    def _run(self) -> None:
        with self._changed:
            self._since = time.monotonic_ns()
            while not self._closed:
                wait = self._step()
                if wait > 0:
                    self._changed.wait(wait)

    def _step(self) -> float:
        """Send what is due; seconds until there is something to do again."""
        if self._paused or self._done:
            return _IDLE
        self._send_due(time.monotonic_ns())
        timeline = self._timeline
        if self._row < len(timeline):
            # Not before a batch is full; a slow log is sent sample by sample on time.
            due = max(self._when(int(timeline.due[self._row])), self._sent + BATCH)
        else:
            due = self._when(timeline.duration)
            if time.monotonic_ns() >= due:
                self._finish()
                return 0.0
        return min(max(due - time.monotonic_ns(), 0) / 1e9, _IDLE)

    def _send_due(self, now: int) -> None:
        end = int(np.searchsorted(self._timeline.due, self._now(now), side="right"))
        if end > self._row:
            self._send(end)
            self._sent = now

    def _send(self, end: int) -> None:
        """Publish the rows up to `end`, cut where the layout changes."""
        timeline = self._timeline
        while self._row < end:
            number = timeline.stretch(self._row)
            if number != self._stretch:
                self._endpoint.relayout(timeline.layouts[number])
                self._stretch = number
            start = timeline.starts[number]
            stop = min(end, timeline.starts[number + 1], self._row + MOST)
            stamps = self._stamps(timeline.offsets[self._row : stop])
            self._endpoint.publish(
                stamps, timeline.values[number][self._row - start : stop - start]
            )
            self._last = max(self._last, int(stamps.max()))
            self._row = stop

    def _stamps(self, offsets: Stamps) -> Stamps:
        """Stamps of samples `offsets` [ns] into the log, on this process's clock."""
        elapsed = offsets - self._position
        if self._rate != 1.0:
            elapsed = np.rint(elapsed / self._rate).astype(np.int64)
        return np.asarray(elapsed + self._since, dtype=np.int64)

    def _finish(self) -> None:
        if self._loop:
            self._go(0)
            self._endpoint.event("info", "loop", "the log starts over")
        else:
            self._done = True
            self._endpoint.event(
                "info", "end of log", f"{self._log} is at its end; seek to play it again"
            )

    def _operations(self) -> dict[str, Handler]:
        def handler(
            name: str, text: str, call: Callable[[dict[str, Any]], Any], **args: str
        ) -> Handler:
            return Handler(Operation(name=name, help=text, args=args), call)

        handlers = (
            handler("pause", "publish nothing until resume", lambda _: self.pause()),
            handler("resume", "go on", lambda _: self.resume()),
            handler(
                "seek",
                "go on from another place of the log",
                lambda args: self.seek(_number(args, "seconds")),
                seconds="from the start of the log [s]",
            ),
            handler(
                "rate",
                "play faster or slower",
                lambda args: self.rate(_number(args, "factor")),
                factor=f"log time over real time, {SLOWEST:g} to {FASTEST:g}",
            ),
            handler(
                "loop",
                "start over at the end",
                lambda args: self.loop(_flag(args, "on")),
                on="true or false",
            ),
            handler("status", "where the replay is", lambda _: self._told()),
        )
        return {handler.operation.name: handler for handler in handlers}

    def _told(self) -> dict[str, Any]:
        view = self.status()
        return {
            "log": view.log,
            "position": view.position,
            "duration": view.duration,
            "rate": view.rate,
            "paused": view.paused,
            "loop": view.loop,
        }


def _tame(steps: Stamps, period: int) -> int:
    """Take far jumps ahead and back again out of `steps` [ns]; how many rows they held."""
    far = np.flatnonzero(np.abs(steps) > JUMP).tolist()
    count = 0
    for there, back in pairwise(far):
        net = int(steps[there]) + int(steps[there + 1 : back + 1].sum())
        if steps[there] > JUMP and steps[back] < -JUMP and abs(net) < JUMP:
            inner = int(steps[there + 1 : back].sum())
            steps[there] = period
            steps[back] = net - period - inner
            count += back - there
    return count


def _checked_rate(factor: float) -> float:
    if not SLOWEST <= factor <= FASTEST:
        raise RecordingError(f"a rate of {factor:g}; a replay runs at {SLOWEST:g} to {FASTEST:g}")
    return float(factor)


def _number(args: dict[str, Any], name: str) -> float:
    value = args.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordingError(f"'{name}' must be a number, got {value!r}")
    return float(value)


def _flag(args: dict[str, Any], name: str) -> bool:
    value = args.get(name)
    if not isinstance(value, bool):
        raise RecordingError(f"'{name}' must be true or false, got {value!r}")
    return value
