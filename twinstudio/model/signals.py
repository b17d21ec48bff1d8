"""What the columns of a block mean: signals, their components and units.

Signal names are those of ROS JointState, put into families:
``joint.position|velocity|effort|current|temperature``,
``command.position|velocity|effort``, ``tcp.pose``, ``tcp.wrench``,
``ambient.temperature``, ``imu.*``, ``object.<name>.pose``.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from twinstudio.model.errors import LayoutError
from twinstudio.model.quantity import unit

MAX_WIDTH = 4096
NAME = re.compile(r"^[a-z][a-z0-9_]*(\.[A-Za-z0-9_\-]+)*$")

POSE_LABELS = ("x", "y", "z", "qx", "qy", "qz", "qw")
POSE_UNITS = ("m", "m", "m", "1", "1", "1", "1")
WRENCH_LABELS = ("fx", "fy", "fz", "tx", "ty", "tz")
WRENCH_UNITS = ("N", "N", "N", "N m", "N m", "N m")


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One named signal with one label and one unit per component (joint, axis)."""

    name: str
    labels: tuple[str, ...]
    units: tuple[str, ...]

    def __post_init__(self) -> None:
        where = f"signal '{self.name}'"
        if not NAME.match(self.name):
            raise LayoutError("a signal name is lower-case words joined by dots", where=where)
        if not self.labels:
            raise LayoutError("a signal needs at least one component", where=where)
        if len(self.labels) != len(self.units):
            raise LayoutError(f"{len(self.labels)} labels but {len(self.units)} units", where=where)
        if len(set(self.labels)) != len(self.labels):
            raise LayoutError("labels repeat", where=where)
        for name in self.units:
            unit(name)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.labels)


class Layout(msgspec.Struct, frozen=True, dict=True):
    """The ordered signals of a source; column k of every block means the same."""

    signals: tuple[Signal, ...]

    def __post_init__(self) -> None:
        names = [signal.name for signal in self.signals]
        if len(set(names)) != len(names):
            raise LayoutError(f"a signal stands twice in the layout: {', '.join(names)}")
        if self.width > MAX_WIDTH:
            raise LayoutError(f"{self.width} columns; at most {MAX_WIDTH} are allowed")

    @cached_property
    def width(self) -> int:
        """Number of columns of all signals together."""
        total: int = sum(signal.width for signal in self.signals)
        return total

    @cached_property
    def _slices(self) -> dict[str, slice]:
        slices, start = {}, 0
        for signal in self.signals:
            slices[signal.name] = slice(start, start + signal.width)
            start += signal.width
        return slices

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Signal names in order."""
        return tuple(self._slices)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """One name a column, ``signal/label``."""
        return tuple(f"{s.name}/{label}" for s in self.signals for label in s.labels)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """One unit a column."""
        return tuple(name for s in self.signals for name in s.units)

    @cached_property
    def digest(self) -> str:
        """A short content hash: equal layouts, equal digests, on every machine."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    def __contains__(self, name: object) -> bool:
        return name in self._slices

    def signal(self, name: str) -> Signal:
        """The signal called `name`; raises LayoutError listing what there is."""
        for signal in self.signals:
            if signal.name == name:
                return signal
        raise self._missing(name)

    def span(self, name: str) -> slice:
        """The columns of signal `name`; raises LayoutError listing what there is."""
        try:
            return self._slices[name]
        except KeyError:
            raise self._missing(name) from None

    def column(self, name: str, label: str) -> int:
        """The column of one component, e.g. ``("joint.position", "joint1")``."""
        signal = self.signal(name)
        if label not in signal.labels:
            raise LayoutError(
                f"signal '{name}' has no component '{label}'",
                hint=f"it has {', '.join(signal.labels)}",
            )
        start: int = self.span(name).start
        return start + signal.labels.index(label)

    def _missing(self, name: str) -> LayoutError:
        return LayoutError(
            f"no signal '{name}'", hint=f"there are {', '.join(self.names) or 'none'}"
        )


def joint_signals(
    joints: Sequence[str], prismatic: Iterable[str] = (), *, kinds: Sequence[str]
) -> tuple[Signal, ...]:
    """Signals for `joints`, e.g. kinds ``("joint.position", "command.velocity")``.

    A joint named in `prismatic` has m, m/s and N instead of rad, rad/s and N m.
    """
    linear = set(prismatic)
    return tuple(
        Signal(
            name=kind,
            labels=tuple(joints),
            units=tuple(_joint_unit(kind, joint in linear) for joint in joints),
        )
        for kind in kinds
    )


def pose_signal(name: str) -> Signal:
    """A pose: position [m] and unit quaternion in ROS order x, y, z, w."""
    return Signal(name=name, labels=POSE_LABELS, units=POSE_UNITS)


_JOINT_UNITS = {
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "effort": ("N m", "N"),
    "current": ("A", "A"),
    "temperature": ("degC", "degC"),
}


def _joint_unit(kind: str, linear: bool) -> str:
    quantity = kind.rsplit(".", 1)[-1]
    if quantity not in _JOINT_UNITS:
        raise LayoutError(f"'{kind}' is no joint signal", hint=f"known: {', '.join(_JOINT_UNITS)}")
    return _JOINT_UNITS[quantity][linear]
