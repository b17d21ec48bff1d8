"""Least squares, and the covariance of what it finds when residuals remember."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def linear(table: Floats, target: Floats) -> Floats:
    """Least squares, columns scaled alike first; the smallest solution where there are many."""
    size = np.linalg.norm(table, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    result: Floats = np.linalg.lstsq(table / size, target, rcond=1e-10)[0] / size
    return result


def covariance(jacobian: Floats, residual: Floats) -> Floats:
    """Covariance of least squares with residuals correlated in time.

    The Bartlett window reaches as far as Newey and West's rule of thumb or the first
    zero of the residual's autocorrelation. Parameters with a share in a direction that
    the data do not see have infinite variance.
    """
    size = np.linalg.norm(jacobian, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    scaled = jacobian / size
    _, s, vt = np.linalg.svd(scaled, full_matrices=False)
    seen = s > 1e-7 * s[0]
    inverse = (vt[seen].T / s[seen]) @ (vt[seen].T / s[seen]).T
    moments = scaled * residual[:, None]
    middle = moments.T @ moments
    reach = memory(residual)
    for lag in range(1, reach + 1):
        cross = moments[lag:].T @ moments[:-lag]
        middle += (1.0 - lag / (reach + 1)) * (cross + cross.T)
    n, p = jacobian.shape
    result = inverse @ middle @ inverse * (n / max(n - p, 1))
    blind = (vt[~seen] ** 2).sum(axis=0) > 1e-6
    blind |= np.linalg.norm(jacobian, axis=0) == 0.0
    result[blind, blind] = np.inf
    return np.asarray(result / np.outer(size, size))


def memory(residual: Floats) -> int:
    """How many samples the residual remembers."""
    n = len(residual)
    least = int(np.ceil(4.0 * (n / 100.0) ** (2.0 / 9.0)))
    centred = residual - residual.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[: n // 10 + 1]
    below = np.flatnonzero(correlation <= 0.0)
    first = int(below[0]) if len(below) else n // 10
    return max(least, min(first, n // 10))
