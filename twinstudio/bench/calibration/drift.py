"""Drift over a session of a real arm: repeats not fitted against the run-to-run spread."""

from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from twinstudio.bench.row import Row
from twinstudio.flow.importers.anylog import read_any
from twinstudio.model.scene import data_folder

INPUTS = (1, 21, 41, 61)
"""First measurement of each input; twelve repeats each."""
RUNS, FITTED = 12, 6
PROTOTYPE = (0.63, 0.77, 0.64, 1.18)
NAIVE = 1.5


def rows() -> list[Row]:
    """The later half of a session from the earlier, and even runs from odd ones.

    By free runs under the commanded torque with friction that drifts; and, to compare,
    by statistics of the repeats alone.
    """
    folder = data_folder() / "schunk_tum" / "Robot"
    if not folder.is_dir():
        return []
    logs = [_runs(folder, first) for first in INPUTS]
    early, odd = np.arange(FITTED), np.arange(0, RUNS, 2)
    start = perf_counter()
    errors, law = _free_runs(logs, early)
    seconds = perf_counter() - start
    found = []
    for k, (error, reached) in enumerate(zip(errors, PROTOTYPE, strict=True), start=1):
        unit = f"of spread, runs 7-12 from 1-6; careful prototype {reached:g}"
        found.append(Row(f"drift.schunk.input{k}", error, unit, "shown, see mean", passed=True))
    unit = f"of spread, {law} drift, {seconds:.0f} s; prototype 0.805, no drift {NAIVE:g}"
    found.append(_mean("drift.schunk.mean", errors, unit))
    errors, law = _free_runs(logs, odd)
    unit = f"of spread, even runs from odd ones, {law} drift"
    found.append(_mean("drift.schunk.interleaved", errors, unit))
    errors, law = _statistics(logs, early)
    unit = f"of spread, no simulation: curves with {law} drift, runs 7-12 from 1-6"
    return [*found, _mean("drift.schunk.statistical", errors, unit)]


def _mean(name: str, errors: list[float], unit: str) -> Row:
    mean = float(np.mean(errors))
    return Row(name, mean, unit, "<= 1", mean <= 1.0)


def _free_runs(logs: list[dict[str, Any]], fitted: Any) -> tuple[list[float], str]:
    """Error over spread of each input, on the runs that are not `fitted`; the law chosen."""
    drift: Any = import_module("twinstudio_calibration.drift")
    model: Any = import_module("twinstudio_calibration.session_model")
    friction: Any = import_module("twinstudio_calibration.session_friction")
    session = [friction.runs_of(one)[0] for one in logs]
    held = np.setdiff1d(np.arange(RUNS), fitted)
    known = [runs.some(fitted) for runs in session]
    law, kappa, _ = model.choose(known)
    found = model.fit_session(known, law, kappa)
    errors = []
    for runs in session:
        gap = found.run(runs.some(held)) - runs.position[held]
        errors.append(float(drift.rms(gap) / drift.spread(runs.position)))
    return errors, f"{law} {kappa:g}"


def _statistics(logs: list[dict[str, Any]], fitted: Any) -> tuple[list[float], str]:
    """The same of the curves; `fitted` are the earliest runs."""
    drift: Any = import_module("twinstudio_calibration.drift")
    session = [drift.grouped(one)[0] for one in logs]
    held = np.setdiff1d(np.arange(RUNS), fitted)
    known = [repeats.first(len(fitted)) for repeats in session]
    law, kappa, _ = drift.choose(known)
    errors = []
    for repeats, some in zip(session, known, strict=True):
        found = drift.fit(some, law, kappa)
        gap = found.predict(held.astype(np.float64)) - repeats.position[held]
        errors.append(float(drift.rms(gap) / drift.spread(repeats.position)))
    return errors, str(law)


def _runs(folder: Path, first: int) -> dict[str, Any]:
    logs: Any = import_module("twinstudio_calibration.logs")
    found = {}
    for number in range(first, first + RUNS):
        source = folder / f"measurement_{number}"
        log = read_any(source, format="schunk_tum", mapping=None)
        block = log.recording.sources["cell"].block
        found[str(number)] = logs.joint_log(block, block.layout.signal("joint.position").labels)
    return found
