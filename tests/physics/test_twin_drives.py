"""The twin whose joints are moved by the mechanisms of the scene's drives."""

from typing import get_args

import msgspec
import numpy as np
import pytest
from world_helpers import ARM_SCENE, MS, PENDULUM, PENDULUM_SCENE, cell_block, scene_in

from twinstudio.model.block import Block
from twinstudio.model.drive import (
    Controller,
    Drive,
    Encoders,
    Friction,
    LinkInertia,
    Mechanism,
    Motor,
    Thermal,
)
from twinstudio.model.errors import LayoutError
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.patches import load_patched, promote
from twinstudio.model.results import Change, Patch
from twinstudio.model.scene import load_scene
from twinstudio.physics.follower import Follower
from twinstudio.physics.rollout import rollout
from twinstudio.physics.stepper import Stepper
from twinstudio.physics.world import World

LIMP = Motor(max_effort=(0.0,))
"""A motor that is switched off."""
STIFF = Controller(stiffness=(400.0,), damping=(40.0,), feedforward=1.0)
HEAT = Thermal(
    resistance=(1.0,),
    winding_capacity=(2.0,),
    case_capacity=(5.0,),
    winding_to_case=(1.0,),
    case_to_ambient=(1.0,),
)
POSITIONS = ("joint.position", "joint.velocity", "command.position")


def driven(scene, **sections):
    return msgspec.structs.replace(scene, drive=Drive(**sections))


def pendulum(folder, **sections):
    return driven(scene_in(folder, PENDULUM_SCENE, PENDULUM), **sections)


def run(scene, seconds, start=None, command=None, seed=0):
    """Block of a twin that starts at `start` at rest, and is told to stay at `command`."""
    home = list(scene.robot.home if start is None else start)
    target = home if command is None else command
    with World(scene) as world:
        world.reset(home)
        stepper = Stepper(world, "position", seed=seed)
        for k in range(round(seconds / scene.simulation.step)):
            stepper.advance(round(k * scene.simulation.step * 1e9), target)
        stamps, values = stepper.take()
    return Block(stepper.layout, stamps, values)


# ---------------------------------------------------------------- nothing to do


@pytest.mark.parametrize(
    "drive",
    [
        Drive(off=("friction", "sensors")),
        Drive(friction=Friction(coulomb=(1.0,)), off=("friction",)),
        Drive(
            friction=Friction(coulomb=(1.0,)),
            motor=Motor(armature=(0.3,), max_effort=(5.0,)),
            controller=STIFF,
            off=get_args(Mechanism),
        ),
    ],
)
def test_that_drives_with_all_switched_off_are_plain_pybullet_to_the_last_bit(drive):
    scene = load_scene("panda_cell")
    cell = cell_block(scene, POSITIONS)
    plain = rollout(scene, cell).block
    other = rollout(msgspec.structs.replace(scene, drive=drive), cell).block
    assert other.layout == plain.layout
    np.testing.assert_array_equal(other.values, plain.values)


# ---------------------------------------------------------------- motion


def swing(inertia, start, seconds, step=1e-5):
    """A pendulum of 2 kg at 0.5 m, released; semi-implicit Euler in fine steps."""
    q, qd = start, 0.0
    for _ in range(round(seconds / step)):
        qd -= step * 2.0 * 9.81 * 0.5 * np.sin(q) / inertia
        q += step * qd
    return q


def test_that_armature_slows_a_swing_as_its_inertia_does(tmp_path):
    scene = pendulum(tmp_path, motor=Motor(armature=(0.7,), max_effort=(0.0,)))
    found = run(scene, 1.001, start=[0.8]).of("joint.position")[-1, 0]
    assert found == pytest.approx(swing(0.5 + 0.7, 0.8, 1.0), abs=2e-3)
    assert abs(found - swing(0.5, 0.8, 1.0)) > 0.1


def test_that_viscous_friction_takes_energy_out(tmp_path):
    scene = pendulum(tmp_path, motor=LIMP, friction=Friction(viscous=(0.4,)))
    block = run(scene, 6.0, start=[0.8])
    q, qd = block.of("joint.position")[:, 0], block.of("joint.velocity")[:, 0]
    energy = 2.0 * 9.81 * 0.5 * (1.0 - np.cos(q)) + 0.25 * qd**2
    assert energy[-1] < 0.05 * energy[0]
    assert np.diff(energy).max() < 1e-3 * energy[0]


@pytest.mark.parametrize("contact", ["rigid", "maxwell", "lugre"])
def test_that_a_loaded_arm_without_motors_rests_for_a_minute_below_break_away(contact):
    scene = msgspec.structs.replace(load_scene("panda_cell"), objects=())
    # Bristles of LuGre's that ring would let the joint creep: its known drift.
    friction = Friction(
        coulomb=(30.0,), presliding=(1e-3,), contact=contact, bristle_damping=(1000.0,)
    )
    scene = driven(scene, motor=LIMP, friction=friction)
    block = run(scene, 60.0)
    position = block.of("joint.position")
    # The springs of the contacts take up the weight of 24 N m, and that is all.
    assert np.abs(position - position[0]).max() < 2e-3
    settled = position[5000:]
    assert np.abs(settled - settled[0]).max() < 1e-6
    assert np.abs(block.of("joint.velocity")[5000:]).max() < 1e-6


