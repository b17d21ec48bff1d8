"""Motions as finite Fourier series that begin and end at rest, within limits.

q_j(t) = home_j + sum over l of a_jl (sin l w t) / (l w) - b_jl (cos l w t - 1) / (l w),
with sum a = 0 and sum l b = 0, so that position, speed and acceleration are those of
standing at home at both ends (Swevers, Ganseman, Tukel, De Schutter, Van Brussel,
IEEE T-RA 1997, without the constraints).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Of every joint, float64[joints]: positions, speed and acceleration; rad or m, s."""

    lower: Floats
    upper: Floats
    speed: Floats
    acceleration: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """time: float64[n] s. The others float64[n, joints], rad or m, and their derivatives."""

    time: Floats
    position: Floats
    velocity: Floats
    acceleration: Floats

    def every(self, stride: int) -> "Motion":
        """Every `stride`-th sample."""
        rows = slice(None, None, stride)
        arrays = (self.time, self.position, self.velocity, self.acceleration)
        return Motion(*(values[rows] for values in arrays))


def at_rest(coefficients: Floats) -> Floats:
    """The nearest coefficients whose motion begins and ends at rest.

    coefficients: float64[2, joints, harmonics], a and b.
    """
    harmonics = np.arange(1, coefficients.shape[2] + 1, dtype=np.float64)
    sines, cosines = coefficients
    sines = sines - sines.mean(axis=1, keepdims=True)
    excess = cosines @ harmonics / (harmonics @ harmonics)
    return np.stack([sines, cosines - excess[:, None] * harmonics])


def series(coefficients: Floats, home: Floats, period: float, time: Floats) -> Motion:
    """The motion of `coefficients` at `time`, without any scaling."""
    sines, cosines = coefficients
    omega = 2.0 * np.pi / period * np.arange(1, sines.shape[1] + 1, dtype=np.float64)
    angle = np.outer(time, omega)
    sin, cos = np.sin(angle), np.cos(angle)
    return Motion(
        time,
        home + sin @ (sines / omega).T - (cos - 1.0) @ (cosines / omega).T,
        cos @ sines.T + sin @ cosines.T,
        -sin @ (sines * omega).T + cos @ (cosines * omega).T,
    )


def within(motion: Motion, home: Floats, limits: Limits, share: float) -> Motion:
    """`motion` about `home`, every joint grown or shrunk to fill `share` of its limits.

    home: within them, or there is no such motion.
    """
    away = motion.position - home
    with np.errstate(divide="ignore", invalid="ignore"):
        room = [
            share * (limits.upper - home) / away.max(axis=0),
            share * (home - limits.lower) / np.abs(away.min(axis=0)),
            share * limits.speed / np.abs(motion.velocity).max(axis=0),
            share * limits.acceleration / np.abs(motion.acceleration).max(axis=0),
        ]
    still = np.ptp(away, axis=0) < 1e-12  # at its limit, or without coefficients
    scale = np.where(still, 0.0, np.nanmin(np.array(room), axis=0))
    return shrunk(motion, home, scale)


def shrunk(motion: Motion, home: Floats, scale: Floats | float) -> Motion:
    """`motion` with every joint's way from `home` times `scale`."""
    return Motion(
        motion.time,
        home + scale * (motion.position - home),
        scale * motion.velocity,
        scale * motion.acceleration,
    )
