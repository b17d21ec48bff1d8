"""Layouts, blocks and pairs."""

import numpy as np
import pytest

from twinstudio.model.block import Block, joined
from twinstudio.model.errors import LayoutError
from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout, Signal, joint_signals, pose_signal

JOINTS = ("a", "b")
LAYOUT = Layout(
    (
        *joint_signals(JOINTS, ["b"], kinds=("joint.position", "joint.effort")),
        pose_signal("tcp.pose"),
    )
)


def block(n: int = 4, first: int = 10) -> Block:
    values = np.arange(n * LAYOUT.width, dtype=np.float64).reshape(n, LAYOUT.width)
    return Block(LAYOUT, np.arange(n, dtype=np.int64), values, first)


def test_that_a_prismatic_joint_has_metres_and_newtons() -> None:
    assert LAYOUT.signal("joint.position").units == ("rad", "m")
    assert LAYOUT.signal("joint.effort").units == ("N m", "N")


def test_that_columns_are_found_by_signal_and_label() -> None:
    assert LAYOUT.column("joint.effort", "b") == 3
    assert LAYOUT.columns[4] == "tcp.pose/x"
    assert LAYOUT.width == 11
    with pytest.raises(LayoutError, match=r"no signal 'imu'; there are joint\.position"):
        LAYOUT.span("imu")
    with pytest.raises(LayoutError, match="no component 'c'; it has a, b"):
        LAYOUT.column("joint.effort", "c")


def test_that_equal_layouts_have_equal_digests() -> None:
    again = Layout(tuple(LAYOUT.signals))
    assert again.digest == LAYOUT.digest
    assert Layout(LAYOUT.signals[:1]).digest != LAYOUT.digest


@pytest.mark.parametrize(
    ("name", "labels", "units", "complaint"),
    [
        ("Joint", ("a",), ("m",), "lower-case"),
        ("x", (), (), "at least one component"),
        ("x", ("a",), ("m", "m"), "1 labels but 2 units"),
        ("x", ("a", "a"), ("m", "m"), "labels repeat"),
        ("x", ("a",), ("ell",), "unknown unit 'ell'"),
    ],
)
def test_that_a_senseless_signal_is_refused(
    name: str, labels: tuple[str, ...], units: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(Exception, match=complaint):
        Signal(name=name, labels=labels, units=units)


def test_that_a_block_is_read_only_and_shaped() -> None:
    whole = block()
    with pytest.raises(ValueError, match="read-only"):
        whole.values[0, 0] = 1.0
    with pytest.raises(LayoutError, match="values must be float64"):
        Block(LAYOUT, np.arange(4, dtype=np.int64), np.zeros((4, 2)))
    with pytest.raises(LayoutError, match="stamps must be int64"):
        Block(LAYOUT, np.arange(4.0), np.zeros((4, 11)))  # type: ignore[arg-type]


def test_that_a_part_keeps_its_sequence_numbers() -> None:
    part = block().part(slice(1, 3))
    assert (part.first, len(part)) == (11, 2)
    assert np.array_equal(part.of("joint.effort"), block().of("joint.effort")[1:3])


def test_that_joined_parts_are_the_whole() -> None:
    whole = block()
    again = joined([whole.part(slice(0, 1)), whole.part(slice(1, 4))])
    assert np.array_equal(again.values, whole.values)
    with pytest.raises(LayoutError, match="nothing to join"):
        joined([])


def test_that_the_gap_is_twin_minus_cell() -> None:
    whole = block()
    twin, cell = whole.values + 2.0, whole.values.copy()
    assert np.all(Pair(LAYOUT, whole.stamps, twin, cell).gap == 2.0)
    with pytest.raises(LayoutError, match="cell values must have shape"):
        Pair(LAYOUT, whole.stamps, twin, cell[:2])
