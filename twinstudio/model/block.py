"""Blocks: n consecutive samples of one source, the unit in which data moves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import LayoutError
from twinstudio.model.signals import Layout

Stamps = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Samples of one source, read-only.

    layout: what the columns mean.
    stamps: int64[n], ns on the source's monotonic clock. A command's stamp is
        the start of its hold.
    values: float64[n, layout.width], SI; NaN means "no reading".
    first: sequence number of the first sample; they count up by one a sample.
    received: ns on the receiver's monotonic clock, or None for a block that was
        never sent.
    """

    layout: Layout
    stamps: Stamps
    values: Values
    first: int = 0
    received: int | None = None

    def __post_init__(self) -> None:
        shape = (len(self.stamps), self.layout.width)
        if self.stamps.dtype != np.int64 or self.stamps.ndim != 1:
            raise LayoutError(f"stamps must be int64[n], got {_kind(self.stamps)}")
        if self.values.dtype != np.float64 or self.values.shape != shape:
            raise LayoutError(f"values must be float64{list(shape)}, got {_kind(self.values)}")
        self.stamps.flags.writeable = False
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.stamps)

    def of(self, name: str) -> Values:
        """Columns of one signal, float64[n, width of the signal], a view."""
        return self.values[:, self.layout.span(name)]

    def part(self, rows: slice) -> "Block":
        """Consecutive rows as a block of their own; views, no copy."""
        start, _, step = rows.indices(len(self))
        if step != 1:
            raise LayoutError("a part of a block is consecutive: no step")
        return Block(
            self.layout, self.stamps[rows], self.values[rows], self.first + start, self.received
        )

    def select(self, names: tuple[str, ...]) -> "Block":
        """The signals `names` alone, in that order; copies."""
        layout = Layout(tuple(self.layout.signal(name) for name in names))
        values = np.hstack([self.of(name) for name in names])
        return Block(layout, self.stamps, values, self.first, self.received)


def joined(blocks: list[Block]) -> Block:
    """Blocks of one layout, one after the other, as one block.

    Sequence numbers and receive times within are lost; use it for analysis.
    Raises LayoutError for an empty list or differing layouts.
    """
    if not blocks:
        raise LayoutError("nothing to join: no blocks")
    layout = blocks[0].layout
    if any(block.layout != layout for block in blocks):
        raise LayoutError("blocks of different layouts cannot be joined")
    return Block(
        layout,
        np.concatenate([block.stamps for block in blocks]),
        np.vstack([block.values for block in blocks]),
        blocks[0].first,
    )


def _kind(array: NDArray[np.generic]) -> str:
    return f"{array.dtype}{list(array.shape)}"
