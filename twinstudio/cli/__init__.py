"""The command line; thin, it calls the session."""

import sys
from types import TracebackType

_before = sys.excepthook


def _silent(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl+C while Python still loads the program is no fault to be shown."""
    if not issubclass(kind, KeyboardInterrupt):
        _before(kind, error, trace)


sys.excepthook = _silent
