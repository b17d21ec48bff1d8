"""Least squares over rollouts of a closed loop: multiple shooting, several starts.

The log is cut into segments that begin in free states, tied to the end of the one
before by the accuracy of the measurement (Bock and Plitt, IFAC World Congress 1984).
States of different segments do not mix, so two rollouts give their derivatives.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration.levenberg import Minimum, minimise
from twinstudio_calibration.linearised import covariance
from twinstudio_calibration.simulation import LONGEST_LAG, Drive, Record, rollout

Floats = NDArray[np.float64]
Progress = Callable[[float], None]
SMALL = 1e-4
"""Relative step of a derivative."""
ROWS = 8000
"""Rows of the least squares problem at most; samples are averaged until they fit."""
SHORT = 6000
"""Samples on which the starts compete."""
SIGNED = ("offset", "feed")
TIMES = ("delay", "lag")
REWEIGHTED = 2
BLIND = 3.0
"""A positive parameter whose logarithm is less sure than this is not identified."""


def silent(fraction: float) -> None:
    """Progress that nobody follows."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A record and what is to be found. free: names of `Drive`. first: where to begin."""

    record: Record
    free: tuple[str, ...]
    first: Drive
    progress: Progress = silent

    @property
    def start(self) -> Floats:
        """Logarithms of what is positive, others as shares of a natural unit; then states."""
        states = np.zeros(2 * len(self.record.starts))
        return np.concatenate([self.encode(self.first), states])

    def encode(self, drive: Drive) -> Floats:
        """The free parameters as the solver sees them."""
        return np.array([self._coded(name, getattr(drive, name)) for name in self.free])

    def drive(self, x: Floats) -> Drive:
        """Parameters from the solver's numbers."""
        values = {
            name: self._plain(name, float(code))
            for name, code in zip(self.free, x[: len(self.free)], strict=True)
        }
        return self.first._replace(**values)

    def begin(self, x: Floats) -> Floats:
        """State of every segment, float64[segments, 2]."""
        starts = self.record.starts
        measured = np.stack([self.record.position[starts], self.record.velocity[starts]], axis=1)
        return measured + self.state_scale * x[len(self.free) :].reshape(-1, 2)

    @cached_property
    def state_scale(self) -> Floats:
        """A small position and speed."""
        travelled = float(np.std(self.record.position))
        fast = float(np.std(self.record.velocity))
        return np.array([1e-4 * travelled, 1e-3 * fast])

    def slope(self, name: str, drive: Drive) -> float:
        """Of a parameter by the solver's number."""
        if name in SIGNED:
            return self._units[name]
        return self.record.step if name in TIMES else float(getattr(drive, name))

    @cached_property
    def _units(self) -> dict[str, float]:
        return {"offset": 0.1 * float(np.std(self.record.effort)), "feed": 1.0}

    def _coded(self, name: str, value: float) -> float:
        if name in SIGNED:
            return value / self._units[name]
        return value / self.record.step if name in TIMES else float(np.log(value))

    def _plain(self, name: str, code: float) -> float:
        if name in SIGNED:
            return code * self._units[name]
        return code * self.record.step if name in TIMES else float(np.exp(code))


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best drive.

    deviation: of each `free` parameter, inf where not identified. cost: half the sum of
    squares. position_rms, effort_error: of the segments, the latter relative.
    """

    drive: Drive
    free: tuple[str, ...]
    deviation: Floats
    cost: float
    position_rms: float
    effort_error: float


class _Residuals:
    """Weighted differences of one problem, and their derivatives."""

    def __init__(self, problem: Problem, weights: tuple[float, float]) -> None:
        self.problem, self.weights = problem, weights
        record = problem.record
        self.block = max(1, -(-2 * len(record.time) // ROWS))
        self.segment = np.searchsorted(record.starts, np.arange(len(record.time)), "right") - 1

    def __call__(self, x: Floats) -> Floats:
        problem = self.problem
        return self._of(*rollout(problem.drive(x), problem.record, problem.begin(x)), x)

    def _of(self, position: Floats, effort: Floats, ended: Floats, x: Floats) -> Floats:
        record, (wide, strong) = self.problem.record, self.weights
        off = [(position - record.position) / wide, (effort - record.effort) / strong]
        off = [self._mean(part) for part in off]
        begin = self.problem.begin(x)
        ties = (ended[:-1] - begin[1:]) / self.problem.state_scale
        every = np.concatenate([*off, ties.ravel()])
        return np.asarray(np.nan_to_num(every, posinf=1e6, neginf=-1e6))

    def _mean(self, values: Floats) -> Floats:
        whole = len(values) // self.block * self.block
        mean = values[:whole].reshape(-1, self.block).mean(axis=1)
        return np.asarray(mean * np.sqrt(self.block))

    def jacobian(self, x: Floats) -> Floats:
        """Forward differences; all segments' states share two rollouts."""
        base, columns = self(x), []
        for k, name in enumerate(self.problem.free):
            step = np.zeros_like(x)
            step[k] = SMALL if name not in TIMES else 0.02
            columns.append((self(x + step) - base) / step[k])
        return np.column_stack([*columns, self._states(x, base)])

    def _states(self, x: Floats, base: Floats) -> Floats:
        """Derivatives by the segments' states: all segments are moved at once, then parted."""
        p, count = len(self.problem.free), len(self.problem.record.starts)
        rows = len(self._mean(np.zeros(len(self.segment))))
        of_row = self.segment[np.minimum(np.arange(rows) * self.block, len(self.segment) - 1)]
        result = np.zeros((len(base), 2 * count))
        for c in range(2):
            step = np.zeros_like(x)
            step[p + c :: 2] = 1e-2
            slope = (self(x + step) - base) / 1e-2
            for part in range(2):
                index = part * rows + np.arange(rows)
                result[index, 2 * of_row + c] = slope[index]
            ties = slope[2 * rows :].reshape(-1, 2)
            for s in range(count - 1):
                at = 2 * rows + 2 * s
                # The tie is end of s less start of s + 1, which moved as well.
                own = ties[s].copy()
                own[c] += 1.0
                result[at : at + 2, 2 * s + c] = own
                result[at + c, 2 * (s + 1) + c] = -1.0
        return result


