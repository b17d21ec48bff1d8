"""Numbers that cannot be a reading, whatever the sensor.

A row with such a number is garbage as a whole (a log that lost its
synchronisation, memory that was never written) and is left out and counted.
The bounds are far outside of what any robot cell does; a format that knows its
robot passes tighter ones.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Values
from twinstudio.model.quantity import unit
from twinstudio.model.signals import Layout

ABSURD = "absurd value"
DEFAULT = 1e15

# Largest magnitude, in SI, of each kind of quantity.
BOUNDS: dict[str, float] = {
    "angle": 1e5,
    "length": 1e5,
    "angular speed": 1e5,
    "speed": 1e5,
    "acceleration": 1e6,
    "angular acceleration": 1e7,
    "torque": 1e7,
    "force": 1e8,
    "current": 1e5,
    "voltage": 1e6,
    "temperature": 1e4,
}


def limits(layout: Layout, tighter: Mapping[str, float] | None = None) -> Values:
    """Largest magnitude of each column; `tighter` by signal name, float64[width]."""
    tighter = tighter or {}
    return np.array(
        [
            tighter.get(signal.name, BOUNDS.get(unit(name).kind, DEFAULT))
            for signal in layout.signals
            for name in signal.units
        ]
    )


def sensible(values: Values, limit: Values) -> NDArray[np.bool_]:
    """Which rows hold only NaN and numbers within +-`limit`; bool[n]."""
    with np.errstate(invalid="ignore"):
        possible = (np.abs(values) <= limit) | np.isnan(values)
    return np.asarray(possible.all(axis=1), dtype=bool)
