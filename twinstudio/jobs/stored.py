"""Results on their way to disk and back: checked, and exact to the last bit.

Small results stand in the run's record; pictures and long curves are files beside it.
JSON has no word for what is not finite: such a number is ``{"float": "nan"}``.
"""

import io
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from twinstudio.model.errors import JobError, TwinstudioError
from twinstudio.model.provenance import sha256
from twinstudio.model.results import Change, Image, Patch, Result, Scalar, Series, Table
from twinstudio.model.words import is_printable, sayable

FOLDER = "results"
RECORDING = "recording.mcap"
"""What a bridge brought in, in that folder."""
NAME = re.compile(r"^results/\w[\w.\-]*\Z", re.ASCII)
INLINE_BYTES = 32_768
"""Records of results longer than this together go to a file of their own."""
INLINE_POINTS = 500
LONGEST_NAME = 300
_REST = f"{FOLDER}/results.json"
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(slots=True)
class Stored:
    """Results as a run's record has them.

    records: plain data, or empty if they are in `file`. files: name relative to
    the run's folder -> SHA-256.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    files: dict[str, str] = field(default_factory=dict)


def check(value: object, what: str) -> tuple[Result, ...]:
    """`value` as results, every field of its declared type; `what` names who returned it.

    numpy numbers and arrays become plain ones. Raises JobError, in one line, for
    anything that is no sequence of results, and for a number that is no figure.
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise JobError(
            f"{what} returned {_kind(value)}, no list of results",
            hint="return a list of Scalar, Series, Table, Image or Patch",
        )
    return tuple(_checked(item, k, what) for k, item in enumerate(value))


def write(folder: Path, results: Sequence[Result], files: Sequence[str] = ()) -> Stored:
    """Put `results` into the run `folder`. Raises OSError where there is no room.

    files: names of files that are there already and belong to them.
    """
    stored = Stored(files={name: sha256(folder / name) for name in files})
    (folder / FOLDER).mkdir(exist_ok=True)
    for k, result in enumerate(results):
        record = as_plain(result)
        if isinstance(result, Image):
            del record["data"]
            _beside(folder, f"{k}.{result.format}", result.data, record, stored)
        elif isinstance(result, Series) and len(result.x) > INLINE_POINTS:
            del record["x"], record["y"]
            _beside(folder, f"{k}.npy", _npy(result), record, stored)
        stored.records.append(record)
    text = msgspec.json.encode(stored.records)
    if len(text) > INLINE_BYTES:
        (folder / _REST).write_bytes(text)
        stored.files[_REST] = sha256(folder / _REST)
        stored.records, stored.file = [], _REST
    return stored


def read(folder: Path, stored: Stored) -> tuple[Result, ...]:
    """The results of the run `folder`. Raises JobError for a file that is gone or changed."""
    for name, known in stored.files.items():
        if not NAME.match(name):
            raise JobError(f"'{name}' is no file of a result", where=str(folder))
        path = folder / name
        if not path.is_file():
            raise JobError(f"{name} is gone", where=str(folder))
        if sha256(path) != known:
            raise JobError(f"{name} is not what the run wrote", where=str(folder))
    try:
        records = stored.records
        if stored.file:
            records = msgspec.json.decode(_bytes(folder, stored.file, stored.files))
        return tuple(_result(folder, record, stored.files) for record in records)
    except (msgspec.MsgspecError, TwinstudioError, OSError, ValueError, KeyError) as error:
        raise JobError(f"a result cannot be read: {error}", where=str(folder)) from error


def _checked(item: object, k: int, what: str) -> Result:
    kinds: tuple[type[Any], ...] = get_args(Result)
    if not isinstance(item, kinds):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise JobError(f"result {k} of {what} is {_kind(item)}", hint=f"it must be one of {names}")
    try:
        raw = msgspec.to_builtins(item, builtin_types=(bytes,), enc_hook=_from_numpy)
        result: Result = msgspec.convert(raw, type(item))
    except (msgspec.ValidationError, TypeError, ValueError, TwinstudioError) as error:
        text = str(error).replace("`", "")
        name = sayable(str(item.name))
        raise JobError(f"result '{name:.300}' of {what} is malformed: {text}") from error
    problem = bad_text(result) or _problem(result)
    if problem:
        raise JobError(f"result '{sayable(item.name):.300}' of {what}: {problem}")
    return result


