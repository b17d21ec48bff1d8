"""Draws a scene into memory with OpenGL; knows nothing of windows.

Every call must come from the thread in which the context is current.
"""

import ctypes
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twinstudio.gui.scene3d import gl, shaders
from twinstudio.gui.scene3d.drawing import VERTEX, Drawing, RenderState, Span, table
from twinstudio.gui.scene3d.gl import GL_1_0, GL_1_1, GL_1_3, GL_1_5, GL_2_0, GL_3_0, GL_3_1
from twinstudio.gui.scene3d.palette import CELL, ErrorScale
from twinstudio.gui.scene3d.targets import Target

Floats = NDArray[np.float64]
Writable = bytearray | memoryview

MOST_PIXELS = 3840 * 2160

# Rows come out top to bottom, as images store them.
_UPRIGHT = np.diag((1.0, -1.0, 1.0, 1.0))
_BOTH = GL_1_0.GL_COLOR_BUFFER_BIT | GL_1_0.GL_DEPTH_BUFFER_BIT
_FILL_LIGHT = np.array((-0.55, 0.60, 0.35)) / np.linalg.norm((-0.55, 0.60, 0.35))
_KEY_IN_CAMERA = np.array((-0.45, 0.75, 0.60)) / np.linalg.norm((-0.45, 0.75, 0.60))


