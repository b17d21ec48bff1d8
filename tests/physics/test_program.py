"""The motion program: smooth, within its limits, and obedient."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.model.errors import PhysicsError
from twinstudio.physics.cellfile import MotionLimits, WayPoint
from twinstudio.physics.program import Player, Program

LIMITS = MotionLimits(velocity=(1.0, 0.5), acceleration=(4.0, 2.0))
HOME = np.array([0.1, -0.2])
STEP = 1e-3
angles = st.floats(-3.0, 3.0, allow_nan=False)
points = st.lists(
    st.builds(
        WayPoint,
        to=st.tuples(angles, angles),
        speed=st.floats(0.05, 1.0),
        dwell=st.floats(0.0, 2.0),
    ),
    min_size=1,
    max_size=5,
)


def program(*ways: WayPoint) -> Program:
    return Program(HOME, ways, LIMITS)


def to(*target: float, speed: float = 1.0, dwell: float = 0.0) -> WayPoint:
    return WayPoint(to=target, speed=speed, dwell=dwell)


def whole(plan: Program, count: int = 4001):
    return plan.at(np.linspace(0.0, plan.approach_time + 2.0 * plan.cycle_time, count))


@given(points)
@settings(max_examples=60, deadline=None)
def test_that_speed_and_acceleration_stay_within_limits(ways):
    sent = whole(program(*ways))
    assert (np.abs(sent.velocity) <= np.array([1.0, 0.5]) * (1 + 1e-9)).all()
    assert (np.abs(sent.acceleration) <= np.array([4.0, 2.0]) * (1 + 1e-9)).all()


@given(points)
@settings(max_examples=60, deadline=None)
def test_that_velocity_is_the_slope_of_position_everywhere(ways):
    plan = program(*ways)
    time = np.linspace(0.0, plan.approach_time + 2.0 * plan.cycle_time, 801)
    d = 1e-5
    before, now, after = plan.at(np.maximum(time - d, 0)), plan.at(time), plan.at(time + d)
    span = (time + d - np.maximum(time - d, 0))[:, None]
    slope = (after.position - before.position) / span
    # Half the span times the largest acceleration bounds the error, at the ends too.
    np.testing.assert_allclose(slope, now.velocity, atol=4.0 * d + 1e-9)


def test_that_the_limit_is_reached_and_not_only_kept():
    fast = whole(program(to(3.0, 0.0), to(-3.0, 0.0)))
    assert np.abs(fast.velocity[:, 0]).max() == pytest.approx(1.0, rel=1e-3)
    short = whole(program(to(0.1001, -0.2), to(0.0999, -0.2)))
    assert np.abs(short.acceleration[:, 0]).max() == pytest.approx(4.0, rel=1e-2)


def test_that_the_speed_of_a_way_point_scales_its_move():
    slow = whole(program(to(3.0, 0.0, speed=0.25), to(-3.0, 0.0, speed=0.25)))
    assert np.abs(slow.velocity[:, 0]).max() == pytest.approx(0.25, rel=1e-3)


def test_that_way_points_are_reached_and_held_in_turn():
    plan = program(to(1.0, 0.0, dwell=0.5), to(-1.0, 0.3, dwell=0.25))
    start = plan.at(np.array([0.0]))
    np.testing.assert_array_equal(start.position[0], HOME)
    # The approach ends with the dwell at the first point.
    for t in (plan.approach_time - 0.5, plan.approach_time - 0.25, plan.approach_time):
        held = plan.at(np.array([t + 1e-9]))
        np.testing.assert_allclose(held.position[0], [1.0, 0.0], atol=1e-7)
        np.testing.assert_allclose(held.velocity[0], 0.0, atol=1e-6)
    once = plan.at(np.array([plan.approach_time + plan.cycle_time]))
    np.testing.assert_allclose(once.position[0], [1.0, 0.0], atol=1e-9)
    assert np.isclose(whole(plan).position[:, 1].max(), 0.3)


def test_that_a_cell_that_is_where_it_should_be_stays_there():
    plan = Program(HOME, (WayPoint(to=tuple(HOME)),), LIMITS)
    sent = plan.at(np.linspace(0.0, 5.0, 50))
    np.testing.assert_array_equal(sent.position, np.tile(HOME, (50, 1)))
    np.testing.assert_array_equal(sent.velocity, 0.0)


def test_that_an_empty_program_is_refused():
    with pytest.raises(PhysicsError, match="at least one way-point"):
        program()


def player() -> Player:
    return Player(program(to(1.0, 0.5), to(-1.0, -0.5, dwell=0.2)), step=STEP)


def test_that_blocks_of_any_size_give_the_same_motion():
    first, second = player(), player()
    whole_run = first.advance(3000).position
    parts = np.vstack([second.advance(n).position for n in (1, 7, 992, 5, 1995)])
    np.testing.assert_allclose(parts, whole_run, atol=1e-12)


def test_that_halting_is_smooth_complete_and_can_be_taken_back():
    play = player()
    moving = play.advance(1500)
    play.running = False
    halting = play.advance(1000)
    assert play.rate == 0.0
    np.testing.assert_array_equal(halting.velocity[-100:], 0.0)
    np.testing.assert_array_equal(halting.position[-100:], np.tile(halting.position[-1], (100, 1)))
    play.running = True
    resumed = play.advance(1500)
    path = np.vstack([moving.position, halting.position, resumed.position])
    speed = np.vstack([moving.velocity, halting.velocity, resumed.velocity])
    assert np.abs(resumed.velocity).max() > 0.1
    # No step: positions and velocities go on from where they were.
    assert np.abs(np.diff(path, axis=0)).max() <= 1.001 * STEP
    assert np.abs(np.diff(speed, axis=0)).max() <= STEP * (4.0 + 1.0 / 0.5) * 1.001
    trapezium = 0.5 * (speed[1:] + speed[:-1]) * STEP
    np.testing.assert_allclose(np.diff(path, axis=0), trapezium, atol=2e-6)


def test_that_the_speed_factor_scales_the_velocity():
    play = player()
    play.factor = 0.5
    play.advance(1000)
    cycle = play.advance(round(2.0 * play.program.cycle_time / STEP))
    full = whole(play.program)
    for joint in range(2):
        peak = np.abs(full.velocity[:, joint]).max()
        assert np.abs(cycle.velocity[:, joint]).max() == pytest.approx(0.5 * peak, rel=1e-3)
