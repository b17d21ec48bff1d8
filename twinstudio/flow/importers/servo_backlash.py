"""Feetech STS3215 servos at 9.9 Hz: telemetry CSV with registers as they are."""

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.importers import table
from twinstudio.flow.importers.locate import one_file
from twinstudio.flow.importers.log import ImportedLog, Tally, cell, nominal_rate, refuse_empty
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.importers.text import Dialect, read_lines, split
from twinstudio.model.block import Values
from twinstudio.model.signals import Layout, Signal, joint_signals

NAME = "servo_backlash"
DEFAULT = "motor_telemetry_single.csv"
FIELDS = ("target pos", "pos", "speed", "load", "current", "temp", "status", "moving")
COUNT = 2.0 * math.pi / 4096.0  # rad
SPEED_SIGN = 1 << 15
LOAD_SIGN = 1 << 10
LOAD_UNIT = 1e-3  # of the full motor voltage
CURRENT_UNIT = 6.5e-3  # A a count, by the maker's register table
NOTES = (
    (
        "positions: 4096 counts a turn, taken as 0 at count 0; speeds: counts/s, sign in bit 15"
        " (checked against the positions)"
    ),
    "joint.current: register times 6.5 mA, the maker's unit; it is a magnitude, without sign",
    (
        "motor.load: register times 0.1 %, sign in bit 10: the share of full voltage the driver"
        " applies, no torque"
    ),
    "stamps are the logged UTC times, ns since 1970, to the ms",
)


def layout(motors: tuple[str, ...]) -> Layout:
    """The signals for these motors, in the order of FIELDS."""

    def plain(name: str) -> Signal:
        return Signal(name=name, labels=motors, units=("1",) * len(motors))

    kinds = ("command.position", "joint.position", "joint.velocity")
    return Layout(
        (
            *joint_signals(motors, kinds=kinds),
            plain("motor.load"),
            *joint_signals(motors, kinds=("joint.current", "joint.temperature")),
            plain("event.status"),
            plain("event.moving"),
        )
    )


def read(source: Path) -> ImportedLog:
    """The log `source`: a telemetry CSV file or its folder."""
    found = one_file(source, "*.csv", DEFAULT)
    tally = Tally(found.path.name)
    rows = split(read_lines(found.path), Dialect(), tally, header=True)
    ids = re.findall(r"target pos \((\d+)\)", " ".join(rows.header))
    wanted = [f"{field} ({i})" for field in FIELDS for i in sorted(ids, key=int)]
    missing = [name for name in ("timestamp", *wanted) if name not in rows.header]
    if missing or not ids:
        raise wrong(found.path, NAME, f"it has no column {(missing or ['target pos (1)'])[0]}")
    columns = [rows.header.index(name) for name in wanted]
    raw = table.parse(rows, rows.header.index("timestamp"), "iso8601", columns, tally)
    signals = layout(tuple(f"motor{i}" for i in sorted(ids, key=int)))
    parsed = table.Parsed(raw.stamps, _si(raw.values, len(ids)), raw.numbers)
    block = parsed.sensible(signals, tally).block(signals)
    refuse_empty(found.path, tally)
    notes = [note for note in (found.note, *NOTES) if note]
    sources = {"cell": cell(block, nominal_rate(block.stamps))}
    return ImportedLog(sources, [tally], [found.path], notes)


def _si(raw: Values, motors: int) -> Values:
    """Registers [n, len(FIELDS) * motors] in SI, in the same order."""
    part = [raw[:, i * motors : (i + 1) * motors] for i in range(len(FIELDS))]
    target, position, speed, load, current, *rest = part
    return np.hstack(
        [
            target * COUNT,
            position * COUNT,
            signed(speed, SPEED_SIGN) * COUNT,
            signed(load, LOAD_SIGN) * LOAD_UNIT,
            current * CURRENT_UNIT,
            *rest,
        ]
    )


def signed(register: NDArray[np.float64], bit: int) -> NDArray[np.float64]:
    """A magnitude whose sign is in `bit`, as a signed number; NaN stays NaN."""
    return np.where(register >= bit, bit - register, register)
