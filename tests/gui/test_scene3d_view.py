"""The 3D view on a screen, and what it says where there is none."""

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from gui.small_scene import arm, slider
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPalette
from pytestqt.qtbot import QtBot

from twinstudio.gui.scene3d import SceneView
from twinstudio.gui.scene3d.camera import Camera
from twinstudio.model.errors import LayoutError

gl = [
    pytest.mark.gl,
    pytest.mark.skipif(not os.environ.get("DISPLAY"), reason="needs an X display with OpenGL"),
]
pytestmark = gl
PATIENCE = 20_000
UPRIGHT = np.zeros(2)
BENT = np.array([0.0, 1.2])


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[SceneView]:
    made = SceneView()
    made.resize(360, 300)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def settled(qtbot: QtBot, view: SceneView) -> np.ndarray:
    """The picture of the newest state, uint8[h, w, 3]; waits until it is on screen."""

    def newest() -> bool:
        frame = view._frame
        return frame is not None and frame.state is view._state

    qtbot.waitUntil(newest, timeout=PATIENCE)
    return pixels(view._frame.image)


def pixels(image: QImage) -> np.ndarray:
    raw = np.frombuffer(image.bits(), np.uint8).reshape(image.height(), image.width(), 4)
    return raw[:, :, 2::-1].astype(int)


def at(view: SceneView, point: tuple[float, float, float]) -> tuple[int, int]:
    """Column and row at which a point of the world appears."""
    x, y, _ = view.camera.project(np.array(point), view.width() / view.height())
    return round((x + 1) / 2 * view.width()), round((1 - y) / 2 * view.height())


def color_at(picture: np.ndarray, view: SceneView, point: tuple[float, float, float]) -> np.ndarray:
    column, row = at(view, point)
    return picture[row - 2 : row + 3, column - 2 : column + 3].mean(axis=(0, 1))


