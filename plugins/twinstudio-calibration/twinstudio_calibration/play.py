"""Backlash, hysteresis and compliance of one joint from a log: the estimators.

Three ways, none of which needs a model of the arm:

- secondary encoder: motor minus link is half the width of the play ahead of the link in
  the direction of motion, plus the wind-up of the gear, plus what a time offset of the
  two encoders makes of speed;
- reversal: where the joint rests at one command, coming from above and from below;
- lever: deflection of the link under a pull that changes its sign, motor held.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.signal import savgol_filter

from twinstudio_calibration.thermal_model import correlation_time

Floats = NDArray[np.float64]
QUANTILE = 1.96
SETTLED = 3
"""So many equal readings (within one count) end a hold."""
ACROSS = 0.99
"""Only at the ends of its play does the link follow a law: between them it coasts."""
SETTLING = 3.0
"""Widths of play that the motor moves after a reversal until its link, pushed, is quiet again."""
AVERAGE = 10
ROUNDS = 30
"""Steps towards the width of play that explains itself."""
SLOPE, TURNING = 11, 0.1
"""Samples of a slope, and the share of the steepest below which a pull is near its turn."""
LOADED = 0.05
"""Share of the largest pull below which a lever's play is not taken up."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval, infinite if the data do not tell it."""

    value: float
    low: float
    high: float

    @property
    def told(self) -> bool:
        """Whether it has an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def inverse(self) -> "Estimate":
        """One over it; not told where the interval holds zero."""
        if not self.told or self.low <= 0.0 <= self.high:
            return Estimate(1.0 / self.value if self.value else 0.0, -math.inf, math.inf)
        return Estimate(1.0 / self.value, 1.0 / self.high, 1.0 / self.low)


@dataclass(frozen=True, slots=True)
class Secondary:
    """Of motor minus link, in rad (m).

    apparent: difference of its means between the two directions, whatever makes it.
    width: of the hysteresis that is left once time offset and wind-up are taken out.
    offset: link's encoder behind the motor's, s. compliance: rad/(N m), or None
    without effort. spread: peak to peak. residual: what the model leaves, rms.
    """

    apparent: Estimate
    width: Estimate
    offset: Estimate
    compliance: Estimate | None
    spread: float
    residual: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Hysteresis of holding, rad: rest coming from below minus from above; one count of it.

    targets: commands that were reached from both sides. holds: rests that were used.
    """

    width: Estimate
    count: float
    targets: int
    holds: int


@dataclass(frozen=True, slots=True)
class Lever:
    """Of deflection against pull: stiffness [N m/rad], play and hysteresis width [rad]."""

    stiffness: Estimate
    play: Estimate
    hysteresis: Estimate
    residual: float


def regress(design: Floats, values: Floats) -> tuple[list[Estimate], Floats]:
    """Least squares with intervals that hold for residuals that hang together; the residual.

    Variance of each coefficient: sum of its squared influences, times their
    autocorrelation time. A column the others make is not told.
    """
    size = np.abs(np.diag(np.linalg.qr(design, mode="r")))
    lengths = np.linalg.norm(design, axis=0)
    poor = size < 1e-6 * np.maximum(lengths, 1e-300)
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    residual = values - design @ solution
    inverse = np.linalg.pinv(design)
    estimates = []
    for k, value in enumerate(solution):
        influence = inverse[k] * residual
        half = QUANTILE * math.sqrt(float(influence @ influence) * correlation_time(influence))
        half = math.inf if poor[k] else half
        estimates.append(Estimate(float(value), float(value - half), float(value + half)))
    return estimates, residual


def secondary(position: Floats, link: Floats, velocity: Floats, effort: Floats | None) -> Secondary:
    """What motor minus link is made of; arrays float64[n] of one joint, rad, rad/s, N m.

    gap = c0 + c1 q + c2 q^2 + offset w + compliance tau + play(q), where play(q) is
    the play operator of the width that is sought. The polynomial takes the zeros and
    slow errors of encoders and gear.
    """
    gap = position - link
    smooth = _smooth_base(position)
    noise = _step(position)
    plain, _ = regress(np.column_stack([smooth, 0.5 * np.sign(velocity)]), gap)
    columns = [smooth, velocity[:, None]]
    if effort is not None:
        columns.append((effort - effort.mean())[:, None])
    base = np.column_stack(columns)
    width = max(abs(plain[-1].value), 2.0 * noise)
    for _ in range(ROUNDS):
        side = sides(position, width)
        across = np.abs(sides(position, SETTLING * width)) > ACROSS
        every, kept = _averaged(np.column_stack([base, 0.5 * side, gap]), across)
        found, residual = regress(every[kept, :-1], every[kept, -1])
        last, width = width, max(found[-1].value, 2.0 * noise)
        if abs(width - last) < 1e-3 * width:
            break
    at = smooth.shape[1]
    return Secondary(
        apparent=plain[-1],
        width=found[-1],
        offset=found[at],
        compliance=found[at + 1] if effort is not None else None,
        spread=float(np.ptp(gap)),
        residual=float(residual.std()),
    )


