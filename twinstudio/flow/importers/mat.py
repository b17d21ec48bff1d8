"""MATLAB files of any version, described by a mapping file or a built-in one."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinstudio.flow.importers import matfile, table
from twinstudio.flow.importers.locate import Found, existing, one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, nominal_rate, refuse_empty
from twinstudio.flow.importers.mapping import (
    MappingFile,
    SignalColumns,
    TimeColumn,
    check_columns,
    layout_of,
    read_mapping,
    to_si,
    wanted,
)
from twinstudio.flow.importers.matfile import Array
from twinstudio.flow.importers.sniff import looks_like
from twinstudio.model.errors import LogError

NAME = "mat"
_INDEXED = re.compile(r"(.+)\[(\d+)\]")
STANDARD_GRAVITY = 9.80665  # m/s^2, exact by definition
XYZ = ("x", "y", "z")
TIME_DIGITS = "times in a MATLAB file are floats; stamps are rounded to the ns"


def _buffer(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}[{k}]" for k in range(1, count + 1))


# The buffers of the MPU6050 logs: row 0 is the time [s], then x, y, z.
_MPU6050 = {
    "accelBuffer": SignalColumns(
        "imu.acceleration", _buffer("accelBuffer", 3), "m/s^2", XYZ, STANDARD_GRAVITY
    ),
    "gyroBuffer": SignalColumns("imu.angular_velocity", _buffer("gyroBuffer", 3), "deg/s", XYZ),
    "temperatureBuffer": SignalColumns(
        "imu.temperature", _buffer("temperatureBuffer", 1), "degC", ("imu",)
    ),
}


@dataclass(frozen=True)
class _Content:
    """Variables of one file, or of all in a folder, and where they come from."""

    variables: dict[str, Array]
    files: list[Path]
    found: Found

    def series(self, name: str) -> Array | None:
        """Column `name`: a vector variable, or ``variable[k]`` along its short side."""
        if name in self.variables:
            array = self.variables[name]
            return array.ravel() if array.size == max(array.shape, default=0) else None
        match = _INDEXED.fullmatch(name)
        if match is None or match.group(1) not in self.variables:
            return None
        array = self.variables[match.group(1)]
        if array.ndim != 2:
            return None
        rows = array if array.shape[0] <= array.shape[1] else array.T
        k = int(match.group(2))
        return rows[k] if k < len(rows) else None


def read(source: Path, mapping: Path | None = None) -> ImportedLog:
    """The log `source`: a .mat file, or a folder with one (or with the MPU6050 buffers)."""
    content = _content(existing(source))
    notes = [content.found.note] if content.found.note else []
    where = str(mapping or content.found.path)
    if mapping is not None:
        description = read_mapping(mapping)
    else:
        description = _built_in(content)
        notes.append(
            "recognised the buffers of an MPU6050 and used the built-in mapping: row 0 is time"
            " [s], acceleration from g to m/s^2, angular velocity from deg/s, temperature degC"
        )
    listing = matfile.shape_text(content.variables)
    try:
        check_columns(description, lambda name: content.series(name) is not None, listing)
    except LogError as error:
        raise LogError(error.what, where=where, hint=error.hint) from None
    tally = Tally(content.found.path.name)
    parsed = _parsed(content, description, tally, where)
    layout = layout_of(description)
    block = parsed.sensible(layout, tally).block(layout)
    refuse_empty(content.found.path, tally)
    rate = description.rate or nominal_rate(block.stamps)
    notes.append(TIME_DIGITS)
    return ImportedLog({description.source: cell(block, rate)}, [tally], content.files, notes)


def _content(source: Path) -> _Content:
    """What can be read there; several files are joined only if they are MPU6050 buffers."""
    if source.is_dir():
        logs = sorted(source.glob("**/*mpu6050*.mat"))
        folders = {path.parent for path in logs}
        if len(folders) == 1:
            merged = {k: v for path in logs for k, v in matfile.read(path).items()}
            note = f"took {', '.join(path.name for path in logs)} together"
            return _Content(merged, logs, Found(folders.pop(), note))
    found = one_file(source, "**/*.mat")
    return _Content(matfile.read(found.path), [found.path], found)


def _built_in(content: _Content) -> MappingFile:
    present = [name for name in _MPU6050 if name in content.variables]
    if not present:
        other = looks_like(content.found.path)
        known = f"; it looks like format {other}" if other not in ("", "mat") else ""
        raise LogError(
            f"a MATLAB log needs a mapping file; it has"
            f" {matfile.shape_text(content.variables) or 'no numeric variable'}{known}",
            where=str(content.found.path),
            hint="write one as in docs/import.md and pass it with --mapping",
        )
    times = [content.series(f"{name}[0]") for name in present]
    for name, time in zip(present[1:], times[1:], strict=True):
        if time is None or times[0] is None or not np.array_equal(time, times[0]):
            raise LogError(
                f"{name} and {present[0]} have different times",
                where=str(content.found.path),
                hint="import one file at a time",
            )
    signals = tuple(_MPU6050[name] for name in present)
    return MappingFile(signal=signals, time=TimeColumn(f"{present[0]}[0]"))


def _parsed(content: _Content, mapping: MappingFile, tally: Tally, where: str) -> table.Parsed:
    series = {name: content.series(name) for name in wanted(mapping)}
    time = content.series(mapping.time.column) if mapping.time else None
    lengths = {name: len(array) for name, array in series.items() if array is not None}
    if mapping.time and time is not None:
        lengths[mapping.time.column] = len(time)
    if len(set(lengths.values())) != 1:
        text = ", ".join(f"{name} {count}" for name, count in lengths.items())
        raise LogError(f"the columns differ in length: {text}", where=where)
    n = next(iter(lengths.values()))
    values = to_si(mapping, np.column_stack([s for s in series.values() if s is not None]))
    if mapping.time is None:
        assert mapping.rate is not None
        return table.from_seconds(np.arange(n) / mapping.rate, values, tally)
    assert time is not None
    if mapping.time.unit == "iso8601":
        raise LogError("a MATLAB time is a number, not ISO 8601 text", where=where)
    factor = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
    return table.from_seconds(time * factor[mapping.time.unit], values, tally)