def test_that_the_picture_changes_when_the_robot_moves(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    before = settled(qtbot, view)
    view.set_state(BENT, None, {})
    after = settled(qtbot, view)
    moved = np.abs(after - before).max(axis=2) > 30
    assert moved.mean() > 0.005
    column, row = at(view, (0.0, 0.0, 0.25))
    assert not moved[row, column]


def test_that_twin_is_blue_and_ghost_orange_where_they_stand(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_frames_visible(False)
    view.set_state(UPRIGHT, BENT, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    view.fit()
    picture = settled(qtbot, view)
    tip = (0.3 * np.sin(1.2), 0.0, 0.5 + 0.3 * np.cos(1.2))
    red, _, blue = color_at(picture, view, (0.0, 0.0, 0.8))
    assert blue > red + 60
    red, _, blue = color_at(picture, view, tip)
    assert red > blue + 40
    view.set_ghost_visible(False)
    red, _, blue = color_at(settled(qtbot, view), view, tip)
    assert abs(red - blue) < 30


def test_that_a_robot_that_leaves_the_picture_is_followed_until_the_user_looks_elsewhere(
    qtbot: QtBot, view: SceneView
) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    settled(qtbot, view)
    away = {"cube": np.array([0.6, 0.9, 0.0, 0.0, 0.0, 0.0, 1.0])}

    def in_sight() -> bool:
        x, y, _ = view.camera.project(away["cube"][:3], view.width() / view.height())
        return bool(abs(x) < 1.0 and abs(y) < 1.0)

    assert not in_sight()
    for _ in range(20):
        view.set_state(UPRIGHT, None, away)
    assert in_sight()
    view._look(view.camera.orbit(0.5, 0.0))
    chosen = view.camera
    for _ in range(20):
        view.set_state(BENT, None, {"cube": 3.0 * away["cube"]})
    assert view.camera == chosen


def test_that_a_link_takes_the_colour_of_its_error(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {}, {"upper": 1.0})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    picture = settled(qtbot, view)
    red, green, blue = color_at(picture, view, (0.0, 0.0, 0.8))
    assert min(red, green) > blue + 60


def test_that_a_robot_without_readings_is_not_drawn(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    view.set_state(np.array([0.0, np.nan]), np.full(2, np.nan), {"cube": np.full(7, np.nan)})
    red, _, blue = color_at(settled(qtbot, view), view, (0.0, 0.0, 0.25))
    assert abs(red - blue) < 30
    assert view._message() == "waiting for the twin"


def test_that_joints_of_another_robot_are_refused(view: SceneView) -> None:
    view.set_geometry(arm())
    with pytest.raises(LayoutError, match="twin has joints"):
        view.set_state(np.zeros(3), None, {})
    with pytest.raises(LayoutError, match="pose of object 'cube'"):
        view.set_state(None, None, {"cube": np.zeros(3)})


def test_that_the_scene_can_be_replaced_while_drawing(qtbot: QtBot, view: SceneView) -> None:
    for k in range(12):
        view.set_geometry((arm, slider)[k % 2]())
        view.set_state((UPRIGHT, np.zeros(1))[k % 2], None, {})
        qtbot.wait(5)
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    assert [part.link for part in view._drawing().parts] == ["cart"]
    red, _, blue = color_at(settled(qtbot, view), view, (0.0, 0.0, 0.2))
    assert blue > red + 60


def test_that_a_broken_scene_is_reported_and_the_next_one_drawn(
    qtbot: QtBot, view: SceneView
) -> None:
    broken = arm()
    view.set_geometry(type(broken)(tree=broken.tree, meshes=broken.meshes, objects={}))
    qtbot.waitUntil(lambda: "cube" in view._message(), timeout=PATIENCE)
    view.set_geometry(arm())
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    assert view._message() == "waiting for the twin"


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (5000, 3000)])
def test_that_any_size_can_be_drawn(qtbot: QtBot, view: SceneView, size: tuple[int, int]) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, BENT, {})
    view.resize(*size)

    def drawn() -> bool:
        frame = view._frame
        return frame is not None and view._state.width == size[0] and frame.image.width() > 0 and (
            frame.state.width == size[0] or frame.state.width * frame.state.height > 7_000_000
        )  # fmt: skip

    qtbot.waitUntil(drawn, timeout=PATIENCE)
    view.repaint()


def test_that_a_click_names_the_link_and_a_drag_does_not(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    settled(qtbot, view)
    spot = QPoint(*at(view, (0.0, 0.0, 0.75)))
    with qtbot.waitSignal(view.link_clicked, timeout=PATIENCE) as clicked:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=spot)
    assert clicked.args == ["robot", "upper"]


def test_that_a_drag_orbits_even_when_it_ends_where_it_began(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    spot, seen = at(view, (0.0, 0.0, 0.75)), []
    view.link_clicked.connect(lambda *hit: seen.append(hit))
    drag(view, [spot, (spot[0] + 20, spot[1])], release=False)
    turned = view.camera
    assert turned.yaw != pytest.approx(Camera().yaw)
    drag(view, [(spot[0] + 20, spot[1]), spot], press=False)
    assert seen == []
    assert view.camera.yaw == pytest.approx(Camera().yaw)


def drag(
    view: SceneView, path: list[tuple[int, int]], *, press: bool = True, release: bool = True
) -> None:
    """Left button along `path`; events go straight to the view, the real pointer stays."""
    kinds = [QEvent.Type.MouseMove] * len(path)
    if press:
        kinds[0] = QEvent.Type.MouseButtonPress
    if release:
        kinds.append(QEvent.Type.MouseButtonRelease)
        path = [*path, path[-1]]
    left = Qt.MouseButton.LeftButton
    for kind, place in zip(kinds, path, strict=True):
        where = QPointF(*place)
        event = QMouseEvent(kind, where, where, left, left, Qt.KeyboardModifier.NoModifier)
        QCoreApplication.sendEvent(view, event)


def test_that_the_keys_look_from_the_sides_and_fit(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    qtbot.keyClick(view, Qt.Key.Key_7)
    assert view.camera.pitch == pytest.approx(np.pi / 2)
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    near = view.camera.distance
    qtbot.keyClick(view, Qt.Key.Key_F)
    assert view.camera.distance > near


def test_that_the_background_follows_the_theme(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(slider())
    palette = QPalette(view.palette())
    means = []
    for shade in ("#fafafa", "#202124"):
        palette.setColor(QPalette.ColorRole.Window, QColor(shade))
        view.setPalette(palette)
        means.append(settled(qtbot, view).mean())
    assert means[0] > 180
    assert means[1] < 80


def test_that_a_rest_refines_the_picture(qtbot: QtBot, view: SceneView) -> None:
    view.set_geometry(arm())
    view.set_state(UPRIGHT, None, {})
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    rough = view._frame
    qtbot.waitUntil(lambda: view._frame is not rough, timeout=PATIENCE)
    assert view.stats()[1] > 0.0


def test_that_closing_ends_the_thread_and_showing_starts_it_again(
    qtbot: QtBot, view: SceneView
) -> None:
    view.set_geometry(arm())
    qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
    view.close()
    assert not any(thread.name == "scene3d" for thread in threading.enumerate())
    view.stop()
    old = view._frame
    view.show()
    qtbot.waitUntil(lambda: view._frame is not old, timeout=PATIENCE)


def test_that_deleting_an_open_view_ends_its_thread(qtbot: QtBot) -> None:
    view = SceneView()
    view.show()
    qtbot.waitExposed(view)
    view.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    qtbot.waitUntil(
        lambda: not any(thread.name == "scene3d" for thread in threading.enumerate()),
        timeout=PATIENCE,
    )


def test_that_opening_and_closing_leaves_no_memory_behind(qtbot: QtBot) -> None:
    import psutil

    def once() -> None:
        view = SceneView()
        view.resize(360, 300)
        view.set_geometry(arm())
        view.show()
        qtbot.waitUntil(lambda: view._drawing() is not None, timeout=PATIENCE)
        view.close()
        view.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    for _ in range(4):
        once()
    process = psutil.Process()
    threads, memory = process.num_threads(), process.memory_info().rss
    for _ in range(10):
        once()
    assert process.num_threads() <= threads + 2
    assert process.memory_info().rss - memory < 20 * 2**20
