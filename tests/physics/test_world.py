import numpy as np
import pytest
from world_helpers import ARM, ARM_SCENE, BALL, PENDULUM, PENDULUM_SCENE, scene_in

from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.rotations import quaternion_of_rpy
from twinstudio.model.scene import data_folder, load_scene
from twinstudio.physics.bodies import link_frame
from twinstudio.physics.inverse import InverseDynamics
from twinstudio.physics.world import World


def check_frames(scene, count=20):
    rng = np.random.default_rng(7)
    with World(scene) as world:
        tree = world.tree()
        kinematics = Kinematics(tree)
        low, high = np.clip(world.limits, -3.0, 3.0).T
        for _ in range(count):
            q = rng.uniform(low, high)
            world.set_joints(q.tolist(), [0.0] * len(q))
            ours = kinematics.links(q)
            for k in range(len(tree.links) - 1):
                theirs = link_frame(world.client, world.robot, k)
                np.testing.assert_allclose(ours[k + 1], theirs, rtol=0.0, atol=1e-9)
                # PyBullet's own link frames come in single precision.
                told = world.client.getLinkState(world.robot, k, computeForwardKinematics=1)[4]
                np.testing.assert_allclose(ours[k + 1][:3, 3], told, rtol=0.0, atol=2e-6)


@pytest.mark.parametrize("name", ["panda_cell", "kuka_kr300", "emps_axis"])
def test_that_our_kinematics_agree_with_pybullet(name):
    check_frames(load_scene(name))


def test_that_turned_inertial_frames_and_a_placed_base_do_not_disturb_kinematics(tmp_path):
    placed = ARM_SCENE + 'base = { position = [1.0, 2.0, 3.0], rpy = [0.3, "20 deg", 1.0] }\n'
    check_frames(scene_in(tmp_path, placed))


@pytest.mark.data
def test_that_our_kinematics_agree_with_pybullet_on_the_ur10e():
    if not (data_folder() / "ur10e_innopolis" / "urdf").is_dir():
        pytest.skip("TWINSTUDIO_DATA has no ur10e_innopolis")
    check_frames(load_scene("ur10e"))


def test_that_held_joints_are_held_at_their_place():
    with World(load_scene("panda_cell")) as world:
        for _ in range(50):
            world.step()
        for name in ("panda_finger_joint1", "panda_finger_joint2"):
            link = next(link for link in world.tree().links if link.joint == name)
            assert (link.coordinate, link.rest) == (-1, 0.02)
            index = world.tree().links.index(link) - 1
            assert world.client.getJointState(world.robot, index)[0] == pytest.approx(
                0.02, abs=1e-3
            )


def test_that_motors_and_damping_are_off(tmp_path):
    with World(scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)) as world:
        world.reset([0.5])
        energy = []
        for _ in range(2000):
            world.step()
            (q,), (qd,), _ = world.joint_state()
            energy.append(2.0 * 9.81 * 0.5 * (1.0 - np.cos(q)) + 0.5 * 0.5 * qd**2)
        assert np.ptp(energy) < 0.01 * np.mean(energy)


def test_that_a_link_without_inertia_weighs_nothing(tmp_path):
    with World(scene_in(tmp_path)) as world:
        mass, _, inertia = world.client.getDynamicsInfo(world.robot, 2)[:3]
        assert mass == 0.0
        assert inertia == (0.0, 0.0, 0.0)
        assert world.client.getDynamicsInfo(world.robot, 1)[2] == pytest.approx((1.0, 2.0, 2.5))


def test_that_units_follow_the_kind_of_joint(tmp_path):
    with World(scene_in(tmp_path)) as world:
        assert world.prismatic == ("slide",)
        assert world.max_effort == [500.0, 400.0]
        assert world.limits.tolist() == [[-2.0, 2.0], [-1.0, 1.0]]


