"""Rigid bodies, friction and payload: arms of known truth, and logs of real robots."""

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from twinstudio.bench.calibration import arm_plant
from twinstudio.bench.row import Row
from twinstudio.flow.importers.anylog import cell_in, read_any
from twinstudio.model.block import Block
from twinstudio.model.results import Scalar, Table
from twinstudio.model.scene import Scene, data_folder, load_scene
from twinstudio.plugin.testing import FakeContext

SEEDS = 50
PAYLOAD, CENTRE, DELAY = 2.0, (0.02, -0.03, 0.12), 0.004
"""kg, m in the last link's frame, s."""
UR10E = "ur10e_innopolis/identification/ur-20_"
TRAINED = "02_10-30sec_12harm.csv"
SCORED = ("02_05-20sec_8harm.csv", "02_06-20sec_10harm.csv", "02_19_14harm50sec.csv")


def rows() -> list[Row]:
    """Known truth over seeds, speed, and what logs of real robots are predicted to."""
    found = [*known_truth(SEEDS), *speed()]
    if data_folder().is_dir():
        found += [*panda(), *ur10e(), *payload(), *kuka()]
    return found


def fitted(
    name: str, scene: Scene, logs: dict[str, Block], held: dict[str, Block], **params: Any
) -> tuple[list[Any], float]:
    """Results of solve and validate of a fitter of this plugin, and seconds to solve."""
    module: Any = import_module(f"twinstudio_calibration.{name}")
    plugin = module.calibrators()[0]()
    settings = plugin.params(**params)
    fatal = [f.text for f in plugin.check(logs, scene, settings) if f.fatal]
    if fatal:
        raise RuntimeError(f"{name} refuses its log: {fatal[0]}")
    start = perf_counter()
    with FakeContext() as context:
        solved = list(plugin.solve(context, logs, scene, settings))
    taken = perf_counter() - start
    return [*solved, *plugin.validate(held, scene, solved)], taken


def known_truth(seeds: int) -> list[Row]:
    """Largest errors over seeds and the share of intervals that hold the truth."""
    errors: dict[str, list[float]] = {}
    held: dict[str, list[bool]] = {}
    with tempfile.TemporaryDirectory() as folder:
        scene = arm_plant.scene_in(Path(folder))
        for seed in range(seeds):
            for name, truth, result in _one_seed(scene, seed):
                errors.setdefault(name, []).append(abs(result.value / truth - 1.0))
                if name != "delay":
                    held.setdefault(name, []).append(
                        bool(np.isfinite(result.high)) and result.low <= truth <= result.high
                    )
    goals = {"coulomb": 5.0, "viscous": 10.0, "payload": 1.0, "delay": 12.5}
    found = []
    for name, goal in goals.items():
        worst = 100.0 * max(errors[name])
        unit = f"% off, worst of {len(errors[name])} in {seeds} seeds"
        found.append(Row(f"rigid.truth.{name}", worst, unit, f"<= {goal:g}", worst <= goal))
        if name in held:
            share = 100.0 * float(np.mean(held[name]))
            unit = f"% of {len(held[name])} intervals hold the truth"
            passed = 90.0 <= share <= 99.0
            found.append(Row(f"rigid.truth.{name}.cover", share, unit, "90 to 99", passed))
    return found


def _one_seed(scene: Scene, seed: int) -> list[tuple[str, float, Scalar]]:
    """Kind, truth and figure of everything one seed is judged by."""
    rng = np.random.default_rng(seed)
    arm = arm_plant.true_arm(rng, DELAY)
    carrying = arm.carrying(PAYLOAD, np.array(CENTRE))
    logs = {"unloaded": arm_plant.log_of(arm, rng), "loaded": arm_plant.log_of(carrying, rng)}
    solved, _ = fitted(
        "inverse_dynamics", scene, {"log": logs["unloaded"]}, {"log": logs["unloaded"]}
    )
    found = []
    for result in solved:
        if isinstance(result, Scalar):
            kind = result.name.partition(" of ")[0]
            truths = {"coulomb": arm_plant.COULOMB, "viscous": arm_plant.VISCOUS, "delay": DELAY}
            if kind in truths:
                found.append((kind, truths[kind], result))
    carried, _ = fitted("payload", scene, logs, {"loaded": logs["loaded"]})
    mass = next(r for r in carried if isinstance(r, Scalar) and r.name == "payload mass")
    return [*found, ("payload", PAYLOAD, mass)]