def sides(position: Floats, width: float) -> Floats:
    """Where in a play of `width` the motor is: -1 and 1 at its ends, between them crossing it.

    The link of a play operator (a backlash without load but friction) that starts in
    the middle.
    """
    return np.asarray(_sides(np.ascontiguousarray(position), 0.5 * width))


def hold(
    time: Floats, command: Floats, position: Floats, settle: float, least: float
) -> Hold | None:
    """Hysteresis of holding at commands that were reached from both sides; None without any.

    Rests are the last readings of a command that stays for `settle` s; they must agree
    within a count. Moves shorter than `least` tell no side.
    """
    count = _step(position)
    rests = _rests(time, command, position, settle, count)
    ways: dict[float, dict[float, list[float]]] = {}
    for (before, _), (now, rest) in pairwise(rests):
        if abs(now - before) > least:
            way = math.copysign(1.0, now - before)
            ways.setdefault(now, {}).setdefault(way, []).append(rest)
    both = [sides for sides in ways.values() if len(sides) == 2]
    if not both:
        return None
    widths = [float(np.mean(w[1.0]) - np.mean(w[-1.0])) for w in both]
    width = float(np.mean(widths))
    spread = max(count, float(np.ptp(widths)) / 2.0)
    used = sum(len(rests) for sides in both for rests in sides.values())
    return Hold(Estimate(width, width - spread, width + spread), count, len(both), used)


def lever(deflection: Floats, pull: Floats) -> Lever | None:
    """Stiffness, play and hysteresis of a gear whose motor is held; None for too small a pull.

    deflection = c + pull / K + play / 2 sign(pull) + hysteresis / 2 sign(pull rises),
    where the pull takes the play up: above 5 % of its largest value.
    """
    if len(pull) < SLOPE:
        return None
    top = float(np.abs(pull).max())
    rising = _trend(pull)
    use = (np.abs(pull) > LOADED * top) & (rising != 0.0)
    if int(use.sum()) < 4 * SLOPE or not (pull[use] > 0.0).any() or not (pull[use] < 0.0).any():
        return None
    columns = [np.ones(len(pull)), pull, 0.5 * np.sign(pull), 0.5 * rising]
    found, residual = regress(np.column_stack(columns)[use], deflection[use])
    return Lever(found[1].inverse(), found[2], found[3], float(residual.std()))


def resolution(position: Floats) -> float:
    """The smallest step between readings, rad; what one count is."""
    return _step(position)


def _averaged(columns: Floats, use: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """Means of `AVERAGE` rows at a time, and which of them are of used rows alone.

    Noise of a regressor (an effort) would make its coefficient too small.
    """
    count = len(columns) // AVERAGE
    rows: Floats = columns[: count * AVERAGE].reshape(count, AVERAGE, -1).mean(axis=1)
    whole: NDArray[np.bool_] = np.all(use[: count * AVERAGE].reshape(count, AVERAGE), axis=1)
    return rows, whole


def _smooth_base(position: Floats) -> Floats:
    middle, half = 0.5 * (position.max() + position.min()), 0.5 * float(np.ptp(position))
    x = (position - middle) / (half or 1.0)
    return np.column_stack([np.ones_like(x), x, x * x])


def _step(position: Floats) -> float:
    """Smallest difference of two readings that differ: a count, or the noise's floor."""
    values = np.unique(position)
    steps = np.diff(values)
    # Sums of binary fractions differ in the last digit: that is no count.
    steps = steps[steps > 1e-9 * max(1.0, float(np.abs(values).max()))]
    return float(steps.min()) if len(steps) else 0.0


def _rests(
    time: Floats, command: Floats, position: Floats, settle: float, count: float
) -> list[tuple[float, float]]:
    """(command, rest) of each stretch of one command that settled."""
    cuts = [0, *(np.flatnonzero(np.diff(command) != 0.0) + 1).tolist(), len(command)]
    rests = []
    for first, end in pairwise(cuts):
        tail = position[max(first, end - SETTLED) : end]
        long = time[end - 1] - time[first] >= settle
        if long and len(tail) == SETTLED and float(np.ptp(tail)) <= 1.001 * count:
            rests.append((float(command[first]), float(np.median(tail))))
    return rests


def _trend(values: Floats) -> Floats:
    """Sign of the slope of `values` over `SLOPE` samples; 0 where it is near a turn."""
    slope = savgol_filter(values, SLOPE, 1, deriv=1)
    return np.where(np.abs(slope) > TURNING * np.abs(slope).max(), np.sign(slope), 0.0)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sides(position: Floats, half: float) -> Floats:
    out = np.zeros(len(position))
    middle = position[0]
    for k in range(len(position)):
        middle = min(max(middle, position[k] - half), position[k] + half)
        out[k] = (position[k] - middle) / half if half > 0.0 else 0.0
    return out
