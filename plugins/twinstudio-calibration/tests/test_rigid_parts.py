"""Parts of the rigid-body regression: contact, smoother, prior of real bodies, logs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twinstudio_calibration.bodies import divergence, minimise, nearest_real
from twinstudio_calibration.joint_terms import contact, followed
from twinstudio_calibration.logs import advancing, joint_log
from twinstudio_calibration.motion import smooth
from twinstudio_calibration.rigid_body import parameters_of, pseudo_inertia

from twinstudio.plugin import api
from twinstudio.plugin.testing import make_block

BALL = np.array([2.0, 0.1, 0.0, -0.2, 0.05, 0.0, 0.06, 0.0, 0.0, 0.05])
steps = st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=60)


@given(steps, st.floats(1e-3, 1.0))
def test_that_a_contact_never_bears_more_than_it_slides_at(moves: list, travel: float) -> None:
    state = contact(np.cumsum(moves), travel, 1.0)
    assert np.abs(state).max() <= 1.0


def test_that_a_contact_is_a_spring_before_it_slides() -> None:
    state = contact(np.array([0.0, 0.0, 0.25, 0.5, 2.0, 1.5]), 1.0, 1.0)
    np.testing.assert_allclose(state, [0.0, 0.0, 0.25, 0.5, 1.0, 0.5])


@given(steps, st.floats(0.0, 1.0))
def test_that_what_is_dragged_stays_within_the_play(moves: list, slack: float) -> None:
    position = np.cumsum(moves)
    assert np.abs(followed(position, slack) - position).max() <= slack + 1e-12


def test_that_the_smoother_keeps_parabolas_to_their_ends() -> None:
    time = np.arange(500) * 0.01
    parabola = (1.0 + 2.0 * time - 0.7 * time**2)[:, None]
    np.testing.assert_allclose(smooth(parabola, 0.01, 3.0), parabola, atol=1e-6)


def test_that_the_pseudo_inertia_is_undone() -> None:
    np.testing.assert_allclose(parameters_of(pseudo_inertia(BALL)), BALL)


def test_that_the_prior_pulls_an_impossible_fit_back_to_a_real_body() -> None:
    impossible = BALL * np.array([-1, *[1] * 9])
    found = minimise(np.eye(10), impossible, BALL, 1e-3, BALL, np.zeros(10, dtype=bool))
    assert np.isinf(divergence(impossible, BALL))
    assert np.linalg.eigvalsh(pseudo_inertia(found)).min() > 0.0


def test_that_the_nearest_real_body_keeps_mass_and_centre() -> None:
    wrong = BALL.copy()
    wrong[4] = -1.0
    real = nearest_real(wrong, 0.01)
    np.testing.assert_allclose(real[:4], wrong[:4])
    assert np.linalg.eigvalsh(pseudo_inertia(real)).min() > 0.0


def test_that_a_joint_that_the_log_lacks_is_named() -> None:
    with pytest.raises(api.PluginError, match="joint9"):
        joint_log(make_block(), ["joint1", "joint9"])


def test_that_columns_come_in_the_order_asked_for() -> None:
    block = make_block()
    log = joint_log(block, ["joint2", "joint1"])
    np.testing.assert_array_equal(log.position, block.of("joint.position")[:, ::-1])
    assert log.current is None


def test_that_samples_whose_clock_stands_still_are_left_out() -> None:
    block = make_block()
    stamps = block.stamps.copy()
    stamps[5] = stamps[4]
    log = joint_log(api.Block(block.layout, stamps, block.values.copy()), ["joint1"])
    assert len(advancing(log)) == len(log) - 1
