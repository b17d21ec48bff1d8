"""Figures of the gap: how far a twin is from its cell.

Every figure is over the samples in which both have a finite reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import LayoutError
from twinstudio.model.gaps import Figures
from twinstudio.model.kinematics import Kinematics

Floats = NDArray[np.float64]

KINDS = ("position", "velocity", "effort", "current")


def figures(twin: Floats, cell: Floats) -> Figures | None:
    """Figures of twin minus cell, arrays of any equal shape, all entries together.

    None when there is no entry in which both have a reading.
    Raises LayoutError when the shapes differ.
    """
    return Sums.of(twin.reshape(-1, 1), cell.reshape(-1, 1)).figures()


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sufficient statistics of the gap, one entry a column; they add up over time.

    n: readings on both sides. squares, cell_squares: sums of gap**2 and cell**2.
    total: sum of the gap. maximum: largest absolute gap, 0 where n is 0.
    left_out: samples in which either side had no reading.
    """

    n: NDArray[np.int64]
    squares: Floats
    cell_squares: Floats
    total: Floats
    maximum: Floats
    left_out: NDArray[np.int64]

    @staticmethod
    def of(twin: Floats, cell: Floats) -> "Sums":
        """Statistics of float64[n, c] arrays."""
        if twin.shape != cell.shape:
            raise LayoutError(f"twin {list(twin.shape)} and cell {list(cell.shape)} differ")
        both = np.isfinite(twin) & np.isfinite(cell)
        here = np.where(both, cell, 0.0)
        gap = np.where(both, twin, 0.0) - here
        n = both.sum(0)
        return Sums(
            n,
            np.einsum("ij,ij->j", gap, gap),
            np.einsum("ij,ij->j", here, here),
            gap.sum(0),
            np.abs(gap).max(0, initial=0.0),
            len(both) - n,
        )

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.n + other.n,
            self.squares + other.squares,
            self.cell_squares + other.cell_squares,
            self.total + other.total,
            np.maximum(self.maximum, other.maximum),
            self.left_out + other.left_out,
        )

    def figures(self, columns: slice = slice(None)) -> Figures | None:
        """Figures over `columns` together; None without a single reading.

        rmse = sqrt(mean(gap**2)), maximum = max |gap|, bias = mean(gap),
        relative = sqrt(sum(gap**2) / sum(cell**2)).
        """
        n = int(self.n[columns].sum())
        if n == 0:
            return None
        squares = float(self.squares[columns].sum())
        norm = float(self.cell_squares[columns].sum())
        return Figures(
            rmse=(squares / n) ** 0.5,
            maximum=float(self.maximum[columns].max()),
            bias=float(self.total[columns].sum()) / n,
            relative=(squares / norm) ** 0.5 if norm > 0.0 else None,
            n=n,
        )


def tool_distance(twin: Floats, cell: Floats, kinematics: Kinematics) -> Floats:
    """Distance of the two tool points [m], float64[n], for joints q float64[n, joints].

    NaN where either side lacks a joint.
    """
    out = np.full(len(twin), np.nan)
    both = (np.isfinite(twin) & np.isfinite(cell)).all(1)
    if both.any():
        points = [kinematics.tool(q[both])[:, :3, 3] for q in (twin, cell)]
        out[both] = np.linalg.norm(points[0] - points[1], axis=1)
    return out


def pose_distance(twin: Floats, cell: Floats) -> Floats:
    """Distance of positions [m], float64[n], of poses float64[n, 7]; NaN where missing."""
    out: Floats = np.linalg.norm(twin[:, :3] - cell[:, :3], axis=1)
    return out


def floor_of_repeats(repeats: Sequence[Floats]) -> Floats:
    """RMS spread of repeats about their mean, per column: what no twin can beat.

    repeats: two or more float64[n, c] on one time base. Returns float64[c]:
    sqrt of the mean over time of the unbiased variance across repeats, that is
    with divisor (readings - 1) at each instant; instants with fewer than two
    readings do not count, a column without any is NaN.
    Raises LayoutError for fewer than two repeats or differing shapes.
    """
    if len(repeats) < 2:
        raise LayoutError(f"a noise floor needs at least two repeats, got {len(repeats)}")
    if len({repeat.shape for repeat in repeats}) != 1:
        shapes = ", ".join(str(list(repeat.shape)) for repeat in repeats)
        raise LayoutError(f"repeats differ in shape: {shapes}", hint="bring them to one time base")
    stack = np.stack(repeats)
    present = np.isfinite(stack)
    count = present.sum(0)
    stack = np.where(present, stack, 0.0)
    mean = stack.sum(0) / np.maximum(count, 1)
    squares = np.where(present, (stack - mean) ** 2, 0.0).sum(0)
    counts = count >= 2
    variance = np.where(counts, squares / np.maximum(count - 1, 1), 0.0).sum(0)
    instants = counts.sum(0)
    out: Floats = np.where(instants > 0, np.sqrt(variance / np.maximum(instants, 1)), np.nan)
    return out
