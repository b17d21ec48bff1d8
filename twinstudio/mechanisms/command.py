"""The way of a command to its drive: delay to a fraction of a step, jitter, slower take-over.

A command is held from its stamp until the next. The drive sees the mean of what it
holds over its step, so a delay between two steps shows as just that.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.compiled import compiled
from twinstudio.model.drive import CommandPath

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GAP = 100_000_000
"""ns; commands further apart are single moves, from which no speed is told."""

LONGEST_DRAW = 20.0
"""Standard deviations above its mean at which a gamma-distributed delay is cut off."""


@compiled
def delayed(time: Floats, values: Floats, delay: float) -> Floats:
    """`values` float64[n] of a log at `time` float64[n], seen `delay` [s] later.

    Straight lines between samples, so any fraction of a sample counts; before the
    first sample that arrives it is the first value.
    """
    return np.interp(time - delay, time, values)


def draw(path: CommandPath, shortest: float, count: int, rng: np.random.Generator) -> Ints:
    """Deviations from the latency of the next `count` commands, int64[count] ns.

    gamma: the delay of the joint with the `shortest` latency [s] is gamma-distributed with
    that mean and the standard deviation `jitter`. spikes: `jitter` later in a share of cases.
    """
    if path.jitter_kind == "gamma" and path.jitter:
        shape = (shortest / path.jitter) ** 2
        delays = rng.gamma(shape, path.jitter**2 / shortest, count)
        late = np.minimum(delays - shortest, LONGEST_DRAW * path.jitter)
    elif path.jitter_kind == "spikes":
        late = path.jitter * (rng.random(count) < path.spike_share)
    else:
        late = np.zeros(count)
    return np.rint(late * 1e9).astype(np.int64)


def line_length(path: CommandPath, longest: float, step: float) -> int:
    """Commands that can be on their way at once, one a step, with some to spare."""
    jitter = path.jitter * (LONGEST_DRAW if path.jitter_kind == "gamma" else 1.0)
    return math.ceil((longest + jitter + path.hold) / step) + 4


@compiled
def send(common: Any, stamps: Ints, values: Floats, late: int, now: int, target: Floats) -> None:
    """Put `target` on its way at `now` [ns] if it is a new command.

    stamps int64[room, 2]: when each was sent and when it arrives, without the latency.
    values float64[room, joints]. What was sent later never arrives earlier.
    """
    room = len(stamps)
    there = now + late
    if common.sent:
        last = (common.sent - 1) % room
        if not _is_new(common, values[last], target, now - stamps[last, 0]):
            return
        there = max(there, stamps[last, 1])
    place = common.sent % room
    stamps[place, 0] = now
    stamps[place, 1] = there
    values[place] = target
    common.sent += 1


@compiled
def _is_new(common: Any, last: Floats, target: Floats, age: int) -> bool:
    """Whether `target` is a command of its own, `age` [ns] after the `last` one.

    What is repeated is held, and no command; but once it is overdue by half of the
    interval of commands, it tells that the motion has ended.
    """
    for j in range(len(target)):
        if target[j] != last[j]:
            common.interval = age if age <= GAP else 0
            return True
    if common.interval and age > common.interval + common.interval // 2:
        common.interval = 0
        return True
    return False


@compiled
def arrival(common: Any, stamp: int, latency: int) -> int:
    """When [ns] a drive takes over what arrives at `stamp` + `latency`: at its next tick."""
    due = stamp + latency
    if common.hold:
        late = (due - common.start) % common.hold
        if late:
            due += common.hold - late
    return due


@compiled
def take_over(
    common: Any, joint: Any, state: Any, stamps: Ints, values: Floats, place: tuple[int, int]
) -> tuple[float, float]:
    """Position and speed that the drive follows, as means over the step.

    place: joint, and the step's start [ns].
    """
    j, now = place
    end, last, room = now + common.step_ns, now, len(stamps)
    position = speed = 0.0
    while state.taken < common.sent:
        k = state.taken % room
        due = arrival(common, stamps[k, 1], joint.latency)
        if due >= end:
            break
        if due > last:
            position += state.reference * (due - last)
            speed += state.slope * (due - last)
            last = due
        _follow(state, values[k, j], stamps[k, 0])
        state.taken += 1
    if last == now:
        return state.reference, state.slope
    rest = end - last
    span = float(common.step_ns)
    position = (position + state.reference * rest) / span
    return position, (speed + state.slope * rest) / span


@compiled
def _follow(state: Any, value: float, sent: int) -> None:
    """Follow a new command; its speed is the slope from the one sent before."""
    interval = sent - state.sent
    state.slope = 0.0
    if 0 < interval <= GAP:
        state.slope = (value - state.reference) / (1e-9 * interval)
    state.reference = value
    state.sent = sent
