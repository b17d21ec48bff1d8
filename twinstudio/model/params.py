"""Parameters of plugins: typed, with unit, bounds and help, checked in one place.

A plugin writes a small frozen class; form, command line, console and saved runs
all make it through `make`, so that none of them can let a wrong value in::

    class Params(params.Params, frozen=True):
        mass: Annotated[float, si("kg", low=0.0, high=50.0, about="Mass at the tool")] = 1.0
        mode: Annotated[Literal["fast", "exact"], about("How it is solved")] = "exact"
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from twinstudio.model import config
from twinstudio.model.errors import ParamsError, SceneError, TwinstudioError
from twinstudio.model.quantity import from_si, same_kind
from twinstudio.model.words import of_error

_OUTSIDE = re.compile(r"must be (?:at most|at least|below|above) \S+")
FieldKind = Literal["number", "integer", "flag", "text", "choice", "list"]


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all parameter classes; every field has a unit or an `about`."""


P = TypeVar("P", bound=Params)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """What a form or a help page must know of one parameter.

    unit: SI unit of a number, "" for what has none. units: others it may be given in.
    default: None where `required`. low, high: inclusive bounds, None without one.
    """

    name: str
    kind: FieldKind
    help: str
    unit: str = ""
    units: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    required: bool = False


def about(text: str, *, low: float | None = None, high: float | None = None) -> msgspec.Meta:
    """Metadata of a field without a unit: its help, and bounds of an integer."""
    return msgspec.Meta(description=text, ge=low, le=high)


def fields(kind: type[Params]) -> list[Field]:
    """Every parameter of `kind` in order; raises ParamsError for one without a help text."""
    hints = get_type_hints(kind, include_extras=True)
    return [_field(kind, info, hints[info.name]) for info in msgspec.structs.fields(kind)]


def make(kind: type[P], values: Mapping[str, Any], *, where: str = "") -> P:
    """Parameters of `kind` from plain values; quantities may be text such as ``"25 mm"``.

    Raises ParamsError, in one line that names parameter, value, unit and range; also
    for whatever the class's own check (``__post_init__``) raises.
    """
    try:
        return config.convert(dict(values), kind, where=where)
    except SceneError as error:
        what = _with_range(error.what, kind, values).removeprefix("key '': ")
        raise ParamsError(
            what or "these values are refused", where=where, hint=error.hint
        ) from error
    except TwinstudioError:
        raise
    except (Exception, SystemExit) as error:
        raise ParamsError(
            f"the check of its author failed: {of_error(error)}", where=where
        ) from error


def from_text(kind: type[P], assignments: list[str], *, where: str = "") -> P:
    """Parameters from ``name=value`` words as a command line has them."""
    known = {field.name: field for field in fields(kind)}
    values: dict[str, Any] = {}
    for word in assignments:
        name, equals, text = word.partition("=")
        if not equals:
            raise ParamsError(f"'{word}' is no assignment", where=where, hint="write name=value")
        if name in values:
            raise ParamsError(f"'{name}' is given twice", where=where, hint="give it once")
        values[name] = _parsed(text, known.get(name))
    return make(kind, values, where=where)


def plain(params: Params) -> dict[str, Any]:
    """The values as plain data, for a run record."""
    values: dict[str, Any] = msgspec.to_builtins(params)
    return values


def _parsed(text: str, field: Field | None) -> Any:
    if field is None or field.kind in ("text", "choice"):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _field(kind: type[Params], info: msgspec.structs.FieldInfo, hint: Any) -> Field:
    metas = [m for m in get_args(hint)[1:] if isinstance(m, msgspec.Meta)]
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    meta = metas[0] if metas else msgspec.Meta()
    if not meta.description:
        raise ParamsError(f"parameter '{info.name}' of {kind.__qualname__} has no help text")
    if get_origin(bare) is Literal and not all(isinstance(one, str) for one in get_args(bare)):
        raise ParamsError(
            f"parameter '{info.name}' of {kind.__qualname__} has choices that are no text",
            hint="write each choice as a text",
        )
    unit = (meta.extra or {}).get("unit", "")
    return Field(
        name=info.name,
        kind=_kind(bare),
        help=meta.description,
        unit=unit,
        units=tuple(other for name in unit.split("|") if name for other in same_kind(name)),
        low=meta.ge,
        high=meta.le,
        choices=tuple(map(str, get_args(bare))) if get_origin(bare) is Literal else (),
        default=_default(info),
        required=info.required,
    )


def _default(info: msgspec.structs.FieldInfo) -> Any:
    if info.required:
        return None
    if info.default is msgspec.NODEFAULT:
        return info.default_factory()
    return info.default


def _kind(bare: Any) -> FieldKind:
    if get_origin(bare) is Literal:
        return "choice"
    if get_origin(bare) in (tuple, list):
        return "list"
    simple: dict[Any, FieldKind] = {float: "number", int: "integer", bool: "flag"}
    return simple.get(bare, "text")


def _with_range(what: str, kind: type[Params], values: Mapping[str, Any]) -> str:
    """`what`, with the allowed range of the parameter it complains about."""
    for field in fields(kind):
        if f"'{field.name}'" in what and (field.low is not None or field.high is not None):
            said = _OUTSIDE.sub(f"{_shown(values.get(field.name), field)} is out of range", what)
            return f"{said}, allowed {_range(field)}"
    return what


def _shown(value: Any, field: Field) -> str:
    """`value` as it was given; a bare number with the unit that it was taken to have."""
    if isinstance(value, int | float) and field.unit not in ("", "1"):
        return f"{from_si(value, _one_unit(field)):g} {_unit_words(field)}"
    return str(value)


def _range(field: Field) -> str:
    low, high = (
        "" if bound is None else f"{from_si(bound, _one_unit(field)):g}"
        for bound in (field.low, field.high)
    )
    unit = "" if field.unit == "1" else _unit_words(field)
    if low and high:
        return f"{low} to {high} {unit}".rstrip()
    bound = f"{low or high} {unit}".rstrip()
    return f"{bound} and more" if low else f"at most {bound}"


def _one_unit(field: Field) -> str:
    return (field.unit or "1").partition("|")[0]  # alternatives like "rad|m" are both SI


def _unit_words(field: Field) -> str:
    return field.unit.replace("|", " or ")
