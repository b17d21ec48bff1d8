"""Delimited text to numbers, row by row, with an account of every row."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.importers.clocktext import to_ns
from twinstudio.flow.importers.log import Tally
from twinstudio.model.block import Stamps, Values
from twinstudio.model.errors import LogError

FIELDS = "wrong number of fields"
BLANK = "empty line"
NUMBER = "not a number"
TIME = "unreadable time"


@dataclass(frozen=True)
class Dialect:
    """How a table is written. quoted: fields may stand in double quotes."""

    delimiter: str = ","
    decimal: str = "."
    quoted: bool = False
    encoding: str = "utf-8-sig"


@dataclass(frozen=True)
class Rows:
    """Rows of text that have the right number of fields.

    header: the names of the columns, empty without one.
    numbers: which row of the table each is, from 1.
    """

    header: tuple[str, ...]
    rows: list[list[str]]
    numbers: list[int]


def read_lines(path: Path, encoding: str = "utf-8-sig") -> list[str]:
    """The lines of a text file; undecodable bytes stay visible as U+FFFD.

    Raises LogError when the file is missing, unreadable, empty or binary.
    """
    try:
        text = path.read_text(encoding=encoding, errors="replace")
    except (OSError, LookupError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LogError(f"cannot be read: {reason}", where=str(path)) from error
    if not text.strip():
        raise LogError("is empty", where=str(path), hint="is the log complete?")
    if "\0" in text[:4096]:
        raise LogError("is no text file", where=str(path), hint="check the format")
    # Not splitlines(): form feeds and Unicode separators do not end a row.
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")


def split(
    lines: Sequence[str], dialect: Dialect, tally: Tally, *, width: int = 0, header: bool = False
) -> Rows:
    """`lines` as rows of `width` fields; 0: as many as the header has, or as most rows have.

    Rows of another width and blank lines are counted in `tally` and left out.
    """
    fields = iter(_fields(lines, dialect, tally))
    names = tuple(name.strip() for name in next(fields, ())) if header else ()
    width = width or len(names) or usual_width(lines, dialect)
    rows: list[list[str]] = []
    numbers: list[int] = []
    for row in fields:
        tally.rows += 1
        if len(row) == width:
            rows.append(row)
            numbers.append(tally.rows)
        else:
            tally.drop(FIELDS if any(row) else BLANK, [tally.rows])
    return Rows(names, rows, numbers)


def usual_width(lines: Sequence[str], dialect: Dialect) -> int:
    """How many fields most of the first lines have; a damaged first row does not mislead."""
    counts = Counter(line.count(dialect.delimiter) + 1 for line in lines[:1000] if line)
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _fields(lines: Sequence[str], dialect: Dialect, tally: Tally) -> Iterator[list[str]]:
    if not dialect.quoted:
        # No csv module: there a stray quote would swallow the rest of the file.
        yield from (line.split(dialect.delimiter) for line in lines)
        return
    reader = csv.reader(lines, delimiter=dialect.delimiter)
    try:
        yield from reader
    except csv.Error as error:
        raise LogError(f"line {reader.line_num}: {error}", where=tally.name) from error


def times(rows: Rows, column: int, unit: str, tally: Tally) -> tuple[Stamps, Rows]:
    """Exact stamps [ns] of the rows whose time can be read, and those rows."""
    stamps = [to_ns(row[column], unit) for row in rows.rows]
    good = [i for i, stamp in enumerate(stamps) if stamp is not None]
    bad = [n for n, stamp in zip(rows.numbers, stamps, strict=True) if stamp is None]
    tally.drop(TIME, bad)
    kept = Rows(rows.header, [rows.rows[i] for i in good], [rows.numbers[i] for i in good])
    return np.array([stamps[i] for i in good], dtype=np.int64), kept


@dataclass(frozen=True)
class Numbers:
    """values: float64[n, columns], NaN for an empty field.

    keep: bool[rows given], True for those that were numbers. numbers: int64[n].
    """

    values: Values
    keep: NDArray[np.bool_]
    numbers: NDArray[np.int64]


def numbers(rows: Rows, columns: Sequence[int], tally: Tally, decimal: str = ".") -> Numbers:
    """The given columns as floats; a row with anything else is counted and left out."""
    values: list[list[float]] = []
    keep = np.ones(len(rows.rows), dtype=bool)
    whole = list(columns) == list(range(len(rows.rows[0]) if rows.rows else 0))
    for i, row in enumerate(rows.rows):
        fields = row if whole else [row[k] for k in columns]
        parsed = _floats(fields, decimal)
        if parsed is None:
            keep[i] = False
            tally.drop(NUMBER, [rows.numbers[i]])
        else:
            values.append(parsed)
    table = np.array(values, dtype=np.float64).reshape(len(values), len(columns))
    return Numbers(table, keep, np.array(rows.numbers, dtype=np.int64)[keep])


def _floats(fields: list[str], decimal: str) -> list[float] | None:
    joined = "".join(fields)
    if "_" in joined or not joined.isascii():
        return None  # float() would take "1_0" and the digits of other scripts
    if decimal != ".":
        if "." in joined:
            return None  # a thousands separator or another convention: not for us to guess
        fields = [field.replace(decimal, ".") for field in fields]
    try:
        return list(map(float, fields))
    except ValueError:
        pass
    try:
        return [float(field) if field.strip() else np.nan for field in fields]
    except ValueError:
        return None
