"""Universal Robots UR10e at about 94 Hz: CSV without a header."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.importers import table
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, nominal_rate, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.importers.text import Dialect, read_lines, split, usual_width
from twinstudio.model.block import Stamps, Values
from twinstudio.model.signals import Layout, joint_signals

NAME = "ur10e_innopolis"
DEFAULT = "identification/ur-20_02_10-30sec_12harm.csv"
JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
KINDS = ("joint.position", "joint.velocity", "joint.current", "model.current", "model.effort")
WIDTHS = {31: KINDS, 19: KINDS[:3]}
# Beyond these the robot cannot be: joints turn +-2 pi at 2.1 or 3.2 rad/s, the
# largest rated torque is 330 N m.
TIGHTER: Mapping[str, float] = {
    "joint.position": 7.0,
    "joint.velocity": 7.0,
    "joint.current": 100.0,
    "model.current": 100.0,
    "model.effort": 1000.0,
}
SPEED = np.array([2.1, 2.1, 3.2, 3.2, 3.2, 3.2])  # rad/s, the fastest each joint turns
SLACK = 0.02  # rad, for encoder noise and rounded stamps
JUMP = "out of reach of its neighbours"


def read(source: Path) -> ImportedLog:
    """The log `source`: a CSV file, its folder, or the data set's folder."""
    found = one_file(source, "**/*.csv", DEFAULT)
    tally = Tally(found.path.name)
    lines = read_lines(found.path)
    width = usual_width(lines, Dialect())
    if width not in WIDTHS:
        raise wrong(found.path, NAME, f"it has {width} columns instead of 31 or 19")
    rows = split(lines, Dialect(), tally, width=width)
    layout = Layout(joint_signals(JOINTS, kinds=WIDTHS[width]))
    parsed = table.parse(rows, 0, "s", range(1, width), tally).sensible(layout, tally, TIGHTER)
    parsed = parsed.only(reachable(parsed.stamps, parsed.values[:, :6]), tally, JUMP)
    refuse_empty(found.path, tally)
    block = parsed.block(layout)
    notes = [note for note in (found.note, "the log has no commanded position") if note]
    sources = {"cell": cell(block, nominal_rate(block.stamps))}
    return ImportedLog(sources, [tally], [found.path], notes)


def reachable(stamps: Stamps, positions: Values) -> NDArray[np.bool_]:
    """Rows that the robot can have been in, bool[n].

    The longest stretch in which every step is within SPEED times the interval
    is trusted; from there outwards a row is kept when it can be reached from
    the last one kept. positions: float64[n, 6], rad; one without a reading (NaN)
    is no reason to drop a row.
    """
    n = len(stamps)
    keep = np.ones(n, dtype=bool)
    steps = np.abs(np.diff(positions, axis=0))
    allowed = SPEED * (np.abs(np.diff(stamps)) / 1e9)[:, None] + SLACK
    breaks = np.nonzero((steps > allowed).any(axis=1))[0] + 1
    if not len(breaks):
        return keep
    edges = np.concatenate([[0], breaks, [n]])
    longest = int(np.argmax(np.diff(edges)))
    first, last = int(edges[longest]), int(edges[longest + 1]) - 1
    for trusted, outwards in ((first, range(first - 1, -1, -1)), (last, range(last + 1, n))):
        _walk(stamps, positions, trusted, outwards, keep)
    return keep


def _walk(
    stamps: Stamps, positions: Values, trusted: int, outwards: range, keep: NDArray[np.bool_]
) -> None:
    """Strike out of `keep` the rows `outwards` that the last kept one does not reach."""
    for i in outwards:
        span = abs(int(stamps[i] - stamps[trusted])) / 1e9
        if (np.abs(positions[i] - positions[trusted]) > SPEED * span + SLACK).any():
            keep[i] = False
        else:
            trusted = i
