"""Named commands: whatever a mouse can do, a script can do by name.

A command is a method; its name, help and arguments come from the method itself,
so that palette, console and log cannot disagree with the code.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, cast, get_type_hints

import msgspec

from twinstudio.model.errors import TwinstudioError
from twinstudio.model.views import CommandInfo


class CommandError(TwinstudioError):
    """There is no such command, or its arguments do not fit."""


@dataclass(frozen=True, slots=True)
class Command:
    """A name and the function behind it."""

    name: str
    call: Callable[..., object]

    @property
    def info(self) -> CommandInfo:
        """Name, help and arguments, read off the function."""
        lines = (inspect.getdoc(self.call) or "").splitlines()
        helps = _argument_helps(lines)
        return CommandInfo(
            name=self.name,
            help=lines[0] if lines else "",
            args={name: helps.get(name, "") for name in self._parameters()},
        )

    def run(self, args: Mapping[str, object]) -> object:
        """Call it; raises CommandError for arguments that do not fit."""
        try:
            bound = inspect.signature(self.call).bind(**args)
        except TypeError as error:
            wanted = ", ".join(str(p) for p in self._parameters().values()) or "no arguments"
            raise CommandError(f"{error}", where=self.name, hint=f"it takes {wanted}") from error
        return self.call(**self._fitting(bound.arguments))

    def _fitting(self, args: Mapping[str, object]) -> dict[str, object]:
        """`args` as the types the function asks for; raises CommandError for another kind."""
        hints = get_type_hints(self.call)
        return {name: self._converted(name, args[name], hints.get(name, Any)) for name in args}

    def _converted(self, name: str, value: object, kind: Any) -> object:
        if kind is str and isinstance(value, int | float | PurePath):
            value = str(value)
        try:
            fitting = msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as error:
            raise CommandError(
                f"argument '{name}': {str(error).lower().replace('`', '')}", where=self.name
            ) from error
        if isinstance(fitting, str) and "\0" in fitting:
            raise CommandError(f"argument '{name}' holds a zero byte", where=self.name)
        return cast("object", fitting)

    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.call).parameters


class CommandSet:
    """All commands of a session by name."""

    def __init__(self, commands: Mapping[str, Callable[..., object]]) -> None:
        self._commands = {name: Command(name, call) for name, call in commands.items()}

    def infos(self) -> list[CommandInfo]:
        """Every command, by name."""
        return [self._commands[name].info for name in sorted(self._commands)]

    def run(self, name: str, args: Mapping[str, object]) -> object:
        """Carry out command `name`; raises CommandError if there is none."""
        if name not in self._commands:
            raise CommandError(
                f"there is no command '{name}'", hint=f"there are {', '.join(self._commands)}"
            )
        return self._commands[name].run(args)


def as_line(name: str, args: Mapping[str, Any]) -> str:
    """A call as a line that can be replayed, e.g. ``record.start(path='a.mcap')``."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"


def _argument_helps(lines: list[str]) -> dict[str, str]:
    """Lines ``name: help`` of a docstring."""
    pairs = (line.strip().partition(": ") for line in lines[1:])
    return {name: text for name, separator, text in pairs if separator and name.isidentifier()}
