"""Starting the window on a session, and measuring it."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QSettings, Qt, QTimer
from PySide6.QtWidgets import QApplication

from twinstudio.gui import settings as remembered
from twinstudio.gui import theme
from twinstudio.gui.bridge import WindowStats
from twinstudio.gui.window import Window

if TYPE_CHECKING:
    from twinstudio.session.session import Session

# Python's own 5 ms, times the many calls of one repaint, would be felt.
_SWITCH_SECONDS = 0.001


def create_application(arguments: list[str] | None = None) -> QApplication:
    """The one QApplication; an existing one is returned as it is.

    OpenGL contexts are shared, or a floated 3D dock would lose its textures.
    """
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    # Mesa's software renderer would take every core; the window and the twin want one each.
    os.environ.setdefault("LP_NUM_THREADS", str(max(0, (os.cpu_count() or 1) - 2)))
    QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)
    app = QApplication(arguments or ["twinstudio"])
    app.setApplicationName("twinstudio")
    app.setApplicationDisplayName("Twinstudio")
    app.setDesktopFileName("twinstudio")
    # The window ends the loop itself, once the session is down. Qt's own way posts
    # an event that outlives the loop and would end the next one at once.
    app.setQuitOnLastWindowClosed(False)
    app.setStyle("Fusion")
    font = app.font()
    font.setPointSizeF(9.0)
    app.setFont(font)
    theme.apply(app, theme.chosen(app))
    return app


def run(
    session: "Session",
    *,
    settings: QSettings | None = None,
    seconds: float | None = None,
    screenshot: Path | None = None,
) -> int:
    """Show the window on `session` until it is closed; returns the exit status.

    The window is shown first; the session starts behind it. seconds: close by
    itself after so long. screenshot: a PNG of the window, taken before it closes.
    """
    app = create_application()
    window = Window(session, settings or remembered.open_settings())
    window.closed.connect(app.quit)
    window.show()
    QTimer.singleShot(0, window, window.bridge.begin)
    if seconds is not None:
        QTimer.singleShot(round(seconds * 1e3), window, lambda: _finish(window, screenshot))
    with _interruptible(window), _complaints(window), _responsive():
        app.exec()
    _delete(window)
    if window.failure:
        sys.stderr.write(f"{window.failure}\n")
    return 1 if window.failure else 0


@dataclass(frozen=True, slots=True)
class WindowReport:
    """What `measure` found.

    curves: how many were drawn. view_fps: pictures a second of the 3D view,
    view_ms: time to draw one [ms]; 0 without a 3D view.
    """

    stats: WindowStats
    curves: int
    view_fps: float
    view_ms: float


def measure(session: "Session", seconds: float, *, settle: float = 3.0) -> WindowReport:
    """Show the window on `session`, and measure it for `seconds` after `settle` s."""
    app = create_application()
    found: list[WindowReport] = []
    with TemporaryDirectory() as folder:
        window = Window(session, remembered.open_settings(Path(folder)))
        window.closed.connect(app.quit)
        window.setGeometry(0, 0, 1366, 768)
        window.arrange_watch()
        window.show()

        def finish() -> None:
            found.append(_report(window))
            window.close()

        QTimer.singleShot(0, window, window.bridge.begin)
        QTimer.singleShot(round(settle * 1e3), window, lambda: window.bridge.probe(on=True))
        QTimer.singleShot(round((settle + seconds) * 1e3), window, finish)
        with _responsive():
            app.exec()
        _delete(window)
    return found[0]


def _report(window: Window) -> WindowReport:
    view_fps, view_ms = window.viewer.stats()
    return WindowReport(window.bridge.stats(), window.plots.curves, view_fps, view_ms)


def _delete(window: Window) -> None:
    """Delete `window` now: after the event loop has ended nobody else would."""
    window.deleteLater()
    QCoreApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete)


def _finish(window: Window, screenshot: Path | None) -> None:
    if screenshot is not None and not window.grab().save(str(screenshot)):
        window.failure = f"twinstudio: {screenshot}: the picture cannot be written"
    window.close()


@contextmanager
def _responsive() -> Iterator[None]:
    """The threads of links and gap give way to the window sooner, and no long collections.

    What is loaded by now stays, so the collector need not walk it while frames are drawn.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)


@contextmanager
def _interruptible(window: Window) -> Iterator[None]:
    """Ctrl+C and SIGTERM close the window; the display tick lets Python see them."""

    def close(_number: int, _frame: FrameType | None) -> None:
        window.close()

    before = {number: signal.signal(number, close) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _complaints(window: Window) -> Iterator[None]:
    """An exception nobody caught becomes one line in the log, and its trace on stderr once."""
    seen: set[str] = set()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = f"a fault of Twinstudio: {kind.__name__}: {error}"
        if text not in seen:
            seen.add(text)
            sys.__excepthook__(kind, error, trace)
        window.bridge.notices.say("alarm", "window", text)

    before, sys.excepthook = sys.excepthook, hook
    try:
        yield
    finally:
        sys.excepthook = before
