"""What logs say of every term that could matter: Gram matrices in blocks of time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.arm_model import Source, even, stride_of, target_of
from twinstudio_calibration.logs import JointLog
from twinstudio_calibration.motion import averaged, low_pass, motion_of
from twinstudio_calibration.regression import Gram, gram
from twinstudio_calibration.rigid_body import RigidBody

Floats = NDArray[np.float64]
BLOCKS = 20
"""Blocks of time in a log: enough for Student's t, long beside the residual's memory."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What is tried. cutoffs in Hz: of the smoother of positions, of the efforts' filter.

    contacts: travel and creep of each. delays: s, of the effort behind the motion.
    balanced: whether any joint has a counterbalance.
    """

    motion_cutoff: float
    fit_cutoff: float
    contacts: tuple[terms.Contact, ...]
    delays: tuple[float, ...]
    balanced: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Gram matrices of all joints; columns are the links' parameters, then `keys`.

    links: of each joint, the indices of the inertial parameters that its effort feels.
    power: float64[joints], mean square of the target.
    """

    grid: Grid
    keys: tuple[terms.Key, ...]
    links: tuple[NDArray[np.int64], ...]
    grams: tuple[Gram, ...]

    @property
    def blocks(self) -> int:
        """How many blocks of time there are."""
        return len(self.grams[0].count)

    def joined(self, other: "Evidence") -> "Evidence":
        """The evidence of both."""
        grams = (a.joined(b) for a, b in zip(self.grams, other.grams, strict=True))
        return Evidence(self.grid, self.keys, self.links, tuple(grams))


def gather(
    body: RigidBody, log: JointLog, source: Source, grid: Grid, inertial: Floats
) -> Evidence:
    """The evidence in `log`, whose stamps must advance.

    Columns and efforts go through the same filter, so it biases nothing; fast logs are
    thinned after a running mean. inertial:
    what the load-dependent terms take for the load.
    """
    motion = motion_of(log, grid.motion_cutoff)
    stride = stride_of(motion.interval, grid.fit_cutoff)
    coarse = motion.every(stride)
    regressor = body.regressor(coarse.position, coarse.velocity, coarse.acceleration)
    measured = averaged(even(log, target_of(log, source)), stride)
    targets = low_pass(measured, motion.interval, grid.fit_cutoff)
    edges = np.linspace(0, len(coarse.time), BLOCKS + 1).astype(int).tolist()
    levers = body.levers(coarse.position) if grid.balanced else np.zeros_like(coarse.position)
    grams, links = [], []
    keys: tuple[terms.Key, ...] = ()
    for j in range(len(body.joints)):
        felt = np.flatnonzero(np.abs(regressor[:, j]).max(axis=0) > 0.0)
        efforts = np.stack([regressor[:, j] @ inertial, levers[:, j]], axis=1)
        joint = terms.joint_motion(motion, j, coarse.time, efforts)
        own = terms.columns(joint, grid.contacts)
        keys = tuple(own)
        rigid = low_pass(regressor[:, j, felt], coarse.interval, grid.fit_cutoff)
        thin = averaged(np.stack(list(own.values()), axis=1), stride)[::stride]
        table = low_pass(thin, coarse.interval, grid.fit_cutoff)
        shifted = [
            np.interp(coarse.time + delay, motion.time, targets[:, j]) for delay in grid.delays
        ]
        grams.append(gram(np.hstack([rigid, table]), np.stack(shifted, axis=1), edges))
        links.append(felt)
    return Evidence(grid, keys, tuple(links), tuple(grams))


def gather_all(
    body: RigidBody, logs: Sequence[JointLog], source: Source, grid: Grid, inertial: Floats
) -> Evidence:
    """The evidence of several logs together."""
    first, *others = (gather(body, log, source, grid, inertial) for log in logs)
    for other in others:
        first = first.joined(other)
    return first
