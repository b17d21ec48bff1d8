"""Has the session carry out commands, and reads command lines."""

import ast
import shlex
from concurrent.futures import Future
from typing import TYPE_CHECKING

from twinstudio.gui.notices import Notices
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.views import CommandInfo

if TYPE_CHECKING:
    from twinstudio.session.session import Session


class Runner:
    """Gives commands to the session, which carries them out in the background, in order.

    A refusal is an alarm in the session's log. A fault of ours is told by
    `collect`, which the window calls once a frame.
    """

    def __init__(self, session: "Session", notices: Notices) -> None:
        self._session = session
        self._notices = notices
        self._waiting: list[tuple[str, Future[object]]] = []
        self._open = True

    @property
    def busy(self) -> bool:
        """Whether a command is still under way."""
        return bool(self._waiting)

    def run(self, command: str, /, **args: object) -> Future[object] | None:
        """Have the session run `command`; returns at once what tells how it ends.

        None once the window closes: then nothing is begun.
        """
        if not self._open:
            return None
        future = self._session.submit(command, **args)
        self._waiting.append((command, future))
        return future

    def collect(self) -> None:
        """Forget what has finished; a fault becomes one line in the log."""
        finished = [item for item in self._waiting if item[1].done()]
        self._waiting = [item for item in self._waiting if not item[1].done()]
        for name, future in finished:
            error = None if future.cancelled() else future.exception()
            if error is not None and not isinstance(error, TwinstudioError):
                self._notices.say("alarm", name, f"failed, a fault of Twinstudio: {error!r}")

    def refuse(self) -> None:
        """Begin nothing new."""
        self._open = False


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
