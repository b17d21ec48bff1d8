"""Prints how long after its own start this process showed the window's first frame.

``python -m twinstudio.bench.first_frame`` does what ``twinstudio`` does: the demo
scene, its window, and the session behind it.
"""

import sys
import time

import psutil
from PySide6.QtCore import QEvent, QObject, QSettings, QTimer

from twinstudio.gui.app import create_application
from twinstudio.gui.window import Window
from twinstudio.session.session import Session


class _Watch(QObject):
    """Notes the time at which a widget's window was painted first."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: float | None = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt
        """Qt's hook: every event of the watched window."""
        if self.seen is None and event.type() == QEvent.Type.Paint:
            self.seen = time.time()
        return super().eventFilter(watched, event)


def main() -> None:
    """Show the window, close it after its first frame, print the seconds."""
    session = Session.open("panda_cell")
    app = create_application()
    window, watch = Window(session, QSettings()), _Watch()
    window.installEventFilter(watch)
    window.closed.connect(app.quit)
    window.show()
    QTimer.singleShot(0, session.start)
    QTimer.singleShot(500, window.close)
    app.exec()
    if watch.seen is None:
        sys.exit("the window was never painted")
    sys.stdout.write(f"{watch.seen - psutil.Process().create_time():.3f}\n")


if __name__ == "__main__":
    main()
