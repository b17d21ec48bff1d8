"""The ``twinstudio`` command: parses, calls, prints; nothing else happens here."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import typer

import twinstudio
from twinstudio.cli import (
    bench,
    fit,
    info,
    logs,
    physics,
    plugins,
    processes,
    runs,
    scenes,
    window,
)
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.words import one_line

LONGEST_WAIT = 2.0

EPILOG = """Examples:

\b
  twinstudio                    the window on the demo scene
  twinstudio scenes/my_cell     the window on a scene of your own
  twinstudio demo --headless    20 s without a window, then a gap table
  twinstudio import panda_gaz LOGS panda.mcap
  twinstudio gap panda.mcap --scene panda_cell --json
  twinstudio fit inverse_dynamics --scene my_cell --log panda.mcap

Each command explains itself: twinstudio gap --help
"""

app = typer.Typer(
    name="twinstudio",
    help="Workbench for the digital twin of one robot cell. Without a command: the window.",
    epilog=EPILOG,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for part in (window, processes, logs, fit, scenes, plugins, runs, physics, bench, info):
    part.register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit status 0 only when it worked."""
    _have_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        print(twinstudio.__version__)
        return
    try:
        status = app(_with_command(given), standalone_mode=True)
    except SystemExit as done:  # how typer ends
        status = done.code
    except TwinstudioError as error:
        print(f"twinstudio: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = _nobody_reads()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"twinstudio: {place}{error.strerror or error}", file=sys.stderr)
        status = 1
    except Exception as error:  # noqa: BLE001 - the last resort: a line for the user, a trace for us
        print(f"twinstudio: {_fault(error)}", file=sys.stderr)
        status = 70
    if arguments is None:
        _leave_threads(status if isinstance(status, int) else 0)
    sys.exit(status or 0)


def _leave_threads(status: int) -> None:
    """End at once if threads that a plugin started would keep us for ever; say so."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(LONGEST_WAIT)  # it may be about to end
    left = [t.name for t in threading.enumerate() if not t.daemon and t.name != "MainThread"]
    if left:
        what = f"left behind and ended: thread {', '.join(map(repr, left))}, which a plugin started"
        print(f"twinstudio: {one_line(what)}", file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


def _have_streams() -> None:
    """Put nothing in the place of standard streams that were closed.

    Else the next file or socket that is opened would get their numbers, and our words.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _nobody_reads() -> int:
    """Whoever read our output, ``head`` for instance, has had enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _fault(error: Exception) -> str:
    """One line about a fault of ours; how it came about goes to a file for the bug report."""
    what = f"a fault of Twinstudio: {type(error).__name__}: {error}".splitlines()[0]
    from twinstudio.session.places import places

    file = places()["logs"] / f"fault-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{what}; please report it, with {Path(frame.filename).name}:{frame.lineno}"
    return f"{what}; please report it, with {file}"


def _with_command(arguments: list[str]) -> list[str]:
    """``twinstudio [SCENE]`` is short for ``twinstudio open [SCENE]``."""
    known = {command.name for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    if arguments and (arguments[0] in known or arguments[0] in {"--help", "-h"}):
        return arguments
    return ["open", *arguments]
