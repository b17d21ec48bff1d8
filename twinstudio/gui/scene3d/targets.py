"""Pictures drawn into: colour and depth, resolved from several samples a pixel if asked."""

from dataclasses import dataclass

from twinstudio.gui.scene3d import gl
from twinstudio.gui.scene3d.gl import GL_1_0, GL_1_1, GL_3_0, RenderError

_BOTH = GL_1_0.GL_COLOR_BUFFER_BIT | GL_1_0.GL_DEPTH_BUFFER_BIT


@dataclass(frozen=True, slots=True)
class _Store:
    """A framebuffer with its two attachments; textures if `samples` is 1."""

    frame: int
    color: int
    depth: int
    samples: int


class Target:
    """Colour and depth of one size, readable as textures after `resolve`."""

    def __init__(self, width: int, height: int, samples: int) -> None:
        self.width, self.height, self.samples = width, height, samples
        self._plain = _textures(width, height)
        self._fine = _renderbuffers(width, height, samples) if samples > 1 else None
        self._flat = _color_only(self._plain.color)

    @property
    def frame(self) -> int:
        """The framebuffer to draw into."""
        return (self._fine or self._plain).frame

    @property
    def flat(self) -> int:
        """The resolved colour alone: may be drawn into while the depth is read."""
        return self._flat

    @property
    def color(self) -> int:
        """Texture of the colour."""
        return self._plain.color

    @property
    def depth(self) -> int:
        """Texture of the depth."""
        return self._plain.depth

    def resolve(self) -> None:
        """Bring what was drawn into the textures."""
        if self._fine is None:
            return
        GL_3_0.glBindFramebuffer(GL_3_0.GL_READ_FRAMEBUFFER, self._fine.frame)
        GL_3_0.glBindFramebuffer(GL_3_0.GL_DRAW_FRAMEBUFFER, self._plain.frame)
        box = (0, 0, self.width, self.height)
        GL_3_0.glBlitFramebuffer(*box, *box, _BOTH, GL_1_0.GL_NEAREST)

    def close(self) -> None:
        """Give the memory back."""
        gl.freed(GL_3_0.glDeleteFramebuffers, self._flat)
        for store in filter(None, (self._plain, self._fine)):
            gl.freed(GL_3_0.glDeleteFramebuffers, store.frame)
            kind = GL_1_1.glDeleteTextures if store.samples == 1 else GL_3_0.glDeleteRenderbuffers
            gl.freed(kind, store.color)
            gl.freed(kind, store.depth)


def _textures(width: int, height: int) -> _Store:
    frame = gl.made(GL_3_0.glGenFramebuffers)
    GL_3_0.glBindFramebuffer(GL_3_0.GL_FRAMEBUFFER, frame)
    kinds = (
        (GL_1_1.GL_RGBA8, gl.BGRA, GL_1_0.GL_UNSIGNED_BYTE, GL_3_0.GL_COLOR_ATTACHMENT0),
        (
            GL_3_0.GL_DEPTH_COMPONENT32F,
            GL_1_0.GL_DEPTH_COMPONENT,
            GL_1_0.GL_FLOAT,
            GL_3_0.GL_DEPTH_ATTACHMENT,
        ),
    )
    names = []
    for internal, layout, kind, place in kinds:
        names.append(gl.made(GL_1_1.glGenTextures))
        GL_1_1.glBindTexture(GL_1_0.GL_TEXTURE_2D, names[-1])
        GL_1_0.glTexImage2D(GL_1_0.GL_TEXTURE_2D, 0, internal, width, height, 0, layout, kind, None)
        for setting in (GL_1_0.GL_TEXTURE_MIN_FILTER, GL_1_0.GL_TEXTURE_MAG_FILTER):
            GL_1_0.glTexParameteri(GL_1_0.GL_TEXTURE_2D, setting, GL_1_0.GL_NEAREST)
        GL_3_0.glFramebufferTexture2D(
            GL_3_0.GL_FRAMEBUFFER, place, GL_1_0.GL_TEXTURE_2D, names[-1], 0
        )
    _complete(width, height)
    return _Store(frame, names[0], names[1], 1)


def _color_only(texture: int) -> int:
    frame = gl.made(GL_3_0.glGenFramebuffers)
    GL_3_0.glBindFramebuffer(GL_3_0.GL_FRAMEBUFFER, frame)
    GL_3_0.glFramebufferTexture2D(
        GL_3_0.GL_FRAMEBUFFER, GL_3_0.GL_COLOR_ATTACHMENT0, GL_1_0.GL_TEXTURE_2D, texture, 0
    )
    return frame


def _renderbuffers(width: int, height: int, samples: int) -> _Store:
    frame = gl.made(GL_3_0.glGenFramebuffers)
    GL_3_0.glBindFramebuffer(GL_3_0.GL_FRAMEBUFFER, frame)
    names = []
    for internal, place in (
        (GL_1_1.GL_RGBA8, GL_3_0.GL_COLOR_ATTACHMENT0),
        (GL_3_0.GL_DEPTH_COMPONENT32F, GL_3_0.GL_DEPTH_ATTACHMENT),
    ):
        names.append(gl.made(GL_3_0.glGenRenderbuffers))
        GL_3_0.glBindRenderbuffer(GL_3_0.GL_RENDERBUFFER, names[-1])
        GL_3_0.glRenderbufferStorageMultisample(
            GL_3_0.GL_RENDERBUFFER, samples, internal, width, height
        )
        GL_3_0.glFramebufferRenderbuffer(
            GL_3_0.GL_FRAMEBUFFER, place, GL_3_0.GL_RENDERBUFFER, names[-1]
        )
    _complete(width, height)
    return _Store(frame, names[0], names[1], samples)


def _complete(width: int, height: int) -> None:
    status = GL_3_0.glCheckFramebufferStatus(GL_3_0.GL_FRAMEBUFFER)
    if status != GL_3_0.GL_FRAMEBUFFER_COMPLETE:
        raise RenderError(f"no picture of {width} x {height} px (OpenGL status {status:#x})")
