"""The 3D view without a screen: what is made of the scene's triangles."""

import numpy as np
import pytest
from gui.small_scene import CORNERS, FACES, WHITE, arm, arm_tree, box
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.gui.scene3d import meshes
from twinstudio.gui.scene3d.drawing import RenderState, corners, poses, prepare, table
from twinstudio.gui.scene3d.palette import CELL, DARK, LIGHT, ErrorScale, look_for
from twinstudio.model.errors import LayoutError
from twinstudio.model.geometry import Mesh, SceneGeometry


def sphere(rings: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """A unit sphere of about 4 * rings^2 triangles."""
    polar, around = np.meshgrid(
        np.linspace(0, np.pi, rings + 1), np.arange(2 * rings) * np.pi / rings, indexing="ij"
    )
    points = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1
    )
    k = np.arange(rings * 2 * rings)
    right = k - k % (2 * rings) + (k + 1) % (2 * rings)
    a, b, c, d = k, k + 2 * rings, right + 2 * rings, right
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return points.reshape(-1, 3).astype(np.float32), faces.astype(np.int64)


def soup(points, faces):
    """The same triangles with no vertex shared, as STL files have them."""
    return points[faces].reshape(-1, 3).astype(np.float32), np.arange(faces.size).reshape(-1, 3)


def test_that_a_cube_keeps_its_edges_sharp():
    points, normals, faces = meshes.shaded(*meshes.weld(*soup(CORNERS, FACES)))
    assert len(points) == 24
    flat = np.cross(*(points[faces[:, k]] - points[faces[:, 0]] for k in (1, 2)))
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    for corner in range(3):
        assert normals[faces[:, corner]] == pytest.approx(flat, abs=1e-6)


def test_that_a_sphere_is_shaded_smoothly():
    points, normals, _ = meshes.shaded(*meshes.weld(*sphere()))
    assert normals == pytest.approx(points, abs=0.03)


def test_that_welding_joins_only_what_coincides():
    points, faces = meshes.weld(*soup(*sphere(12)))
    assert len(points) == 11 * 24 + 2
    assert len(faces) == 2 * 11 * 24


@given(st.integers(200, 6000))
def test_that_thinning_keeps_the_shape_within_its_budget(most):
    points, faces = meshes.thinned(*sphere(40), most)
    assert 0.5 * min(most, 6240) <= len(faces) <= 1.05 * most
    assert np.linalg.norm(points, axis=1) == pytest.approx(1.0, abs=0.15)


def test_that_a_mesh_of_too_many_triangles_is_thinned_in_two_steps():
    points, faces = sphere(120)
    assert len(faces) > 50_000
    assert len(meshes.thinned(points, faces, 2000)[1]) <= 2100


@pytest.mark.parametrize("axis", range(3))
def test_that_an_arrow_points_along_its_axis(axis):
    points, faces = meshes.arrow(axis, 2.0, 0.1)
    assert points[:, axis].max() == pytest.approx(2.0)
    assert np.abs(np.delete(points, axis, axis=1)).max() < 0.3
    volume = np.einsum("ij,ij->i", points[faces[:, 0]],
                       np.cross(points[faces[:, 1]], points[faces[:, 2]])).sum() / 6  # fmt: skip
    assert volume > 0.0


def test_that_parts_follow_their_links_and_objects_their_poses():
    drawing = prepare(arm(), 1000)
    moved = np.array([0.3, -0.2, 0.1, 0.0, 0.0, 0.0, 1.0])
    found = poses(drawing, np.array([np.pi / 2, 0.0]), {"cube": moved})
    assert [part.link for part in drawing.parts] == ["lower", "upper", ""]
    assert found[1, :3, 3] == pytest.approx((0.5, 0.0, 0.0), abs=1e-12)
    assert found[2, :3, 3] == pytest.approx(moved[:3])


def test_that_an_object_rests_where_the_scene_puts_it_until_told_otherwise():
    drawing = prepare(arm(), 1000)
    assert poses(drawing, None, {})[2, :3, 3] == pytest.approx((0.0, 0.5, 0.05))


def test_that_an_object_without_a_reading_is_not_drawn():
    lost = poses(prepare(arm(), 1000), None, {"cube": np.full(7, np.nan)})
    assert not lost.any()


def test_that_links_take_the_colour_of_their_error_and_the_ghost_stays_orange():
    drawing, scale = prepare(arm(), 1000), ErrorScale()
    state = RenderState(
        4, 4, twin=np.zeros(2), cell=np.zeros(2), errors={"lower": 1.0, "upper": np.nan}
    )
    rows = table(drawing, state, scale)
    assert rows[0, 3, :3] == pytest.approx(scale.color(1.0))
    assert rows[1, 3, 2] > rows[1, 3, 0]
    assert rows[drawing.rows, 3, :3] == pytest.approx(CELL)


def test_that_a_huge_floor_does_not_decide_what_is_in_sight():
    scene = arm()
    floor = box("floor", "", np.array((100.0, 100.0, 0.1)), (0, 0, -0.05))
    wide = SceneGeometry(
        tree=scene.tree,
        meshes=(*scene.meshes, floor),
        objects={**scene.objects, "floor": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)},
    )
    state = RenderState(4, 4, twin=np.zeros(2))
    assert np.abs(corners(prepare(wide, 1000), state)).max() < 2.0


def test_that_what_moves_is_in_sight_and_fixed_things_need_not_be():
    scene = arm()
    place = (0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    meshes = [box(name, "", 0.1, (0, 0, 0)) for name in ("shelf", "loose")]
    both = SceneGeometry(
        tree=scene.tree,
        meshes=(*scene.meshes, *meshes),
        objects={**scene.objects, "shelf": place, "loose": place},
    )
    drawing = prepare(both, 1000)
    still = RenderState(4, 4, twin=np.zeros(2))
    moving = RenderState(4, 4, twin=np.zeros(2), objects={"loose": np.array(place)})
    assert corners(drawing, still)[:, 0].max() < 0.7
    assert corners(drawing, moving)[:, 0].max() > 0.8


@pytest.mark.parametrize(("mesh", "complaint"), [
    (box("robot", "wing", 1.0, (0, 0, 0)), "wing"),
    (box("mug", "", 1.0, (0, 0, 0)), "mug"),
    (Mesh.of("robot", "lower", WHITE, CORNERS, FACES + 5), "face names vertex"),
    (Mesh.of("robot", "lower", WHITE, CORNERS * np.nan, FACES), "not finite"),
])  # fmt: skip
def test_that_a_broken_mesh_is_refused_by_name(mesh, complaint):
    with pytest.raises(LayoutError, match=complaint):
        prepare(SceneGeometry(tree=arm_tree(), meshes=(mesh,)), 1000)


def test_that_a_scene_without_meshes_can_be_prepared():
    drawing = prepare(SceneGeometry(tree=arm_tree(), meshes=()), 1000)
    assert drawing.parts == ()
    assert drawing.base_axes.count > 0
    assert len(corners(drawing, RenderState(4, 4))) == 0


def test_that_the_error_scale_rises_in_lightness_and_saturates():
    scale = ErrorScale()
    light = [np.dot(scale.color(e), (0.2126, 0.7152, 0.0722)) for e in np.linspace(0, 1, 20)]
    assert np.all(np.diff(light) > 0.0)
    assert scale.color(7.0) == scale.color(1.0)
    assert scale.color(-1.0) == scale.color(0.0)


def test_that_the_look_follows_the_window():
    assert look_for((0.95, 0.95, 0.95)) == LIGHT
    assert look_for((0.1, 0.1, 0.12)) == DARK
