"""Schunk LWA-4P at 250 Hz: measurement_N with time, trajectory and input files."""

import re
from pathlib import Path

import numpy as np

from twinstudio.flow.importers import table
from twinstudio.flow.importers.locate import Found, choose, existing
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.importers.text import Dialect, Rows, read_lines, split
from twinstudio.model.errors import LogError
from twinstudio.model.signals import Layout, joint_signals

NAME = "schunk_tum"
JOINTS = tuple(f"joint{i}" for i in range(1, 7))
KINDS = ("joint.position", "joint.velocity", "command.effort")
FILES = {"time.csv": 1, "trajectory.csv": 12, "input.csv": 6}
DEFAULT = "Robot/measurement_1"
NO_INPUT = "nan"


def read(source: Path) -> ImportedLog:
    """The log `source`: a measurement_N folder, a file in it, or the data set's folder."""
    found = _folder(source)
    tally = Tally(found.path.name)
    files = [found.path / name for name in FILES]
    tables = [_rows(path) for path in files]
    rows, short = _joined(found.path, tables, tally)
    layout = Layout(joint_signals(JOINTS, kinds=KINDS))
    parsed = table.parse(rows, 0, "s", range(1, 1 + layout.width), tally)
    block = parsed.sensible(layout, tally).block(layout)
    refuse_empty(found.path, tally)
    notes = [found.note] if found.note else []
    notes.append("command.effort is the commanded motor torque as logged (input.csv)")
    if short:
        notes.append(f"input.csv is {short} row shorter than time.csv: no command there (NaN)")
    return ImportedLog({"cell": cell(block, 250.0)}, [tally], files, notes)


def _folder(source: Path) -> Found:
    existing(source)
    if source.is_file():
        if source.name not in FILES:
            raise wrong(source, NAME, f"the files are called {', '.join(FILES)}")
        return Found(source.parent)
    if (source / "time.csv").is_file():
        return Found(source)
    logs = sorted((path.parent for path in source.glob("**/time.csv")), key=_natural)
    # From the data set's folder or the one below it.
    inside = DEFAULT if (source / DEFAULT).is_dir() else DEFAULT.rpartition("/")[2]
    return choose(source, logs, inside)


def _natural(path: Path) -> list[tuple[int, str]]:
    """measurement_2 before measurement_10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", str(path))]


def _rows(path: Path) -> list[list[str]]:
    tally = Tally(path.name)
    width = FILES[path.name]
    rows = split(read_lines(path), Dialect(), tally, width=width)
    if len(rows.rows) != tally.rows:
        # The three files belong together row by row: leaving one out would shift the rest.
        bad = next(iter(tally.where.items()))
        raise LogError(
            f"row {bad[1][0]}: {bad[0]}, {width} expected",
            where=str(path),
            hint="the three files match row by row; repair the row or name another measurement",
        )
    return rows.rows


def _joined(folder: Path, tables: list[list[list[str]]], tally: Tally) -> tuple[Rows, int]:
    """One row a time stamp, and how many rows the input is shorter."""
    time, trajectory, given = tables
    short = len(time) - len(given)
    if len(trajectory) != len(time) or short not in (0, 1):
        raise LogError(
            f"time, trajectory and input have {len(time)}, {len(trajectory)} and {len(given)} rows",
            where=str(folder),
            hint="expected equal numbers, or one row less of input",
        )
    given = given + [[NO_INPUT] * FILES["input.csv"]] * short
    rows = [t + s + u for t, s, u in zip(time, trajectory, given, strict=True)]
    tally.rows = len(rows)
    return Rows((), rows, list(np.arange(1, len(rows) + 1))), short
