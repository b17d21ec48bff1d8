"""The one family of errors a user may see.

A message says what is wrong, where, and what to do about it, on one line.
Library code raises these; the command line, the session log and the window
print ``str(error)`` unchanged.
"""


class TwinstudioError(Exception):
    """What is wrong (`what`), where (`where`) and what to do (`hint`)."""

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.what}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)


def _rebuild(cls: type[TwinstudioError], what: str, where: str, hint: str) -> TwinstudioError:
    return cls(what, where=where, hint=hint)


class QuantityError(TwinstudioError):
    """A number has the wrong unit, is out of bounds or is not finite."""


class SceneError(TwinstudioError):
    """A scene or cell file is missing, malformed or refers to a missing model."""


class LayoutError(TwinstudioError):
    """Signals, columns or shapes do not fit each other."""


class ProtocolError(TwinstudioError):
    """Bytes on the wire are not what the protocol allows."""


class LinkError(TwinstudioError):
    """An endpoint cannot be reached, refused a request or did not answer in time."""


class RecordingError(TwinstudioError):
    """A recording cannot be written or read."""


class LogError(TwinstudioError):
    """A foreign log cannot be turned into a recording."""


class AlignError(TwinstudioError):
    """Two series cannot be brought onto one time base."""


class PhysicsError(TwinstudioError):
    """A model cannot be loaded or a simulation cannot be run."""


class ProcessError(TwinstudioError):
    """A child process did not start, or died."""


class ReportError(TwinstudioError):
    """A report cannot be drawn or written."""


class ParamsError(TwinstudioError):
    """A parameter is unknown, missing, of the wrong type or unit, or out of bounds."""


class PluginError(TwinstudioError):
    """A plugin cannot be found, read, imported or run."""


class JobError(TwinstudioError):
    """A job cannot be started, or failed."""
