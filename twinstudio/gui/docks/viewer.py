"""The twin view: twin solid, cell as a ghost, links coloured by how far they are apart."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.docks.sources import ROLES, STATES, state_of
from twinstudio.gui.selection import Selection
from twinstudio.gui.theme import GRID
from twinstudio.model.geometry import SceneGeometry
from twinstudio.model.kinematics import KinematicTree
from twinstudio.model.views import SourceView

FULL_ANGLE = 0.02
FULL_LENGTH = 0.005
_NOW = ("streaming", "connecting")
# How much older than the slower source's usual delay the picture is, and the longest
# delay that is minded [s]; the share of a change that is followed a frame.
_LATE, _LATEST, _EASE = 0.015, 1.0, 0.1
NO_GL = ("offscreen", "minimal", "vnc")


def link_errors(
    tree: KinematicTree, twin: NDArray[np.float64] | None, cell: NDArray[np.float64] | None
) -> dict[str, float]:
    """How far off each link's own joint is, 0..1, by link name; NaN without readings.

    1 stands for `FULL_ANGLE` [rad] of a revolute joint or `FULL_LENGTH` [m] of a
    prismatic one, or more. A link on a fixed joint has 0.
    """
    errors = {}
    apart = None if twin is None or cell is None else np.abs(twin - cell)
    for link in tree.links:
        if link.coordinate < 0:
            errors[link.name] = 0.0
        elif apart is None:
            errors[link.name] = float("nan")
        else:
            full = FULL_LENGTH if link.kind == "prismatic" else FULL_ANGLE
            errors[link.name] = float(np.minimum(apart[link.coordinate] / full, 1.0))
    return errors


class ViewerDock(QWidget):
    """Wraps the 3D view; it is made on the first frame, so the window shows at once.

    failed: why there is no 3D view on this machine.
    """

    failed = Signal(str)

    def __init__(self, bridge: Bridge, selection: Selection) -> None:
        super().__init__()
        self._session = bridge.session
        self._selection = selection
        self._geometry: SceneGeometry | None = None
        self._joint_of: dict[str, str] = {}
        self._tried = False
        self._delay = _LATE
        self.scene: Any = None
        self.ghost = _button("Cell", "Show the cell as a translucent ghost (G)", checkable=True)
        self.ghost.setChecked(True)
        self.ghost.toggled.connect(self._show_ghost)
        self.frames = _button("Frames", "Show the axes of base and tool", checkable=True)
        self.frames.setChecked(True)
        self.frames.toggled.connect(self._show_frames)
        self.fit = _button("Fit", "Show the whole scene (F)")
        self.fit.clicked.connect(lambda _on: self.fit_scene())
        self.when = QLabel()
        self.when.setProperty("role", "warning")
        self.empty = Empty("The twin is starting", "Its model appears as soon as it is loaded.")
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        row = QHBoxLayout()
        row.setContentsMargins(GRID, GRID // 2, GRID, 0)
        row.setSpacing(GRID)
        for widget in (self.ghost, self.frames, self.fit):
            row.addWidget(widget)
        row.addStretch()
        row.addWidget(self.when)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(GRID // 2)
        box.addLayout(row)
        box.addWidget(self.pages, stretch=1)
        bridge.add(self, self.refresh)

    def refresh(self, frame: Frame) -> None:
        """Put twin and cell where they are, or were at the instant that is held."""
        text = _old(frame)
        if text != self.when.text():
            self.when.setText(text)
        geometry = self._session.geometry
        if geometry is None or not self._ready():
            return
        if geometry is not self._geometry:
            self._take(geometry)
        twin, cell, objects = self._state(frame)
        self.scene.set_state(twin, cell, objects, link_errors(geometry.tree, twin, cell))

    def fit_scene(self) -> None:
        """Move the camera so that everything is in sight."""
        if self.scene is not None:
            self.scene.fit()

    def stop(self) -> None:
        """Stop drawing and release what the view holds; call before the window goes."""
        if self.scene is not None:
            self.scene.stop()

    def stats(self) -> tuple[float, float]:
        """Pictures a second and time to draw one [ms] of the 3D view; zeros without one."""
        if self.scene is None:
            return 0.0, 0.0
        fps, milliseconds = self.scene.stats()
        return float(fps), float(milliseconds)

    def _state(self, frame: Frame) -> tuple[Any, Any, dict[str, NDArray[np.float64]]]:
        """Twin and cell at one instant: the newest that both have told, when live.

        The twin may be behind the cell by design; newest beside newest, every
        motion would look like an error.
        """
        if not frame.timeline.live:
            moment = self._session.moment(frame.timeline.end)
            return moment.twin, moment.cell, moment.objects
        delays = [source.health.latency_p50 for source in frame.snapshot.sources]
        delay = _LATE + max((d for d in delays if 0.0 < d < _LATEST), default=0.0)
        self._delay += _EASE * (delay - self._delay)
        moment = self._session.moment(frame.snapshot.now - round(self._delay * 1e9))
        twin, cell = frame.snapshot.source("twin"), frame.snapshot.source("cell")
        return (
            _joints(twin) if moment.twin is None else moment.twin,
            _joints(cell) if moment.cell is None else moment.cell,
            moment.objects,
        )

    def _ready(self) -> bool:
        if not self._tried:
            self._tried = True
            self._open()
        return self.scene is not None

    def _open(self) -> None:
        if QGuiApplication.platformName() in NO_GL:
            self._complain(f"the display platform '{QGuiApplication.platformName()}' has no OpenGL")
            return
        # Imported here: OpenGL and shaders must not delay the first frame.
        from twinstudio.gui.scene3d import SceneView  # noqa: PLC0415

        self.scene = SceneView(self)
        self.scene.link_clicked.connect(self._clicked)
        self.pages.addWidget(self.scene)
        self.pages.setCurrentWidget(self.scene)
        self.scene.set_ghost_visible(self.ghost.isChecked())

    def _complain(self, reason: str) -> None:
        self.empty.title.setText("No 3D view here")
        self.empty.text.setText(f"{reason}; everything else works.")
        self.failed.emit(reason)

    def _take(self, geometry: SceneGeometry) -> None:
        self._geometry = geometry
        joints = geometry.tree.joints
        self._joint_of = {
            link.name: joints[link.coordinate]
            for link in geometry.tree.links
            if link.coordinate >= 0
        }
        self.scene.set_geometry(geometry)
        self.scene.set_error_scale(*_full_scale(geometry.tree))

    def _show_ghost(self, on: bool) -> None:
        if self.scene is not None:
            self.scene.set_ghost_visible(on)

    def _show_frames(self, on: bool) -> None:
        if self.scene is not None:
            self.scene.set_frames_visible(on)

    def _clicked(self, body: str, link: str) -> None:
        self._selection.select(self._joint_of.get(link, ""), body)


def _old(frame: Frame) -> str:
    """What of the picture is not of now, in words; empty when all is."""
    if not frame.timeline.live:
        return f"as it was {frame.timeline.age:.1f} s ago"
    sources = [(role, frame.snapshot.source(role)) for role in ROLES]
    states = {role: state_of(source, frame.snapshot.replay) for role, source in sources if source}
    # The newest reading of one that went silent is still drawn.
    return ", ".join(f"{role} {STATES[s]}" for role, s in states.items() if s not in _NOW)


def _full_scale(tree: KinematicTree) -> tuple[float, str]:
    """What an error of 1 stands for, in words the scale can show."""
    kinds = {link.kind for link in tree.links if link.coordinate >= 0}
    if kinds == {"prismatic"}:
        return FULL_LENGTH * 1e3, "mm"
    also = f" or {FULL_LENGTH * 1e3:.0f} mm" if "prismatic" in kinds else ""
    return FULL_ANGLE * 1e3, f"mrad{also}"


def _joints(source: SourceView | None) -> NDArray[np.float64] | None:
    """Joint positions, or None while there is a joint without a reading."""
    if source is None or not np.isfinite(source.joints).all():
        return None
    return source.joints


def _button(text: str, tip: str, *, checkable: bool = False) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    button.setAccessibleName(tip)
    button.setCheckable(checkable)
    return button
