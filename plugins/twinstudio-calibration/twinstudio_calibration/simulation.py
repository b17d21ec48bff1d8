"""One joint in closed loop, compiled: command, controller, drive, friction, play.

All laws are those of `twinstudio.mechanisms`: a contact that is solved together with the
joint's inertia (backward Euler), and a command that is delayed by any fraction of a step.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms import contact
from twinstudio.mechanisms.command import delayed
from twinstudio.mechanisms.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LONGEST_LAG = 16
"""Steps by which an effort may act late."""


class Drive(NamedTuple):
    """Parameters of one closed loop, SI at the joint.

    mass: inertia beside the log's own. breakaway, stribeck: level exp(-|w / stribeck|)
    on top of coulomb. travel: of the contact before it slides. stiffness, damping: gains
    of the position controller on position and speed. limit: of its effort. delay: of the
    command, s; lag: of the effort, s. feed: share of the command's speed that is fed forward.
    """

    mass: float
    coulomb: float
    viscous: float
    offset: float
    breakaway: float
    stribeck: float
    travel: float
    stiffness: float
    damping: float
    limit: float
    delay: float
    lag: float
    feed: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What drives the simulation, on an even grid of `step` s; float64[n] each.

    inertia, load: what the rest of the arm adds along the measured motion. starts: first
    sample of each segment, int64[segments].
    """

    step: float
    time: Floats
    command: Floats
    position: Floats
    velocity: Floats
    effort: Floats
    inertia: Floats
    load: Floats
    starts: Ints


def rollout(drive: Drive, record: Record, begin: Floats) -> tuple[Floats, Floats, Floats]:
    """Position and effort float64[n] of every segment, and float64[segments, 2] where it ended.

    begin: float64[segments, 2], position and speed at each start.
    """
    command = delayed(record.time, record.command, drive.delay)
    slope = np.gradient(command, record.step)
    row = np.zeros(1, dtype=np.dtype(contact.CONTACT, align=True)).view(np.recarray)[0]
    row.elements = 1
    return _rollout(
        drive,
        (command, slope, record.effort, record.inertia, record.load),
        record.starts,
        begin,
        record.step,
        row,
    )


@compiled
def _rollout(
    drive: Drive,
    given: tuple[Floats, Floats, Floats, Floats, Floats],
    starts: Ints,
    begin: Floats,
    step: float,
    row: Any,
) -> tuple[Floats, Floats, Floats]:
    command, slope, told, inertia, load = given
    n = len(command)
    position, effort = np.empty(n), np.empty(n)
    ended = np.empty((len(starts), 2))
    whole = int(drive.lag / step)
    part = drive.lag / step - whole
    row.spring = drive.coulomb / drive.travel
    for s in range(len(starts)):
        first = starts[s]
        last = starts[s + 1] if s + 1 < len(starts) else n
        q, v = begin[s, 0], begin[s, 1]
        row.bristle[0] = _wound(v, drive, step)
        for k in range(first, last):
            position[k] = q
            pace = drive.feed * slope[k] - v
            wanted = drive.stiffness * (command[k] - q) + drive.damping * pace
            effort[k] = min(max(wanted, -drive.limit), drive.limit)
            # Efforts of before the segment are the measured ones.
            a, b = k - whole, k - whole - 1
            late = effort[a] if a >= first else told[max(a, 0)]
            later = effort[b] if b >= first else told[max(b, 0)]
            push = (1.0 - part) * late + part * later - drive.offset - load[k]
            share = np.exp(-np.abs(v) / drive.stribeck)
            row.high = max(drive.coulomb + (drive.breakaway - drive.coulomb) * share, 0.0)
            row.low = -row.high
            mass = (drive.mass + inertia[k]) / step
            v = contact.end_speed(contact.MAXWELL, mass + drive.viscous, mass * v + push, step, row)
            contact.stretch(contact.MAXWELL, v * step, row)
            q += v * step
        ended[s, 0], ended[s, 1] = q, v
    return position, effort, ended


@compiled
def _wound(v: float, drive: Drive, step: float) -> float:
    """Effort of the contact of a joint that has moved at `v` for a while."""
    reach = v * 100.0 * step * drive.coulomb / drive.travel
    return min(max(reach, -drive.coulomb), drive.coulomb)
