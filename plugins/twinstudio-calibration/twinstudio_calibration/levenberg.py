"""Levenberg-Marquardt on normal equations, for many rows, few unknowns and bounds.

Damping as in Nielsen, IMM-REP-1999-05, Technical University of Denmark. A bound holds what
runs against it for that step. scipy's solvers decompose the whole Jacobian each time, which
costs ten times as much here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """x: the best point; cost: half its sum of squares; settled: whether steps became small."""

    x: Floats
    cost: float
    settled: bool


def minimise(
    residual: Function,
    jacobian: Function,
    start: Floats,
    bounds: tuple[Floats, Floats],
    *,
    steps: int,
    tolerance: float = 1e-6,
) -> Minimum:
    """The least sum of squares near `start`, at most `steps` Jacobians.

    tolerance: relative gain of cost at which it is settled.
    """
    low, high = bounds
    x = np.clip(start, low, high)
    r = residual(x)
    cost, damping, growth = 0.5 * float(r @ r), 1e-3, 2.0
    for _ in range(steps):
        table = jacobian(x)
        square, slope = table.T @ table, table.T @ r
        free = ~(((x <= low) & (slope > 0.0)) | ((x >= high) & (slope < 0.0)))
        gained = 0.0
        for _ in range(8):
            step = _step(square, slope, free, damping)
            trial = np.clip(x + step, low, high)
            moved = trial - x
            other = residual(trial)
            gain = cost - 0.5 * float(other @ other)
            promised = -float(slope @ moved) - 0.5 * float(moved @ square @ moved)
            if gain > 0.0:
                ratio = min(gain / max(promised, 1e-300), 2.0)
                damping *= max(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3)
                growth, gained = 2.0, gain
                x, r, cost = trial, other, cost - gain
                break
            damping, growth = damping * growth, 2.0 * growth
        if gained <= tolerance * cost:
            return Minimum(x, cost, settled=True)
    return Minimum(x, cost, settled=False)


def _step(square: Floats, slope: Floats, free: NDArray[np.bool_], damping: float) -> Floats:
    """The damped step of what is free."""
    result = np.zeros_like(slope)
    part = square[np.ix_(free, free)]
    size = np.diag(part)
    ridge = damping * np.where(size > 0.0, size, 1.0)
    result[free] = -np.linalg.solve(part + np.diag(ridge), slope[free])
    return result
