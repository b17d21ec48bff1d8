"""Two thermal nodes of one joint: simulated, and fitted to its temperature.

The winding (node 1) is heated by the current, the case (node 2) by friction; the case
gives its heat to the surroundings, and to the joints beside it, of mean temperature Tn::

    C1 T1' = R I^2 (1 + alpha (T1 - 25)) - (T1 - T2) / R12
    C2 T2' = f |w| + (T1 - T2) / R12 - (T2 - Ta) / R2a - (T2 - Tn) / Rn

A temperature log tells rates alone (1 / R12 C1 and so on); C1 and C2 need a power in
watts, hence the resistance of the winding. Ta holds what heats the case all the time,
too (brake, electronics): a room at 20 degC can look like 40. The network is the one of
motor data sheets, as in OpenSourceLeg's thermal model; alpha of copper is 0.00393 1/K.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

from twinstudio.plugin import api

Floats = NDArray[np.float64]
Node = Literal["winding", "case"]
COPPER = 0.00393
REFERENCE = 25.0
"""degC at which a winding's resistance is given."""
RATES = ("a", "b", "c", "neighbour", "heat", "friction")
"""1/R12 C1, 1/R12 C2, 1/R2a C2, 1/Rn C2 [1/s], R/C1 [K/(s A^2)], f/C2 [K/(s rad/s)]."""
NAMES = (*RATES, "ambient", "winding_start", "case_start")
SURE = 0.7
"""A posterior spread above this share of the prior's means: the data tell nothing."""
PASSES = 3
NOTHING = -60.0
"""Logarithm of a rate at which nothing flows."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One joint's log in bins: what heats it, and how warm it was.

    time: float64[n] s. square: mean I^2 [A^2]. speed: mean |w| [rad/s]. temperature:
    degC, NaN where there was none. around: temperature of the joints beside it [degC],
    NaN for a joint that is alone.
    """

    time: Floats
    square: Floats
    speed: Floats
    temperature: Floats
    around: Floats

    @property
    def beside(self) -> bool:
        """Whether another joint is beside it."""
        return bool(np.isfinite(self.around).all())

    def part(self, rows: slice) -> "Record":
        """Some consecutive bins."""
        arrays = (self.time, self.square, self.speed, self.temperature, self.around)
        return Record(*(array[rows] for array in arrays))


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Normal priors in the order of `NAMES`, those of rates on their logarithms."""

    mean: Floats
    spread: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted joint. theta: as `NAMES`, rates as logarithms; covariance: of theta.

    told: which of `NAMES` the data tell beyond the prior. residual: K, a reading.
    end: temperatures of winding and case at the last bin.
    """

    node: Node
    theta: Floats
    covariance: Floats
    told: NDArray[np.bool_]
    residual: Floats
    end: Floats


def column(node: Node) -> int:
    """Where `simulate` has the temperature of `node`."""
    return ("winding", "case").index(node)


def time_constants(theta: Floats) -> Floats:
    """Negative inverse eigenvalues of the network, fast first, s."""
    a, b, c, d = np.exp(theta[:4])
    middle, product = (a + b + c + d) / 2.0, a * (c + d)
    root = math.sqrt(middle * middle - product)
    return np.array([1.0 / (middle + root), (middle + root) / product])


def default_prior(record: Record, ambient: float, spread: float) -> Prior:
    """A minute for the winding, half an hour for the case, the surroundings as given.

    Factors of e^1.5 (winding), e (case) and e^2 (heat) either way are within one
    standard deviation, so that the data decide wherever they say anything.
    """
    read = record.temperature[np.isfinite(record.temperature)]
    first = float(read[:5].mean())
    heat = 1.0 / (60.0 * max(float(record.square.mean()), 1e-9))
    friction = 5.0 / (1500.0 * max(float(record.speed.mean()), 1e-9))
    rates = np.log([1 / 60, 0.05 / 60, 1 / 1500, 1 / 3000, heat, friction])
    spreads = np.array([1.5, 1.5, 1.0, 1.0, 2.0, 2.0, spread, 3.0, 5.0])
    if not record.beside:
        rates[3], spreads[3] = NOTHING, 0.1
    return Prior(np.concatenate([rates, [ambient, first, first]]), spreads)


def simulate(theta: Floats, record: Record) -> Floats:
    """Temperatures of winding and case at each bin, float64[n, 2] degC, from the start alone.

    With NaN around it the joint is alone: nothing flows to its neighbours.
    """
    return np.asarray(_run(theta, record.time, record.square, record.speed, record.around))


