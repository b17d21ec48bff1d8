"""Mapping files: what the columns of a CSV or MATLAB file mean, in TOML."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np

from twinstudio.flow.importers.clocktext import UNITS as TIME_UNITS
from twinstudio.model.block import Values
from twinstudio.model.config import load, si
from twinstudio.model.errors import LogError
from twinstudio.model.quantity import UNITS, unit
from twinstudio.model.signals import Layout, Signal

TimeUnit = Literal["ns", "us", "ms", "s", "min", "h", "iso8601"]
assert set(TimeUnit.__args__) == set(TIME_UNITS)  # type: ignore[attr-defined]


class TimeColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The column of the time and its unit."""

    column: str
    unit: TimeUnit = "s"


class SignalColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One signal: a column for each label.

    unit: of the numbers in the file; they are stored in the SI unit of its kind.
    scale: factor applied before, e.g. counts to a unit. labels: names of the
    components, the column names if left out.
    """

    name: str
    columns: tuple[str, ...]
    unit: str
    labels: tuple[str, ...] = ()
    scale: float = 1.0


class MappingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping file. Without `time`, samples come at `rate` from time 0.

    delimiter, decimal, quoted, header, skip, encoding are for CSV: skip is the
    number of lines before the header; without a header columns are called by
    their number from 1. source is the name of the source in the recording.
    """

    signal: tuple[SignalColumns, ...]
    time: TimeColumn | None = None
    rate: Annotated[float, si("Hz", low=1e-6, high=1e9)] | None = None
    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    quoted: bool = False
    header: bool = True
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    encoding: str = "utf-8-sig"
    source: str = "cell"


def read_mapping(path: Path) -> MappingFile:
    """The mapping file `path`, checked; raises SceneError or LogError naming the key."""
    mapping = load(path, MappingFile)
    where = str(path)
    if (mapping.time is None) == (mapping.rate is None):
        raise LogError("needs either [time] or rate", where=where, hint="give exactly one")
    if not mapping.signal:
        raise LogError("has no [[signal]]", where=where, hint="name at least one signal")
    if len(mapping.delimiter) != 1 or mapping.delimiter == mapping.decimal:
        raise LogError(
            f"key 'delimiter': expected one character other than the decimal mark,"
            f" got '{mapping.delimiter}'",
            where=where,
        )
    for signal in mapping.signal:
        if signal.labels and len(signal.labels) != len(signal.columns):
            raise LogError(
                f"signal '{signal.name}': {len(signal.columns)} columns but"
                f" {len(signal.labels)} labels",
                where=where,
            )
    return mapping


def si_unit(name: str) -> str:
    """The SI unit of the kind of `name`: ``deg`` gives ``rad``; raises QuantityError."""
    kind = unit(name).kind
    for other, candidate in UNITS.items():
        if candidate.kind == kind and candidate.factor == 1.0 and candidate.offset == 0.0:
            return other
    return name


def layout_of(mapping: MappingFile) -> Layout:
    """The layout that the mapping describes; raises LayoutError or QuantityError."""
    return Layout(
        tuple(
            Signal(
                name=signal.name,
                labels=signal.labels or signal.columns,
                units=(si_unit(signal.unit),) * len(signal.columns),
            )
            for signal in mapping.signal
        )
    )


def wanted(mapping: MappingFile) -> tuple[str, ...]:
    """Every column of the signals, in the order of the layout."""
    return tuple(column for signal in mapping.signal for column in signal.columns)


def check_columns(mapping: MappingFile, known: Callable[[str], bool], listing: str) -> None:
    """Raise LogError for a column that is not `known`, listing what there is."""
    time = (mapping.time.column,) if mapping.time else ()
    if unknown := [name for name in (*time, *wanted(mapping)) if not known(name)]:
        raise LogError(
            f"the mapping names '{unknown[0]}', which the log does not have",
            hint=f"it has {listing}",
        )


def to_si(mapping: MappingFile, values: Values) -> Values:
    """Numbers of the file, float64[n, width], in the units of `layout_of`."""
    factors: list[float] = []
    offsets: list[float] = []
    for signal in mapping.signal:
        measured = unit(signal.unit)
        factors += [signal.scale * measured.factor] * len(signal.columns)
        offsets += [measured.offset] * len(signal.columns)
    converted: Values = values * np.array(factors) + np.array(offsets)
    return converted


def unused(mapping: MappingFile, names: Mapping[str, object] | tuple[str, ...]) -> str:
    """A note on the columns that the mapping leaves out, empty if there are none."""
    time = mapping.time.column if mapping.time else ""
    rest = [name for name in names if name not in wanted(mapping) and name != time]
    return f"left out, not in the mapping: {', '.join(rest)}" if rest else ""
