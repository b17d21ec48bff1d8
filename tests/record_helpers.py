"""What the tests of recordings share."""

from pathlib import Path

import numpy as np

from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout, Signal, joint_signals, pose_signal

JOINTS = ("shoulder", "elbow", "slide")
LAYOUT = Layout(
    (
        pose_signal("tcp.pose"),
        *joint_signals(
            JOINTS,
            ("slide",),
            kinds=("joint.effort", "joint.position", "joint.temperature", "command.velocity"),
        ),
        Signal(name="ambient.temperature", labels=("air",), units=("degC",)),
    )
)
SMALL = Layout(joint_signals(("a",), kinds=("joint.position",)))


def block(
    layout: Layout = LAYOUT,
    count: int = 10,
    *,
    first: int = 0,
    start: int = 0,
    step: int = 1_000_000,
    received: int | None = None,
    seed: int = 0,
) -> Block:
    """`count` samples of noise."""
    values = np.random.default_rng(seed + first).standard_normal((count, layout.width))
    stamps = start + step * np.arange(count, dtype=np.int64)
    return Block(layout, stamps, values, first, received)


def announced(path: Path, *names: str, layout: Layout = LAYOUT) -> RecordingWriter:
    """A writer with sources of that layout."""
    writer = RecordingWriter(path)
    for name in names:
        writer.source(name, SourceDescription(name, f"the {name}", layout, 1000.0))
    return writer


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two float arrays are equal to the last bit, NaN payloads included."""
    return np.array_equal(
        np.ascontiguousarray(one).view(np.uint64), np.ascontiguousarray(other).view(np.uint64)
    )