def speed() -> list[Row]:
    """Seconds to fit a seven-joint arm from 20 s at 1 kHz, compiled code loaded."""
    with tempfile.TemporaryDirectory() as folder:
        scene = arm_plant.scene_in(Path(folder))
        rng = np.random.default_rng(0)
        log = {"log": arm_plant.log_of(arm_plant.true_arm(rng, DELAY), rng, rate=1000.0)}
        fitted("inverse_dynamics", scene, log, log)
        taken = min(fitted("inverse_dynamics", scene, log, log)[1] for _ in range(3))
    return [Row("rigid.seconds", taken, "s for 20 s of 7 joints at 1 kHz", "<= 3", taken <= 3.0)]


def panda() -> list[Row]:
    """A Panda's torque, fitted before 10 s and scored after, overall."""
    block = _block("panda_gaz")
    cut = int(np.searchsorted(block.stamps, block.stamps[0] + 10_000_000_000))
    logs, held = {"log": block.part(slice(0, cut))}, {"log": block.part(slice(cut, len(block)))}
    found, taken = fitted(
        "inverse_dynamics", load_scene("panda_cell"), logs, held, score_cutoff=10.0
    )
    error = 100.0 * _scores(found, "all")[0][0]
    unit = f"% of torque, last 4 s (published 1.41 on another split; {taken:.1f} s)"
    return [Row("rigid.panda_gaz", error, unit, "<= 1.12", error <= 1.12)]


def ur10e() -> list[Row]:
    """A UR10e's raw current on logs it was not fitted to, over its controller's own model."""
    logs = {"log": _block(UR10E + TRAINED)}
    held = {f"held_out_{k}": _block(UR10E + name) for k, name in enumerate(SCORED)}
    found, taken = fitted("inverse_dynamics", load_scene("ur10e"), logs, held)
    result = []
    for key, name in zip(held, SCORED, strict=True):
        for joint in load_scene("ur10e").robot.joints:
            after, vendor = _scores(found, joint, key)[0]
            ratio = 100.0 * (after / vendor - 1.0)
            limit = -30.0 if joint == "wrist_3_joint" else 0.0
            unit = f"% against the controller's {100 * vendor:.1f} % ({taken:.1f} s)"
            title = f"rigid.ur10e.{name.partition('sec')[2].strip('_.csv') or name}.{joint}"
            result.append(Row(title, ratio, unit, f"< {limit:g}", ratio < limit))
    return result


def payload() -> list[Row]:
    """A UR10e's payload of 2.805 kg, its drive gains from a log of 2.6 kg."""
    logs = {
        "loaded": _block(UR10E + "02_19_14harm50secLoad.csv"),
        "unloaded": _block(UR10E + "02_19_14harm50sec.csv"),
        "known": _block(UR10E + "01_13-load_2600.csv"),
    }
    held = {"loaded": logs["loaded"]}
    found, taken = fitted("payload", load_scene("ur10e"), logs, held, known_mass=2.6)
    mass = next(r for r in found if isinstance(r, Scalar) and r.name == "payload mass")
    error = 100.0 * (mass.value / 2.805 - 1.0)
    covers = float(mass.low <= 2.805 <= mass.high)
    unit = f"% off 2.805 kg (published gains -12 or +10; {taken:.1f} s)"
    return [
        Row("rigid.ur10e.payload", error, unit, "within 4", abs(error) <= 4.0),
        Row("rigid.ur10e.payload.cover", covers, "interval holds it", "1", covers == 1.0),
    ]


def kuka() -> list[Row]:
    """A KR300's torque, fitted to one run and scored on another, each joint weighted."""
    logs, held = {"log": _block("kuka_kr300/FF_A")}, {"log": _block("kuka_kr300/FF_B")}
    found, taken = fitted(
        "inverse_dynamics",
        load_scene("kuka_kr300"),
        logs,
        held,
        fit_cutoff=20.0,
        counterbalanced="a2",
    )
    error = 100.0 * _scores(found, "all, weighted")[0][0]
    unit = f"% of torque, weighted ({taken:.1f} s)"
    return [Row("rigid.kuka_kr300", error, unit, "<= 16", error <= 16.0)]


def _block(name: str) -> Block:
    return cell_in(read_any(data_folder() / name))


def _scores(results: Sequence[Any], joint: str, log: str = "") -> list[tuple[float, float]]:
    """Error after, and that of the controller's own model, on held-out logs."""
    table = next(r for r in results if isinstance(r, Table) and r.name == "held-out error")
    return [
        (float(row[2] or 0.0), float(row[4] or np.nan))
        for row in table.rows
        if row[1] == joint and log in {"", str(row[0])}
    ]
