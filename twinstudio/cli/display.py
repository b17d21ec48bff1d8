"""Whether there is a screen to draw on; Qt itself would end the process without one."""

import ctypes
import os
import sys

from twinstudio.model.errors import TwinstudioError


class DisplayError(TwinstudioError):
    """There is no screen a window could be shown on."""


def must_have_display() -> None:
    """Raise DisplayError, saying what to do, where Qt would find no screen."""
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return
    if os.environ.get("WAYLAND_DISPLAY"):
        return
    name = os.environ.get("DISPLAY", "")
    hint = "run `twinstudio demo --headless`, or start a display, Xvfb for instance"
    if not name:
        raise DisplayError("there is no display for a window: DISPLAY is not set", hint=hint)
    if not _answers(name):
        raise DisplayError(f"the display '{name}' does not answer", hint=hint)


def _answers(name: str) -> bool:
    """Whether an X server takes a connection; also if that cannot be tried."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = (ctypes.c_void_p,)
    connection = xcb.xcb_connect(name.encode(), None)
    try:
        return int(xcb.xcb_connection_has_error(connection)) == 0
    finally:
        xcb.xcb_disconnect(connection)
