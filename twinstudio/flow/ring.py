"""A ring of rows in a few parallel arrays, filled in order and overwritten oldest first."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Ring:
    """At most `capacity` rows of (key int64, received int64, values float64[width]).

    Keys go up strictly from row to row. Address space is reserved at once, but
    the system hands out memory only as rows are first written; `nbytes` counts
    those rows. So the ring grows without ever copying what it holds.
    """

    def __init__(self, capacity: int, width: int) -> None:
        self.capacity = capacity
        self._keys = np.empty(capacity, np.int64)
        self._received = np.empty(capacity, np.int64)
        self._values = np.empty((capacity, width), np.float64)
        self.total = 0

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    @staticmethod
    def row_bytes(width: int) -> int:
        """Bytes of one row of `width` values."""
        return 8 * (width + 2)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that were ever written."""
        return len(self) * self.row_bytes(self._values.shape[1])

    @property
    def overwrote(self) -> bool:
        """True once the oldest rows have been given up."""
        return self.total > self.capacity

    def append(self, keys: Integers, received: Integers, values: Floats) -> None:
        """Write rows; only the last `capacity` of them stay."""
        skipped = max(0, len(keys) - self.capacity)
        done = skipped
        while done < len(keys):
            at = (self.total + done) % self.capacity
            n = min(len(keys) - done, self.capacity - at)
            self._keys[at : at + n] = keys[done : done + n]
            self._received[at : at + n] = received[done : done + n]
            self._values[at : at + n] = values[done : done + n]
            done += n
        self.total += len(keys)

    def clear(self) -> None:
        """Forget all rows; the memory stays for the next ones."""
        self.total = 0

    def key(self, row: int) -> int:
        """The key of a row, counted from the oldest (0) or, negative, from the newest."""
        return int(self._keys[self._place(row)])

    def row(self, row: int) -> Floats:
        """A copy of the values of one row, counted like `key`."""
        values: Floats = self._values[self._place(row)].copy()
        return values

    def keys(self, rows: slice) -> Integers:
        """Keys of consecutive rows, a copy."""
        return np.concatenate([self._keys[part] for part in self._parts(rows)])

    def received(self, rows: slice) -> Integers:
        """Receive stamps of consecutive rows, a copy."""
        return np.concatenate([self._received[part] for part in self._parts(rows)])

    def values(self, rows: slice, columns: Integers | None = None) -> Floats:
        """Values of consecutive rows, a copy; all columns or those listed."""
        parts = [self._values[part] for part in self._parts(rows)]
        if columns is not None:
            parts = [part[:, columns] for part in parts]
        return np.concatenate(parts)

    def count_below(self, key: int, *, inclusive: bool, by_arrival: bool = False) -> int:
        """How many rows lie before `key` (or at it, if `inclusive`); O(log n)."""
        column = self._received if by_arrival else self._keys
        side: Literal["left", "right"] = "right" if inclusive else "left"
        parts = self._parts(slice(0, len(self)))
        return sum(int(column[part].searchsorted(key, side)) for part in parts)

    def _place(self, row: int) -> int:
        count = len(self)
        logical = row if row >= 0 else count + row
        return (self.total - count + logical) % self.capacity

    def _parts(self, rows: slice) -> tuple[slice, slice]:
        """Where consecutive rows lie: up to the end of the arrays, then from their start."""
        start, stop, _ = rows.indices(len(self))
        oldest = self.total % self.capacity if self.overwrote else 0
        begin, n = oldest + start, max(0, stop - start)
        first = max(0, min(n, self.capacity - begin))
        wrapped = (begin + first) % self.capacity
        return slice(begin, begin + first), slice(wrapped, wrapped + n - first)
