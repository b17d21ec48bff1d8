"""ROS 2 messages of fixed shape: many at once as one numpy array.

A message is CDR, little-endian: every primitive is aligned to its own size,
counted from behind the four-byte encapsulation header; a string is its length
with the final NUL (uint32) and its bytes; a sequence is its length (uint32) and
its elements, and an empty one adds no padding.

For a fixed list of names all messages of a channel are equally long and differ
in stamps and numbers alone. `Frame` builds one MCAP message record as a template
and describes it as a numpy record type, so n messages are filled by columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from mcap.data_stream import RecordBuilder
from mcap.records import Message
from numpy.typing import NDArray

from twinstudio.model.block import Stamps, Values
from twinstudio.model.signals import Layout

JOINT_STATE = "sensor_msgs/msg/JointState"
SAMPLES = "twinstudio_msgs/msg/Samples"

_HEADER = """
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""

DEFINITIONS = {
    JOINT_STATE: "std_msgs/Header header\nstring[] name\nfloat64[] position\n"
    "float64[] velocity\nfloat64[] effort" + _HEADER,
    SAMPLES: "std_msgs/Header header\nstring[] name\nfloat64[] value" + _HEADER,
}

LAST_STAMP = (2**31 - 1) * 10**9 + 999_999_999
"""The latest stamp ROS time can hold [ns]: int32 seconds, uint32 nanoseconds."""

PREFIX = 31
"""Bytes of an MCAP message record before its payload."""

SECOND = 10**9

PartName = Literal["joint_states", "command", "signals"]
Rows = NDArray[Any]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Part:
    """The share of a layout that one channel carries.

    topic: last word of the channel's topic. message: its ROS type.
    names: what stands in the message's name list.
    columns: for each float64 sequence of the message, the columns of the block
        that fill it; an empty tuple leaves it empty.
    """

    topic: PartName
    message: str
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]


def parts(layout: Layout) -> tuple[Part, ...]:
    """How a block of `layout` is spread over channels; every column exactly once.

    joint.position|velocity|effort and command.position|velocity|effort become
    JointState as far as they name the same joints in the same order (one name
    list serves all three); everything else becomes Samples.
    """
    found = [
        _joint_part(layout, "joint", "joint_states"),
        _joint_part(layout, "command", "command"),
    ]
    taken = {column for part in found if part for columns in part.columns for column in columns}
    rest = tuple(column for column in range(layout.width) if column not in taken)
    if rest or not taken:
        names = tuple(layout.columns[column] for column in rest)
        found.append(Part("signals", SAMPLES, names, (rest,)))
    return tuple(part for part in found if part)


def _joint_part(layout: Layout, family: str, topic: PartName) -> Part | None:
    kinds = [f"{family}.{quantity}" for quantity in ("position", "velocity", "effort")]
    present = [kind for kind in kinds if kind in layout]
    if not present:
        return None
    names = layout.signal(present[0]).labels
    columns = tuple(
        _columns(layout, kind) if kind in present and layout.signal(kind).labels == names else ()
        for kind in kinds
    )
    return Part(topic, JOINT_STATE, names, columns)


def _columns(layout: Layout, signal: str) -> tuple[int, ...]:
    span = layout.span(signal)
    return tuple(range(span.start, span.stop))


