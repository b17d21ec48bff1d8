"""What a twin takes from a cell: no wild stamp and no absurd reading wrecks it."""

import numpy as np
import pytest

from twinstudio.flow.clock import ClockModel
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.physics.cellview import CellView, held
from twinstudio.physics.track import Track

LAYOUT = Layout(joint_signals(("a",), kinds=("joint.position",)))
CLOCK = ClockModel(reference=0, shift=0)
SECOND = 10**9
HOUR = 3600 * SECOND


@pytest.fixture
def track():
    return Track(CellView(position=[0], velocity=None, command=None, kind=None), [0.0])


def add(track, stamp, value, received, clock=CLOCK):
    block = Block(LAYOUT, np.array([stamp], np.int64), np.array([[value]]), 0, received)
    track.add(block, clock, None)


def test_that_samples_after_a_wild_stamp_are_still_used(track):
    add(track, SECOND, 1.0, SECOND)
    add(track, SECOND + 10 * HOUR, 2.0, SECOND)
    add(track, 2 * SECOND, 3.0, 2 * SECOND)
    assert track.due(3 * SECOND).position == [3.0]
    assert track.stale == 1


def test_that_samples_mapped_by_a_clock_that_was_wrong_are_forgotten(track):
    add(track, SECOND + HOUR, 1.0, SECOND, ClockModel(reference=0, shift=0, margin=2 * 3600.0))
    add(track, 2 * SECOND, 2.0, 2 * SECOND)
    assert track.due(3 * SECOND).position == [2.0]


@pytest.mark.parametrize("wild", [np.inf, -np.inf, 1e300, -1e9, np.nan])
def test_that_a_reading_no_robot_can_mean_holds_the_last_one(wild):
    values, missing = held(np.array([[1.0], [wild], [2.0]]), [0.5])
    assert values.tolist() == [[1.0], [1.0], [2.0]]
    assert missing == 1
    assert held(np.array([[wild]]), [0.5])[0].tolist() == [[0.5]]
