"""Planar pushes: force at 100 Hz, robot at about 33 Hz, object pose before and after.

The file is the number of pushes, then for each push the object's pose before
and after, a count and that many force rows, a count and that many robot rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from twinstudio.flow.importers import table
from twinstudio.flow.importers.clocktext import to_ns
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import (
    ImportedLog,
    ImportedSource,
    Tally,
    cell,
    refuse_empty,
)
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.importers.text import FIELDS, Rows, read_lines
from twinstudio.model.block import Values
from twinstudio.model.signals import Layout, Signal, pose_signal

NAME = "cmu_push"
DEFAULT = "30_90_30_30_30_90/exp7_20.txt"
POSE = 7
FORCE = 3
ROBOT = 8
UNTIMED = "push without a time"
# The file has x y z in mm and the quaternion as w x y z; ours is x y z w.
ORDER = [0, 1, 2, 4, 5, 6, 3]
SCALE = np.array([1e-3, 1e-3, 1e-3, 1.0, 1.0, 1.0, 1.0])
LAYOUTS = {
    "force": Layout((Signal(name="tool.force", labels=("fx", "fy"), units=("N", "N")),)),
    "robot": Layout((pose_signal("tcp.pose"),)),
    "object": Layout((pose_signal("object.triangle.pose"),)),
}
RATES = {"force": 100.0, "robot": 33.0, "object": 0.0}
NOTES = (
    "stamps are Unix time, exact to the ns",
    (
        "source 'object' has two poses a push: before, at the push's first stamp, and after, at its"
        " last; the log does not say when they were taken"
    ),
    (
        "quaternions of source 'robot' have three decimals and are not exactly of unit length; they"
        " are kept as logged"
    ),
)


@dataclass
class _Reader:
    """Walks the lines; everything that is no complete push is counted."""

    lines: list[list[str]]
    at: int = 0
    pushes: int = 0
    tables: dict[str, Tally] = field(default_factory=lambda: {n: Tally(n) for n in LAYOUTS})
    rows: dict[str, list[list[str]]] = field(default_factory=lambda: {n: [] for n in LAYOUTS})
    numbers: dict[str, list[int]] = field(default_factory=lambda: {n: [] for n in LAYOUTS})

    def push(self) -> bool:
        """Read one push; False, and nothing consumed of it, when it does not start here."""
        poses = self.lines[self.at : self.at + 2]
        if len(poses) < 2 or any(len(pose) != POSE for pose in poses):
            return False
        self.at += 2
        texts = [*self._part("force", FORCE), *self._part("robot", ROBOT)]
        times = {stamp: text for text in texts if (stamp := to_ns(text, "s")) is not None}
        for pose, end in zip(poses, (min, max), strict=True):
            self.tables["object"].rows += 1
            row = self.tables["object"].rows
            if times:
                self._keep("object", [times[end(times)], *pose], row)
            else:
                self.tables["object"].drop(UNTIMED, [row])
        self.pushes += 1
        return True

    def _part(self, name: str, width: int) -> Iterator[str]:
        """A count and its rows; yields the times of those with the right width."""
        count = self._count()
        for _ in range(count):
            if self.at >= len(self.lines):
                return
            fields = self.lines[self.at]
            if len(fields) in (1, POSE) and width not in (1, POSE):
                return  # the next part starts early: fewer rows than announced
            self.at += 1
            tally = self.tables[name]
            tally.rows += 1
            if len(fields) == width:
                self._keep(name, fields, tally.rows)
                yield fields[0]
            else:
                tally.drop(FIELDS, [tally.rows])

    def _count(self) -> int:
        if self.at < len(self.lines) and len(self.lines[self.at]) == 1:
            text = self.lines[self.at][0]
            if re.fullmatch("[0-9]{1,9}", text):
                self.at += 1
                return int(text)
        return 0

    def _keep(self, name: str, row: list[str], number: int) -> None:
        self.rows[name].append(row)
        self.numbers[name].append(number)


def read(source: Path) -> ImportedLog:
    """The log `source`: a text file, its folder, or the data set's folder."""
    found = one_file(source, "**/exp*.txt", DEFAULT)
    lines = [line.split() for line in read_lines(found.path) if line.strip()]
    first = lines[0][0] if len(lines[0]) == 1 else ""
    announced = int(first) if re.fullmatch("[0-9]{1,9}", first) else None
    reader = _Reader(lines, at=0 if announced is None else 1)
    while reader.push():
        pass
    if not reader.pushes:
        raise wrong(found.path, NAME, "no push (two poses, then counted rows) at its start")
    sources = {name: _source(name, reader) for name in LAYOUTS if reader.rows[name]}
    tables = list(reader.tables.values())
    refuse_empty(found.path, max(tables, key=lambda tally: tally.kept))
    notes = [note for note in (found.note, *NOTES) if note]
    log = ImportedLog(sources, tables, [found.path], notes)
    _problems(log, reader, announced)
    return log


def _source(name: str, reader: _Reader) -> ImportedSource:
    layout, tally = LAYOUTS[name], reader.tables[name]
    rows = Rows((), reader.rows[name], reader.numbers[name])
    parsed = table.parse(rows, 0, "s", range(1, 1 + layout.width), tally)
    values = parsed.values if name == "force" else _pose(parsed.values)
    parsed = table.Parsed(parsed.stamps, values, parsed.numbers).sensible(layout, tally)
    return cell(parsed.block(layout), RATES[name])


def _pose(values: Values) -> Values:
    """From x y z [mm] qw qx qy qz to x y z [m] qx qy qz qw, float64[n, 7]."""
    pose: Values = values[:, ORDER] * SCALE
    return pose


def _problems(log: ImportedLog, reader: _Reader, announced: int | None) -> None:
    if announced is None:
        log.problems.append("the number of pushes is missing from the first line")
    elif announced != reader.pushes:
        log.problems.append(f"the file announces {announced} pushes but holds {reader.pushes}")
    if left := len(reader.lines) - reader.at:
        tally = Tally("rest of the file", rows=left)
        tally.drop("after a push that does not end", range(1, left + 1))
        log.tables.append(tally)
        log.problems.append(f"{left} lines at the end belong to no complete push")
    log.problems.extend(
        f"the log has no {name} rows" for name in LAYOUTS if name not in log.sources
    )
