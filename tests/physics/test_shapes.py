import numpy as np
import pytest
import trimesh
from world_helpers import ARM, ARM_SCENE, BALL, scene_in

from twinstudio.model.errors import PhysicsError
from twinstudio.model.scene import data_folder, load_scene
from twinstudio.physics.shapes import Visual, drawable
from twinstudio.physics.world import World

STILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
GREY = (0.5, 0.5, 0.5, 1.0)


def visual(form="mesh", size=(1.0, 1.0, 1.0), pose=STILL, **more):
    return Visual(body="thing", link="", form=form, size=size, pose=pose, color=GREY, **more)


def extent(mesh):
    return np.ptp(mesh.vertex_array(), axis=0)


def count(meshes):
    return sum(len(mesh.face_array()) for mesh in meshes)


@pytest.mark.parametrize(
    ("form", "size", "expected"),
    [
        ("box", (0.2, 0.4, 0.6), (0.2, 0.4, 0.6)),
        ("sphere", (0.3, 0.0, 0.0), (0.6, 0.6, 0.6)),
        ("cylinder", (0.8, 0.1, 0.0), (0.2, 0.2, 0.8)),
        ("capsule", (0.8, 0.1, 0.0), (0.2, 0.2, 1.0)),
    ],
)
def test_that_primitives_have_the_size_pybullet_tells(form, size, expected):
    (mesh,) = drawable([visual(form, size)]).meshes
    np.testing.assert_allclose(extent(mesh), expected, atol=0.02)
    np.testing.assert_allclose(mesh.vertex_array().mean(axis=0), 0.0, atol=1e-6)


def test_that_shapes_of_a_world_have_their_place_and_size(tmp_path):
    with World(scene_in(tmp_path, ARM_SCENE + BALL)) as world:
        geometry = world.geometry()
    meshes = {(mesh.body, mesh.link): mesh for mesh in geometry.meshes}
    assert set(meshes) == {("robot", "base"), ("robot", "upper"), ("floor", ""), ("ball", "")}
    base = meshes["robot", "base"].vertex_array()
    # In the link frame, although PyBullet thinks in the inertial frame.
    np.testing.assert_allclose(base.min(axis=0), [-0.1, -0.15, 0.0], atol=1e-6)
    np.testing.assert_allclose(extent(meshes["robot", "upper"]), [0.2, 0.2, 0.4], atol=1e-2)
    np.testing.assert_allclose(extent(meshes["floor", ""]), [4.0, 4.0, 0.1], atol=1e-6)
    np.testing.assert_allclose(extent(meshes["ball", ""]), [0.2, 0.2, 0.2], atol=1e-2)
    assert geometry.objects["ball"] == (5.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def test_that_a_cylinder_of_a_scene_stands_along_z():
    with World(load_scene("panda_cell")) as world:
        (pin,) = drawable([v for v in world.visuals() if v.body == "pin"]).meshes
    np.testing.assert_allclose(extent(pin), [0.03, 0.03, 0.08], atol=1e-3)


@pytest.mark.parametrize("budget", [10_000, 30_000, 60_000])
def test_that_a_scene_stays_within_the_triangle_budget(budget):
    with World(load_scene("panda_cell")) as world:
        visuals = world.visuals()
    full, reduced = drawable(visuals, 10**9).meshes, drawable(visuals, budget).meshes
    assert count(full) > 90_000
    assert count(reduced) <= 1.1 * budget
    assert [(m.body, m.link, m.color) for m in full] == [(m.body, m.link, m.color) for m in reduced]
    for whole, part in zip(full, reduced, strict=True):
        if len(whole.face_array()) > 5000:
            np.testing.assert_allclose(extent(part), extent(whole), atol=8e-3)


@pytest.mark.data
def test_that_collada_meshes_are_read_with_their_colours():
    if not (data_folder() / "ur10e_innopolis" / "meshes").is_dir():
        pytest.skip("TWINSTUDIO_DATA has no ur10e_innopolis")
    with World(load_scene("ur10e")) as world:
        geometry = world.geometry()
        assert world.notes == ()
    assert count(geometry.meshes) < 60_000
    assert len({mesh.color for mesh in geometry.meshes if mesh.link == "forearm_link"}) > 2


def test_that_a_mesh_is_scaled_and_turned(tmp_path):
    trimesh.creation.box(extents=(1.0, 2.0, 3.0)).export(tmp_path / "box.stl")
    half = float(np.sqrt(0.5))
    turned = (0.0, 0.0, 5.0, 0.0, 0.0, 2.0 * half, 2.0 * half)  # 90 deg about z, not normalised
    shape = visual(size=(0.1, 0.1, 0.1), pose=turned, file=str(tmp_path / "box.stl"))
    (mesh,) = drawable([shape]).meshes
    np.testing.assert_allclose(extent(mesh), [0.2, 0.1, 0.3], atol=1e-6)
    np.testing.assert_allclose(mesh.vertex_array().mean(axis=0), [0.0, 0.0, 5.0], atol=1e-6)
    assert mesh.color == GREY


def test_that_a_mesh_with_materials_keeps_their_colours_without_its_textures(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl red\nKd 1 0 0\nmap_Kd gone.png\n")
    (tmp_path / "m.obj").write_text(
        "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl red\nf 1/1 2/1 3/1\n"
    )
    (mesh,) = drawable([visual(file=str(tmp_path / "m.obj"))]).meshes
    assert mesh.color == (1.0, 0.0, 0.0, 1.0)


def test_that_a_collision_mesh_stands_in_for_an_unreadable_visual_and_is_noted(tmp_path):
    (tmp_path / "broken.stl").write_bytes(b"no mesh")
    trimesh.creation.box(extents=(1.0, 2.0, 3.0)).export(tmp_path / "spare.stl")
    shape = visual(file=str(tmp_path / "broken.stl"), spare=str(tmp_path / "spare.stl"))
    drawing = drawable([shape])
    assert count(drawing.meshes) == 12
    (note,) = drawing.notes
    assert "broken.stl" in note


def test_that_an_unreadable_mesh_with_nothing_to_stand_in_is_named(tmp_path):
    (tmp_path / "broken.stl").write_bytes(b"no mesh")
    with pytest.raises(PhysicsError, match=r"broken\.stl: mesh cannot be read"):
        drawable([visual(file=str(tmp_path / "broken.stl"))])


def test_that_drawing_does_not_touch_the_physics(tmp_path):
    with World(scene_in(tmp_path, ARM_SCENE + BALL, ARM)) as drawn, World(drawn.scene) as bare:
        drawn.geometry()
        for world in (drawn, bare):
            for _ in range(200):
                world.step()
        assert drawn.object_pose("ball") == bare.object_pose("ball")
        np.testing.assert_array_equal(drawn.joint_state(), bare.joint_state())
