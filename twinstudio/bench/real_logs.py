"""Command-to-motion delays of real robots, as the gap table tells them."""

import tempfile
from pathlib import Path

import numpy as np

from twinstudio.bench.row import Row
from twinstudio.flow.importers import import_log
from twinstudio.model.gaps import GapTable
from twinstudio.model.scene import data_folder
from twinstudio.session.offline import gap_of_log

LOGS = (("panda_gaz", "panda_cell", 20, 21), ("emps", "emps_axis", 7, 7))
"""Log, scene, and the published delay of every joint, in whole milliseconds."""


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - the logs have their own length
    """One row a log: the joint whose delay is farthest off the middle of the goal."""
    rows = []
    for name, scene, low, high in LOGS:
        folder = data_folder() / name
        goal = f"{low} to {high} in whole ms, every joint"
        if not folder.is_dir():
            rows.append(Row(f"log.{name}.lag", float("nan"), "ms (log absent)", goal, passed=False))
            continue
        found = [
            joint.command_to_motion.seconds * 1e3 if joint.command_to_motion else float("nan")
            for joint in _table(name, folder, scene).joints
        ]
        worst = max(found, key=lambda value: abs(value - (low + high) / 2))
        passed = all(low <= np.rint(value) <= high for value in found)
        rows.append(Row(f"log.{name}.lag", worst, "ms, farthest joint", goal, passed))
    return rows


def _table(name: str, folder: Path, scene: str) -> GapTable:
    with tempfile.TemporaryDirectory() as scratch:
        recording = Path(scratch) / f"{name}.mcap"
        import_log(name, folder, recording)
        return gap_of_log(recording, scene).table
