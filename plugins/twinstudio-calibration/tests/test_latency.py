"""Delays of known drives, and the caveats of a real log."""

import numpy as np
import pytest
from twinstudio_calibration import delays, stamps
from twinstudio_calibration.delays import Trace
from twinstudio_calibration.latency import Latency, Params
from twinstudio_calibration.logs import JointLog

from twinstudio.bench.calibration.loop_plants import late_drive
from twinstudio.flow.importers.anylog import read_any
from twinstudio.model.block import Block
from twinstudio.model.results import Scalar
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals


@pytest.mark.parametrize(("seed", "delay"), [(1, 0.0), (2, 0.0043), (3, 0.0217)])
def test_that_the_dead_time_is_told_apart_from_the_drives_lag(seed: int, delay: float) -> None:
    time, command, response = late_drive(np.random.default_rng(seed), delay)
    trace = Trace(time, command, time, response)
    whole = delays.command_to_motion(trace, 0.3)
    assert whole is not None
    dead = delays.transport(trace, whole, 0.3)
    assert dead is not None
    assert dead.dead == pytest.approx(delay, abs=5e-4)
    assert dead.lag == pytest.approx(2 * 0.8 / (2 * np.pi * 8.0), rel=0.1)


def test_that_a_pure_delay_is_found_to_a_fraction_of_a_sample() -> None:
    rng = np.random.default_rng(4)
    time, command, _ = late_drive(rng, 0.0)
    response = np.interp(time - 0.01234, time, command) + rng.normal(0.0, 2e-3, len(time))
    whole = delays.command_to_motion(Trace(time, command, time, response), 0.3)
    assert whole is not None
    assert whole.seconds == pytest.approx(0.01234, abs=2e-5 + 4 * whole.deviation)


def test_that_a_response_that_does_not_follow_has_no_delay() -> None:
    rng = np.random.default_rng(5)
    time, command, _ = late_drive(rng, 0.0)
    trace = Trace(time, command, time, rng.normal(size=len(time)))
    assert delays.command_to_motion(trace, 0.3) is None


def test_that_jitter_beyond_the_pieces_own_uncertainty_is_seen() -> None:
    rng = np.random.default_rng(6)
    still = [delays.Delay(0.01 + rng.normal(0.0, 1e-3), 1e-3, 1.0) for _ in range(30)]
    moving = [delays.Delay(0.01 + rng.normal(0.0, 5e-3), 1e-3, 1.0) for _ in range(30)]
    assert delays.spread(still)[0] < 1e-3
    assert delays.spread(moving)[0] == pytest.approx(5e-3, rel=0.5)


def host_stamped(rng: np.random.Generator) -> JointLog:
    """An exact clock of 1 ms, read a little early or late, some readings twice."""
    count = np.cumsum(rng.choice([0, 1, 1, 1, 1, 1, 1, 1, 1, 2], size=4000))
    exact = count * 1e-3
    position, velocity = np.sin(3.0 * exact), 3.0 * np.cos(3.0 * exact)
    time = np.arange(4000) * 1e-3 + rng.uniform(0.0, 3e-4, 4000)
    return JointLog(("j",), 0, time, position[:, None], velocity[:, None])


def test_that_host_stamps_of_an_exact_clock_are_found_out() -> None:
    found = stamps.robot_clock(host_stamped(np.random.default_rng(7)))
    assert found is not None
    assert found.period == pytest.approx(1e-3, rel=1e-3)
    assert found.repeated > 0
    assert found.skipped > 0


def test_that_a_log_with_the_robots_own_stamps_has_no_such_caveat() -> None:
    time = np.arange(4000) * 1e-3
    log = JointLog(("j",), 0, time, np.sin(3.0 * time)[:, None], 3.0 * np.cos(3.0 * time)[:, None])
    assert stamps.robot_clock(log) is None


def test_that_a_log_without_commands_is_refused() -> None:
    time = np.arange(4000) * 1e-3
    layout = Layout(joint_signals(("axis",), ("axis",), kinds=("joint.position",)))
    block = Block(layout, np.arange(4000) * 1_000_000, 0.1 * np.sin(time)[:, None])
    findings = Latency().check({"log": block}, load_scene("scenes/emps_axis"), Params())
    assert any(finding.fatal and "no command" in finding.text for finding in findings)


@pytest.mark.data
def test_that_the_delay_of_a_real_arm_comes_with_its_caveats(data) -> None:
    scene = load_scene("scenes/panda_cell")
    sources = read_any(data / "panda_gaz").recording.sources
    logs = {"log": sources["cell"].block, "log.command": sources["command"].block}
    texts = " ".join(finding.text for finding in Latency().check(logs, scene, Params()))
    assert "host time" in texts
    assert "start-up offset" in texts
    assert "behind the logged position" in texts


def test_that_figures_of_a_delay_are_scalars_with_intervals() -> None:
    time, command, response = late_drive(np.random.default_rng(8), 0.005)
    layout = Layout(
        joint_signals(("axis",), ("axis",), kinds=("joint.position", "command.position"))
    )
    values = np.cumsum(np.column_stack([response, command]), axis=0) * 1e-3
    block = Block(layout, np.rint(time * 1e9).astype(np.int64), values)
    from twinstudio.plugin.testing import FakeContext

    results = Latency().solve(
        FakeContext(seed=1), {"log": block}, load_scene("scenes/emps_axis"), Params()
    )
    dead = next(r for r in results if isinstance(r, Scalar) and r.name == "transport of axis")
    assert dead.value == pytest.approx(0.005, abs=5e-4)
    assert np.isfinite(dead.high)