def test_that_reset_brings_objects_back(tmp_path):
    with World(scene_in(tmp_path, ARM_SCENE + BALL)) as world:
        assert world.movable == ("ball",)
        for _ in range(300):
            world.step()
        assert world.object_pose("ball")[2] < 0.9
        world.reset()
        assert world.object_pose("ball") == (5.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
        world.step()
        assert world.object_pose("ball")[2] == pytest.approx(1.0, abs=1e-4)


def test_that_an_object_of_a_model_is_told_by_its_link_frame(tmp_path):
    other = """
[[objects]]
name = "other"
model = "robot.urdf"
at = { position = [9.0, 1.0, 0.5], rpy = [0.1, 0.2, 0.3] }
"""
    with World(scene_in(tmp_path, ARM_SCENE + other)) as world:
        assert world.movable == ("other",)
        told = world.object_pose("other")
        assert told[:3] == pytest.approx((9.0, 1.0, 0.5))
        assert told[3:] == pytest.approx(quaternion_of_rpy((0.1, 0.2, 0.3)))


def test_that_a_ray_names_what_it_meets(tmp_path):
    with World(scene_in(tmp_path, ARM_SCENE + BALL)) as world:
        ball = world.ray((5.0, 0.0, 3.0), (5.0, 0.0, -3.0))
        assert ball is not None
        assert (ball.body, ball.link) == ("ball", "")
        assert ball.position == pytest.approx((5.0, 0.0, 1.1), abs=1e-3)
        upper = Kinematics(world.tree()).links(np.array(world.scene.robot.home))[1, :3, 3]
        arm = world.ray((*upper[:2], 9.0), tuple(upper))
        assert arm is not None
        assert (arm.body, arm.link) == ("robot", "upper")
        assert world.ray((50.0, 0.0, 3.0), (50.0, 0.0, -3.0)) is None
        with pytest.raises(PhysicsError, match="two different points"):
            world.ray((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"turn", "slide"', '"turn", "slip"'), ("robot.joints", "'slip'", "turn, slide")),
        (('tcp = "tool"', 'tcp = "tip"'), ("robot.tcp", "'tip'", "base, upper, slider, tool")),
        (('"10 deg"', '"150 deg"'), ("robot.home", "'turn'", "-2 ... 2 rad")),
        (('"50 mm"', '"1.5 m"'), ("robot.home", "'slide'", "-1 ... 1 m")),
        (
            ('joints = ["turn", "slide"]', 'joints = ["turn"]'),
            ("'slide'", "robot.joints or in robot.held"),
        ),
        (('tcp = "tool"', 'tcp = "tool"\nheld = { nut = 0.0 }'), ("robot.held", "'nut'")),
    ],
)
def test_that_a_scene_that_does_not_fit_its_model_is_explained(tmp_path, change, words):
    text = ARM_SCENE.replace(*change)
    if change[1] == 'joints = ["turn"]':
        text = text.replace('home = ["10 deg", "50 mm"]', 'home = ["10 deg"]')
    with pytest.raises(SceneError) as caught:
        World(scene_in(tmp_path, text))
    message = str(caught.value)
    assert "\n" not in message
    assert "scene.toml" in message
    assert all(word in message for word in words), message


def test_that_a_joint_without_a_largest_effort_needs_one_in_the_scene(tmp_path):
    weak = ARM.replace('effort="500"', 'effort="0"')
    with pytest.raises(SceneError, match=r"'turn' has no largest effort.*robot\.max_effort"):
        World(scene_in(tmp_path, ARM_SCENE, weak))
    World(scene_in(tmp_path, ARM_SCENE + "max_effort = [5.0, 6.0]\n", weak)).close()


def mesh_arm(reference):
    return ARM.replace(
        '<cylinder radius="0.1" length="0.4"/>', f'<mesh filename="{reference}"/>', 1
    )


def test_that_a_missing_mesh_is_named_before_pybullet_sees_it(tmp_path):
    with pytest.raises(PhysicsError) as caught:
        World(scene_in(tmp_path, ARM_SCENE, mesh_arm("meshes/upper.stl")))
    message = str(caught.value)
    assert "\n" not in message
    assert "robot.urdf" in message
    assert str(tmp_path / "meshes" / "upper.stl") in message


def test_that_an_unknown_package_is_named(tmp_path):
    with pytest.raises(PhysicsError, match=r"robot\.urdf.*'nowhere' is unknown.*packages"):
        World(scene_in(tmp_path, ARM_SCENE, mesh_arm("package://nowhere/upper.stl")))


def test_that_a_mesh_in_a_comment_is_not_missed(tmp_path):
    text = ARM.replace("<robot", '<!-- <mesh filename="gone.stl"/> --><robot', 1)
    World(scene_in(tmp_path, ARM_SCENE, text)).close()


@pytest.mark.parametrize("reference", ["package://arm/upper.obj", "${PARTS}/upper.obj"])
def test_that_packages_and_variables_in_a_model_are_resolved(tmp_path, monkeypatch, reference):
    parts = tmp_path / "elsewhere"
    parts.mkdir()
    (parts / "upper.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n")
    monkeypatch.setenv("PARTS", str(parts))
    scene = scene_in(tmp_path, ARM_SCENE + '[packages]\narm = "elsewhere"\n', mesh_arm(reference))
    with World(scene) as world:
        files = [visual.file for visual in world.visuals()]
        assert str(parts / "upper.obj") in files


@pytest.mark.parametrize("text", ["", "<robot", "<robot name='x'></robot>", "no xml at all"])
def test_that_a_model_pybullet_cannot_load_is_an_error_that_names_it(tmp_path, text):
    with pytest.raises(PhysicsError, match=r"robot\.urdf: PyBullet cannot load"):
        World(scene_in(tmp_path, ARM_SCENE, text))


def test_that_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "robot.step").write_text("")
    with pytest.raises(PhysicsError, match=r"robot\.step.*\.urdf, \.sdf"):
        World(scene_in(tmp_path, ARM_SCENE.replace("robot.urdf", "robot.step")))


