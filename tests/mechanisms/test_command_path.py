"""Commands on their way: delayed to a fraction of a step, in order, taken over at a slower rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.mechanisms.command import delayed, draw
from twinstudio.mechanisms.drives import JointDrives
from twinstudio.model.drive import CommandPath, Controller, Drive
from twinstudio.model.errors import SceneError

STEP_NS = 1_000_000


def follow(path, targets, *, seed=0, joints=1):
    """Position and speed that the drive follows, float64[steps, joints] each."""
    drive = Drive(command=path, controller=Controller(stiffness=(1.0,), damping=(1.0,)))
    drives = JointDrives(drive, joints, 1e-3, np.random.default_rng(seed))
    still, heavy = np.zeros(joints), np.ones(joints)
    states = drives.tables.states
    seen, speed = [], []
    for k, target in enumerate(targets):
        wanted = np.broadcast_to(np.asarray(target, dtype=float), (joints,)).copy()
        drives.effort(k * STEP_NS, still, still, wanted, still, heavy)
        seen.append(states["wanted"].copy())
        speed.append(states["wanted_speed"].copy())
    return np.array(seen), np.array(speed)


RAMP = 0.5 * np.arange(1, 301) * 1e-3


@settings(max_examples=40, deadline=None)
@given(latency=st.floats(0.0, 0.06))
def test_that_a_ramp_is_late_by_the_latency_to_a_fraction_of_a_step(latency):
    seen, speed = follow(CommandPath(latency=(latency,)), RAMP)
    np.testing.assert_allclose(seen[100:, 0], RAMP[100:] - 0.5 * latency, atol=1e-9)
    np.testing.assert_allclose(speed[100:, 0], 0.5, rtol=1e-9)


def test_that_without_a_delay_a_command_counts_from_its_own_stamp():
    seen, _ = follow(CommandPath(), RAMP)
    np.testing.assert_array_equal(seen[:, 0], RAMP)


def test_that_a_step_arrives_in_the_middle_of_a_step():
    targets = np.where(np.arange(400) < 20, 0.0, 1.0)
    seen, speed = follow(CommandPath(latency=(0.0033,)), targets)
    np.testing.assert_allclose(seen[22:25, 0], [0.0, 0.7, 1.0], atol=1e-12)
    assert (speed[60:] == 0.0).all()


def test_that_every_joint_has_its_own_latency():
    seen, _ = follow(CommandPath(latency=(0.001, 0.0045)), RAMP, joints=2)
    lag = (RAMP[100:, None] - seen[100:]) / 0.5
    np.testing.assert_allclose(lag, np.tile([0.001, 0.0045], (200, 1)), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["gamma", "spikes"]),
    jitter=st.floats(1e-4, 0.05),
    latency=st.floats(0.005, 0.03),
    seed=st.integers(0, 1000),
)
def test_that_no_command_overtakes_another(kind, jitter, latency, seed):
    path = CommandPath(latency=(latency,), jitter=jitter, jitter_kind=kind, spike_share=0.1)
    seen, _ = follow(path, np.arange(1.0, 300.0), seed=seed)
    assert (np.diff(seen[:, 0]) >= 0.0).all()
    assert seen[-1, 0] > 0.0


def test_that_slow_hold_takes_over_at_its_ticks_only():
    seen, speed = follow(CommandPath(hold=0.01), RAMP)
    steps = seen[::10, 0]
    np.testing.assert_array_equal(np.repeat(steps, 10), seen[:, 0])
    np.testing.assert_allclose(speed[20:], 0.5, rtol=1e-9)


def test_that_the_speed_of_slow_commands_is_their_slope_and_ends_with_them():
    slow = np.repeat(RAMP[::10], 10)
    _, speed = follow(CommandPath(latency=(0.0125,)), np.concatenate([slow, np.full(60, slow[-1])]))
    np.testing.assert_allclose(speed[50:300], 0.5, rtol=1e-9)
    assert (speed[-30:] == 0.0).all()


def test_that_gamma_has_its_mean_and_spread_and_spikes_their_share():
    rng = np.random.default_rng(3)
    path = CommandPath(latency=(0.02,), jitter=0.004, jitter_kind="gamma")
    late = 1e-9 * draw(path, 0.02, 200_000, rng)
    assert late.mean() == pytest.approx(0.0, abs=5e-5)
    assert late.std() == pytest.approx(0.004, rel=0.01)
    assert late.min() > -0.02
    spikes = CommandPath(latency=(0.02,), jitter=0.05, jitter_kind="spikes", spike_share=0.02)
    late = draw(spikes, 0.02, 200_000, rng)
    assert set(np.unique(late)) == {0, 50_000_000}
    assert (late > 0).mean() == pytest.approx(0.02, rel=0.05)


def test_that_stamps_that_stand_still_are_refused():
    drive = Drive(command=CommandPath(latency=(0.01,)), controller=Controller(stiffness=(1.0,)))
    drives = JointDrives(drive, 1, 1e-3, np.random.default_rng(0))
    one = np.ones(1)

    def send_all():
        for k in range(100):
            drives.effort(0, one, one, np.array([float(k)]), one, one)

    with pytest.raises(SceneError, match="pile up"):
        send_all()


def test_that_a_log_is_delayed_by_any_fraction():
    time = np.arange(200) * 1e-3
    np.testing.assert_allclose(
        delayed(time, 3.0 * time, 0.01037)[20:], 3.0 * (time[20:] - 0.01037), atol=1e-12
    )
    assert delayed(time, 1.0 + time, 0.01)[0] == 1.0
