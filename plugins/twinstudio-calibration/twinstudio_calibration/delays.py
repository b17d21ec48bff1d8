"""How far a response is behind its command, below a sample, and how much that varies.

Two figures. Command to motion: the shift d of y(t) = g x(t - d) + c by least squares,
which is the mean delay over the motion's frequencies. Transport: the dead time alone,
by output error of a second-order response (b0 + b1 s) / (1 + a1 s + a2 s^2) behind it;
then command to motion at low frequency is dead time + a1 - b1 / b0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import signal
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares

from twinstudio_calibration.linearised import covariance, linear

Floats = NDArray[np.float64]
ROUNDS = 20
LEAST_FIT = 0.3
"""A response of which the command explains less than this share does not follow it."""
VAGUE = 4.0
"""A piece whose delay is so many times less sure than the median says nothing of jitter."""
SHARE_FITTED = 0.6
ENOUGH = 1.01
"""A simpler response is taken if its held-out error is at most this many times the best."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A command and its response, each at its own rising times [s], float64[n] and [m]."""

    command_time: Floats
    command: Floats
    time: Floats
    response: Floats

    def part(self, first: float, last: float) -> "Trace":
        """The response between two times; the command stays whole."""
        keep = (self.time >= first) & (self.time < last)
        return Trace(self.command_time, self.command, self.time[keep], self.response[keep])

    @property
    def usable(self) -> "Trace":
        """Without readings that are not numbers."""
        here, there = np.isfinite(self.command), np.isfinite(self.response)
        return Trace(
            self.command_time[here], self.command[here], self.time[there], self.response[there]
        )


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds, standard deviation (inf if it cannot be told), share of the response explained."""

    seconds: float
    deviation: float
    explained: float


@dataclass(frozen=True, slots=True)
class Response:
    """Dead time [s] with deviation, and the drive's own lag [s]; order of the response."""

    dead: float
    deviation: float
    lag: float
    order: int


def command_to_motion(trace: Trace, longest: float, start: float | None = None) -> Delay | None:
    """The delay of a trace by least squares; None if the response does not follow.

    longest: s, of what is looked for. start: where to begin, found by scanning if None.
    """
    whole = trace.usable
    trace = _inside(whole, longest)
    if len(trace.time) < 20 or np.ptp(trace.command) == 0.0 or np.ptp(trace.response) == 0.0:
        return None
    spline = CubicSpline(trace.command_time, trace.command)
    delay = _scan(spline, trace, longest) if start is None else start
    # Once it is known roughly, more of the response can be told.
    trace = _inside(whole, min(longest, 2.0 * abs(delay) + longest / 20.0))
    change = np.inf
    for _ in range(ROUNDS):
        table = _shifted(spline, trace.time, delay)
        values = linear(table, trace.response)
        change = values[1] / values[0] if values[0] != 0.0 else np.inf
        delay = float(np.clip(delay + change, -longest, longest))
        if abs(change) < 1e-8:
            break
    residual = trace.response - table @ values
    explained = 1.0 - float(residual.var() / trace.response.var())
    if explained < LEAST_FIT or abs(delay) >= longest or not abs(change) < 1e-4:
        return None
    deviation = float(np.sqrt(covariance(table, residual)[1, 1])) / abs(float(values[0]))
    return Delay(delay, deviation, explained)


def windows(trace: Trace, whole: Delay, length: float, longest: float) -> list[Delay]:
    """Delays of pieces of `length` s; pieces with far less motion than usual are left out."""
    edges = np.arange(trace.time[0], trace.time[-1] - 0.5 * length, length)
    found = [command_to_motion(trace.part(a, a + length), longest, whole.seconds) for a in edges]
    told = [delay for delay in found if delay is not None and np.isfinite(delay.deviation)]
    usual = float(np.median([delay.deviation for delay in told])) if told else 0.0
    return [delay for delay in told if delay.deviation <= VAGUE * usual]


def spread(pieces: list[Delay]) -> tuple[float, float]:
    """Standard deviation of the true delay between pieces, and its upper 95 % bound, s.

    What the pieces' own uncertainty explains is taken off (DerSimonian and Laird,
    Controlled Clinical Trials 1986).
    """
    if len(pieces) < 3:
        return 0.0, np.inf
    value = np.array([piece.seconds for piece in pieces])
    weight = np.array([piece.deviation for piece in pieces]) ** -2.0
    mean = float(weight @ value / weight.sum())
    excess = float(weight @ (value - mean) ** 2) - (len(pieces) - 1)
    scale = weight.sum() - float((weight**2).sum() / weight.sum())
    between = max(excess, 0.0) / scale
    top = (max(excess, 0.0) + 2.0 * np.sqrt(2.0 * (len(pieces) - 1))) / scale
    return float(np.sqrt(between)), float(np.sqrt(top))


def transport(trace: Trace, mean: Delay, longest: float) -> Response | None:
    """Dead time apart from the drive's own lag; None if no response fits.

    The order of the response is the lowest whose held-out error is as good as any's.
    """
    trace = _inside(trace.usable, longest)
    step = float(np.median(np.diff(trace.time)))
    if not np.isfinite(step) or len(trace.time) < 100:
        return None
    # The filters begin before the part that is compared, so that they have settled there.
    grid = np.arange(trace.command_time[0], trace.time[-1] + step, step)
    spline = CubicSpline(trace.command_time, trace.command)
    cut = trace.time[0] + SHARE_FITTED * (trace.time[-1] - trace.time[0])
    model = [_Output(spline, trace, grid, order, longest) for order in range(4)]
    first = trace.time < cut
    errors = [m.held_out(m.fit(mean, first), ~first) for m in model]
    good = min(k for k, error in enumerate(errors) if error <= ENOUGH * min(errors))
    return model[good].result(model[good].fit(mean, np.ones(len(trace.time), dtype=bool)))