SDF = """<?xml version="1.0"?><sdf version="1.6"><model name="m">
  <link name="base"><inertial><mass>5</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz>
    <ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
  <link name="upper"><pose>0 0 1 0 0 0</pose><inertial><mass>2</mass><inertia><ixx>1</ixx>
    <iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
  <joint name="turn" type="revolute"><parent>base</parent><child>upper</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper><effort>50</effort></limit></axis>
  </joint></model></sdf>"""

MJCF = """<mujoco model="m"><worldbody>
  <body name="base" pos="0 0 0"><geom type="sphere" size="0.1" mass="5"/>
    <body name="upper" pos="0 0 1"><joint name="turn" type="hinge" axis="0 1 0" limited="true"
      range="-100 100"/><geom type="sphere" size="0.1" mass="2"/></body>
  </body></worldbody></mujoco>"""


@pytest.mark.parametrize(("suffix", "text"), [("sdf", SDF), ("xml", MJCF)])
def test_that_sdf_and_mjcf_models_load_and_stay_where_they_are_put(tmp_path, suffix, text):
    (tmp_path / f"robot.{suffix}").write_text(text)
    toml = f"""
    name = "other"
    [robot]
    model = "robot.{suffix}"
    joints = ["turn"]
    tcp = "upper"
    home = [0.3]
    max_effort = [50.0]
    base = {{ position = [0.5, 0.6, 0.7] }}
    """
    scene = scene_in(tmp_path, toml)
    check_frames(scene)
    with World(scene) as world:
        world.driver("position")([0.3])
        for _ in range(200):
            world.step()
        place = world.client.getBasePositionAndOrientation(world.robot)[0]
        assert place == pytest.approx((0.5, 0.6, 0.7), abs=2e-3)
        assert world.joint_state()[0] == pytest.approx([0.3], abs=1e-2)


def test_that_inverse_dynamics_know_a_pendulum(tmp_path):
    with InverseDynamics(scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)) as inverse:
        for q, qd, qdd in [(0.0, 0.0, 0.0), (0.4, 1.0, 0.0), (-1.2, 0.3, 5.0)]:
            expected = 2.0 * 0.5**2 * qdd + 2.0 * 9.81 * 0.5 * np.sin(q)
            assert inverse.effort([q], [qd], [qdd]) == pytest.approx([expected], abs=1e-6)


def test_that_inverse_dynamics_bear_heavy_links():
    # PyBullet itself takes rounding of such inertias for asymmetry, and refuses.
    scene = load_scene("kuka_kr300")
    with InverseDynamics(scene) as inverse:
        effort = inverse.effort(scene.robot.home, [0.0] * 6, [0.0] * 6)
    # Upper arm upright, forearm level: axis 3 carries the links 3 to 6.
    arms = 105.2 * 0.2 + 35.8 * 0.7 + 31.5 * 1.08 + 17.8 * 1.21
    assert effort[2] == pytest.approx(-9.81 * arms, rel=1e-6)


def test_that_pybullet_still_caches_masses_and_a_new_world_does_not(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    with World(scene) as world:
        client, robot = world.client, world.robot

        def effort():
            return client.calculateInverseDynamics(robot, [0.5], [0.0], [0.0])[0]

        light = effort()
        client.changeDynamics(robot, 0, mass=4.0)
        assert effort() == light, "PyBullet no longer caches: InverseDynamics can be simpler"
    heavy = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM.replace('"2"', '"4"'))
    with InverseDynamics(heavy) as inverse:
        assert inverse.effort([0.5], [0.0], [0.0])[0] == pytest.approx(2.0 * light, rel=1e-6)
