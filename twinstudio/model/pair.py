"""Pairs: a twin block and a cell block brought onto one time base."""

from dataclasses import dataclass

import numpy as np

from twinstudio.model.block import Stamps, Values
from twinstudio.model.errors import LayoutError
from twinstudio.model.signals import Layout


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Twin and cell at the same instants, the signals both have.

    layout: the shared signals.
    stamps: int64[n], ns on the common time base.
    twin, cell: float64[n, layout.width], SI.
    uncertainty: bound on the error of the common time base [ns].
    """

    layout: Layout
    stamps: Stamps
    twin: Values
    cell: Values
    uncertainty: float = 0.0

    def __post_init__(self) -> None:
        shape = (len(self.stamps), self.layout.width)
        for name, values in (("twin", self.twin), ("cell", self.cell)):
            if values.shape != shape:
                raise LayoutError(
                    f"{name} values must have shape {list(shape)}, got {list(values.shape)}"
                )
        for array in (self.stamps, self.twin, self.cell):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.stamps)

    @property
    def gap(self) -> Values:
        """Twin minus cell, float64[n, layout.width]."""
        return np.subtract(self.twin, self.cell)