class _Output:
    """Output error of a response of one order: 0 none, 1 one pole, 2 two, 3 two and a zero."""

    def __init__(
        self, spline: CubicSpline, trace: Trace, grid: Floats, order: int, longest: float
    ) -> None:
        self.spline, self.trace, self.grid = spline, trace, grid
        self.order, self.longest = order, longest
        self.step = float(grid[1] - grid[0])

    def table(self, x: Floats) -> Floats:
        """Columns of the response: filtered command, offset; with a zero also its slope."""
        lag = x[1] if self.order >= 1 else 0.0
        bend = x[2] * lag**2 if self.order >= 2 else 0.0
        first = self.trace.command_time[0]
        command = np.asarray(self.spline(np.maximum(self.grid - x[0], first)))
        columns = [self._filtered(command, [1.0], lag, bend)]
        if self.order == 3:
            columns.append(self._filtered(command, [1.0, 0.0], lag, bend))
        found = [np.interp(self.trace.time, self.grid, column) for column in columns]
        return np.stack([*found, np.ones(len(self.trace.time))], axis=1)

    def _filtered(self, command: Floats, numerator: list[float], lag: float, bend: float) -> Floats:
        if self.order == 0:
            return command
        denominator = [bend, lag, 1.0] if self.order >= 2 else [lag, 1.0]
        b, a = signal.bilinear(numerator, denominator, 1.0 / self.step)
        start = signal.lfilter_zi(b, a) * command[0]
        return np.asarray(signal.lfilter(b, a, command, zi=start)[0])

    def residual(self, x: Floats, keep: NDArray[np.bool_]) -> Floats:
        table, target = self.table(x)[keep], self.trace.response[keep]
        return target - table @ linear(table, target)

    def fit(self, mean: Delay, keep: NDArray[np.bool_]) -> Floats:
        """Dead time, lag a1, and a2 / a1^2 = 1 / (4 damping ratio^2), as many as the order has."""
        whole = max(mean.seconds, 2.0 * self.step)
        size = min(self.order, 2) + 1
        low = np.array([-self.longest, 0.05 * self.step, 0.02])[:size]
        high = np.array([self.longest, self.longest, 4.0])[:size]
        scale = np.array([self.step, self.step, 0.1])[:size]
        best: tuple[float, Floats] | None = None
        for share in (0.8, 0.2) if self.order else (1.0,):
            start = np.array([share * whole, max(1 - share, 0.1) * whole, 0.3])[:size]
            found = least_squares(
                lambda x: self.residual(x * scale, keep),
                np.clip(start, low, high) / scale,
                bounds=(low / scale, high / scale),
                diff_step=1e-4,
                max_nfev=40,
            )
            if best is None or found.cost < best[0]:
                best = (float(found.cost), found.x * scale)
        assert best is not None
        return best[1]

    def held_out(self, x: Floats, keep: NDArray[np.bool_]) -> float:
        """Error of the part `keep`, with gain and offset of the other."""
        table, target = self.table(x), self.trace.response
        values = linear(table[~keep], target[~keep])
        return float(np.sqrt(np.mean((target[keep] - table[keep] @ values) ** 2)))

    def result(self, x: Floats) -> Response:
        """Dead time with its deviation."""
        table = self.table(x)
        values = linear(table, self.trace.response)
        slopes = []
        for k in range(len(x)):
            step = np.zeros(len(x))
            step[k] = 1e-3 * (max(abs(x[k]), self.step) if k < 2 else x[k])
            ends = self.table(x + step), self.table(x - step)
            slopes.append((ends[0] - ends[1]) @ values / (2.0 * step[k]))
        jacobian = np.column_stack([*slopes, table])
        cov = covariance(jacobian, self.trace.response - table @ values)
        zero = float(values[1] / values[0]) if self.order == 3 else 0.0
        lag = (float(x[1]) if self.order >= 1 else 0.0) - zero
        return Response(float(x[0]), float(np.sqrt(cov[0, 0])), lag, min(self.order, 2))


def _inside(trace: Trace, longest: float) -> Trace:
    """The response where the command is known for every delay looked for."""
    if not len(trace.command_time):
        return trace
    return trace.part(trace.command_time[0] + longest, trace.command_time[-1] - longest)


def _scan(spline: CubicSpline, trace: Trace, longest: float) -> float:
    """The best of many shifts."""
    step = max(longest / 200.0, float(np.median(np.diff(trace.command_time))))
    few = slice(None, None, max(1, len(trace.time) // 4000))
    time, response = trace.time[few], trace.response[few]
    response = response - response.mean()
    best, found = -np.inf, 0.0
    for delay in np.arange(-0.2 * longest, longest, step):
        shifted = spline(time - delay)
        shifted = shifted - shifted.mean()
        score = float(shifted @ response) / (float(np.linalg.norm(shifted)) + 1e-300)
        if score > best:
            best, found = score, float(delay)
    return found


def _shifted(spline: CubicSpline, time: Floats, delay: float) -> Floats:
    """Command, its negative slope (by which the delay changes it), and one."""
    at = time - delay
    return np.stack([spline(at), -spline(at, 1), np.ones(len(at))], axis=1)
