"""The 3D view: twin solid, cell as a ghost, drawn in a thread of its own."""

from twinstudio.gui.scene3d.view import SceneView

__all__ = ["SceneView"]
