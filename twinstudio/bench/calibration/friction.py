"""Friction, latency, closed loops and a whole arm: known truths over many seeds, and real logs."""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from twinstudio.bench.calibration import friction_plants as plants
from twinstudio.bench.calibration import loop_plants
from twinstudio.bench.row import Row
from twinstudio.flow.importers.anylog import read_any
from twinstudio.jobs.logs import split
from twinstudio.model.block import Block
from twinstudio.model.results import Result, Table
from twinstudio.model.scene import data_folder, load_scene
from twinstudio.plugin.testing import FakeContext

Floats = NDArray[np.float64]
SEEDS = 50
FITTERS = "twinstudio_calibration."
CUTOFF = 40.0
"""Hz, of positions: the motions are below 3 Hz, and noise of derivatives narrows no interval."""
COVER = "90 to 99 % of seeds"


def rows() -> list[Row]:
    """Known truths first, then the real logs that are at hand."""
    found = [*known_friction(), *known_delays(), *known_loop()]
    if (data_folder() / "emps").is_dir():
        found += real_axis()
    if (data_folder() / "panda_gaz").is_dir():
        found += real_arm()
    return found


def known_friction() -> list[Row]:
    """Each published set under its own law, `SEEDS` motions; Panda's joints share the seeds."""
    law = import_module(f"{FITTERS}friction_law")
    plain, smooth = law.Law(("viscous",)), law.Law(("smooth",), law.Shape(width=0.2))
    found = []
    for joint in range(7):
        truth = {"coulomb": plants.PANDA_A[joint] / 2.0}
        found += _friction(f"panda_gaz2019.{joint + 1}", _panda(joint), smooth, truth)
    motor = law.Law(("viscous", "smooth"), law.Shape(width=1.2))
    truth = {"coulomb": 0.74302635727901, "viscous": 0.00986346744839}
    found += _friction("flexible_three_mass", _three_mass, motor, truth)
    truth = {"coulomb": plants.BAM_M1["Kc"], "viscous": plants.BAM_M1["Kv"]}
    found += _friction("bam M1", _bam(plants.BAM_M1), plain, truth)
    rungs = ("viscous", "Stribeck", "load", "Stribeck load")
    truth = {"coulomb": plants.BAM_M6["Kc"], "viscous": plants.BAM_M6["Kv"]}
    shape = law.Shape(stribeck=2.5, exponent=1.5)
    found += _friction("bam M6", _bam(plants.BAM_M6), law.Law(rungs, shape), truth)
    return found


Drawn = tuple[plants.Reading, Floats]
Plant = Callable[[np.random.Generator], Drawn]


def _panda(joint: int) -> Plant:
    def draw(rng: np.random.Generator) -> Drawn:
        q, w, a = plants.Motion(2.0).draw(rng)
        effort = 0.3 * a + plants.panda(joint)(w)
        return plants.read(rng, q, effort, 0.05, 1e-5), np.zeros_like(q)

    return draw


def _three_mass(rng: np.random.Generator) -> Drawn:
    q, w, a = plants.Motion(100.0).draw(rng)
    effort = 0.03291699877416 * a + plants.three_mass(w)
    return plants.read(rng, q, effort, 0.05, 1e-3), np.zeros_like(q)


def _bam(law: dict[str, float]) -> Plant:
    def draw(rng: np.random.Generator) -> Drawn:
        q, w, a = plants.Motion(6.0).draw(rng)
        weight = 8.0 * np.sin(q)
        effort = plants.bam_effort(law, w, (law["armature"] + 1.0) * a, weight)
        return plants.read(rng, q, effort, 0.1, 1e-5), weight + a

    return draw


def _friction(name: str, plant: Plant, law: Any, truth: dict[str, float]) -> list[Row]:
    fitting = import_module(f"{FITTERS}friction_fit")
    fits = []
    for seed in range(SEEDS):
        reading, known = plant(np.random.default_rng(seed))
        axis = _axis(reading, known)
        load = known if "load" not in law.rungs else _motor(fitting, axis)
        fits.append(fitting.solve(law, axis, load))
    found = []
    for what, true in truth.items():
        values = np.array([fitted.value(what) for fitted in fits])
        deviations = np.array([fitted.deviation(what) for fitted in fits])
        limit = 0.05 if what == "coulomb" else 0.10
        found += _known(f"friction.{name}.{what}", values / true - 1.0, deviations / true, limit)
    return found


def _motor(fitting: Any, axis: Any) -> Any:
    """The motor's effort by a plain law: what a load-dependent law takes for the load."""
    plain = fitting.solve(fitting.Law(("viscous",)), axis)
    return fitting.motor_load(plain.law, plain.values, axis)


def _axis(reading: plants.Reading, known: Floats) -> Any:
    b, a = signal.butter(4, 2.0 * CUTOFF / plants.RATE)
    keep = slice(125, -125)
    position = np.ascontiguousarray(signal.filtfilt(b, a, reading.position)[keep])
    effort = (reading.effort - known)[keep]
    law = import_module(f"{FITTERS}friction_law")
    return law.Axis(1.0 / plants.RATE, position, effort, 2.0 * np.pi, 10, known=known[keep])


def _known(name: str, errors: Floats, deviations: Floats, limit: float) -> list[Row]:
    """Worst error and cover of the 95 % intervals; `errors` relative to the truth."""
    worst = float(np.abs(errors).max()) * 100.0
    cover = float(np.mean(np.abs(errors) <= 1.96 * deviations)) * 100.0
    unit = f"% worst of {len(errors)} seeds"
    return [
        Row(name, worst, unit, f"<= {limit:.0%}", worst <= 100.0 * limit),
        Row(f"{name}.cover", cover, "% of seeds", COVER, 90.0 <= cover <= 99.0),
    ]


