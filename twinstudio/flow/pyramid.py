"""Minima and maxima of a growing series over bins of several widths.

Bins are anchored to absolute time, ``bin = floor(stamp / width)``, and each
level is four times as wide as the one below, so the bins of a trace are the
same wherever the window stands that shows it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.ring import Ring

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

FACTOR = 4
_SHIFT = 2
_CHUNK = 4096


@dataclass(slots=True, eq=False)
class Bins:
    """Consecutive bins of one width, in order.

    index: int64[m], floor(stamp / width). received: int64[m], ns, of the newest
    sample in the bin. extremes: float64[m, 2 c], the minima and then the NEGATED
    maxima of c columns: one ufunc, fmin, then serves both. NaN: no reading.
    """

    index: Integers
    received: Integers
    extremes: Floats

    def __len__(self) -> int:
        return len(self.index)

    def coarser(self, shift: int = _SHIFT) -> "Bins":
        """The same data with indices of bins 2**shift times as wide, merged."""
        return merged(Bins(self.index >> shift, self.received, self.extremes))


def merged(bins: Bins) -> Bins:
    """`bins`, whose indices may repeat, with equal neighbours merged into one."""
    index = bins.index
    if len(index) < 2:
        return bins
    if index[0] == index[-1]:
        return Bins(index[:1], bins.received[-1:], np.fmin.reduce(bins.extremes, 0)[None])
    change = np.ones(len(index) + 1, np.bool_)
    np.not_equal(index[1:], index[:-1], out=change[1:-1])
    starts = change[:-1].nonzero()[0]
    if len(starts) == len(index):
        return bins
    last = change[1:].nonzero()[0]
    return Bins(index[starts], bins.received[last], np.fmin.reduceat(bins.extremes, starts, 0))


def joined(parts: list[Bins]) -> Bins:
    """Bins one after the other, indices as they are."""
    return Bins(
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.received for part in parts]),
        np.concatenate([part.extremes for part in parts]),
    )


class Level:
    """Closed bins of one width in a ring, and the open one that still grows."""

    def __init__(self, width: int, capacity: int, columns: int) -> None:
        self.width = width
        self.ring = Ring(capacity, 2 * columns)
        self.open: Bins | None = None

    def push(self, bins: Bins) -> Bins | None:
        """Take in merged new bins; returns the bins that were closed by it."""
        old = self.open
        if old is not None and old.index[0] == bins.index[0]:
            first = np.fmin(old.extremes[0], bins.extremes[0])
            if len(bins) == 1:
                self.open = Bins(bins.index, bins.received, first[None])
                return None
            bins.extremes[0] = first
        elif old is not None:
            bins = joined([old, bins])
        self.open = Bins(bins.index[-1:], bins.received[-1:], bins.extremes[-1:].copy())
        if len(bins) == 1:
            return None
        closed = Bins(bins.index[:-1], bins.received[:-1], bins.extremes[:-1])
        self.ring.append(closed.index, closed.received, closed.extremes)
        return closed


class Pyramid:
    """Levels over one series; a level is fed by the bins that close below it.

    So a level costs a quarter of the one below, and what is not handed up yet
    is merged in when a level is read.
    """

    def __init__(self, base: int, capacities: list[int], columns: int) -> None:
        self.columns = columns
        self.levels = [
            Level(base * FACTOR**k, capacity, columns) for k, capacity in enumerate(capacities)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of all levels, open bins included."""
        open_bins = len(self.levels) * Ring.row_bytes(2 * self.columns)
        return sum(level.ring.nbytes for level in self.levels) + open_bins

    def append(self, stamps: Integers, received: Integers, values: Floats) -> None:
        """Take in samples with strictly increasing stamps, later than all before."""
        for start in range(0, len(stamps), _CHUNK):
            rows = slice(start, start + _CHUNK)
            both = np.concatenate([values[rows], -values[rows]], axis=1)
            bins = merged(Bins(stamps[rows] // self.levels[0].width, received[rows], both))
            for level in self.levels:
                closed = level.push(bins)
                if closed is None:
                    break
                bins = closed.coarser()

    def clear(self) -> None:
        """Forget everything."""
        for level in self.levels:
            level.ring.clear()
            level.open = None

    def read(
        self, k: int, columns: Integers, start: int, end: int, *, by_arrival: bool = False
    ) -> Bins:
        """Bins of level `k` that touch [start, end] ns, the newest samples included.

        The extremes are of `columns` alone. By arrival, a bin stands at the
        receive stamp of its newest sample.
        """
        level = self.levels[k]
        low, high = (start, end) if by_arrival else (start // level.width, end // level.width)
        ring = level.ring
        rows = slice(
            ring.count_below(low, inclusive=False, by_arrival=by_arrival),
            ring.count_below(high, inclusive=True, by_arrival=by_arrival),
        )
        pick = np.concatenate([columns, columns + self.columns])
        parts = [Bins(ring.keys(rows), ring.received(rows), ring.values(rows, pick))]
        # Open bins hold what was not handed up yet, the coarser the older.
        for j in range(k, -1, -1):
            tail = self.levels[j].open
            if tail is None:
                continue
            index = tail.index >> _SHIFT * (k - j)
            at = int(tail.received[0]) if by_arrival else int(index[0])
            if low <= at <= high:
                parts.append(Bins(index, tail.received, tail.extremes[:, pick]))
        return merged(joined(parts))

    def reaches(self, k: int, start: int, *, by_arrival: bool = False) -> bool:
        """True if level `k` still holds everything since `start`."""
        ring = self.levels[k].ring
        if not ring.overwrote:
            return True
        if by_arrival:
            return ring.count_below(start, inclusive=True, by_arrival=True) > 0
        return ring.key(0) * self.levels[k].width <= start
