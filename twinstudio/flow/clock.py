"""How a source's clock runs against ours, from four-stamp pings, with a sure bound.

A ping leaves here at t0 and is back at t3 (local clock); the source had it at t1
and let go of it at t2 (its clock). Clocks only go forward, so whatever the delays,
the offset o(t) = source - local obeys o(t0) <= t1 - t0 and o(t3) >= t2 - t3. Every
straight line that obeys all pings of the window is possible; the model is the middle
of that band and its bound is half the band's width. (Cristian 1989 for one ping;
Moon, Skelly and Towsley 1999 for the convex hulls.)
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Stamps

MAX_SKEW = 300e-6
"""Two quartz clocks differ by less than this, s/s."""
WANDER = 2e-8
"""How much the rate of a quartz clock changes within a window, s/s."""
_SECOND = 1_000_000_000
_LIMIT = 1 << 62

Point = tuple[float, float]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClockModel:
    """A source's clock as seen from here: a straight line and how sure it is.

    reference: local time the figures are for [ns].
    shift: source minus local clock at `reference` [ns].
    skew: how much faster the source's clock runs [s/s].
    margin: bound on the error of `shift` [s]. skew_margin: of `skew` [s/s].
    """

    reference: int
    shift: int
    skew: float = 0.0
    margin: float = 0.0
    skew_margin: float = 0.0

    @property
    def offset(self) -> float:
        """Source minus local clock at `reference` [s]."""
        return self.shift / _SECOND

    @property
    def bound(self) -> float:
        """Bound on the error of a mapped stamp within 1 s of `reference` [s]."""
        return self.margin + self.skew_margin

    def to_local(self, stamps: Stamps) -> Stamps:
        """Source stamps int64[n] [ns] as local ones, exact to 1 ns of the model.

        Whole nanoseconds are added as integers; only the small correction for
        skew goes through floating point.
        """
        elapsed = np.asarray(stamps, dtype=np.int64) - np.int64(self.reference + self.shift)
        correction = np.rint(elapsed * (self.skew / (1.0 + self.skew))).astype(np.int64)
        return np.asarray(elapsed - correction + np.int64(self.reference), dtype=np.int64)

    def to_source(self, stamps: Stamps) -> Stamps:
        """Local stamps int64[n] [ns] as the source's; the inverse of `to_local`."""
        elapsed = np.asarray(stamps, dtype=np.int64) - np.int64(self.reference)
        correction = np.rint(elapsed * self.skew).astype(np.int64)
        return np.asarray(
            elapsed + correction + np.int64(self.reference + self.shift), dtype=np.int64
        )

    def uncertainty(self, stamps: Stamps) -> Floats:
        """Bound on the error of `to_local` for each source stamp, float64[n] [s]."""
        away = np.abs(self.to_local(stamps) - np.int64(self.reference)) / _SECOND
        sure = (self.margin + self.skew_margin * away) / (1.0 - MAX_SKEW)
        return np.asarray(sure, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Ping:
    """upper: offset bound at local time t0; lower: at t3; all ns."""

    sent: int
    returned: int
    upper: int
    lower: int

    @property
    def round_trip(self) -> int:
        return self.upper - self.lower


class ClockEstimator:
    """Collects pings of one source and fits its clock; not thread-safe.

    window: how far back pings count [s]. Older than `bin` seconds, only the ping
    with the shortest round trip of each bin is kept: forgetting a ping can widen
    the band, never make it wrong. `steps` counts how often the source's clock was
    set, seen by pings that no straight line obeys; the estimate then starts anew.
    """

    def __init__(self, *, window: float = 600.0, bin: float = 2.0) -> None:  # noqa: A002
        self._window = round(window * _SECOND)
        self._bin = round(bin * _SECOND)
        self._old: deque[_Ping] = deque()
        self._recent: list[_Ping] = []
        self._model: ClockModel | None = None
        self.steps = 0
        self.refused = 0

    def add(self, sent: int, received: int, replied: int, returned: int) -> bool:
        """Take in a ping [ns]: t0, t3 on the local clock, t1, t2 on the source's.

        False, and counted in `refused`, for stamps that cannot be: out of order,
        beyond 62 bits, or held by the source longer than they were away.
        """
        stamps = (sent, received, replied, returned)
        ping = _Ping(sent, returned, received - sent, replied - returned)
        if any(abs(stamp) > _LIMIT for stamp in stamps) or returned < sent or replied < received:
            self.refused += 1
            return False
        if self._recent and returned < self._recent[-1].returned:
            self.refused += 1
            return False
        if self._hopeless(ping):
            self.refused += 1
            return False
        self._keep(ping)
        self._model = self._fit()
        if self._model is None:
            self._restart(ping)
        return True

    def model(self) -> ClockModel | None:
        """The clock as known now, or None before the first ping."""
        return self._model

    def _hopeless(self, ping: _Ping) -> bool:
        """A source that held the ping longer than it was away, beyond any skew."""
        return -ping.round_trip > 2 * MAX_SKEW * (ping.returned - ping.sent) + 2

    def _restart(self, ping: _Ping) -> None:
        self.steps += 1
        self._old.clear()
        self._recent = [ping]
        self._model = self._fit()

    def _keep(self, ping: _Ping) -> None:
        if self._recent and ping.returned - self._recent[0].returned > self._bin:
            self._old.append(min(self._recent, key=lambda each: each.round_trip))
            self._recent = []
        self._recent.append(ping)
        while self._old and self._old[0].sent < ping.returned - self._window:
            self._old.popleft()

    def _fit(self) -> ClockModel | None:
        pings = [*self._old, *self._recent]
        reference = pings[-1].returned
        base = pings[-1].lower
        upper = [_point(p.sent - reference, p.upper - base) for p in pings]
        lower = [_point(p.returned - reference, p.lower - base, -1.0) for p in pings]
        band = _band(upper, lower)
        if band is None:
            return None
        low, high, least, most = band
        middle = 0.5 * (low + high)
        # 1 ns for the rounding of the shift and of a mapped stamp.
        margin = 0.5 * (high - low) + 1.0
        return ClockModel(
            reference=reference,
            shift=base + round(middle),
            skew=0.5 * (least + most),
            margin=margin / _SECOND,
            skew_margin=0.5 * (most - least),
        )


def _point(elapsed: int, offset: int, side: float = 1.0) -> Point:
    """A bound at `elapsed` <= 0 ns, widened by what the clock may have wandered since.

    And by the 1 ns in which it counts.
    """
    return float(elapsed), offset + side * (1.0 - WANDER * elapsed)


def _band(upper: list[Point], lower: list[Point]) -> tuple[float, float, float, float] | None:
    """Range of a and of b of all lines a + b x under `upper` and over `lower`.

    (low, high, least, most) of a [ns] and b [s/s], or None if there is no such line.
    For a slope b, a lies between floor(b) = max(y - b x) over `lower` and ceiling(b)
    = min(y - b x) over `upper`; both are straight between slopes of hull edges, so
    the extremes lie at those slopes or where floor and ceiling meet.
    """
    top = _hull(upper, 1.0)
    bottom = _hull(lower, -1.0)
    slopes = np.unique(
        np.clip([-MAX_SKEW, MAX_SKEW, *_slopes(top), *_slopes(bottom)], -MAX_SKEW, MAX_SKEW)
    )
    slopes = np.unique(np.concatenate([slopes, _crossings(top, bottom, slopes)]))
    ceiling, floor = _limits(top, bottom, slopes)
    # Rounding of the crossings themselves: a thousandth of a nanosecond.
    possible = ceiling - floor >= -1e-3
    if not possible.any():
        return None
    slopes = slopes[possible]
    low, high = float(floor[possible].min()), float(ceiling[possible].max())
    return low, high, float(slopes.min()), float(slopes.max())


def _limits(top: Sequence[Point], bottom: Sequence[Point], slopes: Floats) -> tuple[Floats, Floats]:
    """Highest and lowest a for each of `slopes`."""
    above, below = np.array(top), np.array(bottom)
    ceiling = (above[:, 1] - slopes[:, None] * above[:, 0]).min(axis=1)
    floor = (below[:, 1] - slopes[:, None] * below[:, 0]).max(axis=1)
    return ceiling, floor


def _crossings(top: Sequence[Point], bottom: Sequence[Point], slopes: Floats) -> Floats:
    """Slopes between two neighbours of `slopes` where floor and ceiling meet."""
    ceiling, floor = _limits(top, bottom, slopes)
    room = ceiling - floor
    one, other = room[:-1], room[1:]
    cross = (one < 0) != (other < 0)
    share = one[cross] / (one[cross] - other[cross])
    return np.asarray(slopes[:-1][cross] + share * np.diff(slopes)[cross], dtype=np.float64)


def _hull(points: list[Point], side: float) -> list[Point]:
    """Lower (side 1) or upper (side -1) convex hull, by x (Andrew's monotone chain)."""
    hull: list[Point] = []
    for x, y in sorted(points, key=lambda point: (point[0], side * point[1])):
        while len(hull) >= 2:
            (x1, y1), (x2, y2) = hull[-2], hull[-1]
            if side * ((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)) > 0:
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _slopes(hull: list[Point]) -> list[float]:
    pairs = pairwise(hull)
    return [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs if x2 > x1]
