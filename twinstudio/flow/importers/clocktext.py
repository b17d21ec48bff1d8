"""Times written as text, to int64 nanoseconds without loss.

A Unix time of today in a float64 is coarser than 0.1 us, so decimals are
never taken through a float.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

ISO = "iso8601"
NS_PER = {
    "ns": Decimal(1),
    "us": Decimal(10) ** 3,
    "ms": Decimal(10) ** 6,
    "s": Decimal(10) ** 9,
    "min": Decimal(60) * 10**9,
    "h": Decimal(3600) * 10**9,
}
UNITS = (*NS_PER, ISO)

_LIMIT = Decimal(2) ** 63 - 1
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?", re.ASCII)
_FRACTION = re.compile(r"(.*\d\d:\d\d:\d\d)[.,](\d+)(.*)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ns(text: str, unit: str) -> int | None:
    """`text` in `unit` (one of UNITS) as ns, half to even; None when it is no such time.

    ISO 8601 gives ns since 1970 UTC; without a zone it is taken as UTC.
    """
    return _iso(text.strip()) if unit == ISO else _decimal(text.strip(), NS_PER[unit])


def _decimal(text: str, factor: Decimal) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        value = Decimal(text) * factor
    except InvalidOperation:
        return None
    # Compared before int(): int(Decimal("1e9999")) would build ten thousand digits.
    return int(value.to_integral_value()) if -_LIMIT <= value <= _LIMIT else None


def _iso(text: str) -> int | None:
    digits = "0"
    if match := _FRACTION.fullmatch(text):
        text, digits = match.group(1) + match.group(3), match.group(2)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    fraction = Decimal(f"0.{digits}") * 10**9
    total = (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000
    total += int(fraction.to_integral_value())
    return total if -_LIMIT <= total <= _LIMIT else None
