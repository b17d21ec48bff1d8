"""Typed TOML: every file a user writes is read through here.

A field is typed with msgspec; ``Annotated[float, si("m", low=0)]`` gives it a
unit and bounds. `load` names the file, the key and the expectation in one line.
"""

import re
import tomllib
import types
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from twinstudio.model.errors import QuantityError, SceneError
from twinstudio.model.quantity import to_si

T = TypeVar("T")


def si(
    unit: str, *, low: float | None = None, high: float | None = None, about: str | None = None
) -> msgspec.Meta:
    """Metadata of a field in SI `unit` with inclusive bounds; `about` is its help."""
    return msgspec.Meta(ge=low, le=high, description=about, extra={"unit": unit})


def load(path: Path, kind: type[T]) -> T:
    """The TOML file `path` as a `kind`; raises SceneError naming file and key."""
    if path.exists() and not path.is_file():  # a pipe would keep its reader for ever
        raise SceneError("is no file", where=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SceneError(f"cannot be read: {reason}", where=str(path)) from error
    return parse(text, kind, where=str(path))


def parse(text: str, kind: type[T], *, where: str) -> T:
    """TOML `text` as a `kind`; `where` names its origin in messages."""
    try:
        raw = tables(text)
    except ValueError as error:
        raise SceneError(f"is no valid TOML: {error}", where=where) from error
    return convert(raw, kind, where=where)


def tables(text: str) -> dict[str, Any]:
    """TOML `text` as plain data; raises ValueError, and nothing else, for any other text."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def convert(raw: Any, kind: type[T], *, where: str) -> T:
    """Plain data as a `kind`, quantities in text included; raises SceneError."""
    raw = _in_si(raw, kind, "", where)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise _explained(error, kind, raw, where) from error


def _in_si(raw: Any, kind: Any, key: str, where: str) -> Any:
    """`raw` with every quantity string turned into SI, guided by `kind`."""
    kind, name = _unwrapped(kind, raw)
    if name is not None:
        return _number(raw, name, key, where)
    if isinstance(raw, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        return {
            k: _in_si(v, hints[k], f"{key}.{k}".lstrip("."), where) if k in hints else v
            for k, v in raw.items()
        }
    arguments = get_args(kind)
    if isinstance(raw, list) and get_origin(kind) in (list, tuple) and arguments:
        parts = _elements(get_origin(kind), arguments, len(raw))
        return [_in_si(v, parts[i], f"{key}[{i}]", where) for i, v in enumerate(raw)]
    if isinstance(raw, dict) and get_origin(kind) is dict:
        return {k: _in_si(v, arguments[1], f"{key}.{k}", where) for k, v in raw.items()}
    return raw


def _unwrapped(kind: Any, raw: Any = None) -> tuple[Any, str | None]:
    """The one type meant by `kind`, and its unit if it has one.

    Annotated, ``| None`` and union members that `raw` is not tagged as go.
    """
    name = None
    while True:
        if get_origin(kind) is Annotated:
            kind, *metas = get_args(kind)
            for meta in metas:
                name = (getattr(meta, "extra", None) or {}).get("unit", name)
        elif get_origin(kind) in (Union, types.UnionType):
            kinds = [k for k in get_args(kind) if k is not types.NoneType]
            if len(kinds) != 1:
                kinds = [k for k in kinds if _tagged_as(k, raw)]
            if len(kinds) != 1:
                return kind, name
            kind = kinds[0]
        else:
            return kind, name


def _tagged_as(kind: Any, raw: Any) -> bool:
    settings = getattr(kind, "__struct_config__", None)
    return bool(settings and isinstance(raw, dict) and raw.get(settings.tag_field) == settings.tag)


def _elements(origin: Any, arguments: tuple[Any, ...], count: int) -> list[Any]:
    if origin is list or (len(arguments) == 2 and arguments[1] is Ellipsis):
        return [arguments[0]] * count
    return [*arguments, *[Any] * max(0, count - len(arguments))]


def _number(raw: Any, name: str, key: str, where: str) -> Any:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return raw
    try:
        return to_si(raw, name)
    except QuantityError as error:
        raise SceneError(f"key '{key}': {error}", where=where) from error


_MESSAGE = re.compile(r"^(.*?)(?: - at `(.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(.*)`")
_BOUND = re.compile(r"Expected `(?:float|int)` ([<>]=?) (\S+)")
_SIDES = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}
_MISSING = re.compile(r"missing required field `(.*)`")


def _explained(error: msgspec.ValidationError, kind: Any, raw: Any, where: str) -> SceneError:
    match = _MESSAGE.match(str(error))
    what, path = (match.group(1), match.group(2) or "$") if match else (str(error), "$")
    key = path.removeprefix("$").lstrip(".")
    if unknown := _UNKNOWN.search(what):
        known = ", ".join(_keys_at(kind, raw, path))
        name = f"{key}.{unknown.group(1)}".lstrip(".")
        hint = f"known keys here: {known}" if known else ""
        return SceneError(f"unknown key '{name}'", where=where, hint=hint)
    if missing := _MISSING.search(what):
        return SceneError(
            f"key '{f'{key}.{missing.group(1)}'.lstrip('.')}' is missing", where=where
        )
    return SceneError(f"key '{key}': {_plain(what)}", where=where)


def _plain(what: str) -> str:
    if bound := _BOUND.fullmatch(what):
        return f"must be {_SIDES[bound[1]]} {bound[2]}"
    return what.replace("`", "").replace("Expected", "expected", 1)


def _keys_at(kind: Any, raw: Any, path: str) -> list[str]:
    """Field names of the struct that a msgspec error path points to in `raw`."""
    here, _ = _unwrapped(kind, raw)
    for name, index in re.findall(r"\.([A-Za-z_]\w*)|\[(\.\.\.|\d+)\]", path):
        if name:
            here = get_type_hints(here, include_extras=True).get(name, Any)
            raw = raw[name]
        else:
            arguments = get_args(here) or (Any,)
            here = arguments[-1] if get_origin(here) is dict else arguments[0]
            raw = raw[int(index)] if index.isdigit() else None
        here, _ = _unwrapped(here, raw)
    if isinstance(here, type) and issubclass(here, msgspec.Struct):
        return list(here.__struct_fields__)
    return []
