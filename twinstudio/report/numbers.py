"""Numbers and units as people read them."""

import math

DASH = "–"
_SHOWN = {
    "rad": ("deg", 180.0 / math.pi),
    "rad/s": ("deg/s", 180.0 / math.pi),
    "m": ("mm", 1e3),
    "m/s": ("mm/s", 1e3),
}


def shown(unit: str) -> tuple[str, float]:
    """The unit in which a quantity of SI `unit` is shown, and the factor to it."""
    return _SHOWN.get(unit, (unit, 1.0))


def number(value: float | None, *, digits: int = 3) -> str:
    """`value` with `digits` significant digits, whole above that; a dash when there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    power = math.floor(math.log10(abs(rounded)))
    if power < -4 or power > 6:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        places = digits - 1 - power
        text = f"{rounded:.{places}f}" if places > 0 else f"{value:.0f}"
    return text.replace("-", "−")