def fit(record: Record, node: Node, prior: Prior) -> Fit:
    """The most probable network under `prior`; deterministic.

    Readings are not independent (quanta of the sensor, what the model lacks), so their
    variance is scaled by the residual's autocorrelation time, and the fit repeated.
    The covariance is that of Laplace's approximation. Raises PluginError for a
    temperature that never changes.
    """
    read = np.isfinite(record.temperature)
    noise = _noise(record.temperature[read])
    scale, starts = noise, [prior.mean + shift for shift in _shifts()]
    for _ in range(PASSES):
        found = _most_probable(record, read, column(node), prior, scale, starts)
        residual = found.fun[: int(read.sum())] * scale
        spread = math.sqrt(float(residual.var()) * correlation_time(residual))
        scale, starts = max(spread, 1e-3 * noise), [found.x]
    jacobian = found.jac[: len(residual)]
    covariance = np.linalg.inv(jacobian.T @ jacobian + np.diag(prior.spread**-2))
    told = np.sqrt(np.diag(covariance)) < SURE * prior.spread
    return Fit(node, found.x, covariance, told, residual, simulate(found.x, record)[-1])


def correlation_time(residual: Floats) -> float:
    """1 + 2 sum of the autocorrelation up to its first value below zero; at least 1."""
    x = residual - residual.mean()
    power = float(x @ x)
    if power == 0.0:
        return 1.0
    size = 1 << (2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    correlation = np.fft.irfft(spectrum, size)[: len(x) // 3] / power
    negative = np.flatnonzero(correlation < 0.0)
    end = int(negative[0]) if len(negative) else len(correlation)
    return max(1.0, 1.0 + 2.0 * float(correlation[1:end].sum()))


def _most_probable(
    record: Record,
    read: NDArray[np.bool_],
    which: int,
    prior: Prior,
    scale: float,
    starts: list[Floats],
) -> OptimizeResult:
    measured = record.temperature[read]
    reach = 6.0 * prior.spread  # rates so far off would overflow, and are no rates of a motor

    def errors(theta: Floats) -> Floats:
        data = (simulate(theta, record)[read, which] - measured) / scale
        return np.concatenate([data, (theta - prior.mean) / prior.spread])

    bounds = (prior.mean - reach, prior.mean + reach)
    results = [
        least_squares(errors, start, bounds=bounds, x_scale=prior.spread, max_nfev=80)
        for start in starts
    ]
    return min(results, key=lambda result: float(result.cost))


def _shifts() -> list[Floats]:
    """Starts: the prior's mean, a faster and a slower network."""
    shifts = np.zeros((3, len(NAMES)))
    shifts[1, :3] = (1.0, 0.0, 0.5)
    shifts[2, :3] = (-1.0, -1.0, -0.5)
    return list(shifts)


def _noise(temperature: Floats) -> float:
    """Spread of one reading: from second differences, at least that of its quantum."""
    steps = np.abs(np.diff(temperature))
    if not (steps > 0).any():
        raise api.PluginError("the temperature never changes: there is no network to fit to it")
    rough = float(np.std(np.diff(temperature, n=2)) / math.sqrt(6.0))
    return max(rough, float(steps[steps > 0].min()) / math.sqrt(12.0))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _run(theta: Floats, time: Floats, square: Floats, speed: Floats, around: Floats) -> Floats:
    a, b, c, d = math.exp(theta[0]), math.exp(theta[1]), math.exp(theta[2]), math.exp(theta[3])
    heat, friction, ambient = math.exp(theta[4]), math.exp(theta[5]), theta[6]
    alone = math.isnan(around[0])
    loss = c + d
    middle = (a + b + loss) / 2.0
    root = math.sqrt(middle * middle - a * loss)
    fast, slow = -(middle + root), -a * loss / (middle + root)
    out = np.empty((len(time), 2))
    out[0] = theta[7:9]
    for k in range(len(time) - 1):
        # What heats is held over the bin, so the step is exact: e^(A dt) about the end state.
        beside = 0.0 if alone else d * around[k]
        # Far off, while a fit looks around, copper's growth would run away: it is limited.
        growth = min(1.0 + COPPER * (out[k, 0] - REFERENCE), 10.0)
        h1 = heat * square[k] * growth
        end2 = (c * ambient + beside + friction * speed[k] + h1 * b / a) / loss
        end1 = end2 + h1 / a
        step = time[k + 1] - time[k]
        e1, e2 = math.exp(fast * step), math.exp(slow * step)
        x1, x2 = out[k, 0] - end1, out[k, 1] - end2
        share = (e1 - e2) / (fast - slow)
        own = e2 - slow * share
        out[k + 1, 0] = end1 + own * x1 + share * a * (x2 - x1)
        out[k + 1, 1] = end2 + own * x2 + share * (b * x1 - (b + loss) * x2)
    return out
