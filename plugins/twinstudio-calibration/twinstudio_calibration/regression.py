"""Weighted ridge regression of all joints together, from Gram matrices of time blocks.

Everything a fit, its cross-validation and its intervals need is in the products
X'X, X'y, y'y of each block, so that a choice of columns costs one small solve.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    parts = [slice(a, b) for a, b in pairwise(edges)]
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
    """What is thought of the parameters before: half p' P p - pull' p is added to the squares.

    precision: P, float64[parameters, parameters]. pull: float64[parameters].
    """

    precision: Floats
    pull: Floats


def normal(joints: Sequence[Selected], blocks: Index | slice, size: int) -> tuple[Floats, Floats]:
    """X'X and X'y of the `blocks` of all joints together, weighted."""
    a, b = np.zeros((size, size)), np.zeros(size)
    for joint in joints:
        square = joint.weight**2
        a[joint.place[:, None], joint.place] += square * joint.xx[blocks].sum(axis=0)
        b[joint.place] += square * joint.xy[blocks].sum(axis=0)
    return a, b


def solve(a: Floats, b: Floats, prior: Prior) -> Floats:
    """The parameters that minimise squares of residuals plus what the prior adds."""
    result: Floats = cho_solve(cho_factor(a + prior.precision), b + prior.pull)
    return result


def squares(joint: Selected, parameters: Floats, blocks: Index | slice) -> float:
    """Sum of squared residuals of one joint in `blocks`, not weighted."""
    p = parameters[joint.place]
    xx, xy = joint.xx[blocks].sum(axis=0), joint.xy[blocks].sum(axis=0)
    return max(float(joint.yy[blocks].sum() - 2.0 * (xy @ p) + p @ xx @ p), 0.0)


def folds_of(blocks: int, folds: int) -> list[Index]:
    """Consecutive blocks, shared out to `folds`."""
    return [part.astype(np.int64) for part in np.array_split(np.arange(blocks), folds)]


def cross_validated(
    joints: Sequence[Selected],
    fit: Callable[[Floats, Floats], Floats],
    size: int,
    folds: Sequence[Index],
) -> Floats:
    """Mean squared weighted residual of each joint in each fold, float64[folds, joints].

    fit: gives the parameters from X'X and X'y of the other folds.
    """
    whole = normal(joints, slice(None), size)
    errors = np.empty((len(folds), len(joints)))
    for k, fold in enumerate(folds):
        a, b = normal(joints, fold, size)
        parameters = fit(whole[0] - a, whole[1] - b)
        for j, joint in enumerate(joints):
            errors[k, j] = joint.weight**2 * squares(joint, parameters, fold)
    counts = np.array([[joint.count[fold].sum() for joint in joints] for fold in folds])
    result: Floats = errors / counts
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """One fold of `Candidates`: solves without the joint's own terms, and what it scores on."""

    common: Floats
    per_term: Floats
    own: Floats
    right: Floats
    test: Floats
    test_right: Floats
    test_energy: Floats


