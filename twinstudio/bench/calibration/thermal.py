"""Thermal networks: a known truth over many seeds, and a real arm's warm-up."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.bench.row import Row
from twinstudio.flow.importers.anylog import read_any
from twinstudio.model.block import Block
from twinstudio.model.scene import data_folder
from twinstudio.model.signals import Layout, joint_signals

Floats = NDArray[np.float64]
SEEDS = 50
WINDING_CAPACITY, WINDING_TO_CASE = 16.2924054, 1.07028672
CASE_CAPACITY, CASE_TO_AMBIENT = 512.24906585, 1.940662
COPPER, RESISTANCE_65 = 0.00393, 0.376
"""OpenSourceLeg's thermal model: J/K, K/W, 1/K, ohm at 65 degC."""
TIME_CONSTANTS = (16.89, 1026.3)
"""s, of those constants."""
AMBIENT, STEP, PERIOD, QUANTUM, NOISE = 21.0, 0.1, 1.0, 0.0625, 0.1
"""degC; s of the plant, s of the log; K."""


def rows() -> list[Row]:
    """Time constants over seeds, and the held-out third of a UR3's warm-up."""
    return [*known_truth(SEEDS, "winding"), *known_truth(SEEDS, "case"), *warm_up()]


def plant(rng: np.random.Generator, seconds: float = 3600.0, node: str = "winding") -> Block:
    """A log of one drive under random currents up to 6 A, with the sensor at `node`."""
    count = round(seconds / STEP)
    current = np.zeros(count)
    k = 0
    while k < count:
        hold = round(rng.uniform(20.0, 200.0) / STEP)
        current[k : k + hold] = rng.uniform(0.0, 6.0) * (rng.random() < 0.75)
        k += hold
    every = round(PERIOD / STEP)
    warm = _warmed(current)[::every, ("winding", "case").index(node)]
    rms = np.sqrt((current**2).reshape(-1, every).mean(axis=1))
    read = warm + rng.normal(0.0, NOISE, len(warm))
    read = np.round(read / QUANTUM) * QUANTUM
    layout = Layout(joint_signals(["knee"], kinds=("joint.current", "joint.temperature")))
    stamps = np.rint(np.arange(len(read)) * PERIOD * 1e9).astype(np.int64)
    return Block(layout, stamps, np.column_stack([rms, read]))


def known_truth(seeds: int, node: str) -> list[Row]:
    """Largest error of each time constant over seeds, and how often intervals hold the truth."""
    thermal: Any = import_module("twinstudio_calibration.thermal")
    records: Any = import_module("twinstudio_calibration.thermal_records")
    errors, held = [], []
    for seed in range(seeds):
        heating = records.heating(plant(np.random.default_rng(seed), node=node), PERIOD)
        network = thermal.fit_joints(heating, node, AMBIENT, 2.0)
        told = list(thermal.scalars("knee", network.fits[0], 0.0))[:2]
        pairs = list(zip(told, TIME_CONSTANTS, strict=True))
        errors.append([abs(found.value / truth - 1.0) for found, truth in pairs])
        held.append([found.low <= truth <= found.high for found, truth in pairs])
    worst, share = np.max(errors, axis=0), np.mean(held, axis=0)
    found = []
    for k, name in enumerate(("fast", "slow")):
        error, cover = 100.0 * float(worst[k]), 100.0 * float(share[k])
        unit = f"% off {TIME_CONSTANTS[k]:g} s, worst of {seeds} seeds"
        found.append(Row(f"thermal.truth.{node}.{name}", error, unit, "<= 10", error <= 10.0))
        unit = f"% of {seeds} intervals hold the truth"
        passed = 90.0 <= cover <= 99.0
        found.append(Row(f"thermal.truth.{node}.{name}.cover", cover, unit, "90 to 99", passed))
    return found


def warm_up() -> list[Row]:
    """Error of each joint of a UR3 in the last third of its log, run freely."""
    source = data_folder() / "ur3_cobotops" / "session1.csv"
    if not source.is_file():
        return []
    errors, seconds = _timed(lambda: _held_out(source))
    found = [
        Row(
            f"thermal.ur3.joint{k}",
            float(error),
            f"K held out; careful prototype {reached:g}, hold last value {naive:g}",
            "<= 0.2",
            bool(error <= 0.2),
        )
        for k, (error, reached, naive) in enumerate(zip(errors, PROTOTYPE, NAIVE, strict=True))
    ]
    goal = "shown, no goal"
    return [*found, Row("thermal.ur3.time", seconds, "s, sensor's place chosen", goal, passed=True)]


PROTOTYPE = (0.05, 0.05, 0.07, 0.06, 0.08, 0.17)
NAIVE = (0.88, 1.01, 1.01, 0.95, 1.00, 0.96)
"""K, as the README of the logs tells them."""


def _held_out(source: Path) -> Floats:
    thermal: Any = import_module("twinstudio_calibration.thermal")
    records: Any = import_module("twinstudio_calibration.thermal_records")
    log = read_any(source, format="ur3_cobotops", mapping=None)
    block = log.recording.sources["cell"].block
    cut = 2 * len(block) // 3
    first = records.heating(block.part(slice(0, cut)), PERIOD)
    rest = records.heating(block.part(slice(cut, None)), PERIOD)
    defaults = thermal.Params()
    known = (defaults.ambient, defaults.ambient_spread)
    node, _ = thermal.choose_node(first, *known)
    network = thermal.fit_joints(first, node, *known)
    errors: Floats = np.sqrt(np.asarray(thermal.rms(thermal.free_run(network, rest), rest)))
    return errors


def _warmed(current: Floats) -> Floats:
    """Temperatures of winding and case at each step, float64[n, 2], midpoint rule."""
    cold = RESISTANCE_65 / (1.0 + COPPER * 40.0)

    def rates(ampere: float, winding: float, case: float) -> tuple[float, float]:
        power = ampere * ampere * cold * (1.0 + COPPER * (winding - 25.0))
        flow = (winding - case) / WINDING_TO_CASE
        lost = (case - AMBIENT) / CASE_TO_AMBIENT
        return (power - flow) / WINDING_CAPACITY, (flow - lost) / CASE_CAPACITY

    winding = case = AMBIENT
    out = np.empty((len(current), 2))
    for k, ampere in enumerate(current):
        out[k] = winding, case
        w, c = rates(ampere, winding, case)
        w, c = rates(ampere, winding + 0.5 * STEP * w, case + 0.5 * STEP * c)
        winding, case = winding + STEP * w, case + STEP * c
    return out


def _timed(work: Callable[[], Floats]) -> tuple[Floats, float]:
    start = perf_counter()
    value = work()
    return value, perf_counter() - start
