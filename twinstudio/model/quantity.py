"""Units and quantities: SI inside, anything sensible in files.

A configuration value is a plain number, then it is SI, or a string such as
``"25 mm"``; `to_si` turns either into SI and refuses a unit of another kind.
"""

import math
import re
from dataclasses import dataclass

from twinstudio.model.errors import QuantityError


@dataclass(frozen=True, slots=True)
class Unit:
    """A named unit: `value_SI = value * factor + offset` of one `kind`."""

    kind: str
    factor: float
    offset: float = 0.0


_DEGREE = math.pi / 180.0

UNITS: dict[str, Unit] = {
    "1": Unit("number", 1.0),
    "%": Unit("number", 0.01),
    "m": Unit("length", 1.0),
    "cm": Unit("length", 1e-2),
    "mm": Unit("length", 1e-3),
    "um": Unit("length", 1e-6),
    "rad": Unit("angle", 1.0),
    "mrad": Unit("angle", 1e-3),
    "deg": Unit("angle", _DEGREE),
    "s": Unit("time", 1.0),
    "ms": Unit("time", 1e-3),
    "us": Unit("time", 1e-6),
    "ns": Unit("time", 1e-9),
    "min": Unit("time", 60.0),
    "h": Unit("time", 3600.0),
    "Hz": Unit("frequency", 1.0),
    "kHz": Unit("frequency", 1e3),
    "kg": Unit("mass", 1.0),
    "g": Unit("mass", 1e-3),
    "N": Unit("force", 1.0),
    "kN": Unit("force", 1e3),
    "N m": Unit("torque", 1.0),
    "mN m": Unit("torque", 1e-3),
    "m/s": Unit("speed", 1.0),
    "mm/s": Unit("speed", 1e-3),
    "rad/s": Unit("angular speed", 1.0),
    "deg/s": Unit("angular speed", _DEGREE),
    "rpm": Unit("angular speed", 2.0 * math.pi / 60.0),
    "m/s^2": Unit("acceleration", 1.0),
    "rad/s^2": Unit("angular acceleration", 1.0),
    "deg/s^2": Unit("angular acceleration", _DEGREE),
    "A": Unit("current", 1.0),
    "mA": Unit("current", 1e-3),
    "V": Unit("voltage", 1.0),
    "W": Unit("power", 1.0),
    "degC": Unit("temperature", 1.0),
    "K": Unit("temperature difference", 1.0),
    "ohm": Unit("resistance", 1.0),
    "N/A": Unit("force constant", 1.0),
    "N m/A": Unit("torque constant", 1.0),
    "N/V": Unit("force per voltage", 1.0),
    "kg m^2": Unit("inertia", 1.0),
    "N m/rad": Unit("rotational stiffness", 1.0),
    "N m s/rad": Unit("rotational damping", 1.0),
    "N/m": Unit("stiffness", 1.0),
    "N s/m": Unit("damping", 1.0),
    "K/W": Unit("thermal resistance", 1.0),
    "J/K": Unit("heat capacity", 1.0),
    "1/K": Unit("temperature coefficient", 1.0),
    "B": Unit("memory", 1.0),
    "MiB": Unit("memory", 2.0**20),
    "GiB": Unit("memory", 2.0**30),
}

_QUANTITY = re.compile(r"^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*?)?\s*$")


def unit(name: str) -> Unit:
    """The unit called `name`; raises QuantityError for one that is not known."""
    try:
        return UNITS[name]
    except KeyError:
        raise QuantityError(
            f"unknown unit '{name}'", hint=f"known units: {', '.join(UNITS)}"
        ) from None


def same_kind(name: str) -> list[str]:
    """All unit names that measure the same kind of thing as `name`."""
    kind = unit(name).kind
    return [other for other, candidate in UNITS.items() if candidate.kind == kind]


def to_si(value: float | str, expected: str) -> float:
    """`value` in the SI unit of `expected`; a bare number is SI already.

    `expected` may name alternatives, ``"rad|m"``, for an axis of either kind.

    Raises QuantityError when the text is no quantity, the unit is of another
    kind than `expected`, or the number is not finite.
    """
    if isinstance(value, str):
        number, name = _split(value, expected)
        measured = unit(name)
        if measured.kind not in {unit(name).kind for name in expected.split("|")}:
            raise QuantityError(
                f"expected {_wanted(expected)}, got '{value}', {_with_article(measured.kind)}"
            )
        number = number * measured.factor + measured.offset
    else:
        number = float(value)
    if not math.isfinite(number):
        raise QuantityError(f"expected a finite number in {expected}, got {value}")
    return number


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _wanted(expected: str) -> str:
    return " or ".join(
        f"{_with_article(unit(name).kind)} ({', '.join(same_kind(name))})"
        for name in expected.split("|")
    )


def from_si(value: float, name: str) -> float:
    """`value`, given in SI, expressed in the unit `name`."""
    target = unit(name)
    return (value - target.offset) / target.factor


def _split(text: str, expected: str) -> tuple[float, str]:
    match = _QUANTITY.match(text)
    if match is None or not match.group(2):
        raise QuantityError(
            f"expected a quantity such as '1.5 {expected}', got '{text}'",
            hint="write a number and a unit, or a bare number in SI",
        )
    return float(match.group(1)), match.group(2)
