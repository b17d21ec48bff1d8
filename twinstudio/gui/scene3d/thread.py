"""The thread that draws: it owns the OpenGL context and hands out finished images.

The window never waits for it. A request replaces the one before, and so does an
image: latest only, both ways.
"""

import atexit
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage, QOffscreenSurface, QOpenGLContext, QSurfaceFormat

from twinstudio.gui.scene3d.drawing import Drawing, RenderState, prepare
from twinstudio.gui.scene3d.pace import LEVELS, Level, Pace
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.geometry import SceneGeometry

if TYPE_CHECKING:
    from twinstudio.gui.scene3d.renderer import Renderer

TRIANGLES_SOFTWARE = 24_000
TRIANGLES_GPU = 500_000
REFINED_PIXELS = 2_500_000
SETTLED = 0.3
# Pictures a second. What a processor draws beyond, it would take from the plots.
FASTEST, FASTEST_SOFTWARE = 60.0, 20.0
NICENESS = 5
NO_OPENGL = (
    "The 3D view needs OpenGL 3.3, and this display offers none.\n"
    "Install a graphics driver, or Mesa's software renderer\n"
    "(Debian, Ubuntu: apt install libgl1 libgl1-mesa-dri)."
)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A finished picture, what it shows, and the mesh it was drawn from."""

    image: QImage
    state: RenderState
    geometry: SceneGeometry | None
    drawing: Drawing | None


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    geometry: SceneGeometry | None
    state: RenderState


class RenderThread(QObject):
    """Draws the newest request, no more often than the machine affords.

    frame_ready: a picture waits in `take`; not repeated until it was taken.
    failed: why nothing can be drawn, in plain words.
    """

    frame_ready = Signal()
    failed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._surface: QOffscreenSurface | None = None
        self._stopping = False
        self._job: _Job | None = None
        self._frame: Frame | None = None
        self._announced = False
        self._times: deque[tuple[float, float]] = deque(maxlen=120)
        self.description = ""

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> bool:
        """Start drawing, unless that was done; call it from the window's thread.

        Returns whether a thread was started.
        """
        if self._thread is not None:
            return False
        self._stopping = False
        self._surface = QOffscreenSurface()
        self._surface.setFormat(_format())
        self._surface.create()
        self._thread = threading.Thread(target=self._run, name="scene3d", daemon=True)
        self._thread.start()
        # A program that ends by an error must not tear Qt down under the thread.
        atexit.register(self.stop)
        return True

    def stop(self) -> None:
        """End the thread and wait for it; call it from the window's thread."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with self._change:
            self._stopping = True
            self._change.notify()
        thread.join()
        atexit.unregister(self.stop)
        if self._surface is not None:
            self._surface.destroy()
        self._surface = None

    def request(self, geometry: SceneGeometry | None, state: RenderState) -> None:
        """Ask for a picture of `state`; replaces a request not yet begun."""
        with self._change:
            self._job = _Job(geometry, state)
            self._change.notify()

    def take(self) -> Frame | None:
        """The newest picture not yet taken."""
        with self._change:
            frame, self._frame = self._frame, None
            self._announced = False
        return frame

    def stats(self) -> tuple[float, float]:
        """Frames a second over the last two seconds, and mean time of a frame [ms]."""
        now = time.monotonic()
        with self._change:
            recent = [cost for when, cost in self._times if now - when < 2.0]
        if not recent:
            return 0.0, 0.0
        return len(recent) / 2.0, 1e3 * sum(recent) / len(recent)

    def _run(self) -> None:
        context = QOpenGLContext()
        context.setFormat(_format())
        if self._surface is None or not context.create() or not context.makeCurrent(self._surface):
            self.failed.emit(NO_OPENGL)
            return
        try:
            self._draw_until_stopped()
        except TwinstudioError as error:
            self.failed.emit(f"The 3D view cannot draw.\n{error}")
        except Exception as error:  # noqa: BLE001 - the window must say why its view stands still
            self.failed.emit(f"The 3D view stopped.\n{type(error).__name__}: {error}")
        finally:
            context.doneCurrent()

    def _draw_until_stopped(self) -> None:
        # Loads the OpenGL library, which may be absent: only here, where that is reported.
        from twinstudio.gui.scene3d.renderer import Renderer  # noqa: PLC0415

        renderer = Renderer()
        _yield_to_the_window()
        self.description = f"{renderer.driver.renderer}, OpenGL {renderer.driver.version}"
        software = renderer.driver.software
        pace = Pace(software=software, fastest=FASTEST_SOFTWARE if software else FASTEST)
        budget = TRIANGLES_SOFTWARE if renderer.driver.software else TRIANGLES_GPU
        studio = _Studio(renderer, budget, self.failed.emit)
        rough: _Job | None = None
        try:
            while not self._stopping:
                job = self._next(SETTLED if rough is not None else None)
                fresh, job = job is not None, job or rough
                if job is None or self._stopping:
                    continue
                finest = _finest(job.state, software=renderer.driver.software)
                level = max(pace.level, finest, key=LEVELS.index) if fresh else finest
                studio.adopt(job.geometry)
                rough = job if level != finest else None
                began = time.monotonic()
                self._publish(studio.draw(job, level))
                cost = time.monotonic() - began
                rest = pace.drawn(cost) if level == pace.level else pace.rest(cost)
                with self._change:
                    self._times.append((began + cost, cost))
                self._pause(rest)
        finally:
            renderer.close()

    def _next(self, patience: float | None) -> _Job | None:
        """The newest request, waiting for one; None after `patience` [s] or when stopping."""
        with self._change:
            self._change.wait_for(lambda: self._stopping or self._job is not None, patience)
            job, self._job = self._job, None
        return job

    def _pause(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: self._stopping, seconds)

    def _publish(self, frame: Frame) -> None:
        with self._change:
            self._frame = frame
            first, self._announced = not self._announced, True
        if first:
            self.frame_ready.emit()


