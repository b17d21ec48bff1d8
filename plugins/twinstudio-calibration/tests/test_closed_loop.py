"""A servo whose gains, friction and delay are known, and a whole arm of MuJoCo's making."""

import numpy as np
import pytest
from twinstudio_calibration.closed_loop import ClosedLoop, Params, drives_of, guess
from twinstudio_calibration.levenberg import minimise
from twinstudio_calibration.simulation import Record, rollout

from twinstudio.bench.calibration import arm
from twinstudio.bench.calibration.loop_plants import LOOP, servo
from twinstudio.model.block import Block
from twinstudio.model.results import Scalar, Table
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.testing import FakeContext

SCENE = "scenes/emps_axis"


def block_of(rng: np.random.Generator, **more: float) -> Block:
    time, command, position, effort = servo(rng, **more)
    kinds = ("joint.position", "joint.effort", "command.position")
    layout = Layout(joint_signals(("axis",), ("axis",), kinds=kinds))
    values = np.column_stack([position, effort, command])
    return Block(layout, np.rint(time * 1e9).astype(np.int64), values)


def test_that_gains_friction_mass_and_delay_of_a_servo_are_recovered() -> None:
    scene, logs = load_scene(SCENE), {"log": block_of(np.random.default_rng(1))}
    plugin = ClosedLoop()
    assert not [f for f in plugin.check(logs, scene, Params()) if f.fatal]
    results = plugin.solve(FakeContext(seed=1), logs, scene, Params())
    found = {r.name: r for r in results if isinstance(r, Scalar)}
    assert found["inertia beside the model of axis"].value == pytest.approx(LOOP["mass"], rel=0.05)
    assert found["coulomb of axis"].value == pytest.approx(LOOP["coulomb"], rel=0.05)
    assert found["controller stiffness of axis"].value == pytest.approx(4000.0, rel=0.05)
    assert found["controller damping of axis"].value == pytest.approx(120.0, rel=0.05)
    held_out = {"log": block_of(np.random.default_rng(2))}
    table = next(r for r in plugin.validate(held_out, scene, results) if isinstance(r, Table))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["simulation apart"] < 0.1 * row["command apart"]


def test_that_the_same_seed_gives_the_same_figures() -> None:
    scene, logs = load_scene(SCENE), {"log": block_of(np.random.default_rng(3), seconds=5.0)}
    one, other = (
        drives_of(ClosedLoop().solve(FakeContext(seed=2), logs, scene, Params())) for _ in range(2)
    )
    assert one == other


def test_that_a_limit_that_is_reached_is_fitted() -> None:
    scene = load_scene(SCENE)
    logs = {"log": block_of(np.random.default_rng(4), limit=4.5)}
    results = ClosedLoop().solve(FakeContext(seed=1), logs, scene, Params())
    found = {r.name: r for r in results if isinstance(r, Scalar)}
    assert found["effort limit of axis"].value == pytest.approx(4.5, rel=0.05)


def test_that_a_joint_at_rest_under_little_effort_stays_at_rest() -> None:
    n = 2000
    still = np.zeros(n)
    record = Record(
        0.001, np.arange(n) * 0.001, still + 1e-4, still, still, still, still, still, np.array([0])
    )
    base, _ = guess(
        Record(
            0.001,
            record.time,
            np.sin(record.time),
            np.sin(record.time),
            np.cos(record.time),
            np.cos(record.time) + np.sin(5 * record.time),
            still,
            still,
            np.array([0]),
        )
    )
    drive = base._replace(
        mass=1.0, coulomb=5.0, breakaway=5.0, viscous=0.1, stiffness=1000.0, damping=1.0,
        offset=0.0, travel=1e-6, limit=100.0, delay=0.0, lag=0.0, feed=0.0, stribeck=0.1,
    )  # fmt: skip
    position, _, _ = rollout(drive, record, np.zeros((1, 2)))
    assert np.abs(position).max() < 1e-6


def test_that_a_log_without_a_command_is_refused() -> None:
    block = block_of(np.random.default_rng(5), seconds=5.0)
    logs = {"log": block.select(("joint.position", "joint.effort"))}
    findings = ClosedLoop().check(logs, load_scene(SCENE), Params())
    assert any(finding.fatal and "command" in finding.text for finding in findings)


def test_that_efforts_of_no_controller_are_found() -> None:
    rng = np.random.default_rng(6)
    block = block_of(rng, seconds=5.0)
    values = block.values.copy()
    values[:, 1] = 5.0 * np.sin(np.arange(len(values)) * 0.05)
    logs = {"log": Block(block.layout, block.stamps, values)}
    texts = [f.text for f in ClosedLoop().check(logs, load_scene(SCENE), Params())]
    assert any("does not follow from its command" in text for text in texts)


def test_that_the_solver_stops_at_a_bound() -> None:
    found = minimise(
        lambda x: x - np.array([3.0, -1.0]),
        lambda _: np.eye(2),
        np.zeros(2),
        (np.full(2, -2.0), np.full(2, 2.0)),
        steps=20,
    )
    np.testing.assert_allclose(found.x, [2.0, -1.0], atol=1e-6)


def test_that_a_whole_arm_is_told_from_one_motion() -> None:
    rows = {row.name: row for row in arm.rows()}
    assert rows["arm.median"].figure < 0.5
    assert rows["arm.friction"].figure < 0.3
    assert rows["arm.delay"].figure < 0.5
