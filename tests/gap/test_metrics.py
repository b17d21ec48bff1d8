import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.gap.metrics import (
    Sums,
    figures,
    floor_of_repeats,
    pose_distance,
    tool_distance,
)
from twinstudio.model.errors import LayoutError
from twinstudio.model.kinematics import Kinematics, KinematicTree, Link


def test_that_figures_follow_their_definitions():
    twin, cell = np.array([1.0, 2.0, 3.0]), np.array([0.0, 4.0, 3.0])
    made = figures(twin, cell)
    assert made.rmse == pytest.approx(np.sqrt(5 / 3))
    assert made.maximum == 2.0
    assert made.bias == pytest.approx(-1 / 3)
    assert made.relative == pytest.approx(np.sqrt(5) / 5)
    assert made.n == 3


def test_that_samples_without_a_reading_on_either_side_are_left_out():
    twin = np.array([[1.0, np.nan], [2.0, 5.0], [np.inf, 6.0]])
    cell = np.array([[0.5, 1.0], [np.nan, 4.0], [1.0, 6.0]])
    sums = Sums.of(twin, cell)
    assert sums.left_out.tolist() == [2, 1]
    assert sums.figures(slice(0, 1)).rmse == 0.5
    assert sums.figures(slice(0, 1)).n == 1
    assert sums.figures(slice(1, 2)).maximum == 1.0


def test_that_nothing_to_compare_gives_no_figures():
    assert figures(np.array([np.nan]), np.array([1.0])) is None
    assert figures(np.empty(0), np.empty(0)) is None


def test_that_a_resting_cell_has_no_relative_error():
    made = figures(np.ones(4), np.zeros(4))
    assert made.relative is None
    assert made.rmse == 1.0


def test_that_differing_shapes_are_refused():
    with pytest.raises(LayoutError):
        figures(np.ones(3), np.ones(4))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(0, 200))
def test_that_sums_of_parts_equal_the_sum_of_the_whole(seed, n, cut):
    rng = np.random.default_rng(seed)
    twin, cell = rng.normal(size=(2, n, 3))
    twin[rng.random((n, 3)) < 0.2] = np.nan
    whole = Sums.of(twin, cell)
    parts = Sums.of(twin[:cut], cell[:cut]) + Sums.of(twin[cut:], cell[cut:])
    for name in ("n", "maximum", "left_out"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    np.testing.assert_allclose(whole.squares, parts.squares, rtol=1e-12)
    np.testing.assert_allclose(whole.total, parts.total, atol=1e-12)


def test_that_the_floor_of_repeats_is_unbiased():
    rng = np.random.default_rng(3)
    motion = np.sin(np.linspace(0, 9, 40_000))[:, None] * [1.0, 100.0]
    for repeats in (2, 3, 10):
        runs = [motion + rng.normal(size=motion.shape) * [0.01, 2.0] for _ in range(repeats)]
        np.testing.assert_allclose(floor_of_repeats(runs), [0.01, 2.0], rtol=0.02)


def test_that_the_floor_leaves_out_missing_readings():
    runs = [np.array([[1.0, 0.0], [5.0, np.nan]]), np.array([[3.0, np.nan], [np.nan, 1.0]])]
    made = floor_of_repeats(runs)
    assert made[0] == pytest.approx(np.sqrt(2.0))
    assert np.isnan(made[1])


def test_that_a_floor_needs_repeats_of_one_shape():
    with pytest.raises(LayoutError, match="two repeats, got 1"):
        floor_of_repeats([np.ones((3, 1))])
    with pytest.raises(LayoutError, match="differ in shape"):
        floor_of_repeats([np.ones((3, 1)), np.ones((4, 1))])


def arm() -> Kinematics:
    """Two links of 1 m that turn about z."""
    bar = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    links = (
        Link(name="upper", joint="a", kind="revolute", coordinate=0),
        Link(name="lower", joint="b", parent=0, kind="revolute", coordinate=1, origin=bar),
        Link(name="tool", parent=1, origin=bar),
    )
    return Kinematics(KinematicTree(links=links, joints=("a", "b"), tip="tool"))


def test_that_the_tool_distance_is_that_of_the_tool_points():
    cell = np.array([[0.0, 0.0], [0.3, 0.2], [np.nan, 0.0]])
    twin = np.array([[np.pi / 2, 0.0], [0.3, 0.2], [0.0, 0.0]])
    made = tool_distance(twin, cell, arm())
    np.testing.assert_allclose(made[:2], [2 * np.sqrt(2), 0.0], atol=1e-12)
    assert np.isnan(made[2])


def test_that_pose_distance_ignores_orientation():
    twin, cell = np.zeros((1, 7)), np.ones((1, 7))
    assert pose_distance(twin, cell)[0] == pytest.approx(np.sqrt(3))
