from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.flow.align import pair
from twinstudio.model.block import Block
from twinstudio.model.errors import AlignError
from twinstudio.model.signals import Layout, Signal, joint_signals, pose_signal

MS = 1_000_000
EPOCH = 1_700_000_000_000_000_000


def block(stamps, values, labels=None, unit="rad") -> Block:
    values = np.array(values, np.float64)
    if values.ndim == 1:
        values = values[:, None]
    labels = labels or tuple(f"j{k}" for k in range(values.shape[1]))
    signal = Signal(name="joint.position", labels=labels, units=(unit,) * len(labels))
    return Block(Layout((signal,)), np.array(stamps, np.int64), values)


@dataclass
class Shift:
    """A clock that runs `offset` ns ahead of the local one."""

    offset: int
    bound: float = 1e-4

    def to_local(self, stamps):
        return stamps - self.offset


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 200),
    st.integers(1, 200),
    st.sampled_from([0, EPOCH, -(10**15)]),
)
def test_that_a_linear_motion_is_met_exactly_at_every_common_instant(seed, n, m, origin):
    rng = np.random.default_rng(seed)
    twin_t = origin + np.unique(rng.integers(0, 10**9, n))
    cell_t = origin + np.sort(rng.integers(-(10**8), 11 * 10**8, m))
    inside = (cell_t >= twin_t[0]) & (cell_t <= twin_t[-1])
    slope = np.array([[2.0, -3.0]])
    twin = block(twin_t, (twin_t - origin)[:, None] / 1e9 * slope)
    cell = block(cell_t, np.zeros((m, 2)))
    if not inside.any():
        with pytest.raises(AlignError):
            pair(twin, cell)
        return
    made = pair(twin, cell, max_hole=10**10)
    np.testing.assert_array_equal(made.stamps, cell_t[inside])
    np.testing.assert_allclose(
        made.twin, (made.stamps - origin)[:, None] / 1e9 * slope, atol=1e-12, rtol=0
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 299), max_size=6))
def test_that_working_block_by_block_gives_the_same_pair(seed, cuts):
    rng = np.random.default_rng(seed)
    stamps = np.cumsum(rng.integers(MS // 2, 2 * MS, 400))
    twin = block(stamps, rng.normal(size=(400, 3)))
    cell = block(np.cumsum(rng.integers(MS // 2, 2 * MS, 300)), rng.normal(size=(300, 3)))
    whole = pair(twin, cell, max_hole=3 * MS)
    parts = []
    edges = sorted({0, *cuts, 300})
    for low, high in pairwise(edges):
        some = cell.part(slice(low, high))
        near = slice(
            max(0, int(stamps.searchsorted(some.stamps[0])) - 1),
            int(stamps.searchsorted(some.stamps[-1])) + 1,
        )
        try:
            parts.append(pair(twin.part(near), some, max_hole=3 * MS))
        except AlignError:
            assert some.stamps[0] > stamps[-1] or some.stamps[-1] < stamps[0]
    np.testing.assert_array_equal(whole.stamps, np.concatenate([p.stamps for p in parts]))
    np.testing.assert_array_equal(whole.twin, np.concatenate([p.twin for p in parts]))
    np.testing.assert_array_equal(whole.cell, np.concatenate([p.cell for p in parts]))


def test_that_exact_hits_are_taken_as_they_are_even_beside_missing_readings():
    twin = block([0, 10, 20, 30], [1.0, np.nan, 3.0, 4.0])
    made = pair(twin, block([0, 5, 10, 20, 25, 30], np.zeros(6)))
    np.testing.assert_array_equal(made.twin[:, 0], [1.0, np.nan, np.nan, 3.0, 3.5, 4.0])


def test_that_holes_of_the_twin_are_not_bridged():
    stamps = np.concatenate([np.arange(50), np.arange(100, 150)]) * MS
    twin = block(stamps, np.ones(100))
    cell = block(np.arange(150) * MS + MS // 2, np.zeros(150))
    made = pair(twin, cell)
    missing = made.stamps[np.isnan(made.twin[:, 0])]
    np.testing.assert_array_equal(missing, np.arange(49, 100) * MS + MS // 2)
    assert not np.isnan(pair(twin, cell, max_hole=60 * MS).twin).any()


def test_that_the_edges_of_a_hole_still_count():
    stamps = np.concatenate([np.arange(50), np.arange(100, 150)]) * MS
    cell = block(np.array([48, 49, 70, 100, 101]) * MS, np.zeros(5))
    made = pair(block(stamps, np.ones(100)), cell)
    np.testing.assert_array_equal(np.isnan(made.twin[:, 0]), [False, False, True, False, False])


def test_that_clocks_are_mapped_and_their_bounds_add_up():
    t = np.arange(100) * MS
    twin = block(t + 7 * 10**9, t / 1e9)
    cell = block(t - 3 * 10**9, t / 1e9)
    made = pair(twin, cell, twin_clock=Shift(7 * 10**9), cell_clock=Shift(-3 * 10**9, 2e-4))
    np.testing.assert_array_equal(made.stamps, t)
    np.testing.assert_array_equal(made.gap, 0.0)
    assert made.uncertainty == pytest.approx(3e5)


def test_that_no_overlap_is_told_in_plain_words():
    twin = block(EPOCH + np.arange(10) * MS, np.zeros(10))
    cell = block(EPOCH + 10**9 + np.arange(10) * MS, np.zeros(10))
    with pytest.raises(AlignError, match=r"twin covers 0.000 to 0.009 s, the cell 1.000 to 1.009"):
        pair(twin, cell)


def test_that_only_shared_signals_are_paired_in_the_cells_order():
    kinds = ("joint.position", "joint.velocity", "joint.effort")
    twin_layout = Layout(joint_signals(("a", "b"), kinds=kinds[::-1]))
    cell_layout = Layout(joint_signals(("a", "b"), kinds=(*kinds[:2], "joint.current")))
    stamps = np.arange(5, dtype=np.int64)
    twin = Block(twin_layout, stamps, np.arange(30.0).reshape(5, 6))
    cell = Block(cell_layout, stamps, np.zeros((5, 6)))
    made = pair(twin, cell)
    assert made.layout.names == ("joint.position", "joint.velocity")
    np.testing.assert_array_equal(made.twin[0], [4, 5, 2, 3])
    assert pair(twin, cell, names=["joint.velocity"]).layout.width == 2
    with pytest.raises(AlignError, match=r"twin has no signal 'joint\.current'"):
        pair(twin, cell, names=["joint.current"])


def test_that_signals_that_mean_something_else_are_refused():
    one = block([0, 1], [0.0, 1.0])
    with pytest.raises(AlignError, match="components j0 in the twin but k in the cell"):
        pair(one, block([0, 1], [0.0, 1.0], labels=("k",)))
    with pytest.raises(AlignError, match="is in rad in the twin but in m in the cell"):
        pair(one, block([0, 1], [0.0, 1.0], unit="m"))
    other = Layout((Signal(name="ambient.temperature", labels=("t",), units=("degC",)),))
    with pytest.raises(AlignError, match="no signal in common"):
        pair(one, Block(other, np.array([0, 1]), np.zeros((2, 1))))


def test_that_disordered_stamps_and_empty_sides_are_refused():
    fine = block([0, 5, 9], np.zeros(3))
    with pytest.raises(AlignError, match="stamps of the twin repeat or go backwards"):
        pair(block([0, 5, 5], np.zeros(3)), fine)
    with pytest.raises(AlignError, match="stamps of the cell repeat or go backwards"):
        pair(fine, block([0, 6, 5], np.zeros(3)))
    with pytest.raises(AlignError, match="the twin has no samples"):
        pair(block([], np.zeros((0, 1))), fine)


def test_that_one_sample_on_each_side_pairs_only_at_the_same_instant():
    made = pair(block([7], [1.0]), block([7], [2.0]))
    assert made.gap[0, 0] == -1.0
    with pytest.raises(AlignError):
        pair(block([7], [1.0]), block([8], [2.0]))


def turned(angles, axis=2) -> np.ndarray:
    pose = np.zeros((len(angles), 7))
    pose[:, 3 + axis] = np.sin(np.asarray(angles) / 2)
    pose[:, 6] = np.cos(np.asarray(angles) / 2)
    return pose


def test_that_rotations_are_interpolated_on_the_arc_with_the_cells_sign():
    layout = Layout((pose_signal("tcp.pose"),))
    twin_t, cell_t = np.arange(0, 101, 20) * MS, np.arange(0, 100, 3) * MS
    twin_pose = turned(twin_t * 0.03 / MS)
    twin_pose[::2, 3:] *= -1.0
    cell_pose = turned(cell_t * 0.03 / MS)
    cell_pose[::3, 3:] *= -1.0
    twin_pose[:, 0], cell_pose[:, 0] = twin_t / 1e9, cell_t / 1e9
    made = pair(Block(layout, twin_t, twin_pose), Block(layout, cell_t, cell_pose))
    np.testing.assert_allclose(made.gap, 0.0, atol=1e-14)


def test_that_a_rotation_without_reading_stays_missing():
    layout = Layout((pose_signal("tcp.pose"),))
    pose = turned([0.0, 0.1, 0.2])
    pose[1] = np.nan
    stamps = np.array([0, 10, 20])
    made = pair(
        Block(layout, stamps, pose), Block(layout, np.array([0, 4, 20]), turned([0.0, 0.0, 0.0]))
    )
    np.testing.assert_array_equal(np.isnan(made.twin[:, 3]), [False, True, False])
