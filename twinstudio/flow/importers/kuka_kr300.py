"""KUKA KR300 R2500 ultra SE at 250 Hz, two encoders: data.mat, struct ``rec``."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.importers import matfile, table
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.model.signals import Layout, Signal, joint_signals

NAME = "kuka_kr300"
DEFAULT = "FF_A/data.mat"
AXES = tuple(f"a{i}" for i in range(1, 7))
# Axes that have a second encoder, behind the gear.
SECONDARY = AXES[:3]
# The pose in which the recorded angles are zero [deg], and the gears.
ZERO_POSE = np.array([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
GEARS = np.array([1798 / 7, 1872 / 7, 757 / 3, 221.0, 5032 / 21, 206793 / 1340])
FIELDS = (
    "time_cont",
    "act_pos_mot_deg",
    "act_vel_mot_deg_per_s",
    "act_torque_abs_nm",
    "ref_pos_deg",
    "act_pos_se_deg",
    "act_vel_se_deg_per_s",
)
NOTES = (
    (
        "angles are the recorded ones plus the pose [0, -90, 90, 0, 0, 0] deg they are relative to,"
        " so joint.position is the pose in the robot's own convention; the same for"
        " command.position and secondary.position"
    ),
    (
        "act_torque_abs_nm is the torque of the motors (below 20 N m, while gravity alone asks"
        " about 1 kN m of axis 2): motor.effort has it as logged, joint.effort is it times the gear"
        " ratio, without gear losses"
    ),
    (
        "secondary.* is the encoder behind the gear of axes 1-3; axes 4-6 have none (zeros in the"
        " log) and are left out"
    ),
    "left out as derived from the others: act_torque_rel_nm, ref_vel_simple_deg_per_s, error_*",
)


def layout() -> Layout:
    """The signals of this log."""
    kinds = ("joint.position", "joint.velocity", "joint.effort", "command.position")
    motor = Signal(name="motor.effort", labels=AXES, units=("N m",) * len(AXES))
    second = joint_signals(SECONDARY, kinds=("secondary.position", "secondary.velocity"))
    return Layout((*joint_signals(AXES, kinds=kinds), motor, *second))


def read(source: Path) -> ImportedLog:
    """The log `source`: data.mat, its folder, or the data set's folder (then FF_A)."""
    pattern = "data.mat" if (source / "data.mat").is_file() else "*/data.mat"
    found = one_file(source, pattern, DEFAULT)
    content = matfile.read(found.path)
    if missing := [name for name in FIELDS if f"rec.{name}" not in content]:
        raise wrong(found.path, NAME, f"it has no variable rec.{', rec.'.join(missing)}")
    time, *columns = (content[f"rec.{name}"] for name in FIELDS)
    time = time.ravel()
    if any(column.shape != (len(AXES), len(time)) for column in columns):
        raise wrong(found.path, NAME, f"the fields of rec are not {len(AXES)} x {len(time)}")
    tally = Tally(f"{found.path.parent.name}/{found.path.name}")
    signals = layout()
    parsed = table.from_seconds(time, _values(*(column.T for column in columns)), tally)
    block = parsed.sensible(signals, tally).block(signals)
    refuse_empty(found.path, tally)
    notes = [note for note in (found.note, *NOTES) if note]
    return ImportedLog({"cell": cell(block, 250.0)}, [tally], [found.path], notes)


def _values(
    position: NDArray[np.float64],
    velocity: NDArray[np.float64],
    torque: NDArray[np.float64],
    reference: NDArray[np.float64],
    second: NDArray[np.float64],
    second_velocity: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The fields, deg and motor N m, each [n, 6], as columns of `layout` in SI."""
    some = slice(len(SECONDARY))
    return np.hstack(
        [
            np.radians(position + ZERO_POSE),
            np.radians(velocity),
            torque * GEARS,
            np.radians(reference + ZERO_POSE),
            torque,
            np.radians((second + ZERO_POSE)[:, some]),
            np.radians(second_velocity[:, some]),
        ]
    )
