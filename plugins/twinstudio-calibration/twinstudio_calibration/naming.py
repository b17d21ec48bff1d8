"""The numbers of a joint's law and drive as results: title, unit, interval."""

import math
from dataclasses import dataclass

from twinstudio.plugin import api

UNITS = {
    "mass": ("kg m^2", "kg"),
    "coulomb": ("N m", "N"),
    "viscous": ("N m s/rad", "N s/m"),
    "viscous_asymmetric": ("N m s/rad", "N s/m"),
    "offset": ("N m", "N"),
    "breakaway": ("N m", "N"),
    "extra": ("N m", "N"),
    "ripple_sine": ("N m", "N"),
    "ripple_cosine": ("N m", "N"),
    "stribeck": ("rad/s", "m/s"),
    "width": ("rad/s", "m/s"),
    "shift": ("rad/s", "m/s"),
    "travel": ("rad", "m"),
    "stiffness": ("N m/rad", "N/m"),
    "damping": ("N m s/rad", "N s/m"),
    "limit": ("N m", "N"),
    "delay": ("s", "s"),
    "lag": ("s", "s"),
}
"""Unit of a revolute and of a prismatic joint; of all others 1."""
TITLES = {
    "mass": "inertia beside the model",
    "extra": "breakaway beyond coulomb",
    "viscous_asymmetric": "viscous asymmetry",
    "travel": "presliding travel",
    "width": "width of the smooth sign",
    "shift": "speed at which the smooth sign turns, negative",
    "stribeck": "Stribeck speed",
    "exponent": "Stribeck exponent",
    "order": "ripple order",
    "stiffness": "controller stiffness",
    "damping": "controller damping",
    "limit": "effort limit",
    "lag": "effort delay",
    "feed": "velocity feedforward",
}


@dataclass(frozen=True, slots=True)
class Naming:
    """How a fitter tells of one joint. method: of its intervals; delay: what its delay is."""

    joint: str
    revolute: bool
    method: str
    delay: str

    def scalar(self, name: str, value: float, deviation: float) -> api.Scalar:
        """`value` of parameter `name` with its 95 % interval; infinite without a deviation."""
        told = math.isfinite(deviation)
        half = 1.96 * deviation if told else math.inf
        title = self.delay if name == "delay" else TITLES.get(name, name)
        return api.Scalar(
            name=f"{title} of {self.joint}",
            value=value,
            unit=UNITS.get(name, ("1", "1"))[0 if self.revolute else 1],
            low=value - half,
            high=value + half,
            note=self.method if told else "not identifiable from this log",
        )
