import numpy as np
import pybullet
import pytest
from world_helpers import ARM_SCENE, BALL, MS, PENDULUM, PENDULUM_SCENE, cell_block, scene_in

from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError, PhysicsError
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.rotations import pose
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.physics.rates import step_rates
from twinstudio.physics.rollout import rollout, slope
from twinstudio.physics.stepper import OBJECTS_EVERY, Stepper
from twinstudio.physics.world import World


def naive(scene, cell, kind):
    """The same run in plain PyBullet calls, nothing of ours but the loaded world."""
    rows = []
    with World(scene) as world:
        client, robot, joints = world.client.id, world.robot, world.indices
        count = len(joints)
        q0, v0 = cell.of("joint.position")[0], cell.of("joint.velocity")[0]
        for k, joint in enumerate(joints):
            pybullet.resetJointState(robot, joint, q0[k], v0[k], physicsClientId=client)
        steps = round((cell.stamps[-1] - cell.stamps[0]) / MS) + 1
        for step in range(steps):
            states = pybullet.getJointStates(robot, joints, physicsClientId=client)
            rows.append([[s[0] for s in states], [s[1] for s in states], [s[3] for s in states]])
            now = cell.stamps[0] + step * MS
            target = cell.of(f"command.{kind}")[cell.stamps <= now][-1].tolist()
            if kind == "position":
                pybullet.setJointMotorControlArray(
                    robot,
                    joints,
                    pybullet.POSITION_CONTROL,
                    targetPositions=target,
                    forces=world.max_effort,
                    positionGains=[scene.twin.position_gain] * count,
                    velocityGains=[scene.twin.velocity_gain] * count,
                    physicsClientId=client,
                )
            elif kind == "velocity":
                pybullet.setJointMotorControlArray(
                    robot,
                    joints,
                    pybullet.VELOCITY_CONTROL,
                    targetVelocities=target,
                    forces=world.max_effort,
                    velocityGains=[scene.twin.velocity_gain] * count,
                    physicsClientId=client,
                )
            else:
                pybullet.setJointMotorControlArray(
                    robot, joints, pybullet.TORQUE_CONTROL, forces=target, physicsClientId=client
                )
            pybullet.stepSimulation(client)
    return np.array(rows)


@pytest.mark.parametrize("step", [MS, 4 * MS])
@pytest.mark.parametrize("kind", ["position", "velocity", "effort"])
def test_that_a_rollout_is_plain_pybullet_to_the_last_bit(kind, step):
    scene = load_scene("panda_cell")
    kinds = ("joint.position", "joint.velocity", f"command.{kind}")
    cell = cell_block(scene, kinds, step=step)
    result, plain = rollout(scene, cell), naive(scene, cell, kind)
    block = result.block
    assert result.mode == "commanded"
    np.testing.assert_array_equal(block.of("joint.position"), plain[:, 0])
    np.testing.assert_array_equal(block.of("joint.velocity"), plain[:, 1])
    if kind == "effort":
        # PyBullet reports none; what was applied is the command of the step before.
        applied = np.vstack([np.zeros(7), block.of("command.effort")[:-1]])
        np.testing.assert_array_equal(block.of("joint.effort"), applied)
    else:
        np.testing.assert_array_equal(block.of("joint.effort"), plain[:, 2])


def test_that_a_rollout_covers_the_cell_in_uniform_steps_and_holds_commands():
    scene = load_scene("emps_axis")
    cell = cell_block(scene, ("joint.position", "command.position"), seconds=0.1, step=7 * MS + 5)
    block = rollout(scene, cell).block
    assert block.stamps[0] == cell.stamps[0]
    assert set(np.diff(block.stamps)) == {MS}
    assert cell.stamps[-1] <= block.stamps[-1] < cell.stamps[-1] + MS
    for stamp, command in zip(block.stamps, block.of("command.position"), strict=True):
        assert command == cell.of("command.position")[cell.stamps <= stamp][-1]


def test_that_the_tool_pose_is_that_of_the_joints():
    scene = load_scene("panda_cell")
    block = rollout(scene, cell_block(scene, ("joint.position", "command.position"))).block
    with World(scene) as world:
        kinematics = Kinematics(world.tree())
    expected = pose(kinematics.tool(block.of("joint.position")))
    np.testing.assert_allclose(block.of("tcp.pose"), expected, atol=1e-12)


