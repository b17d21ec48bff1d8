"""Texts that others wrote, made fit to be shown."""

import re
import traceback

_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)
_UNSAYABLE = re.compile(r"[\ud800-\udfff]")
MOST = 1000


def one_line(text: str, most: int = MOST) -> str:
    """`text` on one line, without control characters, at most `most` characters long."""
    flat = _UNPRINTABLE.sub(" ", text).strip()
    return flat if len(flat) <= most else f"{flat[: most - 1]}\u2026"


def is_printable(text: str) -> bool:
    """Whether `text` holds nothing that `one_line` takes out."""
    return _UNPRINTABLE.search(text) is None


def sayable(text: str) -> str:
    """`text` with ``?`` for halves of characters, which no file or pipe takes."""
    return _UNSAYABLE.sub("?", text)


def of_error(error: BaseException) -> str:
    """Type and text of `error` on one line; for any exception, however it was written."""
    try:
        return one_line(f"{type(error).__name__}: {error}").rstrip(": ")
    except Exception:  # noqa: BLE001 - its text may fail like what raised it
        return one_line(f"{type(error).__name__}, whose text cannot be had")


def trace_of(error: BaseException) -> str:
    """The traceback of `error`, fit for a file; for any exception, however it was written."""
    try:
        return sayable("".join(traceback.format_exception(error)))
    except Exception:  # noqa: BLE001 - as in `of_error`
        return "".join(traceback.format_tb(error.__traceback__)) + of_error(error)
