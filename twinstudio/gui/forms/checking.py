"""What core says of the values in a form, field by field. Nothing is judged here."""

import re
from collections.abc import Mapping
from typing import Any

from twinstudio.model import params
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.params import Params

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
    except Exception as error:  # noqa: BLE001 - a plugin's own check may raise anything
        return "", f"{type(error).__name__}: {error}"
    return None
