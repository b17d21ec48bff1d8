"""Weighted ridge regression of all joints together, from Gram matrices of time blocks.

Everything a fit, its cross-validation and its intervals need is in the products
X'X, X'y, y'y of each block, so that a choice of columns costs one small solve.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """Products of one joint's columns and targets in each block of time.

    xx: float64[blocks, columns, columns]; xy: float64[blocks, columns, targets];
    yy: float64[blocks, targets]; count: int64[blocks] samples. A target is the effort,
    moved by one of the delays that are tried.
    """

    xx: Floats
    xy: Floats
    yy: Floats
    count: Index

    def joined(self, other: "Gram") -> "Gram":
        """The blocks of both."""
        return Gram(
            np.concatenate([self.xx, other.xx]),
            np.concatenate([self.xy, other.xy]),
            np.concatenate([self.yy, other.yy]),
            np.concatenate([self.count, other.count]),
        )


def gram(columns: Floats, targets: Floats, edges: Sequence[int]) -> Gram:
    """Products of columns float64[n, c] and targets float64[n, t] between row `edges`."""
    parts = [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    xs, ys = [columns[part] for part in parts], [targets[part] for part in parts]
    return Gram(
        np.stack([x.T @ x for x in xs]),
        np.stack([x.T @ y for x, y in zip(xs, ys, strict=True)]),
        np.stack([(y**2).sum(axis=0) for y in ys]),
        np.array([len(y) for y in ys]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """Of one joint, the columns and target in use, mapped to the common parameters.

    xx: float64[blocks, parameters, parameters] would be large, so `place` says at which
    parameters the columns stand. weight: 1 / standard deviation of the residual.
    """

    xx: Floats
    xy: Floats
    yy: Floats
    count: Index
    place: Index
    weight: float


def select(
    source: Gram, columns: Index, target: int, place: Index, scale: Floats, weight: float
) -> Selected:
    """Columns (each times its `scale`) and one target of `source`."""
    xx = source.xx[:, columns[:, None], columns] * (scale[:, None] * scale)
    xy = source.xy[:, columns, target] * scale
    return Selected(xx, xy, source.yy[:, target], source.count, place, weight)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Where the parameters are thought to be, and how far off: float64[parameters]."""

    mean: Floats
    deviation: Floats

    def precision(self, strength: float) -> Floats:
        """Diagonal of the prior's precision; `strength` 1 takes the deviations as they are."""
        result: Floats = strength / self.deviation**2
        return result


def normal(joints: Sequence[Selected], blocks: Index | slice, size: int) -> tuple[Floats, Floats]:
    """X'X and X'y of the `blocks` of all joints together, weighted."""
    a, b = np.zeros((size, size)), np.zeros(size)
    for joint in joints:
        square = joint.weight**2
        a[joint.place[:, None], joint.place] += square * joint.xx[blocks].sum(axis=0)
        b[joint.place] += square * joint.xy[blocks].sum(axis=0)
    return a, b


def solve(a: Floats, b: Floats, prior: Prior, strength: float) -> Floats:
    """The parameters that minimise squares of residuals plus those of the prior."""
    precision = prior.precision(strength)
    right = b - a @ prior.mean
    change: Floats = cho_solve(cho_factor(a + np.diag(precision)), right)
    return prior.mean + change


def squares(joint: Selected, parameters: Floats, blocks: Index | slice) -> float:
    """Sum of squared residuals of one joint in `blocks`, not weighted."""
    p = parameters[joint.place]
    xx, xy = joint.xx[blocks].sum(axis=0), joint.xy[blocks].sum(axis=0)
    return max(float(joint.yy[blocks].sum() - 2.0 * (xy @ p) + p @ xx @ p), 0.0)


def folds_of(blocks: int, folds: int) -> list[Index]:
    """Consecutive blocks, shared out to `folds`."""
    return [part.astype(np.int64) for part in np.array_split(np.arange(blocks), folds)]


def cross_validated(
    joints: Sequence[Selected], prior: Prior, strength: float, folds: Sequence[Index]
) -> Floats:
    """Mean squared weighted residual of each joint in each fold, the others fitted.

    float64[folds, joints].
    """
    size = len(prior.mean)
    whole = normal(joints, slice(None), size)
    errors = np.empty((len(folds), len(joints)))
    for k, fold in enumerate(folds):
        a, b = normal(joints, fold, size)
        parameters = solve(whole[0] - a, whole[1] - b, prior, strength)
        for j, joint in enumerate(joints):
            errors[k, j] = joint.weight**2 * squares(joint, parameters, fold)
    return errors / np.array([[joint.count[fold].sum() for joint in joints] for fold in folds])


def covariance(
    joints: Sequence[Selected], parameters: Floats, prior: Prior, strength: float
) -> Floats:
    """Covariance of the parameters, robust to residuals that are alike within a block.

    The sandwich of the blocks' scores (Liang & Zeger, Biometrika 1986), scaled by
    G / (G - 1) for G blocks, with the prior's own uncertainty beside it.
    """
    size = len(parameters)
    a, _ = normal(joints, slice(None), size)
    count = len(joints[0].yy)
    scores = np.zeros((count, size))
    for joint in joints:
        p = parameters[joint.place]
        scores[:, joint.place] += joint.weight**2 * (joint.xy - joint.xx @ p)
    precision = np.diag(prior.precision(strength))
    scores -= scores.mean(axis=0)
    inner = scores.T @ scores * (count / (count - 1)) + precision
    factor = cho_factor(a + precision)
    return np.asarray(cho_solve(factor, cho_solve(factor, inner).T))


def quantile(blocks: int) -> float:
    """Half width of the 95 % interval in standard deviations: Student's t."""
    return float(stats.t.ppf(0.975, max(blocks - 1, 1)))