def bad_text(result: Result) -> str:
    """What in `result` cannot be shown or written as text, or ""."""
    if not 0 < len(result.name) <= LONGEST_NAME or not is_printable(result.name):
        return f"a name has 1 to {LONGEST_NAME} characters and none that control a terminal"
    texts: list[object] = []
    if isinstance(result, Scalar):
        texts = [result.note]
    elif isinstance(result, Table):
        texts = [*result.columns, *result.units, *itertools.chain.from_iterable(result.rows)]
    elif isinstance(result, Patch):
        texts = [result.reason, *(part for c in result.changes for part in (c.key, c.value))]
    for text in texts:
        if isinstance(text, str) and text != sayable(text):
            return f"{sayable(text)!r:.60} holds half a character, which cannot be written"
        if isinstance(text, int) and not -(2**63) <= text < 2**64:
            return "a whole number has more than 64 bits; make it a float"
    return ""


def _problem(result: Result) -> str:
    """Why `result` is no honest result, or ""."""
    if isinstance(result, Series):
        if not all(map(math.isfinite, result.x)):
            return "an x is not finite"
        return "a y is infinite" if any(map(math.isinf, result.y)) else ""
    if isinstance(result, Table):
        bad = [k for k, row in enumerate(result.rows) if any(cell != cell for cell in row)]  # noqa: PLR0124 - NaN
        return f"row {bad[0]} holds NaN; use None where there is no figure" if bad else ""
    if isinstance(result, Patch):
        return "".join(map(_unfit, result.changes))
    if isinstance(result, Image) and result.format == "png" and not result.data.startswith(_PNG):
        return "its data is no PNG"
    return ""


def _unfit(change: Change) -> str:
    values = change.value if isinstance(change.value, tuple) else (change.value,)
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return f"'{change.key}' would become {change.value}"
    return ""


def _from_numpy(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{_kind(value)} is no plain value")


def as_plain(result: Result) -> dict[str, Any]:
    """`result` as plain data that JSON can hold, apart from the bytes of a picture."""
    record: dict[str, Any] = worded(msgspec.to_builtins(result, builtin_types=(bytes,)))
    if isinstance(result, Scalar):
        # An interval that cannot be told is the default and needs no word.
        record = {k: v for k, v in record.items() if not isinstance(v, dict)}
    return record


def worded(value: Any) -> Any:
    """Plain data with every number that is not finite as ``{"float": "nan"}`` and the like."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, dict):
        return {key: worded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [worded(part) for part in value]
    return value


def unworded(value: Any) -> Any:
    """The inverse of `worded`."""
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        return {key: unworded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [unworded(part) for part in value]
    return value


def _npy(series: Series) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([series.x, series.y]), allow_pickle=False)
    return stream.getvalue()


def _beside(folder: Path, name: str, data: bytes, record: dict[str, Any], stored: Stored) -> None:
    path = f"{FOLDER}/{name}"
    (folder / path).write_bytes(data)
    record["file"] = path
    stored.files[path] = sha256(folder / path)


def _result(folder: Path, record: dict[str, Any], files: dict[str, str]) -> Result:
    plain = dict(record)
    name = plain.pop("file", "")
    if name and plain["type"] == "image":
        plain["data"] = _bytes(folder, name, files)
    elif name:
        x, y = np.load(io.BytesIO(_bytes(folder, name, files)), allow_pickle=False)
        plain["x"], plain["y"] = x.tolist(), y.tolist()
    result: Result = msgspec.convert(unworded(plain), Result)
    return result


def _bytes(folder: Path, name: str, files: dict[str, str]) -> bytes:
    """Content of a file that the run's record lists; no other is ever opened."""
    if name not in files:
        raise JobError(f"'{name}' is no file of the run")
    return (folder / name).read_bytes()


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