def test_that_above_break_away_it_falls():
    scene = msgspec.structs.replace(load_scene("panda_cell"), objects=())
    scene = driven(scene, motor=LIMP, friction=Friction(coulomb=(3.0,)))
    position = run(scene, 0.5).of("joint.position")
    assert np.abs(position[-1] - position[0]).max() > 0.1


def test_that_a_controller_holds_an_arm_where_it_is_told():
    scene = driven(load_scene("panda_cell"), controller=STIFF, motor=Motor(armature=(0.2,)))
    block = run(scene, 1.0)
    np.testing.assert_allclose(block.of("joint.position")[-1], scene.robot.home, atol=1e-3)


def test_that_motors_without_a_controller_follow_as_those_of_pybullet_do():
    """Only friction is known: the scene's gains go on moving the axis."""
    scene = load_scene("emps_axis")
    cell = cell_block(scene, POSITIONS, seconds=1.0)
    plain = rollout(scene, cell).block
    found = rollout(driven(scene, friction=Friction(viscous=(1e-9,))), cell).block
    moved = np.ptp(plain.of("joint.position"))
    difference = found.of("joint.position") - plain.of("joint.position")
    assert np.abs(difference).max() < 0.01 * moved


def test_that_friction_shows_in_effort_and_position():
    scene = load_scene("emps_axis")
    cell = cell_block(scene, POSITIONS, seconds=1.0)
    plain = rollout(scene, cell).block
    rough = rollout(driven(scene, friction=Friction(coulomb=(40.0,))), cell).block
    assert np.abs(rough.of("joint.effort") - plain.of("joint.effort")).max() > 20.0
    assert np.abs(rough.of("joint.position") - plain.of("joint.position")).max() > 2e-5


def test_that_the_largest_effort_of_the_robot_limits_its_drives(tmp_path):
    scene = pendulum(tmp_path, controller=Controller(stiffness=(1e5,), damping=(10.0,)))
    effort = run(scene, 0.05, command=[2.0]).of("joint.effort")
    assert np.abs(effort).max() == 100.0


# ---------------------------------------------------------------- what is told


def test_that_current_and_temperature_are_told_where_they_are_modelled(tmp_path):
    gain = Motor(drive_gain=(2.0,))
    warm = run(pendulum(tmp_path, motor=gain, thermal=HEAT, controller=STIFF), 2.0, start=[0.8])
    assert {"joint.current", "joint.temperature"} <= set(warm.layout.names)
    np.testing.assert_allclose(warm.of("joint.current"), warm.of("joint.effort") / 2.0, atol=1e-12)
    temperature = warm.of("joint.temperature")[:, 0]
    assert temperature[0] == 25.0
    assert temperature[-1] > 25.5
    only = run(pendulum(tmp_path, motor=gain), 0.01).layout.names
    assert "joint.current" in only
    assert "joint.temperature" not in only


def test_that_sensors_tell_counts_while_the_tool_is_where_it_is(tmp_path):
    scene = pendulum(tmp_path, encoders=Encoders(resolution=(0.01,)), controller=STIFF)
    block = run(scene, 0.2, command=[0.3])
    told = block.of("joint.position")[:, 0]
    np.testing.assert_allclose(told, np.rint(told / 0.01) * 0.01, atol=1e-12)
    tool = block.of("tcp.pose")
    turned = 2.0 * np.arctan2(tool[:, 4], tool[:, 6])
    assert np.abs(turned - told).max() < 0.006
    assert len(np.unique(turned)) > 3 * len(np.unique(told))


def test_that_a_seed_gives_the_same_run_and_another_gives_another():
    scene = load_scene("emps_axis")
    scene = driven(scene, encoders=Encoders(noise=(1e-4,)), friction=Friction(coulomb=(5.0,)))
    cell = cell_block(scene, POSITIONS, seconds=0.3)
    first, again, other = (rollout(scene, cell, seed=seed).block for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.values, again.values)
    assert (first.values != other.values).any()


# ---------------------------------------------------------------- modes


def test_that_following_tells_the_effort_of_friction_and_armature_too(tmp_path):
    scene = pendulum(
        tmp_path,
        friction=Friction(coulomb=(1.5,), viscous=(0.3,), contact="rigid"),
        motor=Motor(armature=(0.4,)),
    )
    cell = cell_block(scene, ("joint.position", "joint.velocity"), seconds=2.0, step=10 * MS)
    block = rollout(scene, cell).block
    q, qd = cell.of("joint.position")[:, 0], cell.of("joint.velocity")[:, 0]
    rate = np.random.default_rng(3).uniform(2.0, 9.0, 1)
    expected = 9.81 * np.sin(q) - 0.9 * rate**2 * q + 1.5 * np.sign(qd) + 0.3 * qd
    error = (block.of("joint.effort")[:, 0] - expected)[5:-5]
    assert np.abs(error).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["velocity", "effort"])
