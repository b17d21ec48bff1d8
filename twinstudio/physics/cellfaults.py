"""Faults that a cell can be told to have, for trying what comes of them."""

from typing import Any

import numpy as np

from twinstudio.flow.protocol import TELEMETRY
from twinstudio.flow.serve import Endpoint
from twinstudio.model.block import Block, Stamps, Values
from twinstudio.model.errors import LinkError
from twinstudio.physics.emulatedcell import EmulatedCell

PUBLICATION = ("vanish", "nan", "repeat_stamp", "reverse_stamp")
PHYSICAL = {
    "heat": ("W into every winding", 1000.0),
    "payload": ("kg at the tool", 1000.0),
    "snag": ("N m or N of further friction on `joint`", 1e6),
    "drop": ("samples' messages to lose, once", 1e6),
}
NAMES = (*PUBLICATION, *PHYSICAL)


class LossyEndpoint(Endpoint):
    """An endpoint that can lose messages on purpose; the numbers go on.

    lose: how many of the next telemetry messages are not sent.
    """

    lose = 0

    def _send(self, frames: list[bytes | memoryview]) -> None:
        if frames[0] == TELEMETRY and self.lose > 0:
            self.lose -= 1
            return
        super()._send(frames)


class Faults:
    """The faults of one cell; `active` names those that are on."""

    def __init__(self, cell: EmulatedCell) -> None:
        self._cell = cell
        self.active: set[str] = set()
        self.to_lose = 0

    def switch(self, name: str, on: bool, value: float | None, joint: str | None) -> None:
        """Switch a fault on or off; raises LinkError if it is unknown or lacks its value."""
        if name not in NAMES:
            raise LinkError(f"unknown fault '{name}'", hint=f"known: {', '.join(NAMES)}")
        if name in PHYSICAL:
            self._bend(name, _value(name, value) if on else 0.0, on, joint)
        if on and name != "drop":
            self.active.add(name)
        else:
            self.active.discard(name)

    def spoil(self, block: Block) -> tuple[Stamps, Values] | None:
        """What is published of `block`, or None for nothing."""
        if "vanish" in self.active:
            return None
        stamps, values = block.stamps, block.values
        if "nan" in self.active:
            values = values.copy()
            values[:, block.layout.span("joint.position")] = np.nan
        if "repeat_stamp" in self.active:
            stamps = stamps.copy()
            stamps[-1] = stamps[-2]
        if "reverse_stamp" in self.active:
            stamps = stamps[::-1].copy()
        return stamps, values

    def _bend(self, name: str, value: float, on: bool, joint: str | None) -> None:
        """A fault of the cell's physics, or of its messages."""
        cell = self._cell
        if name == "heat":
            cell.heat.extra = np.full(len(cell.joints), value)
        elif name == "payload":
            cell.carry(value if on else cell.truth.payload.mass)
        elif name == "drop":
            self.to_lose = int(value)
        else:
            extra = cell.friction.extra.copy() if on else np.zeros(len(cell.joints))
            if on:
                extra[_index(cell.joints, joint)] = value
            cell.friction.snag(extra)


def flag(args: dict[str, Any], name: str) -> bool:
    """The argument `name`, true or false; raises LinkError for anything else."""
    value = args.get(name)
    if not isinstance(value, bool):
        raise LinkError(f"argument '{name}' must be true or false, got {value!r:.40}")
    return value


def number(args: dict[str, Any], name: str, low: float, high: float) -> float:
    """The argument `name` within [low, high]; raises LinkError for anything else."""
    value = args.get(name)
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not low <= float(value or 0.0) <= high:
        raise LinkError(f"argument '{name}' must be {low:g} to {high:g}, got {value!r:.40}")
    return float(value or 0.0)


def only(args: dict[str, Any], *known: str) -> None:
    """Raise LinkError if `args` holds anything but `known`."""
    for name in args:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise LinkError(f"unknown argument '{name:.40}'", hint=f"known: {listed}")


def _value(name: str, value: float | None) -> float:
    meaning, high = PHYSICAL[name]
    if value is None or not 0.0 <= value <= high:
        raise LinkError(f"fault '{name}' needs 'value': {meaning}, 0 to {high:g}")
    return value


def _index(joints: tuple[str, ...], joint: str | None) -> int:
    if joint not in joints:
        raise LinkError(f"fault 'snag' needs 'joint', one of: {', '.join(joints)}")
    return joints.index(joint)
