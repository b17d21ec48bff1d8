"""Reflected inertia of rotors and gears, for an engine that knows none; compiled.

An arm with mass matrix M and armature A obeys (M + A) qdd + h = tau. An engine without
armature moves alike under M (M + A)^-1 (tau - h) + h = tau - A qdd.
"""

import numpy as np
from numba import njit

_compiled = njit(cache=True, error_model="numpy")


@_compiled
def factor(matrix_):  # type: ignore[no-untyped-def]
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


@_compiled
def solve(lower, x):  # type: ignore[no-untyped-def]
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


@_compiled
def felt_inertia(lower, out):  # type: ignore[no-untyped-def]
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


@_compiled
def through_armature(lower, armature, effort, bias, out):  # type: ignore[no-untyped-def]
    """Effort that moves an arm without armature as `effort` moves it with, into `out`.

    M (M + A)^-1 (tau - h) + h = tau - A qdd, with qdd = (M + A)^-1 (tau - h);
    lower: Cholesky factor of M + A. Exact in free motion.
    """
    for k in range(len(out)):
        out[k] = effort[k] - bias[k]
    solve(lower, out)
    for k in range(len(out)):
        out[k] = effort[k] - armature[k] * out[k]
