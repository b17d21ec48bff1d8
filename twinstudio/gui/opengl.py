"""What draws here: asked in a process of its own, since Qt aborts without a display."""

import os
import subprocess
import sys

SECONDS = 20.0


def describe() -> str:
    """Renderer and version of OpenGL, or why there is none."""
    if sys.platform == "linux" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return "none: there is no display"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "twinstudio.gui.opengl"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"none: no answer within {SECONDS:g} s"
    if done.returncode != 0:
        first = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        return f"none: {first}"
    return done.stdout.strip()


def _ask() -> str:
    from PySide6.QtGui import (  # noqa: PLC0415 - only this process needs Qt
        QGuiApplication,
        QOffscreenSurface,
        QOpenGLContext,
    )

    from twinstudio.gui.scene3d.gl import driver  # noqa: PLC0415

    application = QGuiApplication([])
    context, surface = QOpenGLContext(), QOffscreenSurface()
    surface.create()
    if not (context.create() and context.makeCurrent(surface)):
        raise SystemExit("no OpenGL context on this display")
    found = driver()
    context.doneCurrent()
    del application
    return f"{found.renderer}, {found.version}{' (software)' if found.software else ''}"


if __name__ == "__main__":
    sys.stdout.write(_ask() + "\n")
