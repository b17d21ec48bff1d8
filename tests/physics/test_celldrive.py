"""Friction, heat and delay of an emulated cell obey physics."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twinstudio.physics.celldrive import CommandLine, Controller, Friction, Heat
from twinstudio.physics.cellfile import (
    CommandTruth,
    ControllerTruth,
    FrictionTruth,
    MotorTruth,
    SensorTruth,
    ThermalTruth,
)
from twinstudio.physics.program import Setpoints
from twinstudio.physics.sensors import Sensors

STEP = 1e-3
RUB = FrictionTruth(
    coulomb=(1.0,), breakaway=(1.4,), stribeck=(0.05,), presliding=(0.5e-3,), viscous=(0.3,)
)
INERTIA = 0.5


def friction(truth: FrictionTruth = RUB) -> Friction:
    return Friction(truth, 1, step=STEP)


def pushed(push: float, seconds: float, rub: Friction | None = None):
    """Positions and velocities of a mass with friction, from rest; `push` grows for 1 s.

    A sudden push would overshoot the elastic contact and slip, as it does in reality.
    """
    rub = rub or friction()
    q, v, path = 0.0, np.zeros(1), []
    for k in range(round(seconds / STEP)):
        now = push * min(1.0, k * STEP)
        v = v + STEP * (now - rub.effort(v)) / INERTIA
        q += STEP * float(v[0])
        path.append((q, float(v[0])))
    return np.array(path)


def sliding(truth: FrictionTruth, speed: float) -> float:
    rub = friction(truth)
    return [float(rub.effort(np.array([speed]))[0]) for _ in range(5000)][-1]


@given(
    arrays(np.float64, st.integers(1, 300), elements=st.floats(-2.0, 2.0)),
    st.floats(-0.9, 0.9),
    st.floats(0.0, 3.0),
)
@settings(max_examples=150, deadline=None)
def test_that_friction_gives_back_no_more_than_it_has_stored(speeds, bias, surplus):
    truth = msgspec.structs.replace(RUB, asymmetry=(bias,), breakaway=(1.0 + surplus,))
    rub, work = friction(truth), 0.0
    for k, speed in enumerate(speeds):
        if k == len(speeds) // 2:
            rub.set_temperature(np.array([90.0]))  # even when its limits shrink
        v = np.array([speed])
        work += float(rub.effort(v)[0] * speed) * STEP
        assert work >= float(rub.stored()[0]) - 1e-12


def test_that_sliding_friction_is_coulomb_stribeck_and_viscous():
    for speed in (0.02, 0.2, 2.0):
        expected = 1.0 + 0.4 * np.exp(-((speed / 0.05) ** 2)) + 0.3 * speed
        assert sliding(RUB, speed) == pytest.approx(expected)
        assert sliding(RUB, -speed) == pytest.approx(-expected)


def test_that_asymmetry_moves_friction_of_both_directions():
    lopsided = msgspec.structs.replace(RUB, asymmetry=(0.1,), breakaway=(), viscous=(0.0,))
    assert sliding(lopsided, 1.0) == pytest.approx(1.1)
    assert sliding(lopsided, -1.0) == pytest.approx(-0.9)


def test_that_a_joint_below_break_away_comes_to_rest_and_does_not_creep():
    path = pushed(0.9 * 1.4, 20.0)
    assert np.abs(path[:, 0]).max() < 0.5e-3
    assert abs(path[-1, 0] - path[5000, 0]) < 1e-9
    assert abs(path[-1, 1]) < 1e-9
    assert path[-1, 0] == pytest.approx(0.9 * 0.5e-3, rel=1e-6)


def test_that_a_joint_above_break_away_slides():
    path = pushed(1.1 * 1.4, 2.0)
    assert path[-1, 1] > 0.5


def test_that_a_pushed_joint_springs_back_elastically():
    rub = friction()
    pushed(0.5, 10.0, rub)
    back = pushed(0.0, 10.0, rub)
    assert back[-1, 0] == pytest.approx(-0.5 / 1.4 * 0.5e-3, rel=1e-6)


def test_that_warm_friction_is_lower():
    soft = msgspec.structs.replace(RUB, temperature=(0.01,))
    rub = friction(soft)
    rub.set_temperature(np.array([65.0]))
    warm = [float(rub.effort(np.array([1.0]))[0]) for _ in range(100)][-1]
    assert warm == pytest.approx(1.3 * np.exp(-0.4))


def test_that_a_snag_holds_more_and_is_freed_again():
    rub = friction()
    rub.snag(np.array([3.0]))
    assert abs(pushed(4.0, 3.0, rub)[-1, 1]) < 1e-9
    rub.snag(np.array([0.0]))
    assert pushed(4.0, 3.0, rub)[-1, 1] > 1.0


# Two-node figures of a motor published with the Open Source Leg; the winding's resistance
# is chosen so that our law, referred to 25 degC, agrees at the steady temperature.
LEG = ThermalTruth(
    resistance=(0.376 * (1 + 0.00393 * (47.34 - 65.0)) / (1 + 0.00393 * (47.34 - 25.0)),),
    winding_capacity=(16.2924054,),
    case_capacity=(512.24906585,),
    winding_to_case=(1.07028672,),
    case_to_ambient=(1.940662,),
    ambient=21.0,
)


def test_that_temperatures_settle_at_the_published_figures():
    heat = Heat(LEG, 1, span=1.0)
    for _ in range(20_000):
        heat.advance(np.array([25.0]), np.zeros(1))
    assert heat.winding[0] == pytest.approx(47.34, abs=0.02)
    assert heat.case[0] == pytest.approx(37.98, abs=0.02)


def test_that_steady_temperatures_follow_from_losses_and_resistances():
    heat = Heat(LEG, 1, span=5.0)
    heat.extra = np.array([6.0])
    for _ in range(5_000):
        heat.advance(np.zeros(1), np.array([2.0]))
    case = 21.0 + 1.940662 * 8.0
    assert heat.case[0] == pytest.approx(case, rel=1e-9)
    assert heat.winding[0] == pytest.approx(case + 1.07028672 * 6.0, rel=1e-9)


def test_that_cooling_has_the_two_published_time_constants():
    """Sampled every second, a two-pole decay obeys its own second-order recursion."""
    heat = Heat(msgspec.structs.replace(LEG, start=(60.0,)), 1, span=1.0)
    above = []
    for _ in range(400):
        above.append(heat.winding[0] - 21.0)
        heat.advance(np.zeros(1), np.zeros(1))
    y = np.array(above)
    (a, b), *_ = np.linalg.lstsq(np.stack([y[1:-1], y[:-2]], 1), y[2:], rcond=None)
    constants = sorted(-1.0 / np.log(np.roots([1.0, -a, -b]).real))
    np.testing.assert_allclose(constants, [16.89, 1026.3], rtol=2e-3)


def test_that_the_span_of_a_step_does_not_matter():
    coarse, fine = Heat(LEG, 1, span=10.0), Heat(LEG, 1, span=0.01)
    coarse.extra = fine.extra = np.array([5.0])
    for _ in range(10):
        coarse.advance(np.zeros(1), np.ones(1))
    for _ in range(10_000):
        fine.advance(np.zeros(1), np.ones(1))
    np.testing.assert_allclose(coarse.nodes, fine.nodes, rtol=1e-9)


def ramp(start: int, count: int) -> Setpoints:
    time = (start + np.arange(count))[:, None] * STEP
    return Setpoints(time, np.ones_like(time), np.zeros_like(time))


def delays(truth: CommandTruth, blocks: int = 400, size: int = 5):
    line = CommandLine(truth, np.zeros(1), np.random.default_rng(4), step=STEP)
    seen = [line.pass_on(ramp(k * size, size)).position[:, 0] for k in range(blocks)]
    position = np.concatenate(seen)
    return np.arange(len(position)) * STEP - position, position


@pytest.mark.parametrize("latency", [0.0, 0.0043, 0.014, 0.0301])
def test_that_a_command_arrives_after_exactly_the_latency(latency):
    late, _ = delays(CommandTruth(latency=latency))
    np.testing.assert_allclose(late[60:], latency, atol=1e-9)


def test_that_commands_before_the_first_are_home():
    _, position = delays(CommandTruth(latency=0.05))
    np.testing.assert_array_equal(position[:50], 0.0)


def test_that_jitter_has_the_mean_and_spread_that_were_asked_for():
    late, _ = delays(CommandTruth(latency=0.014, jitter=0.0004), blocks=20_000)
    assert late[100:].mean() == pytest.approx(0.014, abs=5e-5)
    assert late[100:].std() == pytest.approx(0.0004, rel=0.1)


def test_that_no_command_overtakes_another():
    _, position = delays(CommandTruth(latency=0.02, jitter=0.01), blocks=2000)
    assert (np.diff(position) >= 0.0).all()


def drive(**changes) -> Controller:
    truth = ControllerTruth(stiffness=(100.0,), damping=(10.0,), **changes)
    motor = MotorTruth(armature=(0.1,), torque_constant=(1.0,), max_effort=(50.0,))
    return Controller(truth, motor, 1, step=STEP)


def test_that_the_controller_feeds_back_and_forward():
    one = np.ones(1)
    effort = drive().effort(0.1 * one, 0.2 * one, (0.3 * one, 0.5 * one), 4.0 * one)
    assert effort[0] == pytest.approx(4.0 + 100.0 * 0.2 + 10.0 * 0.3)


def test_that_the_motor_saturates_and_the_integral_does_not_wind_up():
    controller, one = drive(integral_time=0.1), np.ones(1)
    for _ in range(1000):
        assert controller.effort(0.0 * one, 0.0 * one, (one, 0.0 * one), 0.0 * one)[0] == 50.0
    free = controller.effort(one, 0.0 * one, (one, 0.0 * one), 0.0 * one)
    assert free[0] == pytest.approx(0.0)


def test_that_the_integral_grows_by_its_time():
    controller, one = drive(integral_time=0.5), np.ones(1)
    for _ in range(500):
        controller.effort(-0.1 * one, 0.0 * one, (0.0 * one, 0.0 * one), 0.0 * one)
    last = controller.effort(0.0 * one, 0.0 * one, (0.0 * one, 0.0 * one), 0.0 * one)
    assert last[0] == pytest.approx(10.0)


NOISY = SensorTruth(
    resolution=(1e-3,),
    position=(0.2e-3, 0.4e-3),
    offset=(0.01, -0.01),
    velocity=(0.003,),
    effort=(0.05, 0.1),
    effort_bias=(0.2, -0.3),
    current=(0.02,),
    temperature=0.1,
    pose=5e-5,
)
COUNT = 40_000


def sensors(truth: SensorTruth = NOISY, seed: int = 0) -> Sensors:
    return Sensors(truth, 2, np.random.default_rng(seed))


def test_that_noise_has_the_spread_and_bias_of_the_file():
    zero = np.zeros((COUNT, 2))
    measured = sensors()
    effort = measured.effort(zero)
    np.testing.assert_allclose(effort.std(axis=0), [0.05, 0.1], rtol=0.02)
    np.testing.assert_allclose(effort.mean(axis=0), [0.2, -0.3], atol=0.003)
    np.testing.assert_allclose(measured.noise("velocity", COUNT).std(axis=0), 0.003, rtol=0.02)
    np.testing.assert_allclose(measured.current(zero).std(axis=0), 0.02, rtol=0.02)
    np.testing.assert_allclose(measured.temperature(zero).std(axis=0), 0.1, rtol=0.02)
    white = effort[:, 0] - effort[:, 0].mean()
    assert abs((white[1:] * white[:-1]).mean()) < 0.03 * white.var()


def test_that_an_encoder_counts():
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (COUNT, 2))
    quiet = msgspec.structs.replace(NOISY, position=(0.0,), offset=(0.0,))
    read = sensors(quiet).encoder(q, np.zeros_like(q))
    np.testing.assert_allclose(read / 1e-3, np.rint(read / 1e-3), atol=1e-6)
    # Uniform rounding error: count over the root of 12.
    np.testing.assert_allclose((read - q).std(axis=0), 1e-3 / np.sqrt(12.0), rtol=0.02)


def test_that_an_encoder_without_resolution_does_not_round():
    fine = msgspec.structs.replace(NOISY, resolution=(0.0, 1e-3))
    read = sensors(fine).encoder(np.full(2, 0.12345), np.zeros(2))
    np.testing.assert_allclose(read, [0.13345, 0.113])


def test_that_poses_are_noisy_in_place_and_have_one_sign():
    poses = np.zeros((COUNT, 1, 7))
    poses[..., 6] = -1.0
    measured = sensors().poses(poses)
    np.testing.assert_allclose(measured[:, 0, :3].std(axis=0), 5e-5, rtol=0.02)
    np.testing.assert_array_equal(measured[:, 0, 6], 1.0)


def test_that_one_sensor_does_not_disturb_another():
    first, second = sensors(), sensors()
    second.noise("velocity", 1000)
    np.testing.assert_array_equal(first.noise("effort", 10), second.noise("effort", 10))
