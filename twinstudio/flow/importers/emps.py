"""Electro-mechanical positioning system: one prismatic axis at 1 kHz, MATLAB file."""

from pathlib import Path

import numpy as np

from twinstudio.flow.importers import matfile, table
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.model.signals import Layout, joint_signals

NAME = "emps"
DEFAULT = "DATA_EMPS.mat"
VARIABLES = ("t", "qm", "qg", "vir", "gtau")
KINDS = ("joint.position", "joint.effort", "command.position")


def read(source: Path) -> ImportedLog:
    """The log `source` (a .mat file or its folder)."""
    found = one_file(source, "*.mat", DEFAULT)
    content = matfile.read(found.path)
    if missing := [name for name in VARIABLES if name not in content]:
        raise wrong(found.path, NAME, f"it has no variable {', '.join(missing)}")
    series = [content[name].ravel() for name in ("t", "qm", "vir", "qg")]
    gain = content["gtau"].ravel()
    if len({len(each) for each in series}) != 1 or len(gain) != 1:
        raise wrong(found.path, NAME, "t, qm, vir and qg differ in length")
    time, position, voltage, reference = series
    tally = Tally(found.path.name)
    values = np.column_stack([position, gain[0] * voltage, reference])
    layout = Layout(joint_signals(("axis",), ("axis",), kinds=KINDS))
    block = table.from_seconds(time, values, tally).sensible(layout, tally).block(layout)
    refuse_empty(found.path, tally)
    notes = [
        f"joint.effort is the controller output vir [V] times gtau = {gain[0]:.6g} N/V",
        "velocity is not measured and is left out; kp, kv are constants of the controller",
    ]
    return ImportedLog(
        {"cell": cell(block, 1000.0)}, [tally], [found.path], [n for n in (found.note, *notes) if n]
    )
