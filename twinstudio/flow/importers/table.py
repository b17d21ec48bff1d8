"""Rows on their way into a block: kept or counted, never changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.importers.bounds import ABSURD, limits, sensible
from twinstudio.flow.importers.log import Tally
from twinstudio.flow.importers.text import TIME, Rows, numbers, times
from twinstudio.model.block import Block, Stamps, Values
from twinstudio.model.signals import Layout


@dataclass(frozen=True)
class Parsed:
    """Rows that are numbers. stamps: int64[n] ns. values: float64[n, width], SI.

    numbers: which row of the table each is, from 1, int64[n].
    """

    stamps: Stamps
    values: Values
    numbers: NDArray[np.int64]

    def only(self, keep: NDArray[np.bool_], tally: Tally, reason: str) -> "Parsed":
        """The rows where `keep`; the others are counted under `reason`."""
        tally.drop(reason, self.numbers[~keep])
        return Parsed(self.stamps[keep], self.values[keep], self.numbers[keep])

    def sensible(
        self, layout: Layout, tally: Tally, tighter: Mapping[str, float] | None = None
    ) -> "Parsed":
        """Without the rows that hold a number no sensor gives, see `bounds`."""
        return self.only(sensible(self.values, limits(layout, tighter)), tally, ABSURD)

    def block(self, layout: Layout) -> Block:
        """The rows as a block of their own."""
        return Block(layout, self.stamps.copy(), np.ascontiguousarray(self.values))


def parse(rows: Rows, time: int, unit: str, columns: Sequence[int], tally: Tally) -> Parsed:
    """Column `time`, in `unit`, and the value `columns`, as they stand."""
    stamps, timed = times(rows, time, unit, tally)
    found = numbers(timed, columns, tally)
    return Parsed(stamps[found.keep], found.values, found.numbers)


def from_seconds(time: Values, values: Values, tally: Tally) -> Parsed:
    """Arrays with float times [s], as in MATLAB files; stamps rounded to the ns.

    Rows without a finite time within int64 ns are counted and left out.
    """
    tally.rows = len(time)
    with np.errstate(invalid="ignore"):
        usable = np.abs(time) < 2**63 / 1e9
    row = np.arange(1, len(time) + 1)
    tally.drop(TIME, row[~usable])
    stamps = np.rint(time[usable] * 1e9).astype(np.int64)
    return Parsed(stamps, values[usable], row[usable])
