"""A display for measurements of the window: the user's, or a virtual one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def display() -> Iterator[dict[str, str] | None]:
    """An environment with a display, of Xvfb's making if need be; None without either."""
    environment = dict(os.environ)
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        yield environment
        return
    program = shutil.which("Xvfb")
    if program is None:
        yield None
        return
    read, write = os.pipe()
    screen = ["-screen", "0", "1366x768x24", "+extension", "GLX", "-nolisten", "tcp"]
    server = subprocess.Popen(
        [program, "-displayfd", str(write), *screen], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    try:
        with os.fdopen(read) as answer:
            number = answer.readline().strip()
        yield {**environment, "DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"} if number else None
    finally:
        server.terminate()
        server.wait(10)