def fit(problem: Problem, rng: np.random.Generator, tries: int = 8) -> Found:
    """The best parameters from the first guess and `tries` more around it.

    The starts compete on the first part of the record; the best one gets all of it.
    """
    short = _shortened(problem)
    residuals = _Residuals(short, _weights(short, short.start))
    starts = [short.start, *(_around(short, rng) for _ in range(tries))]
    costs = [float(np.sum(residuals(x) ** 2)) for x in starts]
    order = {0, *(int(k) for k in np.argsort(costs)[: 1 + tries // 4])}
    rough = [_polish(residuals, starts[k], 8) for k in sorted(order)]
    problem.progress(0.3)
    x = problem.start
    x[: len(problem.free)] = min(rough, key=lambda found: found.cost).x[: len(problem.free)]
    for k in range(REWEIGHTED):
        residuals = _Residuals(problem, _weights(problem, x))
        x = _polish(residuals, x, 12).x
        problem.progress(0.3 + 0.6 * (k + 1) / REWEIGHTED)
    return _found(problem, residuals, x)


def _shortened(problem: Problem) -> Problem:
    """The same on the first segments of the record."""
    record = problem.record
    count = int(np.searchsorted(record.starts, SHORT))
    if count >= len(record.starts):
        return problem
    end = int(record.starts[count])
    series = ("time", "command", "position", "velocity", "effort", "inertia", "load")
    parts = {name: getattr(record, name)[:end] for name in series}
    return replace(problem, record=replace(record, **parts, starts=record.starts[:count]))


def _polish(residuals: _Residuals, x: Floats, steps: int) -> Minimum:
    bounds = _bounds(residuals.problem, len(x))
    return minimise(residuals, residuals.jacobian, x, bounds, steps=steps)


def _bounds(problem: Problem, size: int) -> tuple[Floats, Floats]:
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    centre = problem.encode(problem.first)
    for k, name in enumerate(problem.free):
        if name == "lag":
            low[k], high[k] = -1e-9, LONGEST_LAG - 1.0
        elif name == "delay":
            low[k], high[k] = -5.0, 400.0
        elif name not in SIGNED:
            low[k], high[k] = centre[k] - 7.0, centre[k] + 7.0
        if name == "stribeck":
            # Beyond the fastest speeds it would be viscous friction by another name.
            fast = float(np.quantile(np.abs(problem.record.velocity), 0.99))
            high[k] = max(float(np.log(0.5 * fast)), low[k] + 1.0)
    return low, high


def _around(problem: Problem, rng: np.random.Generator) -> Floats:
    x = problem.start
    for k, name in enumerate(problem.free):
        if name in TIMES:
            x[k] = abs(x[k] + rng.uniform(-1.0, 2.0))
        elif name not in SIGNED:
            x[k] += rng.normal(0.0, 0.5)
    return x


def _weights(problem: Problem, x: Floats) -> tuple[float, float]:
    """What position and effort are off by now, so that both count alike."""
    position, effort, _ = rollout(problem.drive(x), problem.record, problem.begin(x))
    off = np.std(position - problem.record.position), np.std(effort - problem.record.effort)
    least = 1e-9 * np.ptp(problem.record.position), 1e-9 * np.ptp(problem.record.effort)
    wide, strong = (
        float(np.clip(np.nan_to_num(o, nan=1e12), floor, 1e12))
        for o, floor in zip(off, least, strict=True)
    )
    return wide, strong


def _found(problem: Problem, residuals: _Residuals, x: Floats) -> Found:
    drive = problem.drive(x)
    table, p = residuals.jacobian(x), len(problem.free)
    states = table[:, p:]
    shadow = np.linalg.lstsq(states.T @ states, states.T @ table[:, :p], rcond=1e-12)[0]
    cov = covariance(table[:, :p] - states @ shadow, residuals(x))
    deviation = np.sqrt(np.diag(cov))
    low, high = _bounds(problem, len(x))
    stuck = (x <= low + 1e-3) | (x >= high - 1e-3)
    for k, name in enumerate(problem.free):
        # A delay of nothing is a figure, a friction at the end of its range is none.
        if name not in SIGNED + TIMES and (deviation[k] > BLIND or stuck[k]):
            deviation[k] = np.inf
        deviation[k] *= problem.slope(name, drive)
    position, effort, _ = rollout(drive, problem.record, problem.begin(x))
    record = problem.record
    return Found(
        drive=drive,
        free=problem.free,
        deviation=deviation,
        cost=0.5 * float(np.sum(residuals(x) ** 2)),
        position_rms=float(np.std(position - record.position)),
        effort_error=float(np.linalg.norm(effort - record.effort) / np.linalg.norm(record.effort)),
    )
