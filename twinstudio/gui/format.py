"""Numbers as people read them: three significant digits, a unit, a dash for nothing."""

import math

NOTHING = "–"
_SPACE = "\u00a0"  # no-break: a number stays with its unit, and in one piece
_SHOWN = {
    "m": ("mm", 1e3),
    "m/s": ("mm/s", 1e3),
    "degC": ("°C", 1.0),
    "N m": ("N·m", 1.0),
    "1": ("", 1.0),
}
_DEGREES = {"rad": ("°", 180.0 / math.pi), "rad/s": ("°/s", 180.0 / math.pi)}
_SMALL = {"rad": ("mrad", 1e3), "rad/s": ("mrad/s", 1e3)}


def shown(unit: str, *, degrees: bool = False, small: bool = False) -> tuple[str, float]:
    """The unit a view shows for the SI `unit`, and the factor that takes SI there.

    degrees: angles in degrees. small: the quantity is a difference, so angles
    are in mrad unless `degrees` is set.
    """
    if degrees and unit in _DEGREES:
        return _DEGREES[unit]
    if small and unit in _SMALL:
        return _SMALL[unit]
    return _SHOWN.get(unit, (unit, 1.0))


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """`value` with `digits` significant digits; a dash for None, NaN and infinity."""
    if value is None or not math.isfinite(value):
        return NOTHING
    text = _plain(abs(value), digits)
    if value < 0 and text.strip("0."):
        return "−" + text
    return "+" + text if sign and text.strip("0.") else text


def figure(value: float | None, unit: str = "", digits: int = 3, *, sign: bool = False) -> str:
    """`number` followed by its unit; the dash stands alone."""
    text = number(value, digits, sign=sign)
    return text if text == NOTHING or not unit else f"{text}{_SPACE}{unit}"


def milliseconds(seconds: float | None, *, sign: bool = False) -> str:
    """A duration [s] in ms."""
    return figure(None if seconds is None else seconds * 1e3, "ms", sign=sign)


def plus_minus(value: float, bound: float, factor: float, unit: str) -> str:
    """``+1.2 ±0.1 ms``: as many decimals as the bound, times `factor`, is good for."""
    if not math.isfinite(value):
        return NOTHING
    value, bound = value * factor, bound * factor
    if not (math.isfinite(bound) and bound > 0):
        return f"{number(value, sign=True)} ±?{_SPACE}{unit}"
    decimals = min(max(-math.floor(math.log10(bound) + 1e-9), 0), 6)
    edge = math.ceil(bound * 10**decimals - 1e-9) / 10**decimals
    text = f"{value:+,.{decimals}f} ±{edge:,.{decimals}f}{_SPACE}{unit}"
    return text.replace(",", _SPACE).replace("-", "−")


def clock(seconds: float) -> str:
    """A position in a log [s] as ``m:ss.s``, or ``h:mm:ss`` from an hour on."""
    if not math.isfinite(seconds):
        return NOTHING
    tenths = round(abs(seconds) * 10)
    minutes, rest = divmod(tenths, 600)
    sign = "−" if seconds < 0 and tenths else ""
    if minutes >= 60:
        return f"{sign}{minutes // 60}:{minutes % 60:02d}:{rest // 10:02d}"
    return f"{sign}{minutes}:{rest // 10:02d}.{rest % 10}"


def size(count: float) -> str:
    """A number of bytes in kB, MB or GB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return figure(count / factor, unit)
    return figure(count, "B")


def count(value: int) -> str:
    """A count with thin gaps between thousands."""
    return f"{value:,}".replace(",", _SPACE)


def _plain(value: float, digits: int) -> str:
    """Non-negative `value` without an exponent where that stays readable."""
    if value == 0.0:
        return "0"
    if not 1e-4 <= value < 1e7:
        mantissa, exponent = f"{value:.{max(digits - 2, 0)}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(digits - 1 - math.floor(math.log10(rounded)), 0)
    if decimals == 0:
        return f"{value:,.0f}".replace(",", _SPACE)
    return f"{rounded:.{decimals}f}"
