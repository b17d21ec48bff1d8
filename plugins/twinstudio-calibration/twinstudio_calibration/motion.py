"""Smooth motion and filtered efforts of a log on an even grid of times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, signal
from scipy.linalg import solveh_banded

from twinstudio_calibration.logs import JointLog

Floats = NDArray[np.float64]
STANDING = 0.1
ORDER = 3
"""The smoother holds the third derivative down, so acceleration ends without a curl."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """time: float64[n], s, evenly spaced by `interval`; the others float64[n, joints], SI.

    path: position without what it moves where it is `standing`. resolution: float64
    [joints], a step of the encoder, rad or m.
    """

    time: Floats
    interval: float
    position: Floats
    velocity: Floats
    acceleration: Floats
    path: Floats
    resolution: Floats

    def every(self, stride: int) -> "Motion":
        """Each `stride`-th sample."""
        return Motion(
            self.time[::stride],
            self.interval * stride,
            self.position[::stride],
            self.velocity[::stride],
            self.acceleration[::stride],
            self.path[::stride],
            self.resolution,
        )


def motion_of(log: JointLog, cutoff: float) -> Motion:
    """Position and its derivatives, nothing above about `cutoff` Hz in them.

    The stamps of `log` must advance. Positions are interpolated onto the median
    interval and smoothed; both derivatives are central differences of the result.
    """
    interval = log.interval
    time = log.time[0] + interval * np.arange(int(log.duration / interval) + 1)
    raw = np.stack([np.interp(time, log.time, column) for column in log.position.T], axis=1)
    position = smooth(raw, interval, cutoff)
    velocity = np.gradient(position, interval, axis=0, edge_order=2)
    acceleration = np.gradient(velocity, interval, axis=0, edge_order=2)
    resolution = resolution_of(log.position)
    still = standing(raw, resolution, interval)
    steps = np.where(still[1:], 0.0, np.diff(position, axis=0))
    path = position[0] + np.vstack([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
    return Motion(time, interval, position, velocity, acceleration, path, resolution)


def standing(position: Floats, resolution: Floats, interval: float) -> NDArray[np.bool_]:
    """Where readings stay within one step of the encoder for `STANDING` s, bool[n, joints].

    There a joint is at rest, and what changes is which of two neighbours is read.
    """
    width = max(3, round(STANDING / interval))
    high = ndimage.maximum_filter1d(position, width, axis=0)
    low = ndimage.minimum_filter1d(position, width, axis=0)
    result: NDArray[np.bool_] = high - low <= 1.01 * resolution
    return result


def resolution_of(position: Floats) -> Floats:
    """The smallest step between samples that differ, float64[joints]: the 1 % quantile."""
    steps = np.abs(np.diff(position, axis=0))
    return np.array([np.quantile(s[s > 0.0], 0.01) if s.any() else 0.0 for s in steps.T])


def smooth(values: Floats, interval: float, cutoff: float) -> Floats:
    """Whittaker's smoother: least squares with a penalty on the third difference.

    values: float64[n, m]. It passes half the amplitude at `cutoff` Hz and has no phase
    (Eilers, Analytical Chemistry 2003). Unlike a filter run twice it needs no padding.
    """
    weight = (2.0 * np.sin(np.pi * min(cutoff * interval, 0.5))) ** (-2 * ORDER)
    n = len(values)
    difference = np.array([1.0])
    for _ in range(ORDER):
        difference = np.convolve(difference, [1.0, -1.0])
    bands = np.zeros((ORDER + 1, n))
    for offset in range(ORDER + 1):
        for k in range(ORDER + 1 - offset):
            product = difference[k] * difference[k + offset]
            bands[ORDER - offset, offset + k : n - (ORDER - offset - k)] += product
    bands *= weight
    bands[ORDER] += 1.0
    result: Floats = solveh_banded(bands, values, check_finite=False)
    return result


def low_pass(values: Floats, interval: float, cutoff: float) -> Floats:
    """Butterworth of order 4, run forwards and back (no phase), along the first axis.

    cutoff: Hz; 0, or one at or above half the sample rate, leaves the values as they are.
    """
    if cutoff <= 0.0 or 2.0 * cutoff * interval >= 1.0:
        return values
    sections = signal.butter(4, 2.0 * cutoff * interval, output="sos")
    result: Floats = signal.sosfiltfilt(sections, values, axis=0)
    return result


def averaged(values: Floats, stride: int) -> Floats:
    """Running mean of `stride` samples (odd), centred, along the first axis."""
    if stride == 1:
        return values
    result: Floats = ndimage.uniform_filter1d(values, stride, axis=0, mode="nearest")
    return result
