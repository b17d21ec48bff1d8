"""OpenGL as the renderer uses it: PyOpenGL's raw functions, unchecked.

Raw functions are plain ctypes calls. They release the interpreter lock while
they run, which is what keeps the window's event loop free, and they skip the
wrappers' bookkeeping, which looks for a context through the wrong door when Qt
uses EGL and PyOpenGL GLX.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
import OpenGL
from numpy.typing import NDArray

from twinstudio.model.errors import TwinstudioError

OpenGL.ERROR_CHECKING = False
OpenGL.ERROR_LOGGING = False

from OpenGL.raw.GL.VERSION import GL_1_0, GL_1_1, GL_1_3, GL_1_5, GL_2_0, GL_3_0, GL_3_1  # noqa: E402

__all__ = ["GL_1_0", "GL_1_1", "GL_1_3", "GL_1_5", "GL_2_0", "GL_3_0", "GL_3_1"]

BGRA = 0x80E1
SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software")


class RenderError(TwinstudioError):
    """OpenGL is missing, too old, or refuses what the 3D view needs."""


@dataclass(frozen=True, slots=True)
class Driver:
    """What draws: vendor's name of the renderer, version, and whether it is software."""

    renderer: str
    version: str
    software: bool


def driver() -> Driver:
    """The driver of the current context; raises RenderError when it is below OpenGL 3.3."""
    renderer, version = _text(GL_1_0.GL_RENDERER), _text(GL_1_0.GL_VERSION)
    major, minor = _integer(GL_3_0.GL_MAJOR_VERSION), _integer(GL_3_0.GL_MINOR_VERSION)
    if (major, minor) < (3, 3):
        raise RenderError(
            f"OpenGL {version or 'of unknown version'} on {renderer or 'an unknown renderer'};"
            " the 3D view needs 3.3",
            hint="update the graphics driver, or install Mesa's software renderer",
        )
    return Driver(renderer, version, any(name in renderer.lower() for name in SOFTWARE))


class Program:
    """A linked shading program and its uniforms by name.

    Raises RenderError with the driver's complaint when it does not compile.
    """

    def __init__(self, vertex: str, fragment: str) -> None:
        self._name = int(GL_2_0.glCreateProgram())
        self._places: dict[str, int] = {}
        for kind, source in (
            (GL_2_0.GL_VERTEX_SHADER, vertex),
            (GL_2_0.GL_FRAGMENT_SHADER, fragment),
        ):
            shader = _compiled(kind, source)
            GL_2_0.glAttachShader(self._name, shader)
            GL_2_0.glDeleteShader(shader)
        GL_2_0.glLinkProgram(self._name)
        _check(
            self._name,
            GL_2_0.GL_LINK_STATUS,
            GL_2_0.glGetProgramiv,
            GL_2_0.glGetProgramInfoLog,
        )

    def use(self) -> None:
        """Make this the current program; the setters need it to be."""
        GL_2_0.glUseProgram(self._name)

    def integer(self, name: str, value: int) -> None:
        """Set an int or a sampler's texture unit."""
        GL_2_0.glUniform1i(self._place(name), value)

    def vector(self, name: str, *values: float) -> None:
        """Set a float, vec2 or vec3."""
        setters = (GL_2_0.glUniform1f, GL_2_0.glUniform2f, GL_2_0.glUniform3f)
        setters[len(values) - 1](self._place(name), *values)

    def matrix(self, name: str, value: NDArray[np.float64]) -> None:
        """Set a mat4 from row-major float64[4, 4]."""
        data = np.ascontiguousarray(value, dtype=np.float32)
        pointer = data.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        GL_2_0.glUniformMatrix4fv(self._place(name), 1, True, pointer)

    def _place(self, name: str) -> int:
        if name not in self._places:
            self._places[name] = int(GL_2_0.glGetUniformLocation(self._name, name.encode()))
        return self._places[name]


def made(create: object) -> int:
    """One name from a glGen* function."""
    name = ctypes.c_uint()
    create(1, ctypes.byref(name))  # type: ignore[operator]
    return name.value


def freed(destroy: object, name: int) -> None:
    """Give one name back to a glDelete* function."""
    destroy(1, ctypes.byref(ctypes.c_uint(name)))  # type: ignore[operator]


def upload(target: int, buffer: int, data: NDArray[np.generic], usage: int) -> None:
    """Replace the contents of `buffer`."""
    GL_1_5.glBindBuffer(target, buffer)
    GL_1_5.glBufferData(target, data.nbytes, ctypes.c_void_p(data.ctypes.data), usage)


def problem() -> int:
    """The oldest error the context has noted since it was last asked, 0 if none."""
    return int(GL_1_0.glGetError())


def largest() -> int:
    """Widest and highest picture the driver can draw [px]."""
    return min(_integer(GL_1_0.GL_MAX_TEXTURE_SIZE), _integer(GL_3_0.GL_MAX_RENDERBUFFER_SIZE))


def _integer(name: int) -> int:
    value = ctypes.c_int()
    GL_1_0.glGetIntegerv(name, ctypes.byref(value))
    return value.value


def _text(name: int) -> str:
    raw = ctypes.cast(GL_1_0.glGetString(name), ctypes.c_char_p).value
    return raw.decode(errors="replace") if raw else ""


def _compiled(kind: int, source: str) -> int:
    shader = int(GL_2_0.glCreateShader(kind))
    text = ctypes.create_string_buffer(source.strip().encode())
    strings = (ctypes.c_void_p * 1)(ctypes.addressof(text))
    pointer = ctypes.cast(strings, ctypes.POINTER(ctypes.POINTER(ctypes.c_char)))
    GL_2_0.glShaderSource(shader, 1, pointer, None)
    GL_2_0.glCompileShader(shader)
    _check(shader, GL_2_0.GL_COMPILE_STATUS, GL_2_0.glGetShaderiv, GL_2_0.glGetShaderInfoLog)
    return shader


def _check(name: int, status: int, ask: object, log: object) -> None:
    good = ctypes.c_int()
    ask(name, status, ctypes.byref(good))  # type: ignore[operator]
    if good.value:
        return
    text = ctypes.create_string_buffer(1024)
    log(name, 1024, None, text)  # type: ignore[operator]
    said = " ".join(text.value.decode(errors="replace").split())
    raise RenderError(f"the graphics driver refuses a shader: {said}")
