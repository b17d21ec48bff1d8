"""The 3D view without a screen: camera, picking, pace."""

import numpy as np
import pytest
from gui.small_scene import CORNERS, FACES, arm
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.gui.scene3d.camera import Camera
from twinstudio.gui.scene3d.drawing import RenderState, prepare
from twinstudio.gui.scene3d.pace import LEVELS, Pace
from twinstudio.gui.scene3d.pick import first_hit, pick

angles = st.floats(-3.0, 3.0)
ndc = st.floats(-0.9, 0.9)
aspects = st.floats(0.4, 3.0)
coordinates = st.floats(-5.0, 5.0)
cameras = st.builds(
    Camera,
    target=st.tuples(coordinates, coordinates, coordinates),
    distance=st.floats(0.1, 50.0),
    yaw=angles,
    pitch=st.floats(-np.pi / 2, np.pi / 2),
)


@given(cameras, aspects)
def test_that_the_target_appears_in_the_middle(camera, aspect):
    x, y, depth = camera.project(np.array(camera.target), aspect)
    assert (x, y) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert depth == pytest.approx(camera.distance)


@given(cameras)
def test_that_the_camera_axes_are_a_right_handed_frame(camera):
    axes = camera.axes()
    assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)


@given(cameras, ndc, ndc, aspects, st.floats(0.1, 10.0))
def test_that_a_ray_goes_through_the_point_it_was_cast_at(camera, x, y, aspect, along):
    origin, direction = camera.ray(x, y, aspect)
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    seen = camera.project(origin + along * direction, aspect)
    assert seen[:2] == pytest.approx((x, y), abs=1e-6)


@given(cameras, ndc, ndc, aspects)
def test_that_matrices_and_projection_agree(camera, x, y, aspect):
    origin, direction = camera.ray(x, y, aspect)
    point = origin + camera.distance * direction
    clip = camera.projection(aspect) @ camera.view() @ np.append(point, 1.0)
    assert clip[:2] / clip[3] == pytest.approx((x, y), abs=1e-6)
    assert -1.0 <= clip[2] / clip[3] <= 1.0


@given(cameras, ndc, ndc, aspects)
def test_that_panning_moves_the_target_by_as_much(camera, x, y, aspect):
    seen = camera.pan(x, y, aspect).project(np.array(camera.target), aspect)
    assert seen[:2] == pytest.approx((x, y), abs=1e-6)


@given(cameras, st.floats(0.5, 2.0), ndc, ndc, aspects)
def test_that_zooming_keeps_what_is_under_the_pointer(camera, factor, x, y, aspect):
    axes = camera.axes()
    half = camera.distance * np.tan(camera.fov / 2)
    under = np.array(camera.target) + half * (x * aspect * axes[0] + y * axes[1])
    closer = camera.zoom(factor, x, y, aspect)
    assert closer.distance == pytest.approx(camera.distance * factor)
    assert closer.project(under, aspect)[:2] == pytest.approx((x, y), abs=1e-6)


@given(cameras, aspects, st.lists(st.tuples(coordinates, coordinates, coordinates), min_size=2))
def test_that_fitting_brings_every_corner_into_sight(camera, aspect, points):
    corners = np.array(points)
    seen = camera.fit(corners, aspect).project(corners, aspect)
    assert np.all(seen[:, 2] > 0.0)
    assert np.abs(seen[:, :2]).max() <= 1.0 + 1e-9


def test_that_fitting_comes_as_near_as_the_margin_allows():
    seen = Camera().fit(CORNERS, 1.5, margin=1.0).project(CORNERS, 1.5)
    assert np.abs(seen[:, :2]).max() == pytest.approx(1.0)


def test_that_fitting_nothing_changes_nothing():
    assert Camera().fit(np.empty((0, 3)), 1.0) == Camera()


@given(cameras, angles, st.floats(-10.0, 10.0))
def test_that_orbiting_keeps_target_and_distance_and_never_goes_over_the_top(camera, yaw, pitch):
    turned = camera.orbit(yaw, pitch)
    assert turned.target == camera.target
    assert np.linalg.norm(turned.eye() - np.array(turned.target)) == pytest.approx(camera.distance)
    assert abs(turned.pitch) <= np.pi / 2


def test_that_points_behind_the_eye_have_no_place_in_the_picture():
    camera = Camera(target=(0, 0, 0), distance=1.0, yaw=0.0, pitch=0.0)
    assert np.isnan(camera.project(np.array([2.0, 0.0, 0.0]), 1.0)[:2]).all()


@given(st.tuples(*[st.floats(-0.45, 0.45)] * 2), st.floats(1.0, 9.0))
def test_that_a_ray_meets_the_nearest_side_of_a_cube(offset, away):
    triangles = CORNERS[FACES]
    origin = np.array([away, *offset])
    assert first_hit(triangles, origin, np.array([-1.0, 0, 0])) == pytest.approx(away - 0.5)
    assert first_hit(triangles, origin, np.array([1.0, 0, 0])) == np.inf


@pytest.mark.parametrize(("aim", "found"), [
    ((0.0, 0.0, 0.25), ("robot", "lower")),
    ((0.0, 0.0, 0.75), ("robot", "upper")),
    ((0.0, 0.5, 0.05), ("cube", "")),
    ((0.0, -0.6, 0.5), None),
])  # fmt: skip
def test_that_picking_names_what_is_under_the_pointer(aim, found):
    state = RenderState(400, 300, twin=np.zeros(2))
    x, y, _ = state.camera.project(np.array(aim), state.aspect)
    assert pick(prepare(arm(), 1000), state, x, y) == found


def test_that_the_ghost_can_be_picked_too():
    state = RenderState(400, 300, cell=np.array([np.pi / 2, 0.0]))
    x, y, _ = state.camera.project(np.array((0.75, 0.0, 0.0)), state.aspect)
    assert pick(prepare(arm(), 1000), state, x, y) == ("robot", "upper")


def test_that_what_is_not_drawn_is_not_picked():
    state = RenderState(400, 300, cell=np.zeros(2), ghost_visible=False)
    x, y, _ = state.camera.project(np.array((0.0, 0.0, 0.25)), state.aspect)
    assert pick(prepare(arm(), 1000), state, x, y) is None


@given(st.floats(1e-4, 0.5))
def test_that_drawing_takes_at_most_its_share_of_the_time(cost):
    rest = Pace(duty=0.6).drawn(cost)
    assert cost / (cost + rest) <= 0.6 + 1e-9
    assert cost + rest >= 1 / 60 - 1e-9


def test_that_slow_frames_coarsen_the_picture_and_fast_ones_refine_it_again():
    pace = Pace(software=True)
    assert pace.level == LEVELS[1]
    for _ in range(100):
        pace.drawn(0.1)
    assert pace.level == LEVELS[-1]
    for _ in range(1000):
        pace.drawn(0.002)
    assert pace.level == LEVELS[0]


def test_that_the_quality_does_not_swing_when_the_better_one_is_too_slow():
    pace = Pace(software=True)
    levels = []
    for _ in range(500):
        levels.append(pace.level)
        pace.drawn(0.030 * pace.level.cost)
    assert set(levels) == {LEVELS[1]}
