"""Whose clock stamped a log: the robot's own steps, as its motion betrays them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration.delays import Trace, command_to_motion
from twinstudio_calibration.logs import JointLog

Floats = NDArray[np.float64]
FEW = 200
CLOSE = 0.05
"""A robot's clock is exact if positions step by whole periods to this share of one."""


LEAST_JITTER = 0.01
"""Stamps closer to whole periods than this share of one are the robot's own."""


@dataclass(frozen=True, slots=True)
class RobotClock:
    """An exact clock that a log's motion betrays.

    period: s. off: how far position steps are from whole periods, rms, as a share of one;
    stamped: the same of the logged stamps. repeated, skipped: readings given twice, and
    lost. jitter: of the logged stamps against the robot's clock, s.
    """

    period: float
    off: float
    stamped: float
    repeated: int
    skipped: int
    jitter: float


def robot_clock(log: JointLog) -> RobotClock | None:
    """The exact clock behind a log with host stamps; None if it does not show.

    Position steps of all joints over the velocity between give the robot's time between
    two rows; whole multiples of one period mean an exact clock.
    """
    if log.velocity is None or len(log) < FEW:
        return None
    moved = np.diff(log.position, axis=0)
    speed = 0.5 * (log.velocity[1:] + log.velocity[:-1])
    power = (speed**2).sum(axis=1)
    told = np.isfinite(power) & (power > np.nanquantile(power, 0.5))
    elapsed = (moved * speed).sum(axis=1)[told] / power[told]
    stamped = np.diff(log.time)[told]
    if len(elapsed) < FEW or np.median(elapsed) <= 0.0:
        return None
    period = float(np.median(elapsed))
    near = np.abs(elapsed / period - np.rint(elapsed / period)) < 0.2
    count = np.rint(elapsed / period)
    use = near & (count > 0)
    period = float((elapsed[use] @ count[use]) / (count[use] @ count[use]))
    off, host = (_off(values / period) for values in (elapsed, stamped))
    if off > CLOSE or host < max(2.0 * off, LEAST_JITTER):
        return None
    count = np.rint(elapsed / period)
    return RobotClock(
        period=period,
        off=off,
        stamped=host,
        repeated=int((count == 0).sum()),
        skipped=int(np.maximum(count - 1, 0).sum()),
        jitter=float(np.std(stamped - count * period)) / np.sqrt(2.0),
    )


def frozen_start(log: JointLog) -> float:
    """How long the first reading is repeated at the start, s."""
    same = (np.diff(log.position, axis=0) == 0.0).all(axis=1)
    if log.velocity is not None:
        same &= (np.diff(log.velocity, axis=0) == 0.0).all(axis=1)
    fresh = np.flatnonzero(~same)
    if not len(fresh) or fresh[0] < 3:
        return 0.0
    return float(log.time[fresh[0] + 1] - log.time[0])


def velocity_behind(log: JointLog, longest: float) -> Floats:
    """How far each joint's velocity is behind its position, s; NaN where it cannot be told."""
    found = np.full(len(log.joints), np.nan)
    if log.velocity is None:
        return found
    for k in range(len(log.joints)):
        speed = log.velocity[:, k]
        way = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(log.time))])
        delay = command_to_motion(Trace(log.time, log.position[:, k], log.time, way), longest)
        if delay is not None:
            found[k] = delay.seconds
    return found


def _off(multiples: Floats) -> float:
    """Distance from whole numbers, root mean square without the worst hundredth."""
    distance = np.sort(np.abs(multiples - np.rint(multiples)))
    return float(np.sqrt(np.mean(distance[: int(0.99 * len(distance))] ** 2)))
