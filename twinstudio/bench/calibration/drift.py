"""Drift over a session of a real arm: repeats not fitted against the run-to-run spread."""

from importlib import import_module
from pathlib import Path
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
    """The later half of a session predicted from the earlier, and odd runs from even ones."""
    folder = data_folder() / "schunk_tum" / "Robot"
    if not folder.is_dir():
        return []
    drift: Any = import_module("twinstudio_calibration.drift")
    session = [drift.grouped(_runs(folder, first))[0] for first in INPUTS]
    found = []
    early = np.arange(FITTED)
    errors, law = _held_out(drift, session, early)
    for k, (error, reached) in enumerate(zip(errors, PROTOTYPE, strict=True), start=1):
        unit = f"of spread, runs 7-12 from 1-6 ({law}); careful prototype {reached:g}"
        found.append(Row(f"drift.schunk.input{k}", error, unit, "mean <= 1", error <= 1.0))
    mean = float(np.mean(errors))
    unit = f"of spread, mean of inputs; careful prototype 0.805, mean of fitted runs {NAIVE:g}"
    found.append(Row("drift.schunk.mean", mean, unit, "<= 1", mean <= 1.0))
    errors, law = _held_out(drift, session, np.arange(0, RUNS, 2))
    mean = float(np.mean(errors))
    unit = f"of spread, mean of inputs; even runs from odd ones ({law})"
    return [*found, Row("drift.schunk.interleaved", mean, unit, "<= 1", mean <= 1.0)]


def _held_out(drift: Any, session: list[Any], fitted: Any) -> tuple[list[float], str]:
    """Error over spread of each input, on the runs that are not `fitted`; the law chosen."""
    held = np.setdiff1d(np.arange(RUNS), fitted)
    known = [drift.Repeats(r.digest, r.joints, r.time, r.position[fitted]) for r in session]
    law, kappa, _ = drift.choose(known)
    errors = []
    for repeats, some in zip(session, known, strict=True):
        found = drift.fit(some, law, kappa * (fitted[1] - fitted[0]), fitted.astype(np.float64))
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
