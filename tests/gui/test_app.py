import gc
import signal
import sys
from pathlib import Path

import pytest
from gui.fake_session import FakeSession
from PySide6.QtCore import QTimer
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from twinstudio.gui import app
from twinstudio.gui.settings import open_settings
from twinstudio.gui.window import Window
from twinstudio.model.errors import ProcessError


@pytest.fixture(autouse=True)
def without_gl(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinstudio.gui.docks.viewer.NO_GL", (qapp.platformName(),))


def test_that_a_run_shows_the_window_starts_the_session_and_closes_it(tmp_path: Path) -> None:
    session = FakeSession(running=True)
    picture = tmp_path / "window.png"
    before = signal.getsignal(signal.SIGINT), sys.getswitchinterval(), sys.excepthook
    status = app.run(
        session,  # type: ignore[arg-type]
        settings=open_settings(tmp_path),
        seconds=0.5,
        screenshot=picture,
    )
    assert status == 0
    assert session.started
    assert session.closed
    assert QImage(str(picture)).width() > 400
    assert before == (signal.getsignal(signal.SIGINT), sys.getswitchinterval(), sys.excepthook)
    assert gc.get_freeze_count() == 0


def test_that_a_session_that_cannot_be_closed_gives_a_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = FakeSession()

    def close() -> None:
        raise ProcessError("the twin does not end", hint="end process 12 by hand")

    session.close = close  # type: ignore[method-assign]
    status = app.run(session, settings=open_settings(tmp_path), seconds=0.2)  # type: ignore[arg-type]
    assert status == 1
    assert "end process 12 by hand" in capsys.readouterr().err


def test_that_a_session_that_cannot_start_says_so_in_the_log(tmp_path: Path) -> None:
    session = FakeSession()
    said: list[str] = []

    def start() -> None:
        raise ProcessError("the twin did not start")

    def listen() -> None:
        window = next(w for w in QApplication.topLevelWidgets() if isinstance(w, Window))
        said.extend(line.text for line in window.bridge.notices.lines)

    session.start = start  # type: ignore[method-assign]
    QTimer.singleShot(400, listen)
    assert app.run(session, settings=open_settings(tmp_path), seconds=0.6) == 0  # type: ignore[arg-type]
    assert "the twin did not start" in said


def test_that_ctrl_c_closes_the_window(tmp_path: Path) -> None:
    session = FakeSession()
    QTimer.singleShot(200, lambda: signal.raise_signal(signal.SIGINT))
    assert app.run(session, settings=open_settings(tmp_path), seconds=20.0) == 0  # type: ignore[arg-type]
    assert session.closed


def test_that_a_measurement_counts_frames_and_curves() -> None:
    session = FakeSession(running=True)
    report = app.measure(session, 0.5, settle=0.5)  # type: ignore[arg-type]
    assert report.stats.frames > 3
    assert report.stats.delay_p99 >= report.stats.delay_p50 >= 0
    assert report.curves == 21
    assert report.view_fps == 0.0
    assert session.closed


def test_that_opengl_is_described_or_its_absence_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from twinstudio.gui import opengl

    assert opengl.describe()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert opengl.describe() == "none: there is no display"
