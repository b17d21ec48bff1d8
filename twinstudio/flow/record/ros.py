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
from typing import Any, Literal, Self

import numpy as np
from mcap.data_stream import RecordBuilder
from mcap.records import Message
from numpy.typing import NDArray

from twinstudio.model.block import Stamps, Values
from twinstudio.model.errors import RecordingError
from twinstudio.model.signals import Layout

JOINT_STATE = "sensor_msgs/msg/JointState"
SAMPLES = "twinstudio_msgs/msg/Samples"
TEXT = "std_msgs/msg/String"

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
    TEXT: "string data",
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
    """The shape of one channel's messages: a Header, names, float64 sequences.

    payload: one such message. names: its name list. sizes, offsets: elements of
    each float64 sequence and where it begins. fixed: which bytes are the same in
    every message, bool[len(payload)]. order: ``<`` or ``>``, its byte order.
    """

    def __init__(self, shape: "Shape", payload: bytes) -> None:
        self.names = shape.names
        self.sizes = shape.sizes
        self.payload = payload
        self._shape = shape
        fixed = np.zeros(len(payload), dtype=np.bool_)
        for start, end in shape.fixed:
            fixed[start:end] = True
        self._fixed = np.flatnonzero(fixed)
        self._wanted = np.frombuffer(payload, dtype=np.uint8)[self._fixed]

    @classmethod
    def build(cls, names: Sequence[str], sizes: Sequence[int]) -> Self:
        """The frame of messages written here: little-endian, no frame_id."""
        payload = build_payload(names, sizes)
        return cls(parse_shape(payload, len(sizes)), payload)

    @classmethod
    def parse(cls, payload: bytes, sequences: int) -> Self:
        """The frame of a message someone else wrote; raises RecordingError."""
        return cls(parse_shape(payload, sequences), payload)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """A whole MCAP message record; sequence k of the message is field ``a{k}``."""
        order = self._shape.order
        fields: list[tuple[str, Any, int]] = [
            ("channel", "<u2", 9),
            ("sequence", "<u4", 11),
            ("log", "<u8", 15),
            ("publish", "<u8", 23),
            ("sec", f"{order}i4", PREFIX + 4),
            ("nanosec", f"{order}u4", PREFIX + 8),
        ]
        fields += [
            (f"a{k}", (f"{order}f8", (size,)), PREFIX + offset)
            for k, (size, offset) in enumerate(zip(self.sizes, self._shape.offsets, strict=True))
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
        """The message as an MCAP record, its own numbers in it."""
        builder = RecordBuilder()
        Message(channel_id=0, log_time=0, data=self.payload, publish_time=0, sequence=0).write(
            builder
        )
        record: bytes = builder.end()
        return record

    def empty(self, count: int) -> Rows:
        """`count` message records, each the template."""
        data = np.frombuffer(self.template * count, dtype=np.uint8).copy()
        return data.view(self.dtype)

    def matches(self, rows: Bytes) -> NDArray[np.bool_]:
        """Which message records uint8[n, size] have this frame, bool[n]."""
        if rows.shape[1] != PREFIX + len(self.payload):
            return np.zeros(len(rows), dtype=np.bool_)
        same: NDArray[np.bool_] = (rows[:, PREFIX + self._fixed] == self._wanted).all(axis=1)
        return same

    def view(self, rows: Bytes) -> Rows:
        """Message records uint8[n, size] by field; raises RecordingError if they differ."""
        if not self.matches(rows).all():
            raise RecordingError(f"{len(rows)} messages are not of the shape announced")
        return np.ascontiguousarray(rows).reshape(-1).view(self.dtype)


class Filler:
    """Turns samples of one layout into message records of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.frame = Frame.build(part.names, [len(columns) for columns in part.columns])
        self._columns = [_span(columns) for columns in part.columns]

    def fill(
        self,
        channel: int,
        stamps: Stamps,
        values: Values,
        sequence: NDArray[np.int64],
        log: NDArray[np.int64],
    ) -> Rows:
        """Samples as message records, n of them; stamps must lie in 0 .. LAST_STAMP."""
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

    @property
    def none(self) -> Values:
        """No numbers yet, float64[0, width of the part]."""
        return np.empty((0, sum(self.frame.sizes)))

    def numbers(self, rows: Rows) -> Values:
        """The numbers of message records, float64[n, width of the part]; copies."""
        found = [rows[f"a{k}"] for k, size in enumerate(self.frame.sizes) if size]
        if not found:
            return np.empty((len(rows), 0))
        return np.hstack(found).astype(np.float64, copy=False)

    def place(self, numbers: Values, values: Values) -> None:
        """Put what `numbers` gave into the columns of `values` it belongs to."""
        start = 0
        for size, columns in zip(self.frame.sizes, self._columns, strict=True):
            if size:
                values[:, columns] = numbers[:, start : start + size]
                start += size


def stamps_of(rows: Rows) -> Stamps:
    """header.stamp of message records, int64[n] ns."""
    stamps: Stamps = rows["sec"].astype(np.int64) * SECOND + rows["nanosec"].astype(np.int64)
    return stamps


def _span(columns: tuple[int, ...]) -> slice | list[int]:
    """Columns as a slice where they are consecutive: no fancy indexing, less time."""
    if columns and columns == tuple(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[-1] + 1)
    return list(columns)


@dataclass(frozen=True, slots=True)
class Shape:
    """What varies and what does not in a message; see `Frame`."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    offsets: tuple[int, ...]
    fixed: tuple[tuple[int, int], ...]
    order: Literal["<", ">"]


def build_payload(names: Sequence[str], sizes: Sequence[int]) -> bytes:
    """A message with zero stamp, empty frame_id and zero numbers."""
    data = bytearray(b"\x00\x01\x00\x00" + bytes(8))
    _put_text(data, "")
    _put_count(data, len(names))
    for name in names:
        _put_text(data, name)
    for size in sizes:
        _put_count(data, size)
        if size:
            _align(data, 8)
        data += bytes(8 * size)
    return bytes(data)


def parse_shape(payload: bytes, sequences: int) -> Shape:
    """The shape of a message of Header, string[], and `sequences` float64[].

    Padding bytes may hold anything and are no part of it. Raises RecordingError.
    """
    if len(payload) < 12 or payload[0] != 0 or payload[1] > 1:
        raise RecordingError("a message is not in plain CDR")
    cursor = _Cursor(payload, "little" if payload[1] else "big")
    cursor.text()
    names = tuple(cursor.text() for _ in range(cursor.count()))
    sizes, offsets = [], []
    for _ in range(sequences):
        size = cursor.count()
        offsets.append(cursor.numbers(size))
        sizes.append(size)
    order: Literal["<", ">"] = "<" if payload[1] else ">"
    return Shape(names, tuple(sizes), tuple(offsets), tuple(cursor.fixed), order)


class _Cursor:
    """Walks through a message and notes which bytes are lengths and text."""

    def __init__(self, payload: bytes, order: Literal["little", "big"]) -> None:
        self._data = payload
        self._order = order
        self._at = 12
        self.fixed: list[tuple[int, int]] = [(0, 2)]

    def count(self) -> int:
        start = self._skip(4)
        self._at = self._checked(start + 4)
        self.fixed.append((start, self._at))
        value = int.from_bytes(self._data[start : self._at], self._order)
        # Every element takes a byte at least: a longer list cannot be true.
        self._checked(self._at + value)
        return value

    def text(self) -> str:
        length = self.count()
        start, self._at = self._at, self._checked(self._at + length)
        self.fixed.append((start, self._at))
        try:
            return self._data[start : self._at].rstrip(b"\x00").decode()
        except UnicodeDecodeError as error:
            raise RecordingError("a name in a message is no valid UTF-8") from error

    def numbers(self, count: int) -> int:
        start = self._skip(8) if count else self._at
        self._at = self._checked(start + 8 * count)
        return start

    def _skip(self, size: int) -> int:
        return self._at + -(self._at - 4) % size

    def _checked(self, end: int) -> int:
        if end > len(self._data):
            raise RecordingError("a message is shorter than it says")
        return end


def _align(data: bytearray, size: int) -> None:
    data += bytes(-(len(data) - 4) % size)


def _put_count(data: bytearray, count: int) -> None:
    _align(data, 4)
    data += count.to_bytes(4, "little")


def _put_text(data: bytearray, text: str) -> None:
    raw = text.encode() + b"\x00"
    _put_count(data, len(raw))
    data += raw


def text_message(text: bytes) -> bytes:
    """UTF-8 `text` as a serialized ``std_msgs/msg/String``."""
    return b"\x00\x01\x00\x00" + (len(text) + 1).to_bytes(4, "little") + text + b"\x00"


def text_of(message: bytes) -> bytes:
    """The text in a serialized ``std_msgs/msg/String``; raises RecordingError."""
    length = int.from_bytes(message[4:8], "little")
    if not message.startswith(b"\x00\x01") or not 1 <= length <= len(message) - 8:
        raise RecordingError("a text message is malformed")
    return message[8 : 7 + length]
