"""How often and how finely to draw, from what drawing has cost so far."""

from typing import NamedTuple


class Level(NamedTuple):
    """A quality to draw at.

    scale: resolution relative to the screen's. samples: per pixel. cost: time
    relative to one sample at full resolution, as measured with software GL.
    """

    scale: float
    samples: int
    cost: float


LEVELS = (Level(1.0, 4, 2.2), Level(1.0, 1, 1.0), Level(0.75, 1, 0.75), Level(0.5, 1, 0.55))


class Pace:
    """Keeps drawing below a share of the time, and coarsens the picture if that is too slow.

    duty: largest share of real time spent drawing. fastest: frames per second
    that are never exceeded. slowest: frames per second below which the picture
    is drawn coarser instead.
    """

    def __init__(
        self,
        *,
        software: bool = True,
        duty: float = 0.6,
        fastest: float = 60.0,
        slowest: float = 15.0,
    ) -> None:
        self._duty = duty
        self._period = 1.0 / fastest
        self._tolerable = duty / slowest
        self._level = 1 if software else 0
        self._cost = 0.0
        self._since = 0

    @property
    def level(self) -> Level:
        """Quality to draw at while things move."""
        return LEVELS[self._level]

    @property
    def cost(self) -> float:
        """Smoothed time a frame takes [s], 0 before the first."""
        return self._cost

    def drawn(self, seconds: float) -> float:
        """Note that a frame took `seconds`; returns how long to rest before the next [s]."""
        rest = self.rest(seconds)
        self._cost = seconds if self._cost == 0.0 else 0.8 * self._cost + 0.2 * seconds
        self._since += 1
        self._adapt()
        return rest

    def rest(self, seconds: float) -> float:
        """How long to rest after a frame that took `seconds` [s]."""
        return max(self._period - seconds, seconds * (1.0 / self._duty - 1.0))

    def _adapt(self) -> None:
        if self._since < 8:
            return
        if self._cost > self._tolerable and self._level + 1 < len(LEVELS):
            self._move(1)
        elif self._level > 0 and self._since >= 60:
            growth = LEVELS[self._level - 1].cost / LEVELS[self._level].cost
            if self._cost * growth < 0.8 * self._tolerable:
                self._move(-1)

    def _move(self, step: int) -> None:
        self._level += step
        self._cost = 0.0
        self._since = 0