def test_that_following_is_the_motion_of_the_cell_and_its_effort(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    cell = cell_block(scene, ("joint.position", "joint.velocity"), seconds=2.0, step=10 * MS)
    result = rollout(scene, cell)
    assert result.mode == "following"
    np.testing.assert_array_equal(result.block.stamps, cell.stamps)
    np.testing.assert_array_equal(result.block.of("joint.position"), cell.of("joint.position"))
    np.testing.assert_array_equal(result.block.of("joint.velocity"), cell.of("joint.velocity"))
    assert not any(name.startswith("command") for name in result.block.layout.names)
    q = cell.of("joint.position")[:, 0]
    rate = np.random.default_rng(3).uniform(2.0, 9.0, 1)
    expected = 2.0 * 9.81 * 0.5 * np.sin(q) + 0.5 * -(rate**2) * q
    inner = slice(5, -5)
    error = result.block.of("joint.effort")[inner, 0] - expected[inner]
    assert np.abs(error).max() < 0.02 * np.abs(expected).max()


def test_that_a_missing_velocity_is_taken_from_positions_and_noted(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    cell = cell_block(scene, ("joint.position", "joint.velocity"), seconds=1.0)
    result = rollout(scene, cell.select(("joint.position",)))
    error = result.block.of("joint.velocity") - cell.of("joint.velocity")
    assert np.abs(error[30:-30]).max() < 0.02 * np.abs(cell.of("joint.velocity")).max()
    assert any("joint.velocity" in note for note in result.notes)


def test_that_objects_go_on_while_the_twin_follows(tmp_path):
    scene = scene_in(tmp_path, ARM_SCENE + BALL)
    cell = cell_block(scene, ("joint.position",), seconds=0.3, step=10 * MS)
    height = rollout(scene, cell).block.of("object.ball.pose")[:, 2]
    fallen = 1.0 - 0.5 * 9.81 * ((cell.stamps - cell.stamps[0]) / 1e9) ** 2
    np.testing.assert_allclose(height, fallen, atol=0.01)


def test_that_a_twin_that_strays_is_set_to_the_cell_and_counted():
    scene = load_scene("emps_axis")
    cell = cell_block(scene, ("joint.position", "joint.velocity", "command.position"))
    values = cell.values.copy()
    values[200:, 0] += 0.05  # the cell slips
    values[200:, 2] += 0.05
    values[250:, 0] += 0.05
    slipped = Block(cell.layout, cell.stamps, values)
    result = rollout(scene, slipped, mode="resynchronised")
    assert result.resynchronised >= 2
    twin, cell_position = result.block.of("joint.position"), slipped.of("joint.position")
    assert np.abs(twin[200:203] - cell_position[200:203]).max() < 0.01
    assert np.abs(rollout(scene, slipped).block.of("joint.position") - twin).max() > 0.02


def test_that_missing_readings_hold_and_are_counted():
    scene = load_scene("emps_axis")
    cell = cell_block(scene, ("joint.position", "command.position"), seconds=0.05)
    values = cell.values.copy()
    values[0, 1] = np.nan
    values[10:15, 1] = np.nan
    result = rollout(scene, Block(cell.layout, cell.stamps, values))
    command = result.block.of("command.position")[:, 0]
    assert command[0] == values[0, 0]  # no command yet: stay where the cell is
    assert set(command[10:15]) == {values[9, 1]}
    assert "6 readings of command.position are missing; the last one held" in result.notes


@pytest.mark.parametrize(
    ("mode", "kinds", "message"),
    [
        ("commanded", ("joint.position",), "command.effort of the cell, which has none"),
        ("resynchronised", ("command.position",), "needs joint.position"),
        ("following", ("command.position",), "needs joint.position"),
    ],
)
def test_that_a_mode_says_what_the_cell_lacks(mode, kinds, message):
    scene = load_scene("emps_axis")
    with pytest.raises(LayoutError, match=message):
        rollout(scene, cell_block(scene, kinds, seconds=0.01), mode=mode)


def test_that_a_cell_of_another_robot_is_refused():
    scene = load_scene("emps_axis")
    other = Layout(joint_signals(("a1",), kinds=("joint.position",)))
    stamps = np.arange(3, dtype=np.int64)
    with pytest.raises(LayoutError, match=r"no component 'axis'.*a1"):
        rollout(scene, Block(other, stamps, np.zeros((3, 1))))
    turning = Layout(joint_signals(("axis",), kinds=("joint.position",)))
    with pytest.raises(LayoutError, match="'axis' is in rad in the cell, in m here"):
        rollout(scene, Block(turning, stamps, np.zeros((3, 1))))


def test_that_stamps_must_rise():
    scene = load_scene("emps_axis")
    cell = cell_block(scene, ("joint.position",), seconds=0.01)
    stamps = cell.stamps.copy()
    stamps[4] = stamps[3]
    with pytest.raises(PhysicsError, match="rising stamps"):
        rollout(scene, Block(cell.layout, stamps, cell.values.copy()))


def test_that_progress_is_told_up_to_one():
    scene = load_scene("emps_axis")
    told = []
    cell = cell_block(scene, ("joint.position", "command.position"), seconds=6.0)
    rollout(scene, cell, on_progress=told.append)
    assert told == sorted(told)
    assert len(told) >= 3
    assert told[-1] == 1.0


def test_that_a_slope_bears_jittered_stamps():
    rng = np.random.default_rng(5)
    stamps = np.sort(np.arange(2000) * MS + rng.integers(-400_000, 400_000, 2000))
    seconds = stamps[:, None] / 1e9
    found = slope(stamps, 3.0 * seconds**2)
    np.testing.assert_allclose(found[30:-30], 6.0 * seconds[30:-30], atol=0.01)


def test_that_object_poses_are_read_every_few_steps_and_hold_between(tmp_path):
    with World(scene_in(tmp_path, ARM_SCENE + BALL)) as world:
        stepper = Stepper(world, "position")
        heights = []
        for size in (OBJECTS_EVERY + 3, 4, OBJECTS_EVERY):
            for k in range(size):
                stepper.advance(k, list(world.scene.robot.home))
            _, values = stepper.take()
            heights += values[:, stepper.layout.span("object.ball.pose")][:, 2].tolist()
        assert len(stepper) == 0
    changes = np.flatnonzero(np.diff(heights)) + 1
    assert changes.tolist() == [OBJECTS_EVERY, 2 * OBJECTS_EVERY]


def test_that_taking_nothing_gives_an_empty_block(tmp_path):
    with World(scene_in(tmp_path, ARM_SCENE + BALL)) as world:
        stepper = Stepper(world, None)
        stamps, values = stepper.take()
    assert stamps.shape == (0,)
    assert values.shape == (0, stepper.layout.width)


def test_that_step_rates_are_measured_for_all_three_kinds(tmp_path):
    rates = step_rates(scene_in(tmp_path, ARM_SCENE + BALL), 1000)
    assert min(rates.bare, rates.driven, rates.instrumented) > 0.0
