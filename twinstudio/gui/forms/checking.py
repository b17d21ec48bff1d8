"""What core says of the values in a form, field by field. Nothing is judged here."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from twinstudio.model import params
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.params import Params
from twinstudio.model.words import one_line

_KEY = re.compile(r"^key '([A-Za-z_]\w*)([^']*)'(?:: | )(.*)$", re.DOTALL)
_UNKNOWN = re.compile(r"^unknown key '([A-Za-z_]\w*)")


def problems(kind: type[Params], values: Mapping[str, Any]) -> dict[str, str]:
    """Parameter -> what `params.make` says against its value; "" for what concerns several.

    Core names one fault at a time, so each value is also shown to it alone.
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        alone = _complaint(kind, {name: value})
        if alone is not None and alone[0] == name:
            found[name] = alone[1]
    whole = _complaint(kind, values)
    if whole is not None and (whole[0] or not found):
        found.setdefault(*whole)
    return found


def has_own_check(kind: type[Params]) -> bool:
    """Whether the author of `kind` wrote a check over all values (``__post_init__``)."""
    return hasattr(kind, "__post_init__")


def without_own_check(kind: type[Params]) -> type[Params]:
    """`kind` as its fields declare it: checking it runs nothing that a plugin's author wrote."""
    if not has_own_check(kind):
        return kind
    nothing = {"__post_init__": lambda _self: None}
    bare = msgspec.defstruct(kind.__name__, [], bases=(kind,), namespace=nothing, frozen=True)
    assert issubclass(bare, params.Params)
    return bare


def own_complaint(kind: type[Params], values: Mapping[str, Any]) -> str:
    """What `kind` with its author's check says of `values`, "" for nothing; raises nothing."""
    found = _complaint(kind, values)
    return "" if found is None else one_line(found[1])


def _complaint(kind: type[Params], values: Mapping[str, Any]) -> tuple[str, str] | None:
    try:
        params.make(kind, values)
    except TwinstudioError as error:
        hint = f"; {error.hint}" if error.hint else ""
        match = _KEY.match(error.what)
        if match is None:
            unknown = _UNKNOWN.match(error.what)
            return unknown.group(1) if unknown else "", error.what + hint
        name, place, text = match.groups()
        return name, f"{place.strip('.')} {text}{hint}".strip()
    except BaseException as error:  # noqa: BLE001 - a plugin's own check may raise anything
        return "", f"the check of its author raised {type(error).__name__}"
    return None
