"""From a log to what heats its joints, and the defects of such a log."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration.thermal_model import Floats, Record

TEMPERATURE, CURRENT, VELOCITY = "joint.temperature", "joint.current", "joint.velocity"
LEAST_SECONDS = 300.0
LEAST_QUANTA = 10
HOTTEST, COLDEST = 150.0, -40.0
KELVIN = 200.0
JUMP = 5.0
"""K from one reading to the next that no joint does."""
SMOOTHING = 30.0
"""s over which a neighbour's temperature is averaged: its quanta are no heat."""


@dataclass(frozen=True, slots=True, eq=False)
class Heating:
    """A log in bins of `step` s. joints: names. start: stamp of the first sample [ns].

    time: float64[n] s. square, speed, temperature: float64[n, joints] in A^2, rad/s, degC;
    temperature is NaN where it was not read.
    """

    joints: tuple[str, ...]
    start: int
    time: Floats
    square: Floats
    speed: Floats
    temperature: Floats

    def record(self, k: int, around: Floats) -> Record:
        """The log of joint k, with the temperature around it."""
        return Record(
            self.time, self.square[:, k], self.speed[:, k], self.temperature[:, k], around
        )


def heating(block: api.Block, step: float) -> Heating:
    """Bins of at least `step` s; what was not read is held from the bin before.

    Samples whose time does not advance are left out. Raises LayoutError without
    temperature or current.
    """
    stamps = block.stamps
    latest = np.maximum.accumulate(np.concatenate([[stamps[0] - 1], stamps[:-1]]))
    rising = stamps > latest
    time = (stamps[rising] - stamps[0]).astype(np.float64) * 1e-9
    edges = _edges(time, step)
    labels = block.layout.signal(TEMPERATURE).labels
    current, temperature = (_of(block, name, labels)[rising] for name in (CURRENT, TEMPERATURE))
    speed = np.zeros_like(current)
    if VELOCITY in block.layout:
        speed = np.abs(_of(block, VELOCITY, labels)[rising])
    return Heating(
        joints=labels,
        start=int(stamps[0]),
        time=time[edges],
        square=_held(_means(current**2, edges)),
        speed=_held(_means(speed, edges)),
        temperature=_means(temperature, edges),
    )


def arounds(heating: Heating, temperature: Floats) -> list[Floats]:
    """What is beside each joint: the mean `temperature` [n, joints] of the joints next to it."""
    joints = temperature.shape[1]
    if joints == 1:
        return [np.full(len(heating.time), np.nan)]
    beside = [[i for i in (k - 1, k + 1) if 0 <= i < joints] for k in range(joints)]
    return [temperature[:, which].mean(axis=1) for which in beside]