class Candidates:
    """Cross-validated errors of many choices of one joint's own terms, each in microseconds.

    The rest of the parameters is eliminated once a fold; a choice is then a solve as
    small as its own terms (Schur complement).
    """

    def __init__(
        self,
        others: Sequence[Selected],
        joint: Gram,
        shared: tuple[Index, Floats],
        weight: float,
        prior: Prior,
        folds: Sequence[Index],
    ) -> None:
        """others: the other joints. shared: places of the joint's first columns, their scale.

        The remaining columns of `joint` are its own terms, with prior mean 0.
        """
        place, scale = shared
        self._own = slice(len(place), joint.xx.shape[1])
        self._prior = prior
        columns = np.concatenate([scale, np.full(joint.xx.shape[1] - len(place), scale[0])])
        weighted = weight**2
        xx = weighted * joint.xx * (columns[:, None] * columns)
        xy = weighted * joint.xy * columns[:, None]
        yy = weighted * joint.yy
        size, extra = len(prior.pull), joint.xx.shape[1] - len(place)
        where = np.concatenate([place, size + np.arange(extra)])
        self._folds = []
        whole = self._total(others, slice(None), (xx, xy, yy), where, size + extra)
        for fold in folds:
            held = self._total(others, fold, (xx, xy, yy), where, size + extra)
            self._folds.append(self._fold(whole, held, size))

    @staticmethod
    def _total(
        others: Sequence[Selected],
        blocks: Index | slice,
        joint: tuple[Floats, Floats, Floats],
        where: Index,
        size: int,
    ) -> tuple[Floats, Floats, Floats]:
        xx, xy, yy = joint
        a, b = normal(others, blocks, size)
        a[where[:, None], where] += xx[blocks].sum(axis=0)
        right = np.repeat(b[:, None], xy.shape[2], axis=1)
        right[where] += xy[blocks].sum(axis=0)
        energy = sum(o.weight**2 * o.yy[blocks].sum() for o in others) + yy[blocks].sum(axis=0)
        return a, right, np.asarray(energy)

    def _fold(
        self,
        whole: tuple[Floats, Floats, Floats],
        held: tuple[Floats, Floats, Floats],
        size: int,
    ) -> _Fold:
        a, b = whole[0] - held[0], whole[1] - held[1]
        b[:size] += self._prior.pull[:, None]
        factor = cho_factor(a[:size, :size] + self._prior.precision)
        solved = cho_solve(factor, np.hstack([b[:size], a[:size, size:]]))
        targets = b.shape[1]
        common, per_term = solved[:, :targets], solved[:, targets:]
        return _Fold(
            common=common,
            per_term=per_term,
            own=a[size:, size:] - a[size:, :size] @ per_term,
            right=b[size:] - a[size:, :size] @ common,
            test=held[0],
            test_right=held[1],
            test_energy=held[2],
        )

    def errors(
        self, terms: Index, precision: Floats, target: int, positive: NDArray[np.bool_]
    ) -> Floats:
        """Weighted squares of all joints in each fold with these own terms, float64[folds].

        Terms that should be `positive` and would not be are left out.
        """
        result = np.empty(len(self._folds))
        for k, fold in enumerate(self._folds):
            inner = fold.own[terms[:, None], terms] + np.diag(precision)
            own = _positive_solve(inner, fold.right[terms, target], positive)
            common = fold.common[:, target] - fold.per_term[:, terms] @ own
            at = np.concatenate([np.arange(len(common)), len(common) + terms])
            p = np.concatenate([common, own])
            right = fold.test_right[at, target]
            quadratic = p @ (fold.test[at[:, None], at] @ p)
            result[k] = fold.test_energy[target] - 2.0 * (p @ right) + quadratic
        return result


def _positive_solve(a: Floats, b: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Solve a p = b; what should be positive and is not becomes 0, one after the other."""
    free = np.ones(len(b), dtype=bool)
    result = np.zeros(len(b))
    while free.any():
        result[:] = 0.0
        result[free] = np.linalg.solve(a[np.ix_(free, free)], b[free])
        wrong = positive & (result < 0.0)
        if not wrong.any():
            break
        free[np.argmin(np.where(wrong, result, 0.0))] = False
    return result


def covariance(joints: Sequence[Selected], parameters: Floats, prior: Prior) -> Floats:
    """Covariance of the parameters, robust to residuals that are alike within a block.

    The delete-one jackknife over the blocks of time (CR3 of Bell & McCaffrey, Survey
    Methodology 2002), with the prior's own uncertainty beside it.
    """
    size = len(parameters)
    a, _ = normal(joints, slice(None), size)
    whole = a + prior.precision
    count = len(joints[0].yy)
    scores = np.zeros((count, size))
    for joint in joints:
        p = parameters[joint.place]
        scores[:, joint.place] += joint.weight**2 * (joint.xy - joint.xx @ p)
    scores -= scores.mean(axis=0)
    curvatures = (normal(joints, np.array([k]), size)[0] for k in range(count))
    return jackknife(whole, prior.precision, scores, curvatures)


def jackknife(
    whole: Floats, precision: Floats, scores: Floats, curvatures: Iterable[Floats]
) -> Floats:
    """Covariance from what each block adds to X'X (prior included in `whole`) and to X'r."""
    count = len(scores)
    moved = np.stack(
        [np.linalg.solve(whole - own, score) for own, score in zip(curvatures, scores, strict=True)]
    )
    moved -= moved.mean(axis=0)
    inverse = np.linalg.inv(whole)
    result: Floats = moved.T @ moved * (count - 1) / count + inverse @ precision @ inverse
    return result


def quantile(blocks: int) -> float:
    """Half width of the 95 % interval in standard deviations: Student's t."""
    return float(stats.t.ppf(0.975, max(blocks - 1, 1)))
