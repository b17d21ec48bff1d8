"""Carries out session commands without holding up the window."""

import ast
import shlex
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from twinstudio.gui.notices import Notices
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.views import CommandInfo

if TYPE_CHECKING:
    from twinstudio.session.session import Session

Done = Callable[[object], None]


class Runner:
    """One worker thread that runs commands in the order they were given.

    The window polls `collect` once a frame; results and complaints arrive there,
    so no widget is ever touched from another thread.
    """

    def __init__(self, session: "Session", notices: Notices) -> None:
        self._session = session
        self._notices = notices
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="window-commands")
        self._waiting: list[tuple[str, Future[object], Done | None]] = []

    @property
    def busy(self) -> bool:
        """Whether a command is still under way."""
        return bool(self._waiting)

    def run(self, command: str, done: Done | None = None, /, **args: object) -> None:
        """Have the session run `command`; `done` gets its result in the window's thread."""
        self.call(command, lambda: self._session.run(command, **args), done)

    def call(self, name: str, work: Callable[[], object], done: Done | None = None) -> None:
        """Do `work` in the worker; `name` says in complaints what it was."""
        self._waiting.append((name, self._pool.submit(work), done))

    def collect(self) -> None:
        """Hand over what has finished; a complaint becomes one line in the log."""
        finished = [item for item in self._waiting if item[1].done()]
        self._waiting = [item for item in self._waiting if not item[1].done()]
        for name, future, done in finished:
            error = future.exception()
            if error is None:
                if done is not None:
                    done(future.result())
            elif isinstance(error, TwinstudioError):
                self._notices.say("alarm", name, str(error))
            else:
                self._notices.say("alarm", name, f"failed, a fault of Twinstudio: {error!r}")

    def refuse(self) -> None:
        """Begin nothing new; the command under way goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Wait for the command under way, forget the rest; no thread is left."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._waiting.clear()


def parsed(line: str, commands: list[CommandInfo]) -> tuple[str, dict[str, object]]:
    """``gap.window 10`` or ``gap.window seconds=10`` as name and arguments.

    Raises TwinstudioError for an unknown command or argument, or bad quoting.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise TwinstudioError(f"cannot be read: {error}", where=line) from error
    known = {info.name: info for info in commands}
    if not words or words[0] not in known:
        raise TwinstudioError(
            f"there is no command '{words[0] if words else ''}'",
            hint=f"there are {', '.join(known) or 'none yet'}",
        )
    return words[0], _arguments(words[1:], known[words[0]])


def _arguments(words: list[str], info: CommandInfo) -> dict[str, object]:
    args: dict[str, object] = {}
    free = list(info.args)
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in info.args:
            if not free:
                raise TwinstudioError(
                    f"takes {len(info.args)} arguments: {', '.join(info.args) or 'none'}",
                    where=info.name,
                )
            name, text = free[0], word
        if name in args:
            raise TwinstudioError(f"argument '{name}' is given twice", where=info.name)
        args[name] = _value(text)
        free = [other for other in free if other != name]
    return args


def _value(text: str) -> object:
    """A number or truth value if `text` looks like one, else the text itself."""
    lowered = text.lower()
    if lowered in ("true", "on", "yes"):
        return True
    if lowered in ("false", "off", "no"):
        return False
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float) else text
