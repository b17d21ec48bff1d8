"""Which OpenGL this machine offers: for bug reports."""

import os
import sys

from PySide6.QtGui import QOffscreenSurface, QOpenGLContext

from twinstudio.gui.app import create_application

_VERSION, _RENDERER = 0x1F02, 0x1F01


def describe() -> str:
    """Version and renderer, or ``none`` with the reason."""
    if not _has_display():
        return "none: there is no display"
    create_application()
    context = QOpenGLContext()
    surface = QOffscreenSurface()
    surface.create()
    if not context.create() or not context.makeCurrent(surface):
        return "none: no OpenGL context can be made on this display"
    functions = context.functions()
    texts = (functions.glGetString(name) for name in (_VERSION, _RENDERER))
    found = ", ".join(str(text) for text in texts if text)
    context.doneCurrent()
    return found or "unknown"


def _has_display() -> bool:
    # Qt ends the process when there is none, so this is asked first.
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM") == "offscreen":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
