import os
import threading
from pathlib import Path

import numpy as np
import pytest
from gui.fake_session import FakeSession
from pytestqt.qtbot import QtBot

pytestmark = [
    pytest.mark.gl,
    pytest.mark.skipif(not os.environ.get("DISPLAY"), reason="needs an X display with OpenGL"),
]


@pytest.fixture
def live(qtbot: QtBot, tmp_path: Path):
    """A window that ticks by itself, 3D view included."""
    from PySide6.QtCore import QCoreApplication, QEvent

    from twinstudio.gui.settings import open_settings
    from twinstudio.gui.window import Window

    session = FakeSession(running=True)
    window = Window(session, open_settings(tmp_path))  # type: ignore[arg-type]
    window.show()
    qtbot.waitUntil(lambda: window.viewer.scene is not None, timeout=10_000)
    yield window, session
    window.close()
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_that_twin_and_ghost_are_drawn_and_a_click_selects(live, qtbot: QtBot) -> None:
    window, _ = live
    qtbot.waitUntil(lambda: window.viewer.stats()[0] > 0, timeout=20_000)
    window.viewer.scene.link_clicked.emit("robot", "link3")
    assert window.selection.joint == "panda_joint3"
    window.viewer.scene.link_clicked.emit("cube", "")
    assert (window.selection.joint, window.selection.body) == ("", "cube")
    window.viewer.ghost.click()
    assert not window.viewer.scene._state.ghost_visible


def test_that_the_view_shows_the_instant_that_is_held(live, qtbot: QtBot) -> None:
    window, session = live
    window.bridge.timeline.look_back(20.0)
    qtbot.waitUntil(lambda: "ago" in window.viewer.when.text(), timeout=5_000)
    held = session.moment(window.bridge.timeline.end).twin
    qtbot.waitUntil(lambda: np.array_equal(window.viewer.scene._state.twin, held), timeout=5_000)


def test_that_closing_a_live_window_leaves_no_thread(live, qtbot: QtBot) -> None:
    window, session = live
    qtbot.waitUntil(lambda: window.viewer.stats()[0] > 0, timeout=20_000)
    window.close()
    assert session.closed
    left = [t for t in threading.enumerate() if t is not threading.main_thread()]
    assert left == []


def test_that_a_floated_view_goes_on_drawing(live, qtbot: QtBot) -> None:
    window, _ = live
    qtbot.waitUntil(lambda: window.viewer.stats()[0] > 0, timeout=20_000)
    dock = window.docks["viewer"]
    dock.setFloating(True)
    frame = window.viewer.scene._frame
    qtbot.waitUntil(lambda: window.viewer.scene._frame is not frame, timeout=20_000)
    dock.setFloating(False)
    frame = window.viewer.scene._frame
    qtbot.waitUntil(lambda: window.viewer.scene._frame is not frame, timeout=20_000)
