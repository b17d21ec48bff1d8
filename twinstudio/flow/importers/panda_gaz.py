"""Franka Emika Panda at about 1 kHz: measured.csv and commanded_velocity.csv."""

from pathlib import Path

import numpy as np

from twinstudio.flow.importers import table
from twinstudio.flow.importers.locate import existing
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.importers.text import Dialect, read_lines, split
from twinstudio.model.block import Block, Stamps, Values
from twinstudio.model.errors import LogError
from twinstudio.model.signals import Layout, joint_signals

NAME = "panda_gaz"
JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))
MEASURED = "measured.csv"
COMMANDED = "commanded_velocity.csv"
HEADS = {
    MEASURED: ("t", *(f"{q}{i}" for q in ("q", "dq", "tau") for i in range(1, 8))),
    COMMANDED: ("t", *(f"dq{i}_cmd" for i in range(1, 8))),
}
KINDS = ("joint.position", "joint.velocity", "joint.effort")
NOTES = (
    (
        "source 'command' is the commanded velocity at its own stamps, exactly as logged;"
        " take figures of command-to-motion from it"
    ),
    (
        "command.velocity in source 'cell' is the same command held (zero order) at the measured"
        " stamps, for plots: its edges are up to one measured interval late"
    ),
    (
        "both files count from 0 s; they are taken as one clock, so a start-up offset between the"
        " two loggers is part of every command-to-motion figure"
    ),
    "the stamps of the measurements are host time",
)


def read(source: Path) -> ImportedLog:
    """The log in the folder `source`, or the folder that holds the file `source`."""
    existing(source)
    folder = source if source.is_dir() else source.parent
    if source.is_file() and source.name not in HEADS:
        raise wrong(source, NAME, f"the files are called {MEASURED} and {COMMANDED}")
    measured, first = _read(folder / MEASURED, Layout(joint_signals(JOINTS, kinds=KINDS)))
    layout = Layout(joint_signals(JOINTS, kinds=("command.velocity",)))
    command, second = _read(folder / COMMANDED, layout)
    held = hold(command, measured.stamps)
    both = Layout(measured.layout.signals + command.layout.signals)
    full = Block(both, measured.stamps, np.hstack([measured.values, held]))
    notes = [*NOTES]
    if missing := int(np.isnan(held).any(axis=1).sum()):
        notes.append(f"{missing} measured rows have no command in force: NaN in 'cell'")
    sources = {"cell": cell(full, 1000.0), "command": cell(command, 1000.0)}
    return ImportedLog(sources, [first, second], [folder / MEASURED, folder / COMMANDED], notes)


def hold(command: Block, stamps: Stamps) -> Values:
    """Command in force at each stamp, float64[n, width]; a command starts at its stamp.

    NaN before the first command and after the last one was held for one median
    interval. Stamps of the command must not go back.
    """
    if len(command) < 2 or (np.diff(command.stamps) < 0).any():
        raise LogError("commands are too few or their stamps go back; they cannot be held")
    index = np.searchsorted(command.stamps, stamps, side="right") - 1
    end = command.stamps[-1] + np.int64(np.median(np.diff(command.stamps)))
    held = command.values[np.maximum(index, 0)].copy()
    held[(index < 0) | (stamps >= end)] = np.nan
    return held


def _read(path: Path, layout: Layout) -> tuple[Block, Tally]:
    tally = Tally(path.name)
    rows = split(read_lines(path), Dialect(), tally, header=True)
    if rows.header != HEADS[path.name]:
        head = ",".join(rows.header[:4])
        raise wrong(path, NAME, f"its first line is '{head},...'")
    parsed = table.parse(rows, 0, "s", range(1, 1 + layout.width), tally)
    block = parsed.sensible(layout, tally).block(layout)
    refuse_empty(path, tally)
    return block, tally
