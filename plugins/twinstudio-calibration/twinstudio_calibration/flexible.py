"""A flexible axis as a chain of two or three masses: simulated, and fitted to a log.

Motor, gear and arm, joined by springs and dampers; the motor's torque drives the first,
the motor's speed is measured (Wernholt & Gunnarsson 2006)::

    J1 w1' = u - f w1 - c - k1 (q1 - q2) - d1 (w1 - w2)
    J2 w2' = k1 (q1 - q2) + d1 (w1 - w2) - k2 (q2 - q3) - d2 (w2 - w3)
    J3 w3' = k2 (q2 - q3) + d2 (w2 - w3)

Resonances are the poles of torque to motor speed, antiresonances its zeros: the poles
of the chain whose motor is held.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.optimize import OptimizeResult, least_squares
from scipy.signal import csd, find_peaks, lfilter, welch

from twinstudio_calibration.thermal_model import correlation_time

Floats = NDArray[np.float64]
SPREAD = 3.0
"""Logarithmic room of each parameter either side of its start."""
STARTS, GLANCE, LOOK = 6, 6, 60
"""Starts that are tried, steps of each, and steps of the best of them."""
SEGMENT = 8.0
"""s of a segment of the frequency response that gives the start."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Masses [kg m^2], stiffnesses [N m/rad] and dampings between them, friction of the motor."""

    inertia: Floats
    stiffness: Floats
    damping: Floats
    viscous: float

    @property
    def resonances(self) -> Floats:
        """Undamped frequencies of the free chain's oscillating poles, Hz."""
        return _frequencies(*self._matrices(0), len(self.stiffness))

    @property
    def antiresonances(self) -> Floats:
        """Those of the chain whose motor is held, Hz."""
        return _frequencies(*self._matrices(1), len(self.stiffness))

    def state_space(self) -> tuple[Floats, Floats]:
        """A and B of x' = A x + B u; x: twists q1-q2, q2-q3, then speeds."""
        n = len(self.inertia)
        difference = np.eye(n - 1, n) - np.eye(n - 1, n, 1)
        spring = difference.T @ np.diag(self.stiffness)
        damper = difference.T @ np.diag(self.damping) @ difference
        damper[0, 0] += self.viscous
        upper = np.hstack([np.zeros((n - 1, n - 1)), difference])
        lower = np.hstack([-spring, -damper]) / self.inertia[:, None].repeat(2 * n - 1, axis=1)
        drive = np.zeros(2 * n - 1)
        drive[n - 1] = 1.0 / self.inertia[0]
        return np.vstack([upper, lower]), drive

    def _matrices(self, first: int) -> tuple[Floats, Floats, Floats]:
        n = len(self.inertia)
        difference = np.eye(n - 1, n) - np.eye(n - 1, n, 1)
        stiff = difference.T @ np.diag(self.stiffness) @ difference
        damp = difference.T @ np.diag(self.damping) @ difference
        return np.diag(self.inertia)[first:, first:], stiff[first:, first:], damp[first:, first:]


@dataclass(frozen=True, slots=True, eq=False)
class ChainFit:
    """The chain, the covariance of its `parameters`, and measured minus simulated speed."""

    chain: Chain
    covariance: Floats
    residual: Floats
    share: float

    def spread(self, figure: "Figure") -> tuple[float, float]:
        """A figure of the chain and its standard deviation, to first order."""
        theta = parameters(self.chain)
        value = figure(self.chain)
        gradient = np.array([_slope(figure, theta, k) for k in range(len(theta))])
        return value, math.sqrt(max(float(gradient @ self.covariance @ gradient), 0.0))


class Figure:
    """One number of a chain: entry `index` of what `name` calls."""

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index

    def __call__(self, chain: Chain) -> float:
        """Its value in SI."""
        return float(getattr(chain, self.name)[self.index])


def parameters(chain: Chain) -> Floats:
    """Logarithms of inertias, stiffnesses, dampings and friction."""
    parts = (*chain.inertia, *chain.stiffness, *chain.damping, chain.viscous)
    return np.log(np.array(parts, dtype=np.float64))


def chain_of(theta: Floats) -> Chain:
    """The chain with these `parameters`; three entries a mass, less one."""
    n = (len(theta) + 1) // 3
    values = np.exp(theta)
    return Chain(
        values[:n], values[n : 2 * n - 1], values[2 * n - 1 : 3 * n - 2], float(values[-1])
    )


