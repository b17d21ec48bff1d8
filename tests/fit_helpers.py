"""What the tests of calibration share: a scene of one axis, and what its cell did."""

from pathlib import Path
from shutil import copytree

import numpy as np
from msgspec import structs

from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.model.block import Block
from twinstudio.model.scene import Scene, load_scene, scenes_folder
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.physics.rollout import rollout

TRUE_GAIN = 0.05
KINDS = ("command.position", "joint.position")
LAYOUT = Layout(joint_signals(("axis",), ("axis",), kinds=KINDS))
SEEN = ("joint.position", "joint.velocity", "joint.effort", "command.position")


def axis_scene(folder: Path) -> Path:
    """A scene of one's own: the shipped axis, of which the twin is sluggish."""
    copytree(scenes_folder() / "emps_axis", folder)
    return folder


def commands(seconds: float, *, phase: float = 0.0) -> Block:
    """The axis is told to go to and fro, at 1 kHz."""
    stamps = np.arange(round(1000 * seconds), dtype=np.int64) * 1_000_000
    where = 0.05 * np.sin(2 * np.pi * 0.8 * stamps * 1e-9 + phase)
    return Block(LAYOUT, stamps, np.stack([where, where], axis=1))


def cell_of(scene: Scene, seconds: float, *, phase: float = 0.0) -> Block:
    """What a cell does whose position gain is `TRUE_GAIN`."""
    twin = structs.replace(scene.twin, position_gain=TRUE_GAIN)
    ran = rollout(structs.replace(scene, twin=twin), commands(seconds, phase=phase))
    return ran.block.select(SEEN)


def axis_log(folder: Path, path: Path, seconds: float = 2.0, *, phase: float = 0.0) -> Path:
    """A recording of that cell."""
    block = cell_of(load_scene(folder), seconds, phase=phase)
    writer = RecordingWriter(path)
    writer.source("cell", SourceDescription("cell", "the axis", block.layout, 1000.0))
    writer.write("cell", block)
    writer.close()
    return path
