"""Links and payload of a scene, in the model that PyBullet loads."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world_helpers import ARM_SCENE, PENDULUM, PENDULUM_SCENE, scene_in

from twinstudio.model.drive import Drive, LinkInertia, Payload
from twinstudio.model.errors import SceneError
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.rotations import matrix, quaternion_of_rpy, rpy_of
from twinstudio.model.scene import load_scene
from twinstudio.physics.inertials import Inertial
from twinstudio.physics.inverse import InverseDynamics
from twinstudio.physics.world import World

PANDA_LAST = "panda_link7"


def varied(scene, **changes):
    return msgspec.structs.replace(scene, **changes)


def gravity_effort(scene):
    still = [0.0] * len(scene.robot.joints)
    with InverseDynamics(scene) as inverse:
        return np.array(inverse.effort(scene.robot.home, still, still))


def lifted(scene, link, centre):
    """Effort a newton at `centre` of `link` takes, by differences of our own kinematics."""
    with World(scene) as world:
        kinematics = Kinematics(world.tree())
    index = kinematics.tree.index(link)
    home = np.array(scene.robot.home)

    def height(q):
        return (kinematics.links(q)[index] @ np.array([*centre, 1.0]))[2]

    nudges = 1e-6 * np.eye(len(home))
    return np.array([(height(home + d) - height(home - d)) / 2e-6 for d in nudges])


def test_that_two_kilograms_on_the_last_link_weigh_what_they_should():
    scene = load_scene("panda_cell")
    heavier = varied(scene, links={PANDA_LAST: LinkInertia(mass=2.2)})
    change = gravity_effort(heavier) - gravity_effort(scene)
    expected = 2.0 * 9.81 * lifted(scene, PANDA_LAST, (0.0, 0.0, 0.08))
    assert np.abs(expected).max() > 5.0
    np.testing.assert_allclose(change, expected, atol=1e-6)


def test_that_a_payload_hangs_at_the_tool_off_its_centre():
    scene = load_scene("panda_cell")
    centre = (0.02, -0.03, 0.05)
    loaded = varied(scene, payload=Payload(mass=2.0, centre=centre))
    expected = 2.0 * 9.81 * lifted(scene, scene.robot.tcp, centre)
    np.testing.assert_allclose(gravity_effort(loaded) - gravity_effort(scene), expected, atol=1e-6)


def test_that_a_payload_that_is_switched_off_weighs_nothing():
    scene = load_scene("panda_cell")
    off = varied(scene, payload=Payload(mass=2.0), drive=Drive(off=("payload",)))
    np.testing.assert_array_equal(gravity_effort(off), gravity_effort(scene))


def test_that_the_world_carries_the_same_payload_as_inverse_dynamics(tmp_path):
    """Held still by the effort that inverse dynamics tell, the arm does not move."""
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    loaded = varied(scene, payload=Payload(mass=3.0, centre=(0.2, 0.0, -0.4)))
    with InverseDynamics(loaded) as inverse, World(loaded) as world:
        effort = inverse.effort([0.4], [0.0], [0.0])
        world.reset([0.4])
        hold = world.driver("effort")
        for _ in range(200):
            hold(effort)
            world.step()
        (position,), (velocity,), _ = world.joint_state()
    assert position == pytest.approx(0.4, abs=1e-9)
    assert velocity == pytest.approx(0.0, abs=1e-9)


def test_that_a_moved_centre_and_a_full_inertia_swing_a_pendulum_as_they_should(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    change = LinkInertia(
        mass=3.0, centre=(0.1, 0.0, -0.4), inertia=(0.05, 0.01, 0.02, 0.06, -0.01, 0.04)
    )
    with InverseDynamics(varied(scene, links={"bob": change})) as inverse:
        (found,) = inverse.effort([0.3], [0.0], [2.0])
    inertia = 0.06 + 3.0 * (0.1**2 + 0.4**2)
    weight = 3.0 * 9.81 * (0.4 * np.sin(0.3) - 0.1 * np.cos(0.3))
    assert found == pytest.approx(2.0 * inertia + weight, abs=1e-9)


def test_that_a_full_inertia_reaches_the_engine_whole(tmp_path):
    entries = (0.3, 0.02, -0.03, 0.25, 0.04, 0.2)
    scene = scene_in(tmp_path)
    with World(varied(scene, links={"upper": LinkInertia(inertia=entries)})) as world:
        _, _, moments, place, turn = world.client.getDynamicsInfo(world.robot, 0)[:5]
    axes = matrix(np.array([*place, *turn]))[:3, :3]
    found = axes @ np.diag(moments) @ axes.T
    np.testing.assert_allclose(found[np.triu_indices(3)], entries, atol=1e-12)
    assert place == pytest.approx((0.1, 0.2, 0.3))


def test_that_a_link_that_repeats_the_model_changes_no_effort(tmp_path):
    scene = scene_in(tmp_path)
    same = varied(scene, links={"slider": LinkInertia(mass=1.0)})
    np.testing.assert_allclose(gravity_effort(same), gravity_effort(scene), rtol=1e-12)


@pytest.mark.parametrize("links", [{}, {PANDA_LAST: LinkInertia(expansion=1e-5)}])
def test_that_a_scene_without_inertial_values_loads_the_model_to_the_last_bit(links):
    plain = load_scene("panda_cell")
    with World(plain) as one, World(varied(plain, links=links)) as other:
        for link in range(-1, one.client.getNumJoints(one.robot)):
            assert one.client.getDynamicsInfo(one.robot, link) == (
                other.client.getDynamicsInfo(other.robot, link)
            )


def test_that_an_unknown_link_is_one_line_with_those_there_are(tmp_path):
    scene = varied(scene_in(tmp_path), links={"uper": LinkInertia(mass=1.0)})
    with pytest.raises(SceneError) as caught:
        World(scene)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in ("links.uper", "base, upper, slider, tool"))


@pytest.mark.parametrize("entries", [(-0.1, 0, 0, 0.2, 0, 0.2), (1.0, 0, 0, 1.0, 0, 3.0)])
def test_that_an_inertia_no_body_has_is_refused(tmp_path, entries):
    scene = varied(scene_in(tmp_path), links={"upper": LinkInertia(inertia=entries)})
    with pytest.raises(SceneError, match=r"links\.upper\.inertia.*no body"):
        World(scene)


def test_that_a_flat_body_keeps_its_inertia(tmp_path):
    """PyBullet would drop it for a largest moment that is too large by rounding alone."""
    scene = varied(
        scene_in(tmp_path), links={"upper": LinkInertia(inertia=(0.1, 0, 0, 0.2, 0, 0.3))}
    )
    with World(scene) as world:
        assert world.client.getDynamicsInfo(world.robot, 0)[2] == pytest.approx((0.1, 0.2, 0.3))


def test_that_links_of_another_kind_of_model_are_refused(tmp_path):
    (tmp_path / "robot.sdf").write_text("<sdf/>")
    scene = scene_in(tmp_path, ARM_SCENE.replace("robot.urdf", "robot.sdf"))
    with pytest.raises(SceneError, match=r"URDF only.*robot\.sdf"):
        World(varied(scene, payload=Payload(mass=1.0)))


def test_that_two_bodies_taken_together_are_as_heavy_as_both():
    point = Inertial(1.0, np.array([1.0, 0.0, 0.0]), np.zeros((3, 3)))
    other = Inertial(1.0, np.array([-1.0, 0.0, 0.0]), np.zeros((3, 3)))
    both = point.with_(other)
    assert both.mass == 2.0
    np.testing.assert_array_equal(both.centre, np.zeros(3))
    np.testing.assert_array_equal(both.inertia, np.diag([0.0, 2.0, 2.0]))


angles = st.floats(-np.pi, np.pi)


@settings(max_examples=50)
@given(roll=angles, pitch=st.one_of(angles, st.just(np.pi / 2), st.just(-np.pi / 2)), yaw=angles)
def test_that_roll_pitch_yaw_give_the_rotation_back(roll, pitch, yaw):
    def rotation(rpy):
        return matrix(np.array([0.0, 0.0, 0.0, *quaternion_of_rpy(tuple(rpy))]))[:3, :3]

    expected = rotation((roll, pitch, yaw))
    np.testing.assert_allclose(rotation(rpy_of(expected)), expected, atol=1e-9)
