"""Records live: whatever sends never waits for the disk."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.protocol import Event
from twinstudio.flow.record.writer import Describes, RecordingWriter
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError
from twinstudio.model.views import Entry, RecordingView

QUEUE = 256 * 2**20
"""Bytes of samples that may wait: four minutes of two sources of 64 signals at 1 kHz."""

GATHER = 0.1
"""Samples are collected this long [s]: writing many at once is cheap."""

CHECKPOINT = 0.8
"""Seconds between checkpoints; with `GATHER`, a crash costs less than a second."""


@dataclass(frozen=True, slots=True)
class _Samples:
    name: str
    block: Block

    @property
    def size(self) -> int:
        return self.block.stamps.nbytes + self.block.values.nbytes


_Item = _Samples | Callable[[RecordingWriter], None]


class Recorder:
    """A thread with a bounded queue in front of a writer; all methods are thread-safe.

    queue: bytes of samples that may wait. When it is full, samples are dropped,
    counted a source, and the status says so; events are never dropped. A block
    that cannot be stored (a stamp outside of ROS time) is counted and reported
    likewise, and the recording goes on. A disk that is full stops it: `status`
    has the alarm, the file is kept, and the sinks do nothing from then on.
    """

    def __init__(self, writer: RecordingWriter, *, queue: int = QUEUE) -> None:
        self._writer = writer
        self._limit = queue
        self._items: deque[_Item] = deque()
        self._waiting = 0
        self._dropped: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._refusal = ""
        self._alarm = ""
        self._open = True
        self._bytes = writer.bytes
        self._started = time.monotonic()
        self._seconds = 0.0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> dict[str, int]:
        """Samples of each source that were dropped, because the queue was full."""
        with self._changed:
            return dict(self._dropped)

    @property
    def refused(self) -> dict[str, int]:
        """Samples of each source that cannot be stored."""
        with self._changed:
            return dict(self._refused)

    def source(self, name: str, description: Describes) -> None:
        """Announce source `name`, or what changed about it, before its samples."""
        self._put(lambda writer: writer.source(name, description))

    def sink(self, name: str) -> Callable[[Block], None]:
        """What takes the blocks of source `name`; returns at once, whatever the disk does."""

        def take(block: Block) -> None:
            item = _Samples(name, block)
            with self._changed:
                if not self._open:
                    return
                if self._waiting + item.size > self._limit:
                    self._dropped[name] = self._dropped.get(name, 0) + len(block)
                    return
                self._waiting += item.size
                self._items.append(item)

        return take

    def event(self, name: str, event: Event | Entry) -> None:
        """Record an event of source `name` or of the ``session``, seen now."""
        at = time.monotonic_ns()
        self._put(lambda writer: writer.event(name, event, at=at))

    def clock(self, name: str, model: ClockModel) -> None:
        """Record what is known of the clock of source `name` now."""
        at = time.monotonic_ns()
        self._put(lambda writer: writer.clock(name, model, at=at))

    def note(self, text: str, *, code: str = "note") -> None:
        """Record a remark among the events of the session."""
        at = time.monotonic_ns()
        self._put(lambda writer: writer.note(text, code=code, at=at))

    def status(self) -> RecordingView:
        """How it goes; `alarm` says what was lost, or why it stopped by itself."""
        with self._changed:
            active = self._open
            seconds = time.monotonic() - self._started if active else self._seconds
            return RecordingView(
                path=str(self._writer.path),
                seconds=seconds,
                bytes=self._bytes,
                dropped=sum(self._dropped.values()) + sum(self._refused.values()),
                active=active,
                alarm=self._alarm or self._losses(),
            )

    def stop(self) -> RecordingView:
        """Write what waits, close the file, end the thread; may be called again."""
        with self._changed:
            self._end()
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        return self.status()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _losses(self) -> str:
        lines = [
            f"{count} samples of {name} dropped: the disk is too slow"
            for name, count in self._dropped.items()
        ]
        lines += [
            f"{count} samples of {name} not stored: {self._refusal}"
            for name, count in self._refused.items()
        ]
        return "; ".join(lines)

    def _put(self, item: Callable[[RecordingWriter], None]) -> None:
        with self._changed:
            if self._open:
                self._items.append(item)

    def _end(self) -> None:
        if self._open:
            self._open = False
            self._seconds = time.monotonic() - self._started

    def _run(self) -> None:
        try:
            self._record()
        except RecordingError as error:
            self._give_up(str(error))
        except Exception as error:  # noqa: BLE001 - a thread that dies unseen loses data
            self._give_up(f"recording stopped by an internal error: {error!r}")
        finally:
            self._bytes = self._writer.bytes

    def _give_up(self, alarm: str) -> None:
        with self._changed:
            self._alarm = alarm
            self._end()
            self._items.clear()
            self._waiting = 0

    def _record(self) -> None:
        due = time.monotonic() + CHECKPOINT
        while True:
            with self._changed:
                if self._open:
                    self._changed.wait(GATHER)
                items, self._items = self._items, deque()
                ended = not self._open
            self._write(list(items))
            if time.monotonic() >= due:
                self._writer.checkpoint()
                due = time.monotonic() + CHECKPOINT
            self._bytes = self._writer.bytes
            if ended:
                self._report_losses()
                self._writer.close()
                return

    def _write(self, items: list[_Item]) -> None:
        """In order; consecutive blocks of one source at once."""
        for name, group in groupby(_by_source(items), key=_name):
            if name is None:
                for item in group:
                    if not isinstance(item, _Samples):
                        self._carry_out(item)
            else:
                self._write_blocks(name, [i for i in group if isinstance(i, _Samples)])

    def _write_blocks(self, name: str, samples: list[_Samples]) -> None:
        try:
            self._writer.write_all(name, [item.block for item in samples])
        except RecordingError as error:
            if not self._writer.is_open:
                raise
            if len(samples) > 1:  # find the block that is to blame, keep the others
                for item in samples:
                    self._write_blocks(name, [item])
                return
            self._refuse(name, len(samples[0].block), error)
        with self._changed:
            self._waiting -= sum(item.size for item in samples)

    def _carry_out(self, item: Callable[[RecordingWriter], None]) -> None:
        try:
            item(self._writer)
        except RecordingError as error:
            if not self._writer.is_open:
                raise
            self._refuse("session", 0, error)

    def _refuse(self, name: str, count: int, error: RecordingError) -> None:
        with self._changed:
            self._refused[name] = self._refused.get(name, 0) + count
            self._refusal = str(error)

    def _report_losses(self) -> None:
        with self._changed:
            losses = self._losses()
        if losses:
            self._writer.note(losses, code="recorder-losses")


def _name(item: _Item) -> str | None:
    return item.name if isinstance(item, _Samples) else None


def _by_source(items: list[_Item]) -> list[_Item]:
    """Blocks of one source side by side; nothing moves past an announcement or event."""
    ordered: list[_Item] = []
    blocks: dict[str, list[_Item]] = {}
    for item in items:
        if isinstance(item, _Samples):
            blocks.setdefault(item.name, []).append(item)
        else:
            ordered += [block for same in blocks.values() for block in same]
            ordered.append(item)
            blocks = {}
    return ordered + [block for same in blocks.values() for block in same]
