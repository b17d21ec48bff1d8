"""The live gap goes on over holes in the data and clocks that start again."""

import numpy as np
import pytest

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.history import History
from twinstudio.flow.protocol import Event
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.session.gapline import LONGEST_PIECE, GapLine

LAYOUT = Layout(joint_signals(("a",), kinds=("joint.position",)))
MS = 1_000_000
SECOND = 10**9


class FakeSource:
    """What the gap line wants of a source."""

    def __init__(self):
        self.clock = ClockModel(reference=0, shift=0)
        self.history = History(LAYOUT, 2**20)

    def feed(self, start, n=200):
        stamps = start + np.arange(n, dtype=np.int64) * MS
        self.history.append(Block(LAYOUT, stamps, np.zeros((n, 1))))


@pytest.fixture
def line():
    return GapLine(budget=2**20, window=10.0)


@pytest.fixture
def cell():
    return FakeSource()


@pytest.fixture
def twin():
    return FakeSource()


def paired(line, twin, cell):
    for _ in range(5):
        line.advance(twin, cell)
    return line.history.kept if line.history is not None else 0


def event(code, stamp):
    return Event(v=1, instance="i", seq=0, stamp=stamp, level="info", code=code, text="", data={})


def test_that_a_hole_longer_than_a_piece_does_not_end_the_gap(line, twin, cell):
    later = SECOND + 3 * LONGEST_PIECE
    cell.feed(SECOND)
    twin.feed(SECOND, 2 * later // MS)
    before = paired(line, twin, cell)
    assert before == 200
    cell.feed(later)
    assert paired(line, twin, cell) == 400


def test_that_a_cell_whose_clock_starts_again_is_compared_again(line, twin, cell):
    far = 5_000 * SECOND
    cell.feed(far)
    twin.feed(far, 1000)
    assert paired(line, twin, cell) == 200
    cell.history = History(LAYOUT, 2**20)
    cell.clock = ClockModel(reference=far + 500 * MS, shift=-far - 500 * MS)
    cell.feed(0)
    assert paired(line, twin, cell) == 400


def test_that_only_the_twin_says_from_when_on_it_stands_where_the_cell_is(line, twin, cell):
    cell.feed(SECOND)
    twin.feed(SECOND, 1000)
    line.heard("cell", event("synchronised", 1 << 61))
    assert paired(line, twin, cell) == 200


def test_that_a_jump_told_with_a_wild_stamp_does_not_end_the_delays(line, twin, cell):
    cell.feed(SECOND)
    line.heard("cell", event("seek", 1 << 61))
    cell.role = "cell"
    assert len(line._recent(cell)) == 200


def test_that_metrics_get_the_very_samples_of_the_sliding_window(line, twin, cell):
    line.window = 1.0
    cell.feed(SECOND, 4000)
    twin.feed(SECOND, 4000)
    assert line.pair(twin, cell) is None
    assert paired(line, twin, cell) == 4000
    with line._lock:
        samples = sum(part.totals.samples for part in line._parts)
    found = line.pair(twin, cell)
    assert len(found) == samples < 4000
    assert found.stamps[-1] == SECOND + 3999 * MS
    assert found.layout.names == ("joint.position",)


def test_that_metrics_get_nothing_from_before_a_reset(line, twin, cell):
    cell.feed(SECOND, 1000)
    twin.feed(SECOND, 3000)
    assert paired(line, twin, cell) == 1000
    line.reset()
    assert line.pair(twin, cell) is None
    cell.feed(2 * SECOND, 500)
    assert paired(line, twin, cell) == 1500
    found = line.pair(twin, cell)
    assert (len(found), found.stamps[0]) == (500, 2 * SECOND)


def test_that_metrics_get_nothing_from_before_the_twin_was_set_to_the_cell(line, twin, cell):
    cell.feed(SECOND, 1000)
    twin.feed(SECOND, 1500)
    line.heard("twin", event("synchronised", SECOND + 600 * MS))
    assert paired(line, twin, cell) == 400
    found = line.pair(twin, cell)
    assert (len(found), found.stamps[0]) == (400, SECOND + 600 * MS)
