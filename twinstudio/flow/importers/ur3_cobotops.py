"""UR3 at 1 Hz: session1.csv, semicolons and decimal commas."""

from pathlib import Path

import numpy as np

from twinstudio.flow.importers import table
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.importers.text import NUMBER, Dialect, Rows, numbers, read_lines, split, times
from twinstudio.model.signals import Layout, Signal, joint_signals

NAME = "ur3_cobotops"
DEFAULT = "session1.csv"
JOINTS = tuple(f"joint{i}" for i in range(6))
DIALECT = Dialect(delimiter=";", decimal=",")
TIME = "Timestamp"
CURRENTS = tuple(f"Current_J{i}" for i in range(6))
# The log calls joint 0 "T0" here.
TEMPERATURES = ("Temperature_T0", *(f"Temperature_J{i}" for i in range(1, 6)))
SPEEDS = tuple(f"Speed_J{i}" for i in range(6))
OTHERS = ("Tool_current", "cycle", "Robot_ProtectiveStop", "grip_lost")
FLAGS = OTHERS[2:]
COLUMNS = (*CURRENTS, *TEMPERATURES, *SPEEDS, *OTHERS)
LOGIC = {"True": "1", "False": "0", "": ""}


def layout() -> Layout:
    """The signals of this log."""
    kinds = ("joint.current", "joint.temperature", "joint.velocity")
    others = (("tool.current", "A"), ("event.cycle", "1"), ("event.protective_stop", "1"),
              ("event.grip_lost", "1"))  # fmt: skip
    return Layout(
        (
            *joint_signals(JOINTS, kinds=kinds),
            *(Signal(name=n, labels=(n.rpartition(".")[2],), units=(u,)) for n, u in others),
        )
    )


def read(source: Path) -> ImportedLog:
    """The log `source`: a CSV file or its folder."""
    found = one_file(source, "*.csv", DEFAULT)
    tally = Tally(found.path.name)
    rows = split(read_lines(found.path), DIALECT, tally, header=True)
    if missing := [name for name in (TIME, *COLUMNS) if name not in rows.header]:
        raise wrong(found.path, NAME, f"it has no column {', '.join(missing[:3])}")
    rows = _logic(rows, tally)
    stamps, timed = times(rows, rows.header.index(TIME), "iso8601", tally)
    wanted = [rows.header.index(name) for name in COLUMNS]
    given = numbers(timed, wanted, tally, DIALECT.decimal)
    signals = layout()
    parsed = table.Parsed(stamps[given.keep], given.values, given.numbers)
    block = parsed.sensible(signals, tally).block(signals)
    refuse_empty(found.path, tally)
    unnamed = sum(not name for name in rows.header)
    notes = [
        found.note,
        "stamps are the logged UTC times, ns since 1970",
        "currents, temperatures and speeds only: the log has no joint positions",
        f"left out: the row number and {unnamed} columns without a name",
    ]
    return ImportedLog(
        {"cell": cell(block, 1.0)}, [tally], [found.path], [note for note in notes if note]
    )


def _logic(rows: Rows, tally: Tally) -> Rows:
    """True and False as 1 and 0; a row with another word is counted and left out."""
    flags = [rows.header.index(name) for name in FLAGS]
    kept, number = [], []
    for row, n in zip(rows.rows, rows.numbers, strict=True):
        if any(row[k] not in LOGIC for k in flags):
            tally.drop(NUMBER, [n])
            continue
        changed = list(row)
        for k in flags:
            changed[k] = LOGIC[row[k]]
        kept.append(changed)
        number.append(int(np.int64(n)))
    return Rows(rows.header, kept, number)
