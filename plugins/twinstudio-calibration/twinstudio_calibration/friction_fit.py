"""Fits the laws of the ladder to one joint, and chooses among them by held-out parts.

Variable projection: least squares for what is linear, Gauss-Newton for the few shape
parameters around it (Golub and Pereyra, SIAM J. Numer. Anal. 1973). Intervals are
from the linearised problem with residuals correlated in time (Newey and West,
Econometrica 1987).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from twinstudio_calibration.friction_law import LADDER, Axis, Floats, Law, Rung, columns
from twinstudio_calibration.linearised import covariance, linear

Mask = NDArray[np.bool_]
Progress = Callable[[float, str], None]
BLOCKS = 6
"""Blocks of time in the cross-validation."""
DECILES = 10
"""Parts of a range of speed, load or temperature; every other pair is held out in turn."""
SURE = 2.0
"""Standard deviations by which a figure must be below zero to be taken for negative."""
LEAST_GAIN = 0.99
"""A richer law must bring the error of held-out time below this share."""
LEAST_RIPPLE = 0.95
"""The same for a ripple, whose order is the best of thousands."""
SLACK = 1.01
"""A richer law may not be worse by more than this in any way of holding out."""
LEAST_WARMING = 2.0
"""A log whose temperature changes less, K, says nothing of it."""
_FINALISTS = 12
_HIGHEST = 0.4
"""Share of the fit's sample rate up to which a ripple may pass."""


def silent(fraction: float, message: str) -> None:
    """Progress that nobody follows."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A law with its numbers: `values` of its columns, and their covariance with the shape.

    cov: float64[names + free], inf on the diagonal where the data tell nothing.
    """

    law: Law
    values: Floats
    cov: Floats
    load: Floats
    error: float

    def value(self, name: str) -> float:
        """Of one column; 0 if the law has none."""
        return float(self.values[self.law.names.index(name)]) if name in self.law.names else 0.0

    def deviation(self, name: str) -> float:
        """Standard deviation of a column's value or of a field of the shape."""
        every = (*self.law.names, *self.law.free())
        k = every.index(name)
        return float(np.sqrt(self.cov[k, k]))


@dataclass(frozen=True, slots=True)
class Step:
    """One rung tried.

    errors: relative errors without and with it, by what was held out. taken: whether it
    is kept; `why` not.
    """

    rung: Rung
    errors: dict[str, tuple[float, float]]
    taken: bool
    why: str


def predict(fitted: Fitted, axis: Axis) -> Floats:
    """Effort by the law, float64[m], through the shared filter."""
    load = motor_load(fitted.law, fitted.values, axis)
    return columns(fitted.law, axis, load) @ fitted.values


def motor_load(law: Law, values: Floats, axis: Axis) -> Floats:
    """Effort of the motor by the law without its load-dependent part, float64[n], unfiltered."""
    known = np.zeros(len(axis.position)) if axis.known is None else axis.known
    simple = law.without("load")
    kept = [law.names.index(name) for name in simple.names]
    return known + columns(simple, replace(axis, stride=1), known) @ values[kept]


def solve(law: Law, axis: Axis, load: Floats | None = None) -> Fitted:
    """The best numbers of `law`, its shape included."""
    load = np.zeros(len(axis.position)) if load is None else load
    target = axis.coarse(axis.effort)
    names, scale = law.free(), _scales(law, axis)
    low, high = np.array([_bounds(name, law, axis) for name in names]).T

    def shaped(x: Floats) -> Law:
        return replace(law, shape=replace(law.shape, **dict(zip(names, x * scale, strict=True))))

    def residual(x: Floats) -> Floats:
        table = columns(shaped(x), axis, load)
        return target - table @ linear(table, target)

    start = np.clip([getattr(law.shape, n) for n in names], low, high) / scale
    found = least_squares(
        residual, start, bounds=(low / scale, high / scale), diff_step=1e-3, max_nfev=12
    )
    best = shaped(found.x)
    table = columns(best, axis, load)
    values = linear(table, target)
    error = float(np.linalg.norm(target - table @ values) / np.linalg.norm(target))
    jacobian = np.hstack([table, -_shape_slopes(best, axis, load, values, scale)])
    cov = covariance(jacobian, target - table @ values)
    return Fitted(best, values, cov, load, error)


def climb(
    axis: Axis, *, rungs: tuple[Rung, ...] = LADDER, progress: Progress = silent
) -> tuple[Fitted, list[Step]]:
    """From Coulomb's law upwards: viscous friction, then the rung that helps held-out data most.

    It ends where no rung is justified. Of those, the last attempt of each is told. At the
    top, rungs are taken off again that the ones after them made needless.
    """
    best = solve(Law(), axis)
    taken: list[Step] = []
    refused: dict[Rung, Step] = {}
    left = list(rungs)
    while left:
        progress(len(taken) / (len(rungs) + 1), left[0])
        first = "viscous" in left and not taken
        tried = [_try(rung, best, axis) for rung in (left[:1] if first else left)]
        found = [one for one in tried if one is not None]
        refused = {step.rung: step for step, _ in found if not step.taken}
        good = [one for one in found if one[0].taken]
        if not good and first:
            left.remove("viscous")
            continue
        if not good:
            break
        step, best = min(good, key=lambda one: one[0].errors["time"][1])
        taken.append(step)
        left.remove(step.rung)
    return prune(best, [*taken, *refused.values()], axis)