class _Studio:
    """Turns jobs into frames; keeps the prepared mesh of the geometry at hand."""

    def __init__(self, renderer: "Renderer", budget: int, complain: Callable[[str], None]) -> None:
        self._renderer = renderer
        self._budget = budget
        self._complain = complain
        self._geometry: SceneGeometry | None = None
        self._drawing: Drawing | None = None

    def draw(self, job: _Job, level: Level) -> Frame:
        """A picture of the job at that quality; its geometry has been adopted."""
        state = self._renderer.bounded(job.state)
        image = QImage(state.width, state.height, QImage.Format.Format_RGB32)
        self._renderer.render(state, level.scale, level.samples)
        bits = image.bits()
        assert not isinstance(bits, bytes)
        self._renderer.read(bits)
        return Frame(image, state, job.geometry, self._drawing)

    def adopt(self, geometry: SceneGeometry | None) -> None:
        """Make ready to draw this geometry; complains when it cannot be drawn."""
        if geometry is self._geometry:
            return
        self._geometry = geometry
        try:
            self._drawing = prepare(geometry, self._budget) if geometry is not None else None
        except TwinstudioError as error:
            self._drawing = None
            self._complain(f"The scene cannot be drawn.\n{error}")
        self._renderer.load(self._drawing)


def _finest(state: RenderState, *, software: bool) -> Level:
    """The quality to draw at when there is time: not so fine that closing has to wait for it."""
    return LEVELS[1] if software and state.width * state.height > REFINED_PIXELS else LEVELS[0]


def _format() -> QSurfaceFormat:
    out = QSurfaceFormat()
    out.setVersion(3, 3)
    out.setProfile(QSurfaceFormat.OpenGLContextProfile.CoreProfile)
    return out


def _yield_to_the_window() -> None:
    """Lower the priority of the software renderer's workers, on Linux, where they are listed.

    Not of the drawing thread: while it waits its turn with the interpreter lock
    in hand, the window waits too.
    """
    for task in Path("/proc/self/task").glob("*"):
        # A thread may end between being listed and being looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().startswith("llvmpipe-"):
                os.setpriority(os.PRIO_PROCESS, int(task.name), NICENESS)
