"""One joint under commanded torque, with friction that drifts from run to run.

For gears so stiff that friction, not the arm, decides the motion: each joint alone::

    I w' = u - Fv(k) w - Fc(k) sign w - c0 - c1 sin q - c2 cos q
    Fv(k) = Fv exp(dv s(k)), Fc(k) = Fc exp(dc s(k))

k counts the runs of an input from 0, and s(k) grows from 0 as in `drift`. c1 and c2
take what weight is left by the robot's own gravity compensation. The arm's couplings
are left out, so I is what the joint feels on these motions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

from twinstudio_calibration.drift import Law, growth, rms

Floats = NDArray[np.float64]
NAMES = ("inertia", "viscous", "coulomb", "viscous drift", "coulomb drift", "c0", "c1", "c2")
POSITIVE = 3
"""So many of them are fitted as logarithms."""
READINGS = 3.0
"""Independent readings that a run counts for: its errors add up along it."""
FIRST_SCALE, LEAST_SPAN = 0.03, 0.02
"""Share of a motion, at least of so many rad, that a first guess may miss."""
PASSES = 2
SURE = 0.7
"""A posterior spread above this share of the prior's means: the runs tell nothing."""
CHOICES: tuple[tuple[Law, float], ...] = (
    ("none", 1.0),
    ("linear", 1.0),
    ("logarithmic", 1.0),
    ("exponential", 2.0),
    ("exponential", 3.0),
    ("exponential", 5.0),
)
"""Laws that are tried, with their kappa in runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of one input under the same commanded torque.

    number: float64[runs], from 0. step: s. torque: float64[n - 1, joints] N m, held
    over a step. position: float64[runs, n, joints]. pace: velocity at the start,
    float64[runs, joints].
    """

    digest: str
    joints: tuple[str, ...]
    number: Floats
    step: float
    torque: Floats
    position: Floats
    pace: Floats

    def some(self, rows: slice | NDArray[np.int64]) -> "Runs":
        """A part of the runs; each keeps its number."""
        return Runs(
            self.digest,
            self.joints,
            self.number[rows],
            self.step,
            self.torque,
            self.position[rows],
            self.pace[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class JointFit:
    """One joint: theta as `NAMES`, its covariance, and which of it the runs tell."""

    theta: Floats
    covariance: Floats
    told: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SessionFit:
    """All joints of a session, and how their friction drifts."""

    law: Law
    kappa: float
    joints: tuple[JointFit, ...]

    def run(self, runs: Runs) -> Floats:
        """Positions of a free run from its measured start, float64[runs, n, joints]."""
        out = np.empty_like(runs.position)
        grown = growth(self.law, self.kappa, runs.number)
        for k, joint in enumerate(self.joints):
            for i, s in enumerate(grown):
                out[i, :, k] = _one(joint.theta, runs, i, k, float(s))
        return out


def fit_session(session: Sequence[Runs], law: Law, kappa: float) -> SessionFit:
    """Every joint by the free run of all its runs, least squares with weak priors."""
    joints = range(len(session[0].joints))
    return SessionFit(law, kappa, tuple(_fit_joint(session, k, law, kappa) for k in joints))


def choose(session: Sequence[Runs]) -> tuple[Law, float, dict[str, float]]:
    """The drift by which the first two thirds of the runs predict the last; errors of all.

    Over the scatter of the runs, root mean square over the inputs.
    """
    errors: dict[tuple[Law, float], float] = {}
    for law, kappa in CHOICES:
        early = [runs.some(slice(0, _early(runs))) for runs in session]
        fitted = fit_session(early, law, kappa)
        ratios = []
        for runs in session:
            late = runs.some(slice(_early(runs), None))
            scatter = rms(runs.position - runs.position.mean(axis=0))
            ratios.append(rms(fitted.run(late) - late.position) / scatter)
        errors[law, kappa] = rms(np.array(ratios))
    law, kappa = min(errors, key=lambda one: errors[one])
    return law, kappa, {f"{one} {k:g}": error for (one, k), error in errors.items()}


def _early(runs: Runs) -> int:
    return max(2, 2 * len(runs.position) // 3)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """One joint of a session, with the law of its drift and the prior of its parameters."""

    session: Sequence[Runs]
    joint: int
    law: Law
    kappa: float
    mean: Floats
    spread: Floats

    def gaps(self, theta: Floats) -> list[Floats]:
        """Free run minus measured, float64[runs, n] of each input."""
        gaps = []
        for runs in self.session:
            grown = growth(self.law, self.kappa, runs.number)
            ran = [_one(theta, runs, i, self.joint, float(s)) for i, s in enumerate(grown)]
            gaps.append(np.stack(ran) - runs.position[:, :, self.joint])
        return gaps

    def least(self, scales: Sequence[float], starts: Sequence[Floats]) -> OptimizeResult:
        """The most probable parameters; `scales`: rad that a free run of each input misses."""

        def errors(theta: Floats) -> Floats:
            parts = [
                gap.ravel() * math.sqrt(READINGS / gap.shape[1]) / scale
                for gap, scale in zip(self.gaps(theta), scales, strict=True)
            ]
            return np.concatenate([*parts, (theta - self.mean) / self.spread])

        bounds = (self.mean - 6.0 * self.spread, self.mean + 6.0 * self.spread)
        results = [
            least_squares(errors, start, bounds=bounds, x_scale=self.spread, max_nfev=60)
            for start in starts
        ]
        return min(results, key=lambda result: float(result.cost))


def _fit_joint(session: Sequence[Runs], k: int, law: Law, kappa: float) -> JointFit:
    mean, spread = _prior(session, k, law)
    task = _Task(session, k, law, kappa, mean, spread)
    spans = [max(float(np.ptp(runs.position[:, :, k])), LEAST_SPAN) for runs in session]
    scales = [FIRST_SCALE * span for span in spans]
    starts = [mean, mean + _shift(-1.0, 0.0, -1.0), mean + _shift(0.0, 0.3, 0.7)]
    for _ in range(PASSES):
        starts = [task.least(scales, starts).x]
        gaps = task.gaps(starts[0])
        scales = [max(rms(gap), 1e-3 * span) for gap, span in zip(gaps, spans, strict=True)]
    found = task.least(scales, starts)
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    told = np.sqrt(np.diag(covariance)) < SURE * spread
    return JointFit(found.x, covariance, told)


def _prior(session: Sequence[Runs], k: int, law: Law) -> tuple[Floats, Floats]:
    """Mean and spread: friction that balances the torque, within a factor of e or so."""
    top = max(float(np.abs(runs.torque[:, k]).max()) for runs in session) or 1.0
    speeds = [np.abs(np.diff(runs.position[:, :, k], axis=1)).max() / runs.step for runs in session]
    fastest = max(float(max(speeds)), 1e-3)
    rate = 0.3 if law != "none" else 1e-6
    mean = np.array([math.log(0.5), math.log(top / fastest), math.log(0.1 * top), *np.zeros(5)])
    weight = 0.1 * top
    return mean, np.array([1.5, 1.0, 1.5, rate, rate, weight, weight, weight])


def _shift(inertia: float, viscous: float, coulomb: float) -> Floats:
    shift = np.zeros(len(NAMES))
    shift[:POSITIVE] = (inertia, viscous, coulomb)
    return shift


def _one(theta: Floats, runs: Runs, i: int, k: int, s: float) -> Floats:
    torque = np.ascontiguousarray(runs.torque[:, k])
    start, pace = float(runs.position[i, 0, k]), float(runs.pace[i, k])
    return np.asarray(_free_run(theta, start, pace, torque, s, runs.step))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _free_run(
    theta: Floats, start: float, pace: float, torque: Floats, s: float, step: float
) -> Floats:
    """Implicit in the friction, so that a joint at rest below Coulomb's level stays there."""
    inertia = math.exp(theta[0]) / step
    viscous = math.exp(theta[1] + theta[3] * s)
    coulomb = math.exp(theta[2] + theta[4] * s)
    out = np.empty(len(torque) + 1)
    q, w = start, pace
    out[0] = q
    for k in range(len(torque)):
        push = inertia * w + torque[k] - theta[5] - theta[6] * math.sin(q) - theta[7] * math.cos(q)
        w = 0.0
        if abs(push) > coulomb:
            w = (push - math.copysign(coulomb, push)) / (inertia + viscous)
        q += step * w
        out[k + 1] = q
    return out