def _try(rung: Rung, best: Fitted, axis: Axis) -> tuple[Step, Fitted] | None:
    """The best law with one rung more; None if it cannot be tried here."""
    richer = [solve(law, axis, load) for law, load in _candidates(rung, best, axis)]
    if not richer:
        return None
    tried = min(richer, key=lambda fitted: fitted.error)
    return compare(rung, best, tried, axis), tried


def prune(best: Fitted, steps: list[Step], axis: Axis) -> tuple[Fitted, list[Step]]:
    """The law without rungs whose loss nobody would notice."""
    for rung in best.law.rungs[:-1]:
        poorer = solve(best.law.without(rung), axis, best.load)
        step = compare(rung, poorer, best, axis)
        if not step.taken and _physical(poorer):
            steps.append(replace(step, why=f"needless after all: {step.why}"))
            best = poorer
    return best, steps


def compare(rung: Rung, old: Fitted, new: Fitted, axis: Axis) -> Step:
    """Whether `new` tells parts better that were held out, in blocks of time and in ranges."""
    parts = folds(axis)
    old_loss, new_loss = ({k: _held_out(f, axis, v) for k, v in parts.items()} for f in (old, new))
    gain = old_loss["time"] - new_loss["time"]
    spread = float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
    worse = [k for k in parts if new_loss[k].mean() > SLACK**2 * old_loss[k].mean()]
    least = LEAST_RIPPLE if rung == "ripple" else LEAST_GAIN
    why = ""
    if not _physical(new):
        why = "its friction would drive the joint"
    elif gain.mean() <= spread:
        why = "what it gains in held-out time is within its spread"
    elif new_loss["time"].mean() > least**2 * old_loss["time"].mean():
        why = f"it lowers the error of held-out time by less than {1.0 - least:.0%}"
    elif worse:
        why = f"held-out {' and '.join(worse)} is told worse"
    power = float(np.mean(axis.coarse(axis.effort) ** 2))
    relative = {
        k: (float(np.sqrt(old_loss[k].mean() / power)), float(np.sqrt(new_loss[k].mean() / power)))
        for k in parts
    }
    return Step(rung, relative, not why, why)


def folds(axis: Axis) -> dict[str, list[Mask]]:
    """Held-out parts: blocks of time; ranges of speed, load and, if it varies, temperature."""
    _, velocity, _ = axis.moved(0.0)
    speed = np.abs(axis.coarse(velocity))
    count = len(speed)
    block = np.arange(count) * BLOCKS // count
    found = {"time": [block == k for k in range(BLOCKS)], "speed": _ranges(speed)}
    found["load"] = _ranges(np.abs(axis.coarse(axis.effort)))
    if axis.temperature is not None:
        found["temperature"] = _ranges(axis.coarse(axis.temperature))
    return found


