"""ROS 2 messages of one topic, gathered into the columns of a source."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from twinstudio.flow.importers.log import Tally
from twinstudio.flow.importers.table import Parsed
from twinstudio.model.block import Block, Values
from twinstudio.model.signals import (
    WRENCH_LABELS,
    WRENCH_UNITS,
    Layout,
    Signal,
    joint_signals,
    pose_signal,
)

JOINT_STATE = "sensor_msgs/msg/JointState"
QUANTITIES = ("position", "velocity", "effort")
COMMANDS = ("command", "commands", "joint_command", "joint_commands", "cmd")
XYZ = ("x", "y", "z")
LENGTHS = "arrays and names differ in length"
NAMELESS = "no joint names"
TWICE = "a joint named twice"


class Collector:
    """Messages of one topic; `add` them, then take the `block`.

    type: their message type. command: whether they are commands.
    """

    type: str
    command = False

    def __init__(self, topic: str) -> None:
        self.tally = Tally(topic)
        self._headers: list[int] = []
        self._logged: list[int] = []
        self._numbers: list[int] = []

    @property
    def clock(self) -> str:
        """Which stamps are used, for a note."""
        return "stamped by its headers" if self._has_headers else "stamped when recorded"

    def add(self, message: Any, log_time: int) -> None:
        """Take up a decoded message; one that makes no sense is counted."""
        if self._take(message):
            stamp = message.header.stamp
            self._headers.append(int(stamp.sec) * 10**9 + int(stamp.nanosec))
            self._logged.append(log_time)
            self._numbers.append(self.tally.rows)

    def block(self) -> Block | None:
        """Everything taken so far; None when there is nothing."""
        if not self._numbers:
            return None
        layout, values = self._table()
        # One clock a topic: mixing header and recording time would fake jitter.
        stamps = np.array(self._headers if self._has_headers else self._logged, dtype=np.int64)
        parsed = Parsed(stamps, values, np.array(self._numbers, dtype=np.int64))
        return parsed.sensible(layout, self.tally).block(layout)

    @property
    def _has_headers(self) -> bool:
        return bool(self._headers) and min(self._headers) > 0

    def _take(self, message: Any) -> bool:
        raise NotImplementedError

    def _table(self) -> tuple[Layout, Values]:
        raise NotImplementedError


class JointStates(Collector):
    """JointState: names may change order or come and go; absent ones are NaN."""

    type = JOINT_STATE

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.command = topic.rpartition("/")[2] in COMMANDS
        self._index: dict[str, int] = {}
        self._rows: list[tuple[tuple[str, ...], tuple[Any, ...]]] = []

    def _take(self, message: Any) -> bool:
        names = tuple(message.name)
        arrays = tuple(getattr(message, quantity) for quantity in QUANTITIES)
        reason = (
            (not names and NAMELESS)
            or (len(set(names)) != len(names) and TWICE)
            or (any(len(a) not in (0, len(names)) for a in arrays) and LENGTHS)
        )
        if reason:
            self.tally.drop(reason, [self.tally.rows])
            return False
        for name in names:
            self._index.setdefault(name, len(self._index))
        self._rows.append((names, arrays))
        return True

    def _table(self) -> tuple[Layout, Values]:
        joints = tuple(self._index)
        present = [
            k for k in range(len(QUANTITIES)) if any(len(arrays[k]) for _, arrays in self._rows)
        ] or [0]
        table = np.full((len(self._rows), len(present), len(joints)), np.nan)
        columns: dict[tuple[str, ...], list[int]] = {}
        for i, (names, arrays) in enumerate(self._rows):
            if names not in columns:
                columns[names] = [self._index[name] for name in names]
            for j, k in enumerate(present):
                if len(arrays[k]):
                    table[i, j, columns[names]] = arrays[k]
        family = "command" if self.command else "joint"
        kinds = tuple(f"{family}.{QUANTITIES[k]}" for k in present)
        return Layout(joint_signals(joints, kinds=kinds)), table.reshape(len(self._rows), -1)


class Fixed(Collector):
    """Messages with the same numbers each time."""

    signals: tuple[Signal, ...]

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self._rows: list[tuple[float, ...]] = []

    def numbers(self, message: Any) -> tuple[float, ...]:
        """The numbers of a message in the order of `signals`."""
        raise NotImplementedError

    def _take(self, message: Any) -> bool:
        self._rows.append(self.numbers(message))
        return True

    def _table(self) -> tuple[Layout, Values]:
        return Layout(self.signals), np.array(self._rows, dtype=np.float64)


def _xyz(vector: Any) -> tuple[float, float, float]:
    return (vector.x, vector.y, vector.z)


class Wrench(Fixed):
    """WrenchStamped as ``tcp.wrench``."""

    type = "geometry_msgs/msg/WrenchStamped"
    signals = (Signal(name="tcp.wrench", labels=WRENCH_LABELS, units=WRENCH_UNITS),)

    def numbers(self, message: Any) -> tuple[float, ...]:
        """Force [N] and torque [N m]."""
        return (*_xyz(message.wrench.force), *_xyz(message.wrench.torque))


class Pose(Fixed):
    """PoseStamped as ``tcp.pose``."""

    type = "geometry_msgs/msg/PoseStamped"
    signals = (pose_signal("tcp.pose"),)

    def numbers(self, message: Any) -> tuple[float, ...]:
        """Position [m] and quaternion x y z w."""
        return (*_xyz(message.pose.position), *_xyz(q := message.pose.orientation), q.w)


class Imu(Fixed):
    """Imu without its covariances."""

    type = "sensor_msgs/msg/Imu"
    signals = (
        Signal(name="imu.orientation", labels=("qx", "qy", "qz", "qw"), units=("1",) * 4),
        Signal(name="imu.angular_velocity", labels=XYZ, units=("rad/s",) * 3),
        Signal(name="imu.acceleration", labels=XYZ, units=("m/s^2",) * 3),
    )

    def numbers(self, message: Any) -> tuple[float, ...]:
        """Orientation, angular velocity [rad/s], linear acceleration [m/s^2]."""
        q = message.orientation
        rates = _xyz(message.angular_velocity)
        return (*_xyz(q), q.w, *rates, *_xyz(message.linear_acceleration))


class Temperature(Fixed):
    """Temperature as ``ambient.temperature``."""

    type = "sensor_msgs/msg/Temperature"
    signals = (Signal(name="ambient.temperature", labels=("sensor",), units=("degC",)),)

    def numbers(self, message: Any) -> tuple[float, ...]:
        """Temperature [degC]."""
        return (message.temperature,)


COLLECTORS: Mapping[str, Callable[[str], Collector]] = {
    JointStates.type: JointStates,
    Wrench.type: Wrench,
    Pose.type: Pose,
    Imu.type: Imu,
    Temperature.type: Temperature,
}