def test_that_drives_follow_positions_only_and_say_so(tmp_path, kind):
    scene = pendulum(tmp_path, friction=Friction(coulomb=(1.0,)))
    cell = cell_block(scene, ("joint.position", f"command.{kind}"), seconds=0.1)
    with pytest.raises(LayoutError, match=rf"command\.position.*command\.{kind}.*following"):
        rollout(scene, cell, mode="commanded")
    assert rollout(scene, cell, mode="following").mode == "following"


def test_that_a_resynchronised_twin_stays_as_warm_as_it_was():
    scene = load_scene("emps_axis")
    scene = driven(scene, motor=Motor(drive_gain=(35.15,)), thermal=HEAT)
    cell = cell_block(scene, POSITIONS, seconds=1.0)
    values = cell.values.copy()
    values[500:, [0, 2]] += 0.05
    result = rollout(scene, Block(cell.layout, cell.stamps, values), mode="resynchronised")
    assert result.resynchronised >= 1
    temperature = result.block.of("joint.temperature")[:, 0]
    assert np.abs(np.diff(temperature)).max() < 0.1
    position = result.block.of("joint.position")[:, 0]
    assert np.abs(position[510:] - values[510:, 0]).max() < scene.twin.resync_above + 1e-3


class Silent:
    """An outlet that nobody listens to."""

    def tell(self, level, code, text):
        raise AssertionError(text)

    def relayout(self, layout):
        raise AssertionError(layout)


def test_that_a_live_twin_with_drives_is_held_at_home_and_can_be_reset():
    scene = driven(load_scene("emps_axis"), controller=Controller(stiffness=(2e4,), damping=(2e3,)))
    with World(scene) as world:
        follower = Follower(world, "commanded", Silent())
        try:
            for k in range(300):
                follower.step(k * MS)
            follower.reset()
            for k in range(300, 600):
                follower.step(k * MS)
            _, values = follower.take()
        finally:
            follower.close()
    np.testing.assert_allclose(values[:, 0], scene.robot.home[0], atol=1e-6)


# ---------------------------------------------------------------- expansion


def test_that_warm_links_move_the_tool_by_their_growth(tmp_path):
    scene = scene_in(tmp_path, ARM_SCENE)
    hot = Drive(thermal=msgspec.structs.replace(HEAT, ambient=65.0), motor=Motor(drive_gain=(1.0,)))
    grown = msgspec.structs.replace(scene, drive=hot, links={"upper": LinkInertia(expansion=2e-5)})
    still = msgspec.structs.replace(grown, links={})
    with World(scene) as world:
        turn = Kinematics(world.tree()).links(np.array(scene.robot.home))[1, :3, :3]
    difference = run(grown, 0.002).of("tcp.pose") - run(still, 0.002).of("tcp.pose")
    # The slide stands 1 m up the arm; it grows by 40 K.
    expected = turn @ np.array([0.0, 0.0, 1.0]) * 2e-5 * 40.0
    np.testing.assert_allclose(difference[0, :3], expected, atol=1e-9)
    np.testing.assert_array_equal(difference[0, 3:], np.zeros(4))


def test_that_expansion_that_is_switched_off_moves_nothing(tmp_path):
    scene = scene_in(tmp_path, ARM_SCENE)
    links = {"upper": LinkInertia(expansion=2e-5)}
    heat = msgspec.structs.replace(HEAT, ambient=65.0)
    drive = Drive(thermal=heat, motor=Motor(drive_gain=(1.0,)), off=("expansion",))
    off = msgspec.structs.replace(scene, drive=drive, links=links)
    plain = msgspec.structs.replace(off, links={})
    np.testing.assert_array_equal(run(off, 0.01).values, run(plain, 0.01).values)


def test_that_a_promoted_patch_changes_what_the_twin_does(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    cell = cell_block(scene, ("joint.position", "joint.velocity"), seconds=0.5)
    before = rollout(load_patched(tmp_path), cell).block.of("joint.effort")
    changes = (
        Change(key="drive.friction.viscous", value=(0.5,)),
        Change(key="links.bob.mass", value=3.0),
    )
    promote(scene, Patch(name="fit", changes=changes, reason="less gap"), run="a run")
    after = rollout(load_patched(tmp_path), cell).block.of("joint.effort")
    q, qd = cell.of("joint.position"), cell.of("joint.velocity")
    rate = np.random.default_rng(3).uniform(2.0, 9.0, 1)
    gained = 9.81 * 0.5 * np.sin(q) - 0.25 * rate**2 * q + 0.5 * qd
    error = (after - before - gained)[30:-30]
    assert np.abs(error).max() < 0.05 * np.abs(gained).max()
