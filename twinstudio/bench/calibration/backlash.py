"""Backlash, hysteresis, compliance: known truths over many seeds, and real joints."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from twinstudio.bench.row import Row
from twinstudio.flow.importers.anylog import read_any
from twinstudio.model.block import Block
from twinstudio.model.scene import data_folder
from twinstudio.model.signals import Layout, Signal, joint_signals

Floats = NDArray[np.float64]
SEEDS = 50
RESONANCE_SEEDS, SHAKE_RATE = 5, 1000.0
RATE, SECONDS, STEP = 250.0, 20.0, 1e-4
STIFFNESS, DAMPING, INERTIA, COULOMB = 2e5, 200.0, 1.0, 2.0
"""Of the plant's gear, link and its friction: N m/rad, N m s/rad, kg m^2, N m."""
MOTOR_COUNT, LINK_COUNT = 1e-6, 1e-5
"""Of the encoders, rad; their noise is twice that."""
LATE = 1e-4
"""The motor's reading is this much younger than the link's in the plant's log, s."""


TOTAL_INERTIA, MOTOR_SHARE, GEAR_SHARE = 0.03291699877416, 0.17910964111956, 0.61206166914114
GEAR_STIFFNESS, GEAR_DAMPING = 20.59269827430799, 0.0624181404729
ARM_STIFFNESS, ARM_DAMPING = 20.23072060978318, 0.00987527995798
VISCOUS, COULOMB_MOTOR, STRIBECK = 0.00986346744839, 0.74302635727901, 3.98628540790595
"""The flexible axis of Wernholt & Gunnarsson 2006, seen at the motor, SI."""
RESONANCES, ANTIRESONANCES = (9.028, 11.499), (4.228, 10.390)
"""Hz, computed from those constants."""
CRUISE = 40.0
"""rad/s of its motor while it is shaken, so that friction does not flip."""
LEVER_STIFFNESS, LEVER_PLAY, LEVER_HYSTERESIS = 30e3, 1.2e-3, 0.3e-3
SERVO, SERVO_HYSTERESIS, SERVO_COUNT = "motor5", 0.62, 360.0 / 4096.0
"""The published single servo: deg."""


def rows() -> list[Row]:
    """Known truths over seeds, the KR300's second encoders, the servo's rests."""
    return [*play_truth(SEEDS), *lever_truth(SEEDS), *resonance_truth(), *kuka(), *servo()]


def play_truth(seeds: int) -> list[Row]:
    """Play from a second encoder: worst error over seeds, and how often intervals hold it."""
    play: Any = import_module("twinstudio_calibration.play")
    errors, held = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = 10.0 ** rng.uniform(-3.5, -2.0)
        q, w, effort, link = np.array(geared_axis(rng, truth).values).T
        found = play.secondary(q, link, w, effort).width
        errors.append(abs(found.value / truth - 1.0))
        held.append(found.low <= truth <= found.high)
    return _truth_rows("secondary", "play of 0.3 to 10 mrad", errors, held)


def lever_truth(seeds: int) -> list[Row]:
    """Stiffness and play from a pulled lever, the same way."""
    play: Any = import_module("twinstudio_calibration.play")
    found = []
    truths = {"stiffness": LEVER_STIFFNESS, "play": LEVER_PLAY, "hysteresis": LEVER_HYSTERESIS}
    runs = []
    for seed in range(seeds):
        q, pull = np.array(pulled_lever(np.random.default_rng(seed)).values).T
        runs.append(play.lever(q, pull))
    for name, truth in truths.items():
        told = [getattr(run, name) for run in runs]
        errors = [abs(one.value / truth - 1.0) for one in told]
        held = [one.low <= truth <= one.high for one in told]
        found += _truth_rows(f"lever.{name}", name, errors, held)
    return found


def resonance_truth() -> list[Row]:
    """Resonances and antiresonances of the three-mass axis, worst of a few seeds."""
    flexible: Any = import_module("twinstudio_calibration.flexible")
    errors = []
    for seed in range(RESONANCE_SEEDS):
        _, speed, torque = np.array(shaken_axis(np.random.default_rng(seed)).values).T
        chain = flexible.fit_chain(torque, speed, 1.0 / SHAKE_RATE, 3).chain
        got = np.concatenate([chain.resonances, chain.antiresonances])
        errors.append(np.abs(got / np.array([*RESONANCES, *ANTIRESONANCES]) - 1.0))
    worst = 100.0 * np.max(errors, axis=0)
    names = ("resonance.1", "resonance.2", "antiresonance.1", "antiresonance.2")
    unit = f"% off, worst of {RESONANCE_SEEDS} seeds"
    return [
        Row(f"flexible.truth.{name}", float(error), unit, "<= 1", bool(error <= 1.0))
        for name, error in zip(names, worst, strict=True)
    ]


