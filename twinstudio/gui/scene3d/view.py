"""The 3D view as a widget: it takes states, shows pictures, and turns mouse into camera."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from twinstudio.gui.scene3d.camera import Camera
from twinstudio.gui.scene3d.drawing import Drawing, RenderState, corners
from twinstudio.gui.scene3d.overlay import ErrorUnit, Overlay
from twinstudio.gui.scene3d.palette import look_for
from twinstudio.gui.scene3d.pick import pick
from twinstudio.gui.scene3d.thread import Frame, RenderThread
from twinstudio.model.errors import LayoutError
from twinstudio.model.geometry import SceneGeometry

Floats = NDArray[np.float64]

_CLICK = 4.0
# States between two looks at whether all is in sight; corners that are kept in sight.
_LOOK_EVERY, _KEPT = 15, 2000
_RADIANS_PER_PIXEL = 0.008
_VIEWS = {
    Qt.Key.Key_1: (0.0, 0.0),
    Qt.Key.Key_3: (np.pi / 2, 0.0),
    Qt.Key.Key_7: (0.0, np.pi / 2),
}
_TURNS = {
    Qt.Key.Key_Left: (-0.1, 0.0),
    Qt.Key.Key_Right: (0.1, 0.0),
    Qt.Key.Key_Up: (0.0, 0.1),
    Qt.Key.Key_Down: (0.0, -0.1),
}
_HELP = (
    "Drag to orbit, Shift or middle button to pan, wheel to zoom, click to select.\n"
    "F fits; 1, 3 and 7 look from the front, the side and above."
)


class SceneView(QWidget):
    """Twin (solid) and cell (ghost) in one picture.

    link_clicked: body and link that were clicked; the body is ``robot`` or an
    object's name, an object's link is empty.
    """

    link_clicked = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("3D view of twin and cell")
        self.setToolTip(_HELP)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._geometry: SceneGeometry | None = None
        self._state = RenderState(1, 1, look=look_for(_background(self)))
        self._frame: Frame | None = None
        self._failure = ""
        self._error_unit: ErrorUnit | None = None
        self._follows = True
        self._kept = np.empty((0, 3))
        self._until_look = 0
        self._pressed: QPointF | None = None
        self._last: QPointF | None = None
        self._dragging = False
        self._overlay = Overlay(self.font())
        self._render = RenderThread()
        self._render.frame_ready.connect(self._show_frame)
        self._render.failed.connect(self._show_failure)
        self.destroyed.connect(self._render.stop)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self._render.stop)

    # What the window calls

    def set_geometry(self, geometry: SceneGeometry | None) -> None:
        """Draw this scene from now on; joints and errors known so far are forgotten."""
        self._geometry = geometry
        if self._render.running:
            self._failure = ""
        self._follows = True
        self._kept = np.empty((0, 3))
        self._state = replace(self._state, twin=None, cell=None, objects={}, errors=None)
        self._request()

    def set_state(
        self,
        twin: Floats | None,
        cell: Floats | None,
        objects: dict[str, Floats],
        errors: dict[str, float] | None = None,
    ) -> None:
        """Newest readings; cheap, call it once a frame.

        twin, cell: joint positions float64[joints], rad or m; None, or NaN in
        any joint, means no reading: that robot is not drawn.
        objects: name -> pose float64[7]; those not named stay where they rest.
        errors: link -> relative error 0..1, drawn saturated beyond; NaN or
        absent means not known.
        Raises LayoutError when a shape does not fit the scene.
        """
        first = self._state.twin is None and self._state.cell is None
        self._state = replace(
            self._state,
            twin=self._joints(twin, "twin"),
            cell=self._joints(cell, "cell"),
            objects={name: _pose(pose, name) for name, pose in objects.items()},
            errors=dict(errors) if errors is not None else None,
        )
        self._until_look = max(self._until_look - 1, 0)
        if self._follows and (first or not self._until_look):
            self._until_look = _LOOK_EVERY
            self._keep_in_sight()
        self._request()

    def set_error_scale(self, full: float, unit: str) -> None:
        """What a relative error of 1 stands for, for the scale's label, e.g. ``(2.0, "mm")``."""
        self._error_unit = ErrorUnit(full, unit)
        self.update()

    def set_ghost_visible(self, visible: bool) -> None:
        """Show or hide the cell."""
        self._change(replace(self._state, ghost_visible=visible))

    def set_frames_visible(self, visible: bool) -> None:
        """Show or hide the axes of base and tool."""
        self._change(replace(self._state, frames_visible=visible))

    def fit(self) -> None:
        """Bring the scene into sight and keep it there until the camera is moved."""
        self._follows = True
        self._kept = np.empty((0, 3))
        self._fit()
        self._request()

    def stop(self) -> None:
        """End the drawing thread and wait for it; it starts again when the view is shown."""
        self._render.stop()

    def stats(self) -> tuple[float, float]:
        """Frames a second over the last two seconds, and mean time to draw one [ms]."""
        return self._render.stats()

    def driver(self) -> str:
        """Name and version of the OpenGL driver, empty until it is known."""
        return self._render.description

    @property
    def camera(self) -> Camera:
        """Where the view looks from."""
        return self._state.camera

    # Pictures

    def _drawing(self) -> Drawing | None:
        """The mesh on screen, if it is that of the present geometry."""
        frame = self._frame
        return frame.drawing if frame is not None and frame.geometry is self._geometry else None

    def _change(self, state: RenderState) -> None:
        self._state = state
        self._request()

    def _request(self) -> None:
        if not self.isVisible():
            return
        ratio = self.devicePixelRatioF()
        self._state = replace(
            self._state,
            width=max(1, round(self.width() * ratio)),
            height=max(1, round(self.height() * ratio)),
        )
        self._render.request(self._geometry, self._state)

    def _fit(self) -> None:
        """Fit to what is now, and to what did not fit before: the camera comes to rest."""
        drawing = self._drawing()
        if drawing is not None:
            self._kept = np.concatenate([self._kept, corners(drawing, self._state)])[-_KEPT:]
            self._state = replace(self._state, camera=self.camera.fit(self._kept, self._aspect))

    def _keep_in_sight(self) -> None:
        """Fit anew when the robot has moved out of the picture."""
        drawing = self._drawing()
        if drawing is None:
            return
        places = self.camera.project(corners(drawing, self._state), self._aspect)[:, :2]
        if len(places) and not bool((np.abs(places) < 1.0).all()):
            self._fit()

    @property
    def _aspect(self) -> float:
        return self.width() / max(self.height(), 1)

    @Slot()
    def _show_frame(self) -> None:
        frame = self._render.take()
        if frame is None or frame.geometry is not self._geometry:
            return
        unseen = self._drawing() is None and frame.drawing is not None
        self._frame = frame
        if unseen and self._follows:
            # The first picture of a scene was taken before its size was known.
            self._fit()
            self._request()
            return
        self.update()

    @Slot(str)
    def _show_failure(self, text: str) -> None:
        self._failure = text
        self.update()

    def _message(self) -> str:
        if self._failure:
            return self._failure
        if self._geometry is None or (self._state.twin is None and self._state.cell is None):
            return "waiting for the twin"
        return ""

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        """Copy the newest picture and write over it."""
        del event
        painter = QPainter(self)
        frame, state = self._frame, self._state
        if frame is None or self._failure:
            painter.fillRect(self.rect(), QColor.fromRgbF(*state.look.horizon))
        else:
            painter.drawImage(QRectF(self.rect()), frame.image)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        message = self._message()
        if message:
            self._overlay.message(painter, message, state.look, QRectF(self.rect()))
        if frame is not None and not self._failure:
            self._paint_words(painter, frame)
        painter.end()

    def _paint_words(self, painter: QPainter, frame: Frame) -> None:
        self._overlay.legend(painter, frame.state)
        if frame.state.errors:
            height = float(self.height())
            self._overlay.error_scale(painter, frame.state, self._error_unit, height)
        if frame.state.frames_visible and frame.drawing is not None:
            size = (float(self.width()), float(self.height()))
            self._overlay.frames(painter, frame.drawing, frame.state, size)

    def showEvent(self, event: QShowEvent) -> None:
        """Start drawing."""
        super().showEvent(event)
        if self._render.start():
            self._failure = ""
        self._request()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop drawing."""
        self.stop()
        super().closeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Ask for a picture of the new size."""
        super().resizeEvent(event)
        if self._follows:
            self._fit()
        self._request()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the theme and the font."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.ApplicationPaletteChange):
            self._change(replace(self._state, look=look_for(_background(self))))
        elif event.type() == QEvent.Type.FontChange:
            self._overlay = Overlay(self.font())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        self._pressed = self._last = event.position()
        self._dragging = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Orbit, or pan with shift, the middle or the right button."""
        if self._pressed is None or self._last is None:
            return
        self._dragging |= (event.position() - self._pressed).manhattanLength() > _CLICK
        if not self._dragging:
            return
        by, self._last = event.position() - self._last, event.position()
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if bool(event.buttons() & Qt.MouseButton.LeftButton) and not shift:
            step = _RADIANS_PER_PIXEL
            self._look(self.camera.orbit(-step * by.x(), step * by.y()))
        else:
            x, y = 2.0 * by.x() / self.width(), -2.0 * by.y() / self.height()
            self._look(self.camera.pan(x, y, self.width() / self.height()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A press that did not move selects what is under it."""
        drawing = self._drawing()
        if self._pressed is not None and drawing is not None and not self._dragging:
            hit = pick(drawing, self._state, *self._ndc(event.position()))
            if hit is not None:
                self.link_clicked.emit(*hit)
        self._pressed = self._last = None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom towards the pointer."""
        factor = float(0.999 ** event.angleDelta().y())
        x, y = self._ndc(event.position())
        self._look(self.camera.zoom(factor, x, y, self.width() / self.height()))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Shortcuts: F, 1, 3, 7, arrows, plus and minus."""
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_F:
            self.fit()
        elif key in _VIEWS:
            self._look(self.camera.towards(*_VIEWS[key]))
            self.fit()
        elif key in _TURNS:
            self._look(self.camera.orbit(*_TURNS[key]))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Minus):
            factor = 0.9 if key == Qt.Key.Key_Plus else 1.0 / 0.9
            self._look(self.camera.zoom(factor, 0.0, 0.0, 1.0))
        else:
            super().keyPressEvent(event)

    def _look(self, camera: Camera) -> None:
        """The user moved the camera: it no longer follows the scene."""
        self._follows = False
        self._change(replace(self._state, camera=camera))

    def _ndc(self, at: QPointF) -> tuple[float, float]:
        return 2.0 * at.x() / self.width() - 1.0, 1.0 - 2.0 * at.y() / self.height()

    def _joints(self, q: Floats | None, who: str) -> Floats | None:
        if q is None:
            return None
        joints = np.array(q, dtype=np.float64)
        if self._geometry is not None:
            wanted = (len(self._geometry.tree.joints),)
            if joints.shape != wanted:
                raise LayoutError(
                    f"{who} has joints {list(joints.shape)}; the scene has {list(wanted)}"
                )
        return joints if np.isfinite(joints).all() else None


def _pose(pose: Floats, name: str) -> Floats:
    out = np.array(pose, dtype=np.float64)
    if out.shape != (7,):
        raise LayoutError(f"pose of object '{name}' is float64[7], got {list(out.shape)}")
    return out


def _background(widget: QWidget) -> tuple[float, float, float]:
    color = widget.palette().window().color()
    return color.redF(), color.greenF(), color.blueF()
