"""When a value axis moves: seldom, and by enough."""

import math
from dataclasses import dataclass

_MARGIN = 0.2
_SHRINK_BELOW = 0.45
_LEAST_SHARE = 2e-3
# A line along the very end of an axis can hardly be seen.
_EDGE = 0.04


def round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `least`."""
    if not (math.isfinite(least) and least > 0):
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return float(next(k * power for k in (1, 2, 2.5, 5, 10) if k * power >= least * (1 - 1e-9)))


@dataclass(slots=True)
class Scale:
    """A value range that grows at once and shrinks late, so axes hold still.

    symmetric: zero stays in the middle, and the range ends at round numbers.
    smallest: least height of the range; a constant is drawn as a flat line in the
    middle, and not under a magnifier.
    """

    symmetric: bool = False
    smallest: float = 1e-3
    low: float = -1.0
    high: float = 1.0
    fresh: bool = True

    def fit(self, low: float, high: float, *, shrink: bool = True) -> bool:
        """Make room for data from `low` to `high`; True when the range changed.

        shrink: whether it may also become smaller now.
        """
        if not (math.isfinite(low) and math.isfinite(high)):
            return False
        if self.symmetric:
            high = max(abs(low), abs(high))
            low = -high
        used = (high - low) / (self.high - self.low)
        edge = _EDGE * (high - low)
        inside = self.low + edge <= low and high <= self.high - edge
        least = max(self.smallest, _LEAST_SHARE * max(abs(low), abs(high)))
        floor = (self.high - self.low) <= least * 1.5
        if inside and not self.fresh and (used > _SHRINK_BELOW or floor or not shrink):
            return False
        return self._move(low, high)

    def _move(self, low: float, high: float) -> bool:
        least = max(self.smallest, _LEAST_SHARE * max(abs(low), abs(high)))
        height = max((high - low) * (1 + 2 * _MARGIN), least)
        middle = (low + high) / 2
        if self.symmetric:
            height = 2 * round_step(max(high, self.smallest / 2))
        wanted = (middle - height / 2, middle + height / 2)
        changed = self.fresh or wanted != (self.low, self.high)
        self.low, self.high = wanted
        self.fresh = False
        return changed
