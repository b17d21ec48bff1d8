"""The identified arm: rigid bodies, drive gains, friction and delay, and what it predicts."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.logs import JointLog
from twinstudio_calibration.motion import low_pass, motion_of
from twinstudio_calibration.rigid_body import PER_LINK, RigidBody

Floats = NDArray[np.float64]
Source = Literal["effort", "current"]
RAW_RATE = 20.0
"""Samples kept in a period of the filter's cutoff."""


@dataclass(frozen=True, slots=True, eq=False)
class ArmModel:
    """measured = gain (rigid bodies + terms), `delay` later.

    inertial: float64[10 joints] as in `RigidBody`. gain: float64[joints], A/(N m) where the
    log's source is a current, else 1. own: terms of each joint by name, SI at the joint.
    contact: of each joint. delay: float64
    [joints], s, of the measured effort behind the motion. motion_cutoff: Hz, of the
    smoother of positions. score_cutoff: Hz, of the filter of efforts before they are
    compared; 0 compares raw. payload: ten parameters in the last joint's frame of what
    the arm carries beside, with gains of its own, `payload_gain`, or else `gain`.
    """

    source: Source
    inertial: Floats
    gain: Floats
    own: tuple[dict[str, float], ...]
    contact: tuple[terms.Contact, ...]
    delay: Floats
    motion_cutoff: float
    score_cutoff: float
    payload: Floats = field(default_factory=lambda: np.zeros(PER_LINK))
    payload_gain: Floats | None = None


def target_of(log: JointLog, source: Source) -> Floats:
    """The measured efforts or currents, float64[n, joints]."""
    values: Floats | None = getattr(log, source)
    assert values is not None
    return values


def predict(model: ArmModel, body: RigidBody, log: JointLog) -> Floats:
    """What the model says `log` should have measured, float64[n, joints], not filtered.

    The stamps of `log` must advance.
    """
    motion = motion_of(log, model.motion_cutoff)
    stride = stride_of(motion.interval, model.motion_cutoff)
    coarse = motion.every(stride)
    regressor = body.regressor(coarse.position, coarse.velocity, coarse.acceleration)
    rigid = regressor @ model.inertial
    carried = regressor[:, :, -PER_LINK:] @ model.payload
    if model.payload_gain is not None:
        carried = carried * model.payload_gain / model.gain
    balanced = any(terms.BALANCE in own for own in model.own)
    levers = body.levers(coarse.position) if balanced else np.zeros_like(coarse.position)
    result = np.empty_like(log.position)
    for j, own in enumerate(model.own):
        efforts = np.stack([rigid[:, j], levers[:, j]], axis=1)
        joint = terms.joint_motion(motion, j, coarse.time, efforts)
        found = terms.columns(joint, (model.contact[j],))
        named = {name: column for (name, _), column in found.items()}
        lift = np.interp(motion.time, coarse.time, carried[:, j])
        total = (
            joint.load
            + lift
            + sum((value * named[name] for name, value in own.items()), np.zeros(1))
        )
        result[:, j] = model.gain[j] * np.interp(log.time - model.delay[j], motion.time, total)
    return result


def compared(
    log: JointLog, measured: Floats, predicted: Floats, cutoff: float
) -> tuple[Floats, Floats]:
    """Measured and predicted, filtered alike; as they are with a cutoff of 0."""
    if cutoff <= 0.0:
        return measured, predicted
    return (
        low_pass(even(log, measured), log.interval, cutoff),
        low_pass(even(log, predicted), log.interval, cutoff),
    )


def even(log: JointLog, values: Floats) -> Floats:
    """`values` at the stamps of `log`, on the even grid of `motion_of`."""
    time = log.time[0] + log.interval * np.arange(int(log.duration / log.interval) + 1)
    return np.stack([np.interp(time, log.time, column) for column in values.T], axis=1)


def stride_of(interval: float, cutoff: float) -> int:
    """How many samples may be skipped where nothing is above `cutoff` Hz."""
    if cutoff <= 0.0:
        return 1
    whole = max(1, int(1.0 / (RAW_RATE * cutoff * interval) + 1e-9))
    return whole - (whole + 1) % 2  # odd, so that a running mean is centred
