"""The motion of a cell between its samples, and the effort it takes."""

from collections import deque
from dataclasses import dataclass

from twinstudio.physics.inverse import InverseDynamics
from twinstudio.physics.track import Sample

SPAN = 20_000_000
"""ns over which a speed or acceleration of the cell is taken."""
BRIDGED = 200_000_000
"""ns between two samples up to which the motion between them is taken as straight."""
Row = list[float]


@dataclass(frozen=True, slots=True)
class Motion:
    """The joints at `time` [ns]: rad or m, their speed, and the effort, N m or N."""

    time: int
    position: Row
    velocity: Row
    effort: Row


class Motions:
    """Makes a Motion of each sample, given in the order of their time.

    Speed, where the cell tells none, and acceleration are differences over SPAN.
    """

    def __init__(self, inverse: InverseDynamics) -> None:
        self._inverse = inverse
        self._recent: deque[Motion] = deque()

    def of(self, sample: Sample) -> Motion:
        """The motion at a sample with a position."""
        older = self._older(sample.time)
        still = [0.0] * len(sample.position)
        velocity, acceleration = sample.velocity or still, still
        if older is not None:
            span = sample.time - older.time
            velocity = sample.velocity or _slopes(older.position, sample.position, span)
            acceleration = _slopes(older.velocity, velocity, span)
        effort = self._inverse.effort(sample.position, velocity, acceleration)
        motion = Motion(sample.time, sample.position, velocity, effort)
        self._recent.append(motion)
        return motion

    def forget(self) -> None:
        """What comes next has nothing to do with what was before."""
        self._recent.clear()

    def _older(self, time: int) -> Motion | None:
        """A motion some SPAN before `time`, or the oldest that is closer."""
        recent = self._recent
        while len(recent) > 1 and recent[1].time <= time - SPAN:
            recent.popleft()
        if recent and time - recent[0].time > BRIDGED:
            recent.clear()
        return recent[0] if recent else None


def between(before: Motion, after: Motion | None, time: int) -> Motion:
    """The motion at `time` on the straight line from `before` to `after`.

    It is `before` itself when there is no later sample, or one that is far off.
    """
    if after is None or after.time - before.time > BRIDGED:
        return before
    share = (time - before.time) / (after.time - before.time)
    return Motion(
        time,
        _mixed(before.position, after.position, share),
        _mixed(before.velocity, after.velocity, share),
        _mixed(before.effort, after.effort, share),
    )


def _mixed(a: Row, b: Row, share: float) -> Row:
    return [x + share * (y - x) for x, y in zip(a, b, strict=True)]


def _slopes(older: Row, newer: Row, span: int) -> Row:
    seconds = span / 1e9
    return [(b - a) / seconds for a, b in zip(older, newer, strict=True)]