class Renderer:
    """One scene on the graphics card and the programs that draw it."""

    def __init__(self) -> None:
        self.driver = gl.driver()
        self._largest = gl.largest()
        self._mesh = gl.Program(shaders.MESH_VERTEX, shaders.MESH_FRAGMENT)
        self._background = gl.Program(shaders.SCREEN_VERTEX, shaders.BACKGROUND_FRAGMENT)
        self._ghost = gl.Program(shaders.SCREEN_VERTEX, shaders.GHOST_FRAGMENT)
        self._scale = ErrorScale()
        self._array = gl.made(GL_3_0.glGenVertexArrays)
        self._vertices, self._indices, self._rows = (gl.made(GL_1_5.glGenBuffers) for _ in range(3))
        self._table = gl.made(GL_1_1.glGenTextures)
        self._solid: Target | None = None
        self._veil: Target | None = None
        self._screen: Target | None = None
        self._drawing: Drawing | None = None

    def load(self, drawing: Drawing | None) -> None:
        """Put `drawing` on the card in place of the one before; raises RenderError if it cannot."""
        self._drawing = drawing
        if drawing is None:
            return
        GL_3_0.glBindVertexArray(self._array)
        gl.upload(GL_1_5.GL_ARRAY_BUFFER, self._vertices, drawing.vertices, GL_1_5.GL_STATIC_DRAW)
        gl.upload(
            GL_1_5.GL_ELEMENT_ARRAY_BUFFER, self._indices, drawing.indices, GL_1_5.GL_STATIC_DRAW
        )
        for place, count, start in ((0, 4, 0), (1, 3, 16)):
            offset = ctypes.c_void_p(start)
            GL_2_0.glEnableVertexAttribArray(place)
            GL_2_0.glVertexAttribPointer(
                place, count, GL_1_0.GL_FLOAT, False, VERTEX.itemsize, offset
            )
        code = gl.problem()
        if code:
            raise gl.RenderError(
                f"the graphics card cannot take {len(drawing.indices) // 3} triangles"
                f" (OpenGL error {code:#x})"
            )

    def bounded(self, state: RenderState) -> RenderState:
        """The state with its picture no larger than can be drawn, same aspect."""
        width, height = state.width, state.height
        fits = self._largest / max(width, height)
        shrink = min(fits, (MOST_PIXELS / (width * height)) ** 0.5)
        if shrink >= 1.0:
            return state
        return replace(
            state, width=max(1, int(width * shrink)), height=max(1, int(height * shrink))
        )

    def render(self, state: RenderState, scale: float = 1.0, samples: int = 1) -> None:
        """Draw one picture of state.width x state.height, `read` then fetches it.

        scale: resolution of what is drawn, relative to the picture's.
        samples: per pixel, against jagged edges; 1 or 4.
        """
        width = max(1, round(state.width * scale))
        height = max(1, round(state.height * scale))
        self._solid = _sized(self._solid, width, height, samples)
        self._begin(self._solid)
        GL_1_0.glClear(GL_1_0.GL_DEPTH_BUFFER_BIT)
        self._draw_background(state)
        if self._drawing is not None:
            self._draw_solid(self._drawing, state)
        self._solid.resolve()
        if self._drawing is not None and state.ghost is not None:
            self._veil = _sized(self._veil, width, height, samples)
            self._draw_ghost(self._drawing, state, self._solid, self._veil)
        self._enlarge(state, self._solid)

    def read(self, out: Writable) -> None:
        """Copy the picture into `out`: rows top to bottom, bytes blue, green, red, unused."""
        shown = self._screen or self._solid
        if shown is None:
            return
        GL_3_0.glBindFramebuffer(GL_3_0.GL_READ_FRAMEBUFFER, shown.flat)
        pixels = (ctypes.c_ubyte * len(out)).from_buffer(out)
        GL_1_0.glReadPixels(
            0, 0, shown.width, shown.height, gl.BGRA, GL_1_0.GL_UNSIGNED_BYTE, pixels
        )

    def close(self) -> None:
        """Free the pictures; the rest goes with the context."""
        for target in (self._solid, self._veil, self._screen):
            if target is not None:
                target.close()
        self._solid = self._veil = self._screen = None

    def _begin(self, target: Target) -> None:
        GL_3_0.glBindFramebuffer(GL_3_0.GL_FRAMEBUFFER, target.frame)
        GL_1_0.glViewport(0, 0, target.width, target.height)
        GL_1_0.glDisable(GL_1_0.GL_SCISSOR_TEST)
        GL_1_0.glDisable(GL_1_0.GL_BLEND)

    def _draw_background(self, state: RenderState) -> None:
        camera, look = state.camera, state.look
        turn = np.eye(4)
        turn[:3, :3] = camera.axes()
        clip = _UPRIGHT @ camera.projection(state.aspect) @ turn
        coarse = 10.0 ** np.floor(np.log10(0.5 * camera.distance))
        self._background.use()
        self._background.matrix("unproject", np.asarray(np.linalg.inv(clip), np.float64))
        self._background.vector("eye", *camera.eye())
        for name in ("zenith", "horizon", "ground", "grid"):
            self._background.vector(name, *getattr(look, name))
        self._background.vector("spacing", coarse / 10.0, coarse)
        self._background.vector("reach", 4.5 * camera.distance)
        self._background.vector("centre", *camera.target[:2])
        GL_1_0.glDisable(GL_1_0.GL_DEPTH_TEST)
        GL_3_0.glBindVertexArray(self._array)
        GL_1_1.glDrawArrays(GL_1_0.GL_TRIANGLES, 0, 3)

    def _draw_solid(self, drawing: Drawing, state: RenderState) -> None:
        rows = table(drawing, state, self._scale)
        gl.upload(GL_3_1.GL_TEXTURE_BUFFER, self._rows, rows, GL_1_5.GL_STREAM_DRAW)
        GL_1_3.glActiveTexture(GL_1_3.GL_TEXTURE0)
        GL_1_1.glBindTexture(GL_3_1.GL_TEXTURE_BUFFER, self._table)
        GL_3_1.glTexBuffer(GL_3_1.GL_TEXTURE_BUFFER, GL_3_0.GL_RGBA32F, self._rows)
        camera = state.camera
        self._mesh.use()
        self._mesh.integer("rows", 0)
        self._mesh.integer("offset", 0)
        clip = _UPRIGHT @ camera.projection(state.aspect) @ camera.view()
        self._mesh.matrix("camera", clip)
        self._mesh.vector("eye", *camera.eye())
        self._mesh.vector("key", *(_KEY_IN_CAMERA @ camera.axes()))
        self._mesh.vector("fill", *_FILL_LIGHT)
        GL_1_0.glEnable(GL_1_0.GL_DEPTH_TEST)
        spans = [drawing.things]
        if state.twin is not None:
            spans.append(drawing.robot)
        if state.frames_visible and (state.twin is not None or state.ghost is not None):
            spans += [drawing.base_axes, drawing.tool_axes]
        for span in spans:
            _draw(span)

    def _draw_ghost(
        self, drawing: Drawing, state: RenderState, solid: Target, veil: Target
    ) -> None:
        """The cell's robot into a picture of its own, which is then laid over the solid one."""
        self._begin(veil)
        GL_1_0.glClearColor(0.0, 0.0, 0.0, 0.0)
        GL_1_0.glClear(_BOTH)
        self._mesh.use()
        self._mesh.integer("offset", drawing.rows)
        _draw(drawing.robot)
        veil.resolve()
        GL_3_0.glBindFramebuffer(GL_3_0.GL_FRAMEBUFFER, solid.flat)
        GL_1_0.glDisable(GL_1_0.GL_DEPTH_TEST)
        GL_1_0.glEnable(GL_1_0.GL_BLEND)
        GL_1_0.glBlendFunc(GL_1_0.GL_SRC_ALPHA, GL_1_0.GL_ONE_MINUS_SRC_ALPHA)
        self._ghost.use()
        for unit, (name, texture) in enumerate(
            (("ghost", veil.color), ("ghost_depth", veil.depth), ("solid_depth", solid.depth))
        ):
            GL_1_3.glActiveTexture(GL_1_3.GL_TEXTURE0 + unit)
            GL_1_1.glBindTexture(GL_1_0.GL_TEXTURE_2D, texture)
            self._ghost.integer(name, unit)
        self._ghost.vector("outline", *CELL)
        self._ghost.vector("planes", state.camera.near, state.camera.far)
        GL_1_1.glDrawArrays(GL_1_0.GL_TRIANGLES, 0, 3)

    def _enlarge(self, state: RenderState, solid: Target) -> None:
        """Stretch a coarse picture to the size asked for."""
        if (solid.width, solid.height) == (state.width, state.height):
            if self._screen is not None:
                self._screen.close()
            self._screen = None
            return
        self._screen = _sized(self._screen, state.width, state.height, 1)
        GL_1_0.glDisable(GL_1_0.GL_SCISSOR_TEST)
        GL_3_0.glBindFramebuffer(GL_3_0.GL_READ_FRAMEBUFFER, solid.flat)
        GL_3_0.glBindFramebuffer(GL_3_0.GL_DRAW_FRAMEBUFFER, self._screen.flat)
        GL_3_0.glBlitFramebuffer(
            *(0, 0, solid.width, solid.height),
            *(0, 0, state.width, state.height),
            GL_1_0.GL_COLOR_BUFFER_BIT,
            GL_1_0.GL_LINEAR,
        )


def _sized(target: Target | None, width: int, height: int, samples: int) -> Target:
    if target is not None:
        if (target.width, target.height, target.samples) == (width, height, samples):
            return target
        target.close()
    return Target(width, height, samples)


def _draw(span: Span) -> None:
    if span.count:
        GL_1_1.glDrawElements(
            GL_1_0.GL_TRIANGLES,
            span.count,
            GL_1_0.GL_UNSIGNED_INT,
            ctypes.c_void_p(4 * span.first),
        )
