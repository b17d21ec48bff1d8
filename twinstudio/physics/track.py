"""A cell's samples on their way to the twin: mapped to our clock, in order, on time."""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

from twinstudio.flow.believable import AHEAD, believable
from twinstudio.flow.clock import ClockModel
from twinstudio.flow.link import Link
from twinstudio.flow.protocol import Description
from twinstudio.model.block import Block
from twinstudio.physics.cellview import CellView, held

MOST_WAITING = 4000
"""Blocks that may wait for the twin; beyond that the oldest are dropped, and counted."""
_KEPT = 2_000


Item = Description | tuple[Block, ClockModel | None]


class Inbox:
    """What a link delivers, kept until the twin's thread takes it; never blocks.

    Each block is kept with the source's clock as it was known on arrival.
    """

    def __init__(self) -> None:
        self._waiting: deque[Item] = deque()
        self._link: Link | None = None
        self.dropped = 0

    def connect(self, control: str) -> Link:
        """A link to `control` that delivers here; raises LinkError for a bad address."""
        link = Link(control, sinks=(self._put_block,), on_description=self._put)
        self._link = link
        return link

    def next(self) -> Item | None:
        """The oldest item, taken out; a block waits until its source's clock is known."""
        if not self._waiting:
            return None
        item = self._waiting[0]
        if isinstance(item, tuple) and item[1] is None:
            clock = self._link.clock if self._link else None
            if clock is None:
                return None
            item = (item[0], clock)
        self._waiting.popleft()
        return item

    def _put_block(self, block: Block) -> None:
        self._put((block, self._link.clock if self._link else None))

    def _put(self, item: Item) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(item)


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of the cell: `time` ns on our clock; a part the cell lacks is empty."""

    time: int
    position: list[float]
    velocity: list[float]
    command: list[float]


@dataclass(slots=True)
class Track:
    """Samples of one cell in the order of their time.

    late: samples that came after the twin's instant had passed their time.
    stale: samples left out because their time does not advance, or cannot be.
    missing: readings that were NaN; the last one held.
    """

    view: CellView
    home: list[float]
    late: int = 0
    stale: int = 0
    missing: int = 0
    _times: list[int] = field(default_factory=list)
    _samples: list[Sample] = field(default_factory=list)
    _next: int = 0

    def add(self, block: Block, clock: ClockModel, instant: int | None) -> None:
        """Take in a block; `instant`: that of the twin's last step, None before any."""
        self._forget_ahead(block.received)
        sent, block = len(block), believable(block, clock)
        self.stale += sent - len(block)
        times = clock.to_local(block.stamps).tolist()
        columns = [self._read(block, which) for which in ("position", "velocity", "command")]
        newest = self._times[-1] if self._times else -(1 << 62)
        for row, time in enumerate(times):
            if time <= newest:
                self.stale += 1
                continue
            newest = time
            self.late += instant is not None and time <= instant
            self._times.append(time)
            parts = [column[row] if column else [] for column in columns]
            self._samples.append(Sample(time, *parts))

    def _forget_ahead(self, received: int | None) -> None:
        """Drop samples that lie in the future: the cell's clock was set since they came."""
        while received is not None and self._times and self._times[-1] > received + 2 * AHEAD:
            del self._times[-1], self._samples[-1]
            self.stale += 1
        self._next = min(self._next, len(self._times))

    def due(self, instant: int) -> Sample | None:
        """The newest sample whose time has come, or None when it was given before."""
        times, k = self._times, self._next
        end = len(times)
        if k == end or times[k] > instant:
            return None
        k = bisect_right(times, instant, k)
        self._next = k
        sample = self._samples[k - 1]
        if k > _KEPT:
            del self._times[: k - 1], self._samples[: k - 1]
            self._next = 1
        return sample

    def ahead(self) -> Sample | None:
        """The sample after the newest that was due, if it has come already."""
        return self._samples[self._next] if self._next < len(self._samples) else None

    def _read(self, block: Block, which: str) -> list[list[float]]:
        """Rows of one part of a block, NaN replaced by what held before."""
        columns: list[int] | None = getattr(self.view, which)
        if columns is None:
            return []
        last: list[float] = getattr(self._samples[-1], which) if self._samples else []
        values, missing = held(block.values[:, columns], last or self._before_any(which))
        self.missing += missing
        rows: list[list[float]] = values.tolist()
        return rows

    def _before_any(self, which: str) -> list[float]:
        """What counts as the reading before the first: home, or standing still."""
        rests = which == "position" or (which == "command" and self.view.kind == "position")
        return self.home if rests else [0.0] * len(self.home)