def kuka() -> list[Row]:
    """Motor minus second encoder of axes 1 to 3, and what is behind it."""
    play: Any = import_module("twinstudio_calibration.play")
    found = []
    for run in ("FF_A", "FF_B"):
        source = data_folder() / "kuka_kr300" / run
        if not source.is_dir():
            return []
        block = _cell(source, "kuka_kr300")
        for axis in range(3):
            q, w, effort = (
                np.array(block.of(f"joint.{kind}")[:, axis])
                for kind in ("position", "velocity", "effort")
            )
            told = play.secondary(q, np.array(block.of("secondary.position")[:, axis]), w, effort)
            found += _kuka_rows(f"backlash.{run}.a{axis + 1}", told)
    return found


def _kuka_rows(name: str, told: Any) -> list[Row]:
    apparent, left = np.degrees(told.apparent.value), np.degrees(told.width.value)
    unit = f"deg forward minus backward; {np.degrees(told.spread):.3f} peak to peak"
    passed = bool(0.03 <= apparent <= 0.07)
    why = f"deg of it left after {told.offset.value * 1e3:.2f} ms between encoders, and wind-up"
    return [
        Row(f"{name}.hysteresis", float(apparent), unit, "0.03 to 0.07", passed),
        Row(f"{name}.play", float(left), why, "shown, no goal", passed=True),
    ]


def servo() -> list[Row]:
    """Hold hysteresis of the single servo, against the published figure."""
    play: Any = import_module("twinstudio_calibration.play")
    source = data_folder() / "servo_backlash" / "motor_telemetry_single.csv"
    if not source.is_file():
        return []
    block = _cell(source, "servo_backlash")
    k = block.layout.signal("joint.position").labels.index(SERVO)
    position, command = (np.array(block.of(f"{s}.position")[:, k]) for s in ("joint", "command"))
    time = (block.stamps - block.stamps[0]) * 1e-9
    held = play.hold(time, command, position, 0.5, 0.01)
    width = float(np.degrees(held.width.value))
    unit = f"deg +- {SERVO_COUNT:.3f}, hold hysteresis with the controller's dead band"
    passed = abs(width - SERVO_HYSTERESIS) <= SERVO_COUNT
    return [Row("backlash.servo.hold", width, unit, "0.62 within 0.088 (one count)", passed)]


def _truth_rows(name: str, what: str, errors: list[float], held: list[bool]) -> list[Row]:
    worst, cover, seeds = 100.0 * max(errors), 100.0 * float(np.mean(held)), len(errors)
    unit = f"% off {what}, worst of {seeds} seeds"
    share = f"% of {seeds} intervals hold the truth"
    passed = 90.0 <= cover <= 99.0
    return [
        Row(f"backlash.truth.{name}", worst, unit, "<= 10", worst <= 10.0),
        Row(f"backlash.truth.{name}.cover", cover, share, "90 to 99", passed),
    ]


def _cell(source: Path, kind: str) -> Block:
    block: Block = read_any(source, format=kind, mapping=None).recording.sources["cell"].block
    return block


def pulled_lever(rng: np.random.Generator) -> Block:
    """A log of a gear whose motor is held while its link is pulled to and fro, ten times."""
    time = np.arange(3000) * 0.02
    pull = 60.0 * np.sin(2.0 * np.pi * time / 6.0) * rng.uniform(0.8, 1.2)
    slack = 0.5 * LEVER_PLAY * np.sign(pull)
    drag = 0.5 * LEVER_HYSTERESIS * np.sign(np.gradient(pull, time))
    deflection = pull / LEVER_STIFFNESS + slack + drag + rng.normal(0.0, 5e-5, len(time))
    kinds = ("joint.position", "joint.effort")
    layout = Layout(joint_signals(["axis"], kinds=kinds))
    read = [deflection, pull + rng.normal(0.0, 0.2, len(time))]
    return Block(layout, np.rint(time * 1e9).astype(np.int64), np.column_stack(read))


