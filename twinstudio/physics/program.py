"""The motion a cell performs: way-points, joined by minimum-jerk moves.

A move follows q0 + (q1 - q0) s(t/T) with s(x) = 10 x^3 - 15 x^4 + 6 x^5, the
minimum-jerk profile of Flash & Hogan, J. Neurosci. 5(7), 1985. Its largest
speed is 15/8 and its largest acceleration 10/sqrt(3), in units of the distance
over T and T^2; from these follows the shortest T that keeps the limits.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import PhysicsError
from twinstudio.model.scene import Scene
from twinstudio.physics.cellfile import MotionLimits, WayPoint, load_cell, per_joint

Floats = NDArray[np.float64]
PEAK_SPEED = 15.0 / 8.0
PEAK_ACCELERATION = 10.0 / math.sqrt(3.0)
SHORTEST = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Setpoints:
    """What is commanded at n instants: float64[n, joints] each, SI."""

    position: Floats
    velocity: Floats
    acceleration: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """m pieces, moves and dwells alike: when, from where, by how much."""

    start: Floats
    duration: Floats
    origin: Floats
    stretch: Floats


class Program:
    """Home, then the way-points over and over; time is program time [s]."""

    def __init__(self, home: Floats, points: tuple[WayPoint, ...], limits: MotionLimits) -> None:
        if not points:
            raise PhysicsError("a motion program needs at least one way-point")
        top = (per_joint(limits.velocity, len(home)), per_joint(limits.acceleration, len(home)))
        first = np.asarray(points[0].to)
        self._approach = _pieces(home, points[:1], top)
        self._cycle = _pieces(first, (*points[1:], points[0]), top)
        self.approach_time = float(self._approach.duration.sum())
        self.cycle_time = float(self._cycle.duration.sum())

    def at(self, time: Floats) -> Setpoints:
        """Set-points at program `time` float64[n], s, not negative."""
        inside = np.mod(time - self.approach_time, self.cycle_time)
        cycle = _evaluate(self._cycle, inside)
        early = time < self.approach_time
        if not early.any():
            return cycle
        approach = _evaluate(self._approach, np.minimum(time, self.approach_time))
        mask = early[:, None]
        return Setpoints(
            np.where(mask, approach.position, cycle.position),
            np.where(mask, approach.velocity, cycle.velocity),
            np.where(mask, approach.acceleration, cycle.acceleration),
        )


class Player:
    """Plays a program at a speed factor that changes smoothly, down to standstill.

    ramp: time [s] in which the factor goes from 0 to 1.
    """

    def __init__(self, program: Program, *, step: float, ramp: float = 0.5) -> None:
        self.program = program
        self.running = True
        self.factor = 1.0
        self.time = 0.0
        self.rate = 0.0
        self._step = step
        self._ramp = ramp

    @property
    def target(self) -> float:
        """The factor that `rate` is heading for."""
        return self.factor if self.running else 0.0

    def advance(self, count: int) -> Setpoints:
        """The next `count` set-points, one a step; path speed is trapezoidal."""
        change = self._step / self._ramp
        distance = self.target - self.rate
        ramp = np.minimum(np.arange(count + 1) * change, abs(distance))
        rate = self.rate + math.copysign(1.0, distance) * ramp
        moved = np.cumsum(0.5 * (rate[1:] + rate[:-1])) * self._step
        time = self.time + np.concatenate(([0.0], moved))
        points = self.program.at(time[:-1])
        slope = np.diff(rate) / self._step
        self.time, self.rate = float(time[-1]), float(rate[-1])
        now = rate[:-1, None]
        return Setpoints(
            points.position,
            points.velocity * now,
            points.acceleration * now**2 + points.velocity * slope[:, None],
        )


def programmed(scene: Scene, seconds: float, *, rate: float) -> Floats:
    """What the emulated cell of `scene` is told at first, float64[n, joints], `rate` a second.

    Raises SceneError if the scene names no cell file, or it is malformed.
    """
    truth = load_cell(scene.path(scene.cell.emulated), scene.robot.joints)
    program = Program(np.asarray(scene.robot.home), truth.program, truth.motion)
    return Player(program, step=1.0 / rate).advance(round(seconds * rate) + 1).position


def _pieces(start: Floats, points: tuple[WayPoint, ...], top: tuple[Floats, Floats]) -> _Pieces:
    """Each way-point as a move and a dwell; a dwell below SHORTEST [s] is none."""
    here, rows = start, []
    for point in points:
        there = np.asarray(point.to, dtype=np.float64)
        rows.append((_duration(there - here, point.speed, top), here, there - here))
        rows.append((point.dwell, there, np.zeros_like(there)))
        here = there
    rows = [row for row in rows if row[0] >= SHORTEST] or [(SHORTEST, here, np.zeros_like(here))]
    duration = np.array([row[0] for row in rows])
    return _Pieces(
        np.concatenate(([0.0], np.cumsum(duration)[:-1])),
        duration,
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
    )


def _duration(distance: Floats, speed: float, top: tuple[Floats, Floats]) -> float:
    """Shortest time [s] of a move that keeps `speed` times the velocity limit."""
    way = np.abs(distance)
    if not way.any():
        return 0.0
    by_speed = PEAK_SPEED * way / (top[0] * speed)
    by_acceleration = np.sqrt(PEAK_ACCELERATION * way / top[1])
    return float(max(by_speed.max(), by_acceleration.max(), SHORTEST))


def _evaluate(pieces: _Pieces, time: Floats) -> Setpoints:
    k = np.searchsorted(pieces.start, time, side="right") - 1
    total = pieces.duration[k][:, None]
    x = np.clip((time - pieces.start[k])[:, None] / total, 0.0, 1.0)
    stretch = pieces.stretch[k]
    return Setpoints(
        pieces.origin[k] + stretch * x**3 * (10.0 + x * (6.0 * x - 15.0)),
        stretch * 30.0 * x**2 * (1.0 - x) ** 2 / total,
        stretch * 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / total**2,
    )