def smooth(heating: Heating) -> Floats:
    """Measured temperatures without gaps and quanta, [n, joints]."""
    width = max(1, round(SMOOTHING / float(np.median(np.diff(heating.time)))))
    filled = np.empty_like(heating.temperature)
    for k, values in enumerate(heating.temperature.T):
        read = np.isfinite(values)
        line = np.interp(heating.time, heating.time[read], values[read])
        padded = np.pad(line, (width // 2, width - 1 - width // 2), mode="edge")
        filled[:, k] = np.convolve(padded, np.full(width, 1.0 / width), mode="valid")
    return filled


def defects(block: api.Block) -> list[api.Finding]:
    """What makes the log unfit, one line each."""
    absent = [name for name in (TEMPERATURE, CURRENT) if name not in block.layout]
    if absent:
        text, hint = f"the log has no {' and no '.join(absent)}", "record them, or name the columns"
        return [_fatal(text, hint)]
    seconds = float(np.ptp(block.stamps)) * 1e-9 if len(block) else 0.0
    if seconds < LEAST_SECONDS:
        text = f"the log is too short: {seconds:.0f} s; the case of a joint takes half an hour"
        return [_fatal(text, f"record at least {LEAST_SECONDS:.0f} s, best from a cold start")]
    labels = block.layout.signal(TEMPERATURE).labels
    found = [*_clock(block), *_temperatures(block.of(TEMPERATURE), labels)]
    found += _currents(_of(block, CURRENT, labels), labels)
    if VELOCITY not in block.layout:
        found.append(api.Finding("no joint.velocity: heat of friction is taken as none"))
    return sorted(found, key=lambda finding: not finding.fatal)


def _clock(block: api.Block) -> list[api.Finding]:
    step = np.diff(block.stamps) * 1e-9
    found = []
    if (back := int((step <= 0).sum())) > 0.05 * len(step):
        text = f"the clock stands still or goes back {back} times"
        found.append(_fatal(text, "record with the robot's own stamps"))
    elif back:
        text = f"{back} samples whose time does not advance are left out"
        found.append(api.Finding(text, hint="record with the robot's own stamps"))
    if (pause := float(step.max())) > LEAST_SECONDS:
        text = f"the clock jumps by {pause:.0f} s: what heated meanwhile is unknown"
        found.append(_fatal(text, "cut the log there"))
    return found


def _temperatures(values: Floats, labels: Sequence[str]) -> list[api.Finding]:
    found: list[api.Finding] = []
    for name, column in zip(labels, values.T, strict=True):
        read = column[np.isfinite(column)]
        if len(read) < LEAST_QUANTA:
            found.append(_fatal(f"temperature of {name} has no readings", "check the sensor"))
        elif np.median(read) > KELVIN:
            text = f"temperature of {name} is about {np.median(read):.0f}: in kelvin?"
            found.append(_fatal(text, "give its unit on import"))
        else:
            found += _one_temperature(name, read)
    return found


def _one_temperature(name: str, read: Floats) -> list[api.Finding]:
    steps = np.abs(np.diff(read))
    quantum = float(steps[steps > 0].min()) if (steps > 0).any() else float("inf")
    wrong = (read > HOTTEST) | (read < COLDEST)
    found: list[api.Finding] = []
    if wrong.any() or int((steps > JUMP).sum()):
        count = int(wrong.sum()) + int((steps > JUMP).sum())
        text = f"temperature of {name} has {count} readings or jumps that no joint has"
        found.append(_fatal(text, "cut the garbage out, or import with the right mapping"))
    elif float(np.ptp(read)) < LEAST_QUANTA * quantum:
        text = f"not exciting: temperature of {name} moves by {np.ptp(read):.3g} K only"
        found.append(_fatal(text, "start cold, and work until it is warm"))
    return found


def _currents(values: Floats, labels: Sequence[str]) -> list[api.Finding]:
    found = []
    for name, column in zip(labels, values.T, strict=True):
        read = column[np.isfinite(column)]
        if len(read) < 0.9 * len(column):
            text = f"current of {name} is missing in {len(column) - len(read)} samples"
            found.append(_fatal(text, "record the current of every joint all the time"))
        elif len(read) < len(column):
            missing = len(column) - len(read)
            text = f"current of {name} is missing in {missing} samples: the one before is held"
            found.append(api.Finding(text))
        elif float(np.ptp(read)) == 0.0:
            found.append(_fatal(f"current of {name} never changes", "check its column"))
    return found


def _fatal(text: str, hint: str) -> api.Finding:
    return api.Finding(text, fatal=True, hint=hint)


def _of(block: api.Block, name: str, labels: Sequence[str]) -> Floats:
    """Columns of signal `name` in the order of `labels`, NaN for what it lacks."""
    told = block.layout.signal(name).labels
    values = np.full((len(block), len(labels)), np.nan)
    for k, label in enumerate(labels):
        if label in told:
            values[:, k] = block.of(name)[:, told.index(label)]
    return values


def _edges(time: Floats, step: float) -> NDArray[np.int64]:
    """Indices of the first sample of each bin."""
    if len(time) < 2 or float(np.median(np.diff(time))) >= 0.5 * step:
        return np.arange(len(time))
    _, first = np.unique(np.floor(time / step), return_index=True)
    return np.asarray(first, dtype=np.int64)


def _means(values: Floats, edges: NDArray[np.int64]) -> Floats:
    """Mean of what was read in each bin, NaN where nothing was."""
    read = np.isfinite(values)
    total = np.add.reduceat(np.where(read, values, 0.0), edges, axis=0)
    count = np.add.reduceat(read.astype(np.float64), edges, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.where(count > 0, total / count, np.nan)
    return means


def _held(values: Floats) -> Floats:
    """NaN replaced by the bin before; by zero at the start: no heat is known there."""
    out = values.copy()
    out[0] = np.where(np.isfinite(out[0]), out[0], 0.0)
    for k in range(1, len(out)):
        gap = ~np.isfinite(out[k])
        out[k, gap] = out[k - 1, gap]
    return out