def shaken_axis(rng: np.random.Generator) -> Block:
    """A log of the flexible axis, shaken by forty sines up to 20 Hz while it turns one way."""
    time = np.arange(round(SECONDS * SHAKE_RATE)) / SHAKE_RATE
    angle = 2.0 * np.pi * 0.5 * np.arange(1, 41) * time[:, None]
    shake = np.sin(angle + rng.uniform(0.0, 2.0 * np.pi, 40)).sum(axis=1)
    torque = 0.08 * shake + COULOMB_MOTOR + VISCOUS * CRUISE
    angle_, speed = _shaken(torque, 1.0 / SHAKE_RATE)
    kinds = ("joint.position", "joint.velocity", "joint.effort")
    layout = Layout(joint_signals(["motor"], kinds=kinds))
    read = [angle_, speed + rng.normal(0.0, 0.05, len(time)), torque]
    return Block(layout, np.rint(time * 1e9).astype(np.int64), np.column_stack(read))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _shaken(torque: Floats, step: float) -> tuple[Floats, Floats]:
    """Angle and speed of the motor; forty small steps a sample."""
    small, place = step / 40.0, np.zeros(3)
    pace = np.full(3, CRUISE)
    inertia = TOTAL_INERTIA * np.array([MOTOR_SHARE, GEAR_SHARE, 1.0 - MOTOR_SHARE - GEAR_SHARE])
    angle, speed = np.empty(len(torque)), np.empty(len(torque))
    for k in range(len(torque)):
        angle[k], speed[k] = place[0], pace[0]
        for _ in range(40):
            w = pace[0]
            level = COULOMB_MOTOR + STRIBECK / np.cosh(3.24015074090438 * w)
            friction = VISCOUS * w + level * np.tanh(0.79943497008153 * w)
            gear = GEAR_STIFFNESS * (place[0] - place[1]) + GEAR_DAMPING * (pace[0] - pace[1])
            arm = ARM_STIFFNESS * (place[1] - place[2]) + ARM_DAMPING * (pace[1] - pace[2])
            pace[0] += small * (torque[k] - friction - gear) / inertia[0]
            pace[1] += small * (gear - arm) / inertia[1]
            pace[2] += small * arm / inertia[2]
            place += small * pace
    return angle, speed


def geared_axis(rng: np.random.Generator, play: float) -> Block:
    """A log of one axis whose motor follows three sines and whose link hangs behind a play."""
    time = np.arange(round(SECONDS / STEP)) * STEP
    omega = 2.0 * np.pi * np.array([0.1, 0.23, 0.37]) * rng.uniform(0.8, 1.2, 3)
    size = rng.uniform(0.2, 0.5, 3) * np.array([1.0, 0.5, 0.3])
    angle = time[:, None] * omega + rng.uniform(0.0, 2.0 * np.pi, 3)
    motor, speed = np.sin(angle) @ size, np.cos(angle) @ (size * omega)
    link, torque = _geared(motor, speed, play)
    every = slice(0, None, round(1.0 / (RATE * STEP)))
    read = [
        _read(rng, motor[every], MOTOR_COUNT),
        speed[every] + rng.normal(0.0, 2e-3, len(motor[every])),
        torque[every] + rng.normal(0.0, 0.3, len(motor[every])),
        _read(rng, link[every], LINK_COUNT),
    ]
    kinds = ("joint.position", "joint.velocity", "joint.effort")
    behind = Signal(name="secondary.position", labels=("axis",), units=("rad",))
    layout = Layout((*joint_signals(["axis"], kinds=kinds), behind))
    stamps = np.rint(time[every] * 1e9).astype(np.int64)
    return Block(layout, stamps, np.column_stack(read))


def _read(rng: np.random.Generator, values: Floats, count: float) -> Floats:
    noisy = values + rng.normal(0.0, 2.0 * count, len(values))
    read: Floats = np.round(noisy / count) * count
    return read


@njit(cache=True)  # type: ignore[untyped-decorator]
def _geared(motor: Floats, speed: Floats, play: float) -> tuple[Floats, Floats]:
    """Link and torque through the gear: a spring and damper that push only in contact."""
    link, torque = np.empty(len(motor)), np.empty(len(motor))
    place, pace = motor[0], speed[0]
    for k in range(len(motor)):
        gap, half = motor[k] - place, 0.5 * play
        push = 0.0
        if gap > half:
            push = max(STIFFNESS * (gap - half) + DAMPING * (speed[k] - pace), 0.0)
        elif gap < -half:
            push = min(STIFFNESS * (gap + half) + DAMPING * (speed[k] - pace), 0.0)
        link[k], torque[k] = place, push
        pace += STEP * (push - COULOMB * np.tanh(pace / 1e-3)) / INERTIA
        place += STEP * pace
    return link, torque
