"""The payload that explains what a loaded arm needs beyond the unloaded one.

Gauss-Newton over all at once: payload, drive gains and centre of a known load if there
is a log of one, and the friction of every joint in every loaded log, which changes from
day to day. The unloaded arm's rigid bodies stay as they were identified.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.arm_model import ArmModel, even, stride_of, target_of
from twinstudio_calibration.logs import JointLog
from twinstudio_calibration.motion import low_pass, motion_of
from twinstudio_calibration.regression import jackknife, quantile
from twinstudio_calibration.rigid_body import PER_LINK, RigidBody

Floats = NDArray[np.float64]
BLOCKS = 20
ROUNDS = 15
MOMENT = 3
CENTRE_DEVIATION = 0.3
"""m; how far from the flange a payload's centre is thought to be."""
GYRATION = 0.1
"""m; radius of gyration that the payload's inertia is thought to have, about the flange."""
GAIN_DEVIATION = 0.3
"""Of the logarithm of a drive gain about that of the unloaded fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """One loaded log, filtered and thinned, in rows of time.

    mass: kg, None if it is to be found. missing: float64[n, joints], measured minus the
    unloaded arm's rigid bodies. payload: float64[n, joints, 10], effort over the
    payload's parameters in the last joint's frame. regressor: the same over all of the
    arm's parameters. friction: float64[n, joints, terms].
    """

    mass: float | None
    missing: Floats
    payload: Floats
    friction: Floats
    regressor: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PayloadFit:
    """parameters: float64[10] in the last joint's frame; spread: their covariance.

    gain: float64[joints], A/(N m) or 1. friction: of each joint in the loaded log, by term.
    factor: half width of a 95 % interval in standard deviations.
    """

    parameters: Floats
    spread: Floats
    gain: Floats
    friction: tuple[dict[str, float], ...]
    factor: float


def loaded(
    body: RigidBody, arm: ArmModel, log: JointLog, mass: float | None, cutoff: float
) -> Loaded:
    """What the regression needs of one loaded log, whose stamps must advance."""
    motion = motion_of(log, arm.motion_cutoff)
    stride = stride_of(motion.interval, cutoff)
    coarse = motion.every(stride)
    regressor = body.regressor(coarse.position, coarse.velocity, coarse.acceleration)
    rigid = regressor @ arm.inertial
    levers = body.levers(coarse.position)
    measured = even(log, target_of(log, arm.source))
    columns, missing = [], []
    for j, own in enumerate(arm.own):
        efforts = np.stack([rigid[:, j], levers[:, j]], axis=1)
        joint = terms.joint_motion(motion, j, coarse.time, efforts)
        found = terms.columns(joint, (arm.contact[j],))
        named = {name: column for (name, _), column in found.items()}
        fixed = joint.load
        for name in (terms.ARMATURE, terms.BALANCE):
            fixed = fixed + own.get(name, 0.0) * named[name]
        late = np.interp(motion.time + arm.delay[j], motion.time, measured[:, j])
        both = np.stack([late - arm.gain[j] * fixed, *(named[n] for n in FREE)], axis=1)
        both = low_pass(both, motion.interval, cutoff)[::stride]
        missing.append(both[:, 0])
        columns.append(both[:, 1:])
    filtered = low_pass(regressor, coarse.interval, cutoff)
    payload = filtered[:, :, -PER_LINK:]
    return Loaded(mass, np.stack(missing, axis=1), payload, np.stack(columns, axis=1), filtered)


FREE = (terms.COULOMB, terms.VISCOUS, terms.QUADRATIC, terms.OFFSET, terms.LOAD)
"""Terms of friction that each loaded log has for itself."""


class _Problem:
    """Parameters: logarithm of gain ratios, payload and friction of each log, the arm's error.

    The arm's error is what the unloaded fit left open, with that fit's covariance.
    """

    def __init__(
        self, arm: ArmModel, doubt: Floats, logs: Sequence[Loaded], known_gain: bool
    ) -> None:
        self.arm, self.logs, self.known_gain = arm, logs, known_gain
        self.joints = len(arm.gain)
        self.terms = len(FREE)
        own = self.joints + len(logs) * (PER_LINK + self.joints * self.terms)
        self.size = own + len(doubt)
        self.arm_part = slice(own, self.size)
        self.weights = np.ones((len(logs), self.joints))
        mean, deviation = self._start()
        self.mean, self.precision = mean, np.diag(deviation**-2)
        floor = 1e-6 * np.diag(np.diag(doubt)) + 1e-12 * np.eye(len(doubt))
        self.precision[self.arm_part, self.arm_part] = np.linalg.inv(doubt + floor)

    def _start(self) -> tuple[Floats, Floats]:
        mean, deviation = np.zeros(self.size), np.full(self.size, 1e3)
        deviation[: self.joints] = 1e-6 if self.known_gain else GAIN_DEVIATION
        for k, log in enumerate(self.logs):
            at = self.payload(k)
            guess = log.mass if log.mass is not None else 1.0
            spread = np.repeat([10.0, CENTRE_DEVIATION, GYRATION**2], [1, 3, 6]) * max(guess, 1.0)
            mean[at.start] = guess
            mean[at.start + np.array([4, 6, 9])] = guess * GYRATION**2
            if log.mass is not None:
                spread[0] = 1e-6
            deviation[at] = spread
            load = np.arange(self.joints) * self.terms + FREE.index(terms.LOAD)
            deviation[self.friction(k).start + load] = 0.1
        return mean, deviation

    def payload(self, log: int) -> slice:
        """Places of a log's payload."""
        start = self.joints + log * (PER_LINK + self.joints * self.terms)
        return slice(start, start + PER_LINK)

    def friction(self, log: int) -> slice:
        """Places of a log's friction, joint by joint."""
        start = self.payload(log).stop
        return slice(start, start + self.joints * self.terms)

    def rows(self, p: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Jacobian, weighted residual, and the block of time of each row."""
        matrices, residuals, blocks = [], [], []
        for k, log in enumerate(self.logs):
            n = len(log.missing)
            block = k * BLOCKS + np.minimum(np.arange(n) * BLOCKS // n, BLOCKS - 1)
            phi, at = p[self.payload(k)], self.friction(k).start
            for j in range(self.joints):
                gain = self.arm.gain[j] * np.exp(p[j])
                own = slice(at + j * self.terms, at + (j + 1) * self.terms)
                weight = self.weights[k, j]
                jacobian = np.zeros((n, self.size))
                lift = log.payload[:, j] @ phi
                jacobian[:, self.payload(k)] = gain * log.payload[:, j]
                jacobian[:, own] = self.arm.gain[j] * log.friction[:, j]
                jacobian[:, j] = gain * lift
                jacobian[:, self.arm_part] = self.arm.gain[j] * log.regressor[:, j]
                left = log.missing[:, j] - gain * lift - jacobian[:, own] @ p[own]
                left = left - jacobian[:, self.arm_part] @ p[self.arm_part]
                matrices.append(weight * jacobian)
                residuals.append(weight * left)
                blocks.append(block)
        return np.vstack(matrices), np.concatenate(residuals), np.concatenate(blocks)

    def reweigh(self, p: Floats) -> None:
        """Weigh each joint of each log by 1 / standard deviation of its residual."""
        _, residual, _ = self.rows(p)
        at = 0
        for k, log in enumerate(self.logs):
            for j in range(self.joints):
                part = residual[at : at + len(log.missing)]
                at += len(log.missing)
                self.weights[k, j] /= max(float(part.std()), 1e-9)


def fit_payload(
    arm: ArmModel, doubt: Floats, logs: Sequence[Loaded], *, known_gain: bool
) -> PayloadFit:
    """The payload of the first of `logs`; the others carry known masses.

    doubt: covariance of the arm's inertial parameters, float64[10 joints, 10 joints].
    """
    problem = _Problem(arm, doubt, logs, known_gain)
    p = problem.mean.copy()
    for _ in range(ROUNDS):
        matrix, residual, _ = problem.rows(p)
        normal = matrix.T @ matrix + problem.precision
        step = np.linalg.solve(normal, matrix.T @ residual + problem.precision @ (problem.mean - p))
        step[: problem.joints] = np.clip(step[: problem.joints], -0.3, 0.3)
        p = p + step
        problem.reweigh(p)
    matrix, residual, block = problem.rows(p)
    return PayloadFit(
        parameters=p[problem.payload(0)],
        spread=_covariance(problem, matrix, residual, block)[
            problem.payload(0), problem.payload(0)
        ],
        gain=arm.gain * np.exp(p[: problem.joints]),
        friction=_friction(problem, p),
        factor=quantile(BLOCKS * len(logs)),
    )


def _covariance(
    problem: _Problem, matrix: Floats, residual: Floats, block: NDArray[np.int64]
) -> Floats:
    """The jackknife over blocks of time, the prior beside it; as in `regression.covariance`."""
    parts = [block == k for k in range(int(block.max()) + 1)]
    scores = np.stack([matrix[part].T @ residual[part] for part in parts])
    curvatures = (matrix[part].T @ matrix[part] for part in parts)
    whole = matrix.T @ matrix + problem.precision
    return jackknife(whole, problem.precision, scores, curvatures)


def _friction(problem: _Problem, p: Floats) -> tuple[dict[str, float], ...]:
    own = p[problem.friction(0)].reshape(problem.joints, problem.terms)
    return tuple(dict(zip(FREE, map(float, row), strict=True)) for row in own)


def with_payload(arm: ArmModel, fit: PayloadFit) -> ArmModel:
    """The arm with the payload, and the friction of the loaded log."""
    own = tuple({**before, **after} for before, after in zip(arm.own, fit.friction, strict=True))
    return replace(arm, own=own, payload=fit.parameters, payload_gain=fit.gain)
