"""What the window remembers between runs, and how it stays on the screen."""

from pathlib import Path
from zlib import crc32

from platformdirs import user_config_path
from PySide6.QtCore import QRect, QSettings
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

_VISIBLE = 64


def open_settings(folder: Path | None = None) -> QSettings:
    """The user's settings of the window, an INI file under `folder` or the user's own."""
    place = folder or user_config_path("twinstudio", appauthor=False)
    return QSettings(str(place / "window.ini"), QSettings.Format.IniFormat)


def save_layout(settings: QSettings, name: str, window: QMainWindow) -> None:
    """Remember the arrangement of `window` under `name`."""
    settings.setValue(f"layouts/{name}/state", window.saveState(_version(window)))


def restore_layout(settings: QSettings, name: str, window: QMainWindow) -> bool:
    """Arrange `window` as remembered under `name`; False when there is no such layout."""
    state = settings.value(f"layouts/{name}/state")
    restored = state is not None and window.restoreState(state, _version(window))
    rescue(window)
    return bool(restored)


def _version(window: QMainWindow) -> int:
    """A number of the docks there are: an arrangement of others would leave new ones anywhere."""
    names = sorted(dock.objectName() for dock in window.findChildren(QDockWidget))
    return crc32("\n".join(names).encode()) & 0x7FFF_FFFF


def layouts(settings: QSettings) -> list[str]:
    """Names of the layouts the user has saved."""
    settings.beginGroup("layouts")
    names = [name for name in settings.childGroups() if not name.startswith("_")]
    settings.endGroup()
    return sorted(names)


def rescue(window: QMainWindow) -> None:
    """Bring `window` and its floating docks back onto a screen that exists."""
    _onto_screen(window)
    for dock in window.findChildren(QDockWidget):
        if dock.isFloating() and dock.isVisible():
            _onto_screen(dock)


def _onto_screen(widget: QWidget) -> None:
    frame = widget.frameGeometry()
    areas = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    if not areas or any(_reachable(frame, area) for area in areas):
        return
    area = areas[0]
    widget.resize(min(frame.width(), area.width()), min(frame.height(), area.height()))
    widget.move(area.topLeft())


def _reachable(frame: QRect, area: QRect) -> bool:
    """Whether enough of the title bar is on `area` to take hold of it."""
    title = QRect(frame.left(), frame.top(), frame.width(), 32).intersected(area)
    return title.width() >= min(_VISIBLE, frame.width()) and title.height() >= 16
