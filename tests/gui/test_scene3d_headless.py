"""What the 3D view says on a machine without OpenGL."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
HEADLESS = """
import time
from gui.small_scene import arm
import numpy as np
from PySide6.QtWidgets import QApplication
from twinstudio.gui.scene3d import SceneView
from twinstudio.gui.scene3d.camera import Camera
app = QApplication([])
view = SceneView()
view.show()
view.set_geometry(arm())
view.set_state(np.zeros(2), None, {})
deadline = time.monotonic() + 20
while "OpenGL" not in view._message() and time.monotonic() < deadline:
    app.processEvents()
view.grab()
print(view._message())
view.close()
"""


def test_that_a_missing_opengl_is_explained() -> None:
    # Given a display, Qt's offscreen platform would find OpenGL there.
    without_display = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-c", HEADLESS],
        env={**without_display, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "apt install" in done.stdout
