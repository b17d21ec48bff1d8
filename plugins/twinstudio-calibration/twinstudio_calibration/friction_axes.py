"""Logs as axes of the friction ladder: filtered motion, and effort beside the rigid bodies."""

import numpy as np
from scipy import signal

from twinstudio.plugin import api
from twinstudio_calibration.friction_law import Axis, Floats
from twinstudio_calibration.logs import JointLog, advancing, stretches
from twinstudio_calibration.rigid_body import RigidBody

GAP = 0.1
"""A pause longer than so many seconds is not bridged."""
EDGES = 5.0
"""Periods of the cutoff at either end that the filters spoil."""
MASS = 0
"""Of the ten parameters of a link, the mass."""


def default_cutoff(rate: float) -> float:
    """A tenth of the sample rate, but 10 Hz where that is less and the log can show them."""
    return max(rate / 10.0, min(10.0, rate / 4.0))


def longest(log: JointLog) -> JointLog:
    """The longest stretch without a pause, of samples whose time advances."""
    usable = advancing(log)
    parts = list(stretches(usable, max(GAP, 5.0 * usable.interval)))
    return usable.rows(max(parts, key=lambda part: part.stop - part.start))


def measured_effort(log: JointLog, scene: api.Scene) -> Floats | None:
    """Efforts float64[n, joints], or currents times the scene's drive gains; None without."""
    if log.effort is not None:
        return log.effort
    gains = scene.drive.motor.drive_gain
    if log.current is None or not gains:
        return None
    return np.asarray(log.current * np.asarray(gains))


def axes_of(log: JointLog, scene: api.Scene, body: RigidBody, cutoff: float) -> tuple[Axis, ...]:
    """One axis a joint from `log`, whose samples must stand without a pause.

    Position through a Butterworth filter of order 4 at `cutoff` Hz (0 takes the
    default), forwards and back; the log's ends that it spoils are cut off. A single
    prismatic axis keeps its whole inertia; others are told by the scene's model.
    """
    interval = log.interval
    cutoff = cutoff or default_cutoff(1.0 / interval)
    time = log.time[0] + interval * np.arange(int(log.duration / interval + 1e-6) + 1)
    effort = measured_effort(log, scene)
    assert effort is not None
    position, raw = (_even(log, values, time) for values in (log.position, effort))
    b, a = signal.butter(4, 2.0 * cutoff * interval)
    position = signal.filtfilt(b, a, position, axis=0)
    keep = slice(round(EDGES / cutoff / interval), -round(EDGES / cutoff / interval))
    known = _rigid(body, position, interval, cutoff)
    warm = None if log.temperature is None else _even(log, log.temperature, time)
    whole = whole_mass(body)
    return tuple(
        Axis(
            interval=interval,
            position=np.ascontiguousarray(position[keep, j]),
            effort=raw[keep, j] - known[keep, j],
            period=2.0 * np.pi if body.revolute[j] else 1.0,
            stride=max(1, round(1.0 / (cutoff * interval))),
            pull=-_gravity_on(body) if whole else 0.0,
            temperature=_known(warm, keep, j),
            known=known[keep, j],
        )
        for j in range(len(body.joints))
    )


def whole_mass(body: RigidBody) -> bool:
    """Whether the fit finds the moved mass itself, and not what the model lacks."""
    return len(body.joints) == 1 and not body.revolute[0]


def _gravity_on(body: RigidBody) -> float:
    """Effort a kilogram that a single prismatic axis holds at rest."""
    rest = np.zeros((1, 1))
    return float(body.regressor(rest, rest, rest)[0, 0, MASS])


def _rigid(body: RigidBody, position: Floats, interval: float, cutoff: float) -> Floats:
    """Effort of the rigid bodies as the scene has them, float64[n, joints]."""
    if whole_mass(body):
        return np.zeros_like(position)
    velocity = np.gradient(position, interval, axis=0, edge_order=2)
    acceleration = np.gradient(velocity, interval, axis=0, edge_order=2)
    few = slice(None, None, max(1, int(1.0 / (4.0 * cutoff * interval))))
    told = body.regressor(position[few], velocity[few], acceleration[few]) @ body.prior
    index = np.arange(len(position), dtype=np.float64)
    return np.stack([np.interp(index, index[few], column) for column in told.T], axis=1)


def _even(log: JointLog, values: Floats, time: Floats) -> Floats:
    columns = []
    for column in values.T:
        known = np.isfinite(column)
        if not known.any():
            columns.append(np.full(len(time), np.nan))
        else:
            columns.append(np.interp(time, log.time[known], column[known]))
    return np.stack(columns, axis=1)


def _known(values: Floats | None, keep: slice, joint: int) -> Floats | None:
    """One column, or None without readings."""
    if values is None or not np.isfinite(values[keep, joint]).all():
        return None
    return values[keep, joint]