def known_delays() -> list[Row]:
    """Dead time in front of a drive of second order."""
    delays = import_module(f"{FITTERS}delays")
    errors, deviations = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        truth = float(rng.uniform(0.0, 0.03))
        stamps, command, response = loop_plants.late_drive(rng, truth)
        trace = delays.Trace(stamps, command, stamps, response)
        found = delays.transport(trace, delays.command_to_motion(trace, 0.3), 0.3)
        errors.append(found.dead - truth)
        deviations.append(found.deviation)
    off = np.abs(errors)
    cover = float(np.mean(off <= 1.96 * np.array(deviations))) * 100.0
    worst = float(off.max()) * 1e3
    return [
        Row("delay.known", worst, f"ms worst of {SEEDS} seeds", "<= 0.5 ms", worst <= 0.5),
        Row("delay.known.cover", cover, "% of seeds", COVER, 90.0 <= cover <= 99.0),
    ]


def known_loop() -> list[Row]:
    """A servo that is simulated in small steps, fitted in its loop."""
    closed = import_module(f"{FITTERS}closed_loop")
    fitting = import_module(f"{FITTERS}closed_fit")
    names = ("coulomb", "viscous", "delay")
    errors: dict[str, list[float]] = {name: [] for name in names}
    deviations: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        stamps, command, position, effort = loop_plants.servo(rng)
        record = closed.plain_record(stamps, command, position, effort, 2.0)
        problem = fitting.Problem(record, closed.free_of(record), closed.guess(record)[0])
        found = fitting.fit(problem, rng)
        for name in names:
            errors[name].append(getattr(found.drive, name) - loop_plants.LOOP[name])
            deviations[name].append(float(found.deviation[found.free.index(name)]))
    rows = []
    for name, limit in (("coulomb", 0.05), ("viscous", 0.10)):
        true = loop_plants.LOOP[name]
        parts = np.array(errors[name]) / true, np.array(deviations[name]) / true
        rows += _known(f"closed_loop.known.{name}", *parts, limit)
    worst = float(np.abs(errors["delay"]).max()) * 1e3
    text = f"ms worst of {SEEDS} seeds"
    rows.append(Row("closed_loop.known.delay", worst, text, "<= 0.5 ms", worst <= 0.5))
    return rows


def real_axis() -> list[Row]:
    """EMPS: fitted on the first two thirds, scored on the last."""
    scene, logs = load_scene("scenes/emps_axis"), _logs(data_folder() / "emps")
    fit, held_out = split(logs, 2.0 / 3.0)
    ladder = import_module(f"{FITTERS}friction")
    plugin = ladder.FrictionLadder()
    begun = time.perf_counter()
    results = plugin.solve(FakeContext(seed=1), fit, scene, ladder.Params())
    taken = time.perf_counter() - begun
    error = 100.0 * _cell(plugin.validate(held_out, scene, results), "fitted")
    goal = "<= 2.0 % (published 4.08 % on its training record)"
    found = [
        Row("emps.force", error, "% of the last third", goal, error <= 2.0),
        Row("emps.force.time", taken, "s", "none", passed=True),
    ]
    closed = import_module(f"{FITTERS}closed_loop")
    loop = closed.ClosedLoop()
    loop.solve(FakeContext(seed=1), fit, scene, closed.Params())
    begun = time.perf_counter()
    loop.solve(FakeContext(seed=1), logs, scene, closed.Params())
    taken = time.perf_counter() - begun
    results = loop.solve(FakeContext(seed=1), fit, scene, closed.Params())
    scores = loop.validate(held_out, scene, results)
    apart, before = (_cell(scores, f"{name} apart") for name in ("simulation", "command"))
    error = 100.0 * _cell(scores, "effort error")
    return [
        *found,
        Row("emps.closed_loop.time", taken, "s for 25 s at 1 kHz", "< 5", taken < 5.0),
        Row("emps.closed_loop.position", apart * 1e6, "um of the last third, free run",
            f"below {before * 1e6:.0f}, the command's", apart < before),
        Row("emps.closed_loop.force", error, "% of the last third, free run", "none", passed=True),
    ]  # fmt: skip


def real_arm() -> list[Row]:
    """Panda: command to motion of every joint, and the caveats that the tool names itself."""
    scene, logs = load_scene("scenes/panda_cell"), _logs(data_folder() / "panda_gaz")
    latency = import_module(f"{FITTERS}latency")
    plugin = latency.Latency()
    results = plugin.solve(FakeContext(seed=1), logs, scene, latency.Params())
    table = next(r for r in results if isinstance(r, Table) and r.name == "latency")
    values = [1e3 * float(row[1] or 0.0) for row in table.rows]
    worst = max(values, key=lambda value: abs(value - 20.75))
    caveats = " ".join(f.text for f in plugin.check(logs, scene, latency.Params()))
    words = ("host time", "start-up offset", "behind the logged position")
    told = sum(word in caveats for word in words)
    good = len(values) == 7 and all(20.0 <= value <= 21.5 for value in values)
    return [
        Row("panda.command_to_motion", worst, "ms, farthest joint", "20 to 21.5, all", good),
        Row("panda.caveats", told, "of 3 told", "3", told == len(words)),
    ]


def _logs(folder: Path) -> dict[str, Block]:
    sources = read_any(folder).recording.sources
    return {("log" if k == "cell" else f"log.{k}"): v.block for k, v in sources.items()}


def _cell(results: Sequence[Result], column: str) -> float:
    table = next(r for r in results if isinstance(r, Table) and column in r.columns)
    return float(table.rows[0][table.columns.index(column)] or 0.0)
