"""CSV and other delimited text, described by a mapping file."""

from pathlib import Path

import numpy as np

from twinstudio.flow.importers import table
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, nominal_rate, refuse_empty
from twinstudio.flow.importers.mapping import (
    MappingFile,
    check_columns,
    layout_of,
    read_mapping,
    to_si,
    unused,
    wanted,
)
from twinstudio.flow.importers.sniff import looks_like
from twinstudio.flow.importers.text import Dialect, Rows, numbers, read_lines, split, times
from twinstudio.model.block import Stamps
from twinstudio.model.errors import LogError

NAME = "csv"


def read(source: Path, mapping: Path | None = None) -> ImportedLog:
    """The log `source` (a file, or a folder with one .csv) as `mapping` describes it."""
    found = one_file(source, "*.csv")
    if mapping is None:
        raise _needs_mapping(found.path)
    description = read_mapping(mapping)
    rows, tally = _rows(found.path, description)
    try:
        check_columns(description, rows.header.__contains__, ", ".join(rows.header))
    except LogError as error:
        raise LogError(error.what, where=str(mapping), hint=error.hint) from None
    parsed = _parsed(rows, description, tally)
    layout = layout_of(description)
    block = parsed.sensible(layout, tally).block(layout)
    refuse_empty(found.path, tally)
    notes = [note for note in (found.note, unused(description, rows.header)) if note]
    rate = description.rate or nominal_rate(block.stamps)
    return ImportedLog({description.source: cell(block, rate)}, [tally], [found.path], notes)


def _rows(path: Path, mapping: MappingFile) -> tuple[Rows, Tally]:
    tally = Tally(path.name)
    lines = read_lines(path, mapping.encoding)[mapping.skip :]
    dialect = Dialect(mapping.delimiter, mapping.decimal, mapping.quoted, mapping.encoding)
    rows = split(lines, dialect, tally, header=mapping.header)
    if mapping.header:
        if len(set(rows.header)) != len(rows.header) and _repeats(rows.header) & set(
            wanted(mapping)
        ):
            names = ", ".join(sorted(_repeats(rows.header)))
            raise LogError(f"column names repeat: {names}", where=str(path))
        return rows, tally
    width = len(rows.rows[0]) if rows.rows else 0
    return Rows(tuple(str(k + 1) for k in range(width)), rows.rows, rows.numbers), tally


def _repeats(names: tuple[str, ...]) -> set[str]:
    return {name for name in names if names.count(name) > 1}


def _parsed(rows: Rows, mapping: MappingFile, tally: Tally) -> table.Parsed:
    columns = [rows.header.index(name) for name in wanted(mapping)]
    if mapping.time is None:
        assert mapping.rate is not None
        # By row number, so that a dropped row leaves a gap instead of moving the rest.
        index = np.array(rows.numbers, dtype=np.int64) - 1
        stamps = np.rint(index * (1e9 / mapping.rate)).astype(np.int64)
    else:
        column = rows.header.index(mapping.time.column)
        stamps, rows = _times(rows, column, mapping, tally)
    found = numbers(rows, columns, tally, mapping.decimal)
    return table.Parsed(stamps[found.keep], to_si(mapping, found.values), found.numbers)


def _times(rows: Rows, column: int, mapping: MappingFile, tally: Tally) -> tuple[Stamps, Rows]:
    assert mapping.time is not None
    if mapping.decimal == "." or mapping.time.unit == "iso8601":
        return times(rows, column, mapping.time.unit, tally)
    # "1.5" is no number where the comma is the decimal mark; make it unreadable, not 15 or 1.5.
    texts = [
        [("?" if "." in row[column] else row[column].replace(mapping.decimal, ".")), *row]
        for row in rows.rows
    ]
    stamps, kept = times(Rows(rows.header, texts, rows.numbers), 0, mapping.time.unit, tally)
    return stamps, Rows(rows.header, [row[1:] for row in kept.rows], kept.numbers)


def _needs_mapping(path: Path) -> LogError:
    first = read_lines(path)[0]
    other = looks_like(path)
    known = f"; it looks like format {other}" if other not in ("", "csv") else ""
    return LogError(
        f"a csv log needs a mapping file; its first line is '{first[:200]}'{known}",
        where=str(path),
        hint="write one as in docs/import.md and pass it with --mapping",
    )