def simulated(chain: Chain, torque: Floats, step: float) -> tuple[Floats, Floats]:
    """Speed of the motor from rest, and the columns of all starts and of a constant torque.

    torque: float64[n] held over `step` s. Exact for it.
    """
    a, b = chain.state_space()
    size = len(a)
    block = np.zeros((size + 1, size + 1))
    block[:size, :size], block[:size, size] = a, b
    whole = expm(block * step)
    poles, vectors = np.linalg.eig(whole[:size, :size])
    into = np.linalg.solve(vectors, np.column_stack([whole[:size, size], np.eye(size)]))
    out = vectors[(size + 1) // 2 - 1]
    held = np.concatenate([[0.0], torque[:-1]])
    steady = np.concatenate([[0.0], np.ones(len(torque) - 1)])
    ages = np.arange(len(torque))
    speed = np.zeros(len(torque), dtype=complex)
    extra = np.zeros((len(torque), size + 1), dtype=complex)
    for k, pole in enumerate(poles):
        speed += lfilter([out[k] * into[k, 0]], [1.0, -pole], held)
        extra[:, size] += lfilter([out[k] * into[k, 0]], [1.0, -pole], steady)
        extra[:, :size] += (out[k] * pole**ages)[:, None] * into[k, 1:]
    return speed.real, extra.real


def fit_chain(torque: Floats, speed: Floats, step: float, masses: int) -> ChainFit:
    """The chain whose simulated motor speed is nearest to the measured one.

    Starts from peaks and dips of the frequency response. Start of the motion, and a
    constant friction (the motor must keep its direction for that), are solved within.
    """
    tried = [
        _least(parameters(start), torque, speed, step, GLANCE)
        for start in starts(torque, speed, step, masses)
    ]
    nearest = min(tried, key=lambda result: float(result.cost))
    found = _least(nearest.x, torque, speed, step, LOOK)
    residual = np.asarray(found.fun)
    scale = float(residual.var()) * correlation_time(residual)
    information = found.jac.T @ found.jac
    covariance = np.linalg.pinv(information) * scale
    share = float(np.linalg.norm(residual) / np.linalg.norm(speed - speed.mean()))
    return ChainFit(chain_of(found.x), covariance, residual, share)


def starts(torque: Floats, speed: Floats, step: float, masses: int) -> Sequence[Chain]:
    """Chains with the total inertia, peaks and dips that the frequency response shows."""
    frequency, response = frequency_response(torque, speed, step)
    size = np.log(np.abs(response))
    dips = frequency[find_peaks(-size, prominence=0.5)[0]]
    peaks = frequency[find_peaks(size, prominence=0.2)[0]]
    total = 1.0 / float(np.median(np.abs(response[:3]) * 2.0 * np.pi * frequency[:3]))
    found = []
    for low, high in product(_choices(dips, masses - 1), _choices(peaks, masses - 1)):
        if _interlaced(low, high):
            found.append(_chain_with(low, high, total))
    if not found:
        lines = np.geomspace(frequency[2], 0.5 * frequency[-1], 2 * (masses - 1))
        found.append(_chain_with(lines[::2], lines[1::2], total))
    return found[:STARTS]


def frequency_response(
    torque: Floats, speed: Floats, step: float
) -> tuple[Floats, NDArray[np.complex128]]:
    """Speed over torque by averaged spectra (H1), without the lowest line."""
    length = min(len(torque), round(SEGMENT / step))
    frequency, cross = csd(torque, speed, 1.0 / step, nperseg=length, detrend="linear")
    _, power = welch(torque, 1.0 / step, nperseg=length, detrend="linear")
    use = (frequency > 0.0) & (power > 1e-4 * power.max())
    return frequency[use], cross[use] / power[use]


def _interlaced(dips: Floats, peaks: Floats) -> bool:
    """Whether zeros and poles alternate, zeros first, as those of any chain do."""
    line = np.column_stack([dips, peaks]).ravel()
    return bool((np.diff(line) > 0.0).all())


def _choices(frequencies: Floats, count: int) -> list[Floats]:
    """Ways to take one or two of the frequencies in order: the lowest few alone."""
    few = np.sort(frequencies)[:5]
    if count == 1:
        return [np.array([f]) for f in few]
    return [np.array([f, g]) for i, f in enumerate(few) for g in few[i + 1 :]]


def _chain_with(dips: Floats, peaks: Floats, total: float) -> Chain:
    """Chain with these zeros and poles, by continued fractions, each spring lightly damped.

    With x = s^2 torque over speed is s N(x) / D(x). Its limit at high s is the first
    mass, that of what is left of its inverse the first spring, and so on.
    """
    over, under = np.array([total]), np.array([1.0])
    for f in peaks:
        over = np.polymul(over, [1.0 / (2.0 * np.pi * f) ** 2, 1.0])
    for f in dips:
        under = np.polymul(under, [1.0 / (2.0 * np.pi * f) ** 2, 1.0])
    inertia, stiffness = [], []
    while len(under) > 1:
        inertia.append(over[0] / under[0])
        over = (over - inertia[-1] * under)[1:]
        stiffness.append(over[0] / under[0])
        under = under[1:] - np.concatenate([over[1:], [0.0]]) / stiffness[-1]
    inertia.append(over[0] / under[0])
    springs = np.maximum(stiffness, 1e-6)
    damping = 0.1 * springs / (2.0 * np.pi * float(np.mean(peaks)))
    return Chain(np.maximum(inertia, 1e-3 * total), springs, damping, total)


def _least(start: Floats, torque: Floats, speed: Floats, step: float, looks: int) -> OptimizeResult:
    def errors(theta: Floats) -> Floats:
        moved, extra = simulated(chain_of(theta), torque, step)
        rest = speed - moved
        return rest - extra @ np.linalg.lstsq(extra, rest, rcond=1e-10)[0]

    bounds = (start - SPREAD, start + SPREAD)
    return least_squares(errors, start, bounds=bounds, x_scale="jac", max_nfev=looks)


def _frequencies(inertia: Floats, stiffness: Floats, damping: Floats, springs: int) -> Floats:
    n = len(inertia)
    dynamics = np.block(
        [
            [np.zeros((n, n)), np.eye(n)],
            [-np.linalg.solve(inertia, stiffness), -np.linalg.solve(inertia, damping)],
        ]
    )
    poles = np.linalg.eigvals(dynamics)
    found = np.sort(np.abs(poles[poles.imag > 0.0])) / (2.0 * np.pi)
    return np.asarray(found[-springs:])  # not the rigid motion, whose zeros rounding may turn


def _slope(figure: "Figure", theta: Floats, k: int) -> float:
    up, down = theta.copy(), theta.copy()
    up[k] += 1e-4
    down[k] -= 1e-4
    return (figure(chain_of(up)) - figure(chain_of(down))) / 2e-4
