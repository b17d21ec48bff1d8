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
def inverse(lower: Floats, out: Floats) -> None:
    """(lower lower^T)^-1 into `out` float64[n, n]."""
    n = len(out)
    for j in range(n):
        for i in range(j, n):
            value = 1.0 if i == j else 0.0
            for k in range(j, i):
                value -= lower[i, k] * out[k, j]
            out[i, j] = value / lower[i, i]
    # out holds L^-1 below its diagonal; row i of the product needs only rows from i on.
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += out[k, i] * out[k, j]
            out[i, j] = total
    for i in range(n):
        for j in range(i):
            out[j, i] = out[i, j]


@compiled
def sure_inertia(inverse_: Floats, out: Floats) -> None:
    """Inertias float64[n], no larger together than M, of its inverse W, into `out`.

    D_j = 1 / (W_jj sum_k |W_jk| / sqrt(W_jj W_kk)). D^-1 - W is diagonally dominant after
    scaling, so D <= M: efforts that would at most stop D at its speed, one joint at a
    time, never reverse the arm, nor give it energy. A joint that moves no other has
    1 / W_jj, which is exact.
    """
    n = len(out)
    for j in range(n):
        total = 0.0
        for k in range(n):
            total += abs(inverse_[j, k]) / np.sqrt(inverse_[k, k])
        out[j] = 1.0 / (total * np.sqrt(inverse_[j, j]))


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
