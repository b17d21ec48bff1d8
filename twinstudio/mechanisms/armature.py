"""Reflected inertia of rotors and gears, for an engine that knows none; compiled.

An arm with mass matrix M and armature A obeys (M + A) qdd + h = tau. An engine without
armature moves alike under M (M + A)^-1 (tau - h) + h = tau - A qdd.
"""

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def factor(matrix_: Floats) -> bool:
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor.

    Returns False where it is not positive definite.
    """
    n = len(matrix_)
    for j in range(n):
        for k in range(j):
            matrix_[j, j] -= matrix_[j, k] * matrix_[j, k]
        if not matrix_[j, j] > 0.0:
            return False
        matrix_[j, j] = np.sqrt(matrix_[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                matrix_[i, j] -= matrix_[i, k] * matrix_[j, k]
            matrix_[i, j] /= matrix_[j, j]
    return True


@compiled
def solve(lower: Floats, x: Floats) -> None:
    """Replace x float64[n] by the solution of (lower lower^T) y = x."""
    n = len(x)
    for i in range(n):
        for k in range(i):
            x[i] -= lower[i, k] * x[k]
        x[i] /= lower[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= lower[k, i] * x[k]
        x[i] /= lower[i, i]


@compiled
def felt_inertia(lower: Floats, out: Floats) -> None:
    """1 / diag(M^-1) into `out` float64[n], of M = lower lower^T.

    What a joint's own effort has to accelerate while all others are free.
    """
    n = len(out)
    column = np.empty(n)
    for j in range(n):
        total = 0.0
        for i in range(j, n):
            value = 1.0 if i == j else 0.0
            for k in range(j, i):
                value -= lower[i, k] * column[k]
            column[i] = value / lower[i, i]
            total += column[i] * column[i]
        out[j] = 1.0 / total


@compiled
def through_armature(
    lower: Floats, armature: Floats, effort: Floats, bias: Floats, out: Floats
) -> None:
    """Effort that moves an arm without armature as `effort` moves it with, into `out`.

    M (M + A)^-1 (tau - h) + h = tau - A qdd, with qdd = (M + A)^-1 (tau - h);
    lower: Cholesky factor of M + A. Exact in free motion.
    """
    for k in range(len(out)):
        out[k] = effort[k] - bias[k]
    solve(lower, out)
    for k in range(len(out)):
        out[k] = effort[k] - armature[k] * out[k]
