"""The ladder of friction laws of one joint, as columns of a regression.

effort = mass a + offset + sliding friction, `delay` seconds before the motion. The
friction's direction is the sign of the velocity, or with presliding the state of a
spring that gives way (Maxwell slip), or with a smooth law tanh((v + shift) / width).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import signal
from scipy.interpolate import CubicSpline

from twinstudio.mechanisms import friction as laws

Floats = NDArray[np.float64]
Rung = Literal[
    "viscous",
    "asymmetric",
    "Stribeck",
    "presliding",
    "smooth",
    "load",
    "Stribeck load",
    "temperature",
    "quadratic",
    "ripple",
]
LADDER: tuple[Rung, ...] = get_args(Rung)
"""The order in which richer laws are tried on top of Coulomb's."""
_RUN_UP = 0.1
"""A log that starts in motion is taken to have moved like that for so long before, s."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One joint's motion and effort on an even grid; float64[n] each, SI.

    effort: measured, less what is known of the rigid bodies. pull: what gravity adds to
    the acceleration in the inertial term, m/s^2. temperature: degC, or None. known: effort
    of the rigid bodies that was taken off, None for none.
    period: length of one turn of position, 2 pi rad or 1 m. stride: samples in one of
    the fit, which see nothing above the Nyquist frequency of that.
    """

    interval: float
    position: Floats
    effort: Floats
    period: float
    stride: int = 1
    pull: float = 0.0
    temperature: Floats | None = None
    known: Floats | None = None

    def coarse(self, values: Floats) -> Floats:
        """`values` [n, ...] through the filter that all columns share, every stride-th one."""
        if self.stride == 1:
            return values
        result: Floats = signal.decimate(values, self.stride, ftype="iir", n=8, axis=0)
        return result

    def moved(self, delay: float) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration `delay` s later."""
        time = self.interval * np.arange(len(self.position))
        spline = CubicSpline(time, self.position)
        position = np.ascontiguousarray(spline(time + delay))
        velocity = np.gradient(position, self.interval, edge_order=2)
        return position, velocity, np.gradient(velocity, self.interval, edge_order=2)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a law is not linear in.

    delay s; travel rad or m; width, shift, stribeck rad/s or m/s; order: of a ripple.
    """

    delay: float = 0.0
    travel: float = 0.0
    width: float = 0.0
    shift: float = 0.0
    stribeck: float = 0.0
    exponent: float = 1.0
    order: float = 0.0


@dataclass(frozen=True, slots=True)
class Law:
    """Coulomb friction and the `rungs` on top of it; `shape` holds where they bend."""

    rungs: tuple[Rung, ...] = ()
    shape: Shape = Shape()

    def with_rung(self, rung: Rung, **shape: float) -> "Law":
        """The law and one rung more."""
        return Law((*self.rungs, rung), replace(self.shape, **shape))

    def without(self, rung: Rung) -> "Law":
        """The law with one rung less."""
        return Law(tuple(other for other in self.rungs if other != rung), self.shape)

    def free(self) -> tuple[str, ...]:
        """Fields of `shape` that a fit adjusts."""
        fields: Mapping[Rung, tuple[str, ...]] = {
            "presliding": ("travel",),
            "smooth": ("width", "shift"),
            "Stribeck": ("stribeck", "exponent"),
            "ripple": ("order",),
        }
        return ("delay", *(name for rung in self.rungs for name in fields.get(rung, ())))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in order."""
        return ("mass", "offset", "coulomb", *(n for rung in self.rungs for n in _ADDED[rung]))


_ADDED: Mapping[Rung, tuple[str, ...]] = {
    "viscous": ("viscous",),
    "asymmetric": ("viscous_asymmetric",),
    "presliding": (),
    "smooth": (),
    "Stribeck": ("extra",),
    "load": ("load",),
    "Stribeck load": ("extra_load",),
    "temperature": ("temperature",),
    "quadratic": ("quadratic",),
    "ripple": ("ripple_sine", "ripple_cosine"),
}


def columns(law: Law, axis: Axis, load: Floats) -> Floats:
    """The regressor float64[m, names] of `law`, through the shared filter.

    load: float64[n], effort of the motor by the law one rung lower.
    """
    position, velocity, acceleration = axis.moved(law.shape.delay)
    side = direction(law, position, velocity)
    found = [acceleration - axis.pull, np.ones_like(side), side]
    for rung in law.rungs:
        found += _rung_columns(rung, law.shape, axis, (position, velocity, side), load)
    return axis.coarse(np.stack(found, axis=1))


def direction(law: Law, position: Floats, velocity: Floats) -> Floats:
    """-1 to 1: which way, and how far, friction is wound up."""
    if "presliding" in law.rungs:
        before = position[0] - velocity[0] * _RUN_UP
        state: Floats = laws.presliding(np.concatenate([[before], position]), law.shape.travel)
        return state[1:]
    if "smooth" in law.rungs:
        return np.tanh((velocity + law.shape.shift) / law.shape.width)
    return np.sign(velocity)


def _rung_columns(
    rung: Rung, shape: Shape, axis: Axis, motion: tuple[Floats, Floats, Floats], load: Floats
) -> list[Floats]:
    position, velocity, side = motion
    law = laws.Law(stribeck=shape.stribeck, stribeck_exponent=shape.exponent)
    phase = 2.0 * np.pi * shape.order * position / axis.period
    warm = np.zeros(1) if axis.temperature is None else axis.temperature - laws.REFERENCE
    weight = np.zeros(1) if axis.known is None else axis.known
    found: dict[Rung, Callable[[], list[Floats]]] = {
        "viscous": lambda: [velocity],
        "asymmetric": lambda: [np.abs(velocity)],
        "Stribeck": lambda: [side * laws.stribeck_share(velocity, law)],
        "load": lambda: [side * np.abs(load)],
        "Stribeck load": lambda: [side * laws.stribeck_share(velocity, law) * np.abs(weight)],
        "temperature": lambda: [side * warm],
        "quadratic": lambda: [velocity * np.abs(velocity)],
        "ripple": lambda: [np.sin(phase), np.cos(phase)],
    }
    return found[rung]() if rung in found else []
