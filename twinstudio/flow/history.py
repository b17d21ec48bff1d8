"""What a source sent lately, within a byte budget, ready to be drawn.

Raw samples reach back some minutes; minima and maxima over ever wider bins
(`twinstudio.flow.pyramid`) reach back further, in the end for days.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.pyramid import FACTOR, Bins, Pyramid, merged
from twinstudio.flow.ring import Ring
from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError, QuantityError
from twinstudio.model.signals import Layout

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BASE = 4_000_000
HOLE_PERIODS = 5.0
_LONGEST = 7 * 86_400 * 10**9
_LEAST_ROWS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """Lowest and highest reading per bin, at most one bin a pixel column.

    time: int64[m], ns, where to draw each bin; strictly increasing for source
        stamps, not decreasing for arrival times.
    low, high: float64[m, c], SI; NaN where there was no reading, and in a row
        of its own where the source sent nothing for several periods.
    width: ns, width of the bins; 0 when the rows are single samples, then low
        and high are equal.
    """

    time: Integers
    low: Floats
    high: Floats
    width: int

    def line(self) -> tuple[Integers, Floats]:
        """One polyline through all bins: time int64[p], values float64[p, c].

        Single samples stay one point each; a bin becomes two points at the same
        time, so a plot draws at most two points a pixel column.
        """
        if self.width == 0:
            return self.time, self.low
        values = np.stack([self.low, self.high], axis=1).reshape(-1, self.low.shape[1])
        return np.repeat(self.time, 2), values


class History:
    """Samples of one source; thread-safe: one appends, others read copies.

    layout: of every block that will be appended.
    budget: bytes of samples and bins together, never exceeded. Half of it goes
        to raw samples, the rest to the levels.
    rate: nominal samples per second, to choose the finest bins; 0 if unknown.
    Raises QuantityError for a budget too small to hold anything useful.
    """

    def __init__(self, layout: Layout, budget: int, *, rate: float = 0.0) -> None:
        self.layout = layout
        self.budget = budget
        self.kept = 0
        self.refused = 0
        self._lock = threading.Lock()
        base = _base(rate)
        rows, capacities = _capacities(budget, layout.width, base)
        self._raw = Ring(rows, layout.width)
        self._pyramid = Pyramid(base, capacities, layout.width)
        self._first: int | None = None
        self._last_received: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes in use by samples and bins."""
        with self._lock:
            return self._raw.nbytes + self._pyramid.nbytes

    def append(self, block: Block) -> None:
        """Take in a block; samples whose stamp does not advance are refused and counted.

        Raises LayoutError for a block of another layout.
        """
        if block.layout is not self.layout and block.layout != self.layout:
            raise LayoutError("the block has another layout than this history; start a new one")
        with self._lock:
            stamps, values = self._advancing(block)
            if len(stamps) == 0:
                return
            received = self._arrivals(block, stamps)
            if self._first is None:
                self._first = int(stamps[0])
            self._raw.append(stamps, received, values)
            self._pyramid.append(stamps, received, values)
            self.kept += len(stamps)

    def clear(self) -> None:
        """Forget all samples, e.g. when a source starts again with a new clock."""
        with self._lock:
            self._raw.clear()
            self._pyramid.clear()
            self._first = self._last_received = None

    def latest(self) -> Block | None:
        """The newest sample as a block of one."""
        with self._lock:
            count = len(self._raw)
            return self._block(slice(count - 1, count)) if count else None

    def span(self, *, by_arrival: bool = False) -> tuple[int, int] | None:
        """First and last instant that can still be drawn, ns."""
        with self._lock:
            if not len(self._raw) or self._first is None:
                return None
            if by_arrival:
                return self._oldest_arrival(), int(self._raw.received(slice(-1, None))[0])
            coarsest = self._pyramid.levels[-1]
            first = self._first
            if coarsest.ring.overwrote:
                first = max(first, coarsest.ring.key(0) * coarsest.width)
            return first, self._raw.key(-1)

    def window(self, start: int, end: int, *, by_arrival: bool = False) -> Block:
        """Raw samples with start <= stamp <= end (ns), as far as they are still held.

        Stamps are the source's; `by_arrival` makes start and end receive stamps.
        """
        with self._lock:
            return self._block(self._rows(start, end, by_arrival=by_arrival))

    def received(self, start: int, end: int, *, by_arrival: bool = False) -> Integers:
        """Receive stamps of the rows that `window` gives, int64[n] ns."""
        with self._lock:
            return self._raw.received(self._rows(start, end, by_arrival=by_arrival))

    def at(self, stamp: int) -> Floats | None:
        """The raw sample at or nearest before `stamp`, float64[width]; None if none is held."""
        with self._lock:
            count = self._raw.count_below(stamp, inclusive=True)
            return self._raw.row(count - 1) if count else None

    def middle(self, stamp: int) -> Floats | None:
        """Halfway between the extremes of the finest bin at `stamp`, float64[width].

        For drawing an instant whose raw samples are gone; `at` gives those. None
        before the first and after the newest sample.
        """
        every = np.arange(self.layout.width)
        with self._lock:
            if self._first is None or not self._first <= stamp <= self._raw.key(-1):
                return None
            for k in range(len(self._pyramid.levels)):
                if not self._pyramid.reaches(k, stamp):
                    continue
                bins = self._pyramid.read(k, every, stamp, stamp)
                if len(bins):
                    both = bins.extremes[-1].reshape(2, -1)
                    return np.asarray(0.5 * (both[0] - both[1]))
        return None

    def envelope(
        self,
        columns: Sequence[int],
        start: int,
        end: int,
        pixels: int,
        *,
        by_arrival: bool = False,
    ) -> Envelope:
        """What to draw of `columns` over [start, end] ns on `pixels` pixel columns.

        Bins do not depend on where the window stands. Where the wanted
        resolution has been given up already, coarser bins stand in.
        """
        start, end = int(start), int(end)
        if end <= start or pixels < 1:
            raise QuantityError(f"nothing to draw: {start} to {end} ns on {pixels} pixels")
        wanted = (end - start) / pixels
        chosen = np.asarray(columns, np.int64)
        with self._lock:
            period = self._period()
            found = self._fine(chosen, start, end, wanted, by_arrival=by_arrival)
            if found is None:
                found = self._coarse(chosen, start, end, wanted, by_arrival=by_arrival)
        return _drawn(*found, period, by_arrival=by_arrival)

    def _advancing(self, block: Block) -> tuple[Integers, Floats]:
        """Stamps and values of the samples that are later than all before them."""
        stamps = block.stamps
        newest = self._raw.key(-1) if len(self._raw) else None
        before = stamps[:-1]
        if (before < stamps[1:]).all() and (newest is None or (stamps[:1] > newest).all()):
            return stamps, block.values
        top = np.maximum.accumulate(before)
        keep = np.ones(len(stamps), np.bool_)
        keep[1:] = stamps[1:] > top
        if newest is not None:
            keep &= stamps > newest
        self.refused += int(len(stamps) - keep.sum())
        return stamps[keep], block.values[keep]

    def _arrivals(self, block: Block, stamps: Integers) -> Integers:
        """One receive stamp a sample, never going back; its own stamp if never sent."""
        if block.received is None:
            received = stamps
        else:
            received = np.full(len(stamps), block.received, np.int64)
        if self._last_received is not None and received[0] < self._last_received:
            received = np.maximum(received, self._last_received)
        self._last_received = int(received[-1])
        return received

    def _block(self, rows: slice) -> Block:
        received = self._raw.received(rows)
        first = self._raw.total - len(self._raw) + rows.start
        return Block(
            self.layout,
            self._raw.keys(rows),
            self._raw.values(rows),
            first,
            int(received[-1]) if len(received) else None,
        )

    def _rows(self, start: int, end: int, *, by_arrival: bool) -> slice:
        return slice(
            self._raw.count_below(start, inclusive=False, by_arrival=by_arrival),
            self._raw.count_below(end, inclusive=True, by_arrival=by_arrival),
        )

    def _oldest_arrival(self) -> int:
        ring = self._pyramid.levels[-1].ring
        return int((ring if len(ring) else self._raw).received(slice(0, 1))[0])

    def _period(self) -> float:
        """Median distance of the newest raw stamps, ns; 0 when there are too few."""
        stamps = self._raw.keys(slice(-257, None))
        return float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.0

    def _fine(
        self, columns: Integers, start: int, end: int, wanted: float, *, by_arrival: bool
    ) -> tuple[int, Bins] | None:
        """Raw samples, or bins narrower than the base made from them on the spot."""
        base = self._pyramid.levels[0].width
        held = self._raw.count_below(start, inclusive=True, by_arrival=by_arrival) > 0
        if wanted > base or not (held or not self._raw.overwrote):
            return None
        rows = self._rows(start, end, by_arrival=by_arrival)
        values = self._raw.values(rows, columns)
        keys, received = self._raw.keys(rows), self._raw.received(rows)
        bins = Bins(keys, received, np.concatenate([values, -values], axis=1))
        if len(keys) <= 2 * (end - start) / wanted:
            return 0, bins
        width = base
        while width % 2 == 0 and width // 2 >= wanted:
            width //= 2
        return width, merged(Bins(bins.index // width, received, bins.extremes))

    def _coarse(
        self, columns: Integers, start: int, end: int, wanted: float, *, by_arrival: bool
    ) -> tuple[int, Bins]:
        """Bins of the finest level that will do and still reaches back to `start`.

        Pairs of bins of the level below are used where these are wide enough.
        """
        pyramid = self._pyramid
        last = len(pyramid.levels) - 1
        for k, level in enumerate(pyramid.levels):
            halved = level.width < wanted <= 2 * level.width
            reaching = k == last or pyramid.reaches(k, start, by_arrival=by_arrival)
            if reaching and (halved or k == last or level.width >= wanted):
                break
        bins = pyramid.read(k, columns, start, end, by_arrival=by_arrival)
        if halved:
            return 2 * level.width, bins.coarser(1)
        return level.width, bins


def _base(rate: float) -> int:
    """Width of the finest bins, ns: 4 ms, or for slower sources at least four periods."""
    base = BASE
    while rate > 0.0 and base * rate < 4e9 * (1 - 1e-9) and base < 3600 * 10**9:
        base *= FACTOR
    return base


def _capacities(budget: int, width: int, base: int) -> tuple[int, list[int]]:
    """Rows for raw samples, and for each level, that together fit into `budget` bytes.

    Half goes to raw samples. Of the other half the finest levels get more, so
    that each reaches further back than the one below, and the rest get equal
    shares; levels are added until one reaches back a week.
    """
    raw = budget // 2 // Ring.row_bytes(width)
    bin_bytes = Ring.row_bytes(2 * width)
    capacities: list[int] = []
    for count in range(3, 16):
        shares = [max(2.0**-k, 0.125) for k in range(count)]
        room = budget / 2 - count * bin_bytes  # every level has its open bin too
        capacities = [int(room * share / sum(shares)) // bin_bytes for share in shares]
        if capacities[-1] * base * FACTOR ** (count - 1) >= _LONGEST:
            break
    if raw < _LEAST_ROWS or min(capacities) < _LEAST_ROWS:
        # Enough for 15 levels, whose smallest share is 1/26.
        least = 2 * (26 * _LEAST_ROWS + 16) * bin_bytes
        raise QuantityError(
            f"a history of {budget} B is too small for {width} columns",
            hint=f"give it {least} B or more",
        )
    return raw, capacities


def _drawn(width: int, bins: Bins, period: float, *, by_arrival: bool) -> Envelope:
    """Bins as an envelope, with a row of NaN wherever nothing was sent for long."""
    columns = bins.extremes.shape[1] // 2
    stamps = bins.index * max(width, 1) + width // 2
    time = bins.received if by_arrival else stamps
    # Empty bins between two others, or plain distance of samples.
    silent = np.diff(stamps) - width
    holes = np.flatnonzero(silent > HOLE_PERIODS * period) + 1 if period else np.empty(0, np.int64)
    extremes = np.insert(bins.extremes, holes, np.nan, axis=0)
    middle = time[holes - 1] + (time[holes] - time[holes - 1]) // 2
    return Envelope(
        np.insert(time, holes, middle), extremes[:, :columns], -extremes[:, columns:], width
    )
