"""Stamps that a source's clock cannot have shown are told from those that it can."""

import numpy as np
import pytest
from wire_helpers import LAYOUT

from twinstudio.flow.believable import AHEAD, BEHIND, astray, believable, longest_rising
from twinstudio.flow.clock import ClockModel
from twinstudio.model.block import Block

NOW = 5_000 * 10**9
OFFSET = -3_000 * 10**9
THERE = NOW + OFFSET
CLOCK = ClockModel(reference=NOW, shift=OFFSET)


def block(*stamps, received=NOW):
    return Block(LAYOUT, np.array(stamps, np.int64), np.zeros((len(stamps), 2)), 7, received)


@pytest.mark.parametrize(
    "wild", [THERE + 2 * AHEAD, THERE - 2 * BEHIND, 2**63 - 1, -(2**63), THERE + 10**17]
)
def test_that_a_wild_stamp_alone_is_left_out(wild):
    given = block(THERE - 2, wild, THERE - 1)
    assert astray(given, CLOCK).tolist() == [False, True, False]
    assert believable(given, CLOCK).stamps.tolist() == [THERE - 2, THERE - 1]


def test_that_a_block_as_it_should_be_is_handed_on_untouched():
    given = block(THERE - AHEAD, THERE, THERE + AHEAD // 2)
    assert believable(given, CLOCK) is given


def test_that_nothing_is_doubted_before_the_clock_is_known_or_without_arrival():
    wild = block(2**62)
    assert believable(wild, None) is wild
    unsent = block(2**62, received=None)
    assert believable(unsent, CLOCK) is unsent


@pytest.mark.parametrize(
    ("stamps", "kept"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2, 10**18, 3, 4], [1, 2, 3, 4]),
        ([1, 2, -(10**18), 3], [1, 2, 3]),
        ([1, 2, 2, 3, 1, 4], [1, 2, 3, 4]),
        ([50, 51, 0, 1, 2], [0, 1, 2]),
        ([], []),
    ],
)
def test_that_a_wild_stamp_in_a_log_costs_itself_alone(stamps, kept):
    array = np.array(stamps, np.int64)
    assert array[longest_rising(array)].tolist() == kept