def _ranges(values: Floats) -> list[Mask]:
    edges = np.quantile(values, np.linspace(0.0, 1.0, DECILES + 1)[1:-1])
    decile = np.searchsorted(edges, values)
    return [decile % (DECILES // 2) == k for k in range(DECILES // 2)]


def _held_out(fitted: Fitted, axis: Axis, parts: list[Mask]) -> Floats:
    """Mean squared error of each part with the law's numbers from the others; same shape."""
    table = columns(fitted.law, axis, fitted.load)
    target = axis.coarse(axis.effort)
    losses = []
    for part in parts:
        values = linear(table[~part], target[~part])
        losses.append(float(np.mean((target[part] - table[part] @ values) ** 2)))
    return np.array(losses)


def _physical(fitted: Fitted) -> bool:
    """Whether friction brakes: no level and no slope below zero by more than its own error."""
    names = ("coulomb", "viscous", "quadratic", "load")
    known = [name for name in names if name in fitted.law.names]
    if any(fitted.value(name) < -SURE * fitted.deviation(name) for name in known):
        return False
    level = fitted.value("coulomb")
    if level + fitted.value("extra") < -1e-2 * abs(level):
        return False
    if "asymmetric" not in fitted.law.rungs:
        return True
    return abs(fitted.value("viscous_asymmetric")) <= fitted.value("viscous")


def _candidates(rung: Rung, best: Fitted, axis: Axis) -> list[tuple[Law, Floats]]:
    """Laws with `rung` from several starts, and the load that each goes with."""
    law, load = best.law, best.load
    warm = axis.temperature
    if rung == "temperature" and (warm is None or np.ptp(warm) < LEAST_WARMING):
        return []
    if {rung, *law.rungs} >= {"smooth", "presliding"}:
        return []
    if rung == "Stribeck load" and ("Stribeck" not in law.rungs or axis.known is None):
        return []
    if rung == "load":
        load = motor_load(law, best.values, axis)
    return [(law.with_rung(rung, **start), load) for start in _starts(rung, best, axis)]


def _starts(rung: Rung, best: Fitted, axis: Axis) -> list[dict[str, float]]:
    """Fields of the shape from which a rung is fitted; more than one where minima are."""
    _, velocity, _ = axis.moved(0.0)
    fast = float(np.quantile(np.abs(velocity), 0.95))
    reach = float(np.ptp(axis.position))
    if rung == "presliding":
        return [{"travel": reach * share} for share in (1e-4, 1e-3, 1e-2)]
    if rung == "smooth":
        return [{"width": fast * share, "shift": 0.0} for share in (0.02, 0.2)]
    if rung == "Stribeck":
        shares = ((0.05, 1.0), (0.2, 1.0), (0.2, 2.0))
        return [{"stribeck": fast * share, "exponent": bend} for share, bend in shares]
    if rung == "ripple":
        order = ripple_order(best, axis)
        return [{"order": order}] if order > 0.0 else []
    return [{}]


def ripple_order(fitted: Fitted, axis: Axis) -> float:
    """Periods a turn (or a metre) of the wave that explains most beside the law; 0 without one.

    Where the wave would pass faster than the filter lets through, it counts as absent.
    """
    table = columns(fitted.law, axis, fitted.load)
    basis = np.linalg.qr(table / np.linalg.norm(table, axis=0))[0]
    target = axis.coarse(axis.effort)
    residual = target - basis @ (basis.T @ target)
    position, velocity, _ = axis.moved(fitted.law.shape.delay)
    turns, speed = axis.coarse(position) / axis.period, np.abs(axis.coarse(velocity)) / axis.period
    limit = _HIGHEST / (axis.interval * axis.stride)
    travelled = max(float(np.ptp(turns)), 1e-12)
    highest = min(limit / max(float(np.quantile(speed, 0.3)), 1e-9), 800.0 / travelled)
    orders = np.arange(3.0, highest * travelled, 0.2) / travelled
    gains = []
    for order in orders:
        wave = np.exp(2j * np.pi * order * turns) * (order * speed < limit)
        pair = np.stack([wave.real, wave.imag], axis=1)
        pair -= basis @ (basis.T @ pair)
        gains.append(float(residual @ pair @ linear(pair, residual)))
    best = orders[np.argsort(gains)[::-1][:_FINALISTS]]
    return min((float(k) for k in best), key=lambda k: _with_ripple(k, fitted, axis), default=0.0)


def _with_ripple(order: float, fitted: Fitted, axis: Axis) -> float:
    """Squared error of the law with a ripple of `order`, through the shared filter."""
    table = columns(fitted.law.with_rung("ripple", order=order), axis, fitted.load)
    target = axis.coarse(axis.effort)
    residual = target - table @ linear(table, target)
    return float(residual @ residual)


def _shape_slopes(law: Law, axis: Axis, load: Floats, values: Floats, scale: Floats) -> Floats:
    """Derivatives of the residual by the free fields of the shape, float64[m, free]."""
    slopes = []
    for name, unit in zip(law.free(), scale, strict=True):
        here, step = getattr(law.shape, name), 1e-3 * unit
        ends = [
            columns(replace(law, shape=replace(law.shape, **{name: here + way})), axis, load)
            for way in (step, -step)
        ]
        slopes.append((ends[1] - ends[0]) @ values / (2.0 * step))
    return np.stack(slopes, axis=1)


def _scales(law: Law, axis: Axis) -> Floats:
    shape = law.shape
    usual = {
        "delay": axis.interval,
        "travel": shape.travel,
        "width": shape.width,
        "shift": shape.width,
        "stribeck": shape.stribeck,
        "exponent": 1.0,
        "order": 1.0 / max(float(np.ptp(axis.position)) / axis.period, 1e-12),
    }
    return np.array([usual[name] for name in law.free()])


def _bounds(name: str, law: Law, axis: Axis) -> tuple[float, float]:
    shape = law.shape
    if name == "delay":
        return -20.0 * axis.interval, 20.0 * axis.interval
    if name == "exponent":
        return 0.5, 4.0
    if name == "shift":
        return -3.0 * shape.width, 3.0 * shape.width
    here: float = getattr(shape, name)
    if name == "order":
        width = axis.period / float(np.ptp(axis.position))
        return here - width, here + width
    if name == "stribeck":
        # Beyond the fastest speeds it would be viscous friction by another name.
        velocity = axis.moved(0.0)[1]
        top = float(np.quantile(np.abs(velocity), 0.99))
        return min(here, top) / 30.0, top
    return here / 30.0, here * 30.0
