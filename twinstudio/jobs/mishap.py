"""What went wrong in a plugin, in one line, and where."""

import errno
import sysconfig
import traceback
from pathlib import Path

import twinstudio
from twinstudio.model import words
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.words import trace_of
from twinstudio.plugin.context import Cancelled

_LIBRARY = Path(sysconfig.get_path("stdlib"))
_PROGRAM = Path(twinstudio.__file__).parent
LONGEST = 400
LONGEST_TRACE = 20_000
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def in_words(error: BaseException, plugin: str) -> str:
    """What to tell of `error`, raised while `plugin` ran: one line, what and where."""
    if isinstance(error, TwinstudioError):
        return one_line(str(error))
    if isinstance(error, SystemExit):
        text = f"called sys.exit({error.code!r}); a plugin returns its results or raises"
    elif isinstance(error, KeyboardInterrupt):
        text = "raised KeyboardInterrupt, though nobody interrupted it"
    elif isinstance(error, Cancelled):
        text = "raised Cancelled, though nobody cancelled the job"
    elif isinstance(error, MemoryError):
        text = "ran out of memory"
    elif isinstance(error, RecursionError):
        text = "called itself too deeply (RecursionError)"
    elif isinstance(error, OSError) and error.errno in NO_ROOM:
        text = disk(error)
    else:
        text = f"raised {type(error).__name__}: {_text(error)}".removesuffix(": ")
    return one_line(f"{plugin}: {text}{_place(error)}")


def disk(error: OSError) -> str:
    """Why a file could not be written, and which."""
    where = f": {error.filename}" if error.filename else ""
    what = "there is no room left" if error.errno in NO_ROOM else "it cannot be written"
    return f"{what} ({error.strerror}){where}"


def trace(error: BaseException) -> str:
    """The traceback of `error`, its middle left out if it is long."""
    text = trace_of(error)
    if len(text) <= LONGEST_TRACE:
        return text
    half = LONGEST_TRACE // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def one_line(text: str) -> str:
    """`text` without line breaks and control characters, cut at `LONGEST`."""
    text = " ".join(words.one_line(text, 2 * LONGEST).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a plugin's own __str__ may do anything
        return "(its text cannot be had)"


def _place(error: BaseException) -> str:
    """Where it was raised: the last line of the plugin's, or of a library's that it uses."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    own = [frame for frame in frames if not _is_ours(Path(frame.filename))]
    last = (own or frames)[-1]
    return f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


def _is_ours(file: Path) -> bool:
    """Whether `file` is of Python or of Twinstudio, of which an author cannot change a line."""
    inner = file.is_relative_to(_LIBRARY) and "site-packages" not in file.parts
    return inner or file.is_relative_to(_PROGRAM) or not file.is_absolute()
