"""The shipped scenes, and what a user is told when a scene is wrong."""

import re
import shutil

import msgspec
import numpy as np
import pytest

from twinstudio.model import scene as model
from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.scene import data_folder, load_scene, scenes_folder, shipped_scenes
from twinstudio.physics.inverse import InverseDynamics
from twinstudio.physics.world import World

OURS = ("panda_cell", "emps_axis", "kuka_kr300")
DOCS = scenes_folder().parent / "twinstudio" / "docs" / "scenes.md"


def test_that_these_scenes_are_shipped():
    assert shipped_scenes() == ["emps_axis", "kuka_kr300", "panda_cell", "ur10e"]


@pytest.mark.parametrize("name", OURS)
def test_that_a_shipped_scene_stands_still_at_home(name):
    scene = load_scene(name)
    with World(scene) as world:
        rest = {thing: world.object_pose(thing) for thing in world.movable}
        world.driver("position")(scene.robot.home)
        for _ in range(1000):
            world.step()
        np.testing.assert_allclose(world.joint_state()[0], scene.robot.home, atol=5e-3)
        for thing, before in rest.items():
            moved = np.linalg.norm(np.subtract(world.object_pose(thing)[:3], before[:3]))
            assert moved < 2e-3, f"{thing} moved by {moved} m"


@pytest.mark.parametrize("name", OURS)
def test_that_nothing_of_a_scene_overlaps_at_home(name):
    with World(load_scene(name)) as world:
        world.client.performCollisionDetection()
        deepest = min((c[8] for c in world.client.getContactPoints()), default=0.0)
    assert deepest > -1e-3


def test_that_the_loose_parts_of_the_demo_can_be_reached():
    scene = load_scene("panda_cell")
    with World(scene) as world:
        tool = Kinematics(world.tree()).tool(np.array(scene.robot.home))[:3, 3]
        assert len(world.movable) >= 3
        for thing in world.movable:
            assert np.linalg.norm(world.object_pose(thing)[:2]) < 0.8
    assert tool[2] > 0.2


def test_that_the_axis_has_the_published_mass():
    scene = load_scene("emps_axis")
    with InverseDynamics(scene) as inverse:
        assert inverse.effort([0.1], [0.0], [1.0]) == pytest.approx([95.1])


def test_that_the_large_robot_has_its_dimensions_and_masses():
    scene = load_scene("kuka_kr300")
    with World(scene) as world:
        kinematics = Kinematics(world.tree())
        masses = [world.client.getDynamicsInfo(world.robot, k)[0] for k in world.indices]
    assert masses == [395.4, 339.1, 105.2, 35.8, 31.5, 17.8]
    stretched = kinematics.tool(np.zeros(6))[:3, 3]
    np.testing.assert_allclose(stretched, [0.35 + 1.15 + 1.0 + 0.24, 0.0, 0.675 - 0.041], atol=1e-9)
    home = kinematics.tool(np.array(scene.robot.home))[:3, 3]
    np.testing.assert_allclose(home, [0.35 + 1.0 + 0.24, 0.0, 0.675 + 1.15 - 0.041], atol=1e-9)
    # Axes 2 and 3 turn the arm down; axis 1 turns it clockwise seen from above.
    lowered = kinematics.tool(np.radians([0.0, 10.0, 0.0, 0.0, 0.0, 0.0]))[:3, 3]
    turned = kinematics.tool(np.radians([10.0, 0.0, 0.0, 0.0, 0.0, 0.0]))[:3, 3]
    assert lowered[2] < stretched[2]
    assert turned[1] < 0.0


@pytest.mark.data
def test_that_the_ur10e_is_put_together_from_the_data_set():
    if not (data_folder() / "ur10e_innopolis" / "urdf").is_dir():
        pytest.skip("TWINSTUDIO_DATA has no ur10e_innopolis")
    with World(load_scene("ur10e")) as world:
        assert world.prismatic == ()
        tool = world.tree().index("tool0") - 1
        assert world.client.getDynamicsInfo(world.robot, tool)[0] == 0.0


def test_that_the_absent_ur10e_is_one_line_that_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TWINSTUDIO_DATA", str(tmp_path))
    with pytest.raises(SceneError) as caught:
        load_scene("ur10e")
    message = str(caught.value)
    assert "\n" not in message
    assert str(tmp_path / "ur10e_innopolis" / "urdf" / "ur10e.urdf") in message
    assert "robot.model" in message


@pytest.mark.data
def test_that_an_absent_mesh_of_the_ur10e_is_one_line_that_names_it(tmp_path, monkeypatch):
    source = data_folder() / "ur10e_innopolis" / "urdf" / "ur10e.urdf"
    if not source.is_file():
        pytest.skip("TWINSTUDIO_DATA has no ur10e_innopolis")
    (tmp_path / "ur10e_innopolis" / "urdf").mkdir(parents=True)
    shutil.copy(source, tmp_path / "ur10e_innopolis" / "urdf")
    monkeypatch.setenv("TWINSTUDIO_DATA", str(tmp_path))
    with pytest.raises(PhysicsError) as caught:
        World(load_scene("ur10e"))
    message = str(caught.value)
    assert "\n" not in message
    assert str(tmp_path / "ur10e_innopolis" / "meshes" / "ur10e") in message
    assert "ur10e.urdf" in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[twin]", "[twin]\nbehnd = 0.1", ("twin.behnd", "behind")),
        ('behind = "50 ms"', 'behind = "50 mm"', ("twin.behind", "'50 mm'", "a length")),
        ('behind = "50 ms"', 'behind = "5 s"', ("twin.behind", "at most 2")),
        ('home = ["0 mm"]', 'home = ["0 mm", 0.0]', ("robot.home", "expected 1 values", "got 2")),
        ('"emps_axis.urdf"', '"gone.urdf"', ("robot.model", "gone.urdf")),
        ('mode = "commanded"', 'mode = "leading"', ("twin.mode", "leading")),
        ("size = [1.2, 0.6, 0.70]", "size = [1.2, 0.6]", ("objects", "length 3")),
    ],
)
def test_that_a_mistake_in_a_scene_is_one_line_with_file_key_and_expectation(
    tmp_path, old, new, words
):
    folder = tmp_path / "axis"
    shutil.copytree(scenes_folder() / "emps_axis", folder)
    text = (folder / "scene.toml").read_text()
    assert old in text
    (folder / "scene.toml").write_text(text.replace(old, new))
    with pytest.raises(SceneError) as caught:
        load_scene(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder / "scene.toml") in message
    assert all(word in message for word in words), message


def keys_of(struct):
    return [field.encode_name for field in msgspec.structs.fields(struct)]


@pytest.mark.parametrize(
    "struct",
    [
        model.Scene, model.Robot, model.Object, model.Placement, model.Box, model.Sphere,
        model.Cylinder, model.Simulation, model.TwinSettings, model.CellSettings,
    ],
)  # fmt: skip
def test_that_the_page_explains_every_key(struct):
    page = DOCS.read_text()
    missing = [key for key in keys_of(struct) if key != "folder" and f"`{key}`" not in page]
    assert not missing


def test_that_the_example_on_the_page_is_a_scene(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (tmp_path / "scene.toml").write_text(example)
    World(load_scene(tmp_path)).close()
