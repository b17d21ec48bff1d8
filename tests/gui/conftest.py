"""A window on a fake session, without a display unless a test asks for OpenGL."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

pytest.importorskip("PySide6")

if not os.environ.get("DISPLAY"):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gui.fake_session import FakeSession

# Beside a window that draws, a deadline in milliseconds measures the machine.
settings.register_profile("window", deadline=None)
settings.load_profile("window")

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication
    from pytestqt.qtbot import QtBot

    from twinstudio.gui.window import Window


@pytest.fixture(scope="session")
def qapp() -> "QApplication":
    """The one application, made as the program makes it."""
    from twinstudio.gui.app import create_application

    return create_application()


@pytest.fixture(autouse=True)
def calm_collector() -> Iterator[None]:
    """No garbage collection while Qt paints; all of it between tests."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def make_window(qtbot: "QtBot", tmp_path: Path) -> Iterator[object]:
    """Builds windows whose ticks the test gives by hand, and closes them."""
    from PySide6.QtCore import QCoreApplication, QEvent

    from twinstudio.gui.settings import open_settings
    from twinstudio.gui.window import Window

    made: list[Window] = []

    def build(session: FakeSession) -> "Window":
        window = Window(session, open_settings(tmp_path))  # type: ignore[arg-type]
        made.append(window)
        # No OpenGL in these tests; the view says so and the rest works.
        window.viewer._tried = True
        window.show()
        qtbot.waitExposed(window)
        window.bridge._timer.stop()
        window.bridge.tick()
        window.bridge.notices.read()
        return window

    yield build
    for window in made:
        window.close()
        window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def window(make_window: object, session: FakeSession) -> "Window":
    return make_window(session)  # type: ignore[operator]