class Frame:
    """The record of one channel's messages: a Header, names, float64 sequences.

    names: the message's name list. sizes: elements of each float64 sequence.
    """

    def __init__(self, names: Sequence[str], sizes: Sequence[int], frame_id: str = "") -> None:
        self.names = tuple(names)
        self.sizes = tuple(sizes)
        self.payload, self._offsets = _payload(self.names, self.sizes, frame_id)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """A whole MCAP message record; sequence k of the message is field ``a{k}``."""
        fields: list[tuple[str, Any, int]] = [
            ("channel", "<u2", 9),
            ("sequence", "<u4", 11),
            ("log", "<u8", 15),
            ("publish", "<u8", 23),
            ("sec", "<i4", PREFIX + 4),
            ("nanosec", "<u4", PREFIX + 8),
        ]
        fields += [
            (f"a{k}", ("<f8", (size,)), PREFIX + offset)
            for k, (size, offset) in enumerate(zip(self.sizes, self._offsets, strict=True))
            if size
        ]
        return np.dtype(
            {
                "names": [name for name, _, _ in fields],
                "formats": [kind for _, kind, _ in fields],
                "offsets": [offset for _, _, offset in fields],
                "itemsize": PREFIX + len(self.payload),
            }
        )

    @cached_property
    def template(self) -> bytes:
        """One message record with every number zero."""
        builder = RecordBuilder()
        Message(channel_id=0, log_time=0, data=self.payload, publish_time=0, sequence=0).write(
            builder
        )
        return builder.end()

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """Which bytes of a payload are the same in every message, bool[size]."""
        mask = np.ones(len(self.payload), dtype=np.bool_)
        mask[4:12] = False
        for size, offset in zip(self.sizes, self._offsets, strict=True):
            mask[offset : offset + 8 * size] = False
        return mask

    def empty(self, count: int) -> Rows:
        """`count` message records of this frame, every number zero."""
        data = np.frombuffer(self.template * count, dtype=np.uint8).copy()
        return data.view(self.dtype)

    def matches(self, rows: Bytes) -> NDArray[np.bool_]:
        """Which message records uint8[n, size] have this frame, bool[n]."""
        if rows.shape[1] != PREFIX + len(self.payload):
            return np.zeros(len(rows), dtype=np.bool_)
        mask = self.constant
        wanted = np.frombuffer(self.payload, dtype=np.uint8)[mask]
        same: NDArray[np.bool_] = (rows[:, PREFIX:][:, mask] == wanted).all(axis=1)
        return same


class Filler:
    """Turns samples of one layout into message records of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.frame = Frame(part.names, [len(columns) for columns in part.columns])
        self._columns = [_span(columns) for columns in part.columns]

    def fill(
        self,
        channel: int,
        stamps: Stamps,
        values: Values,
        sequence: NDArray[np.int64],
        log: NDArray[np.int64],
    ) -> Rows:
        """n samples as message records; stamps must lie in 0 .. LAST_STAMP."""
        rows = self.frame.empty(len(stamps))
        rows["channel"] = channel
        rows["sequence"] = sequence & 0xFFFFFFFF
        rows["log"] = log
        rows["publish"] = stamps
        rows["sec"], rows["nanosec"] = np.divmod(stamps, SECOND)
        for k, columns in enumerate(self._columns):
            if self.frame.sizes[k]:
                rows[f"a{k}"] = values[:, columns]
        return rows

    def extract(self, rows: Rows, values: Values) -> None:
        """The reverse of `fill` for the numbers: message records into `values`."""
        for k, columns in enumerate(self._columns):
            if self.frame.sizes[k]:
                values[:, columns] = rows[f"a{k}"]


def stamps_of(rows: Rows) -> Stamps:
    """header.stamp of message records, int64[n] ns."""
    stamps: Stamps = rows["sec"].astype(np.int64) * SECOND + rows["nanosec"].astype(np.int64)
    return stamps


def _span(columns: tuple[int, ...]) -> slice | list[int]:
    """Columns as a slice where they are consecutive: no fancy indexing, less time."""
    if columns and columns == tuple(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[-1] + 1)
    return list(columns)


def _payload(
    names: Sequence[str], sizes: Sequence[int], frame_id: str
) -> tuple[bytes, tuple[int, ...]]:
    """A message with zero stamp and zero numbers, and where its sequences begin."""
    data = bytearray(b"\x00\x01\x00\x00" + bytes(8))
    _put_text(data, frame_id)
    _put_count(data, len(names))
    for name in names:
        _put_text(data, name)
    offsets = []
    for size in sizes:
        _put_count(data, size)
        if size:
            _align(data, 8)
        offsets.append(len(data))
        data += bytes(8 * size)
    return bytes(data), tuple(offsets)


def _align(data: bytearray, size: int) -> None:
    data += bytes(-(len(data) - 4) % size)


def _put_count(data: bytearray, count: int) -> None:
    _align(data, 4)
    data += count.to_bytes(4, "little")


def _put_text(data: bytearray, text: str) -> None:
    raw = text.encode() + b"\x00"
    _put_count(data, len(raw))
    data += raw
