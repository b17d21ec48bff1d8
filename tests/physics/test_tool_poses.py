import numpy as np
import pytest
from world_helpers import ARM_SCENE, scene_in

from twinstudio.model.kinematics import Kinematics
from twinstudio.model.rotations import pose, quaternion
from twinstudio.model.scene import load_scene
from twinstudio.physics.world import World


def check(scene):
    with World(scene) as world:
        tree = world.tree()
    kinematics = Kinematics(tree)
    q = np.random.default_rng(11).uniform(-3.0, 3.0, (300, len(tree.joints)))
    expected = pose(kinematics.links(q)[:, kinematics.tip])
    np.testing.assert_allclose(kinematics.tool_poses(q), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["panda_cell", "kuka_kr300", "emps_axis"])
def test_that_the_tool_is_where_its_link_is(name):
    check(load_scene(name))


def test_that_a_placed_base_and_mixed_joints_count(tmp_path):
    check(
        scene_in(tmp_path, ARM_SCENE + "base = { position = [1.0, 2.0, 3.0], rpy = [1, 2, 3] }\n")
    )


def test_that_a_held_joint_on_the_way_to_the_tool_counts(tmp_path):
    scene = ARM_SCENE.replace('["turn", "slide"]', '["slide"]').replace(
        'home = ["10 deg", "50 mm"]', 'home = [0.0]\nheld = { turn = "40 deg" }'
    )
    check(scene_in(tmp_path, scene))


def test_that_half_turns_have_a_quaternion():
    for axis in range(3):
        turn = -np.eye(3)
        turn[axis, axis] = 1.0
        found = quaternion(turn)
        assert np.abs(found[axis]) == 1.0
        assert np.count_nonzero(found) == 1


def test_that_no_rows_give_no_poses():
    with World(load_scene("emps_axis")) as world:
        assert Kinematics(world.tree()).tool_poses(np.empty((0, 1))).shape == (0, 7)
