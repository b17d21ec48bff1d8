"""What can be told of a plugin class without running it."""

import inspect
from typing import Any

from twinstudio.model import params
from twinstudio.model.errors import TwinstudioError
from twinstudio.plugin import slots
from twinstudio.plugin.kinds import KINDS, Plugin


def kind_of(cls: type[Plugin[Any]]) -> str:
    """The name of the kind `cls` is of, "" for none."""
    return next((name for name, base in KINDS.items() if issubclass(cls, base)), "")


def problems(cls: object, kind: str) -> list[str]:
    """All that keeps `cls` from being a plugin of `kind`, one line each; [] for a sound one."""
    base = KINDS[kind]
    if not isinstance(cls, type) or not issubclass(cls, base):
        return [f"expected a subclass of {base.__name__}, got {_shown(cls)}"]
    found = [
        f"{cls.__name__} has no method '{name}({', '.join(_arguments(base, name)[1:])})'"
        for name in sorted(cls.__abstractmethods__)
    ]
    found += _identity(cls) + _signatures(cls, base) + _parameters(cls) + _making(cls)
    found += [f"{cls.__name__}.inputs: {text}" for text in slots.problems(cls.inputs)]
    return found


def _shown(thing: object) -> str:
    return thing.__name__ if isinstance(thing, type) else f"{type(thing).__name__} {thing!r:.60}"


def _identity(cls: type[Plugin[Any]]) -> list[str]:
    given: object = getattr(cls, "id", None)
    if isinstance(given, str):
        return []
    return [f'{cls.__name__} has no id; write id = "..." as in the manifest']


def _arguments(cls: type, name: str) -> list[str]:
    return list(inspect.signature(getattr(cls, name)).parameters)


def _signatures(cls: type[Plugin[Any]], base: type[Plugin[Any]]) -> list[str]:
    """Methods that cannot take the arguments they will be called with."""
    found = []
    for name in sorted(base.__abstractmethods__ - cls.__abstractmethods__):
        expected = _arguments(base, name)
        try:
            inspect.signature(getattr(cls, name)).bind(*expected)
        except TypeError as error:
            found.append(f"{cls.__name__}.{name} must take ({', '.join(expected)}): {error}")
    return found


def _parameters(cls: type[Plugin[Any]]) -> list[str]:
    kind: object = getattr(cls, "params", None)
    if not isinstance(kind, type) or not issubclass(kind, params.Params):
        return [f"{cls.__name__}.params must be a subclass of Params, got {_shown(kind)}"]
    try:
        fields = params.fields(kind)
        if not any(field.required for field in fields):
            params.make(kind, {})
    except TwinstudioError as error:
        return [f"{cls.__name__}.params: {error}"]
    except (NameError, TypeError, ValueError) as error:
        return [f"{cls.__name__}.params cannot be described: {error}"]
    return [
        f"{cls.__name__}.params: default {field.default} of '{field.name}' is out of bounds"
        for field in fields
        if _out_of_bounds(field)
    ]


def _out_of_bounds(field: params.Field) -> bool:
    """Defaults are not checked by the struct itself."""
    value = field.default
    if field.choices and not field.required:
        return str(value) not in field.choices
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    low, high = field.low, field.high
    return not ((low is None or value >= low) and (high is None or value <= high))


def _making(cls: type[Plugin[Any]]) -> list[str]:
    try:
        inspect.signature(cls).bind()
    except TypeError as error:
        return [f"{cls.__name__} must be made without arguments: {error}"]
    except ValueError:
        pass  # made by compiled code, which has no signature to look at
    return []
