"""JointState topics of logs that other ROS 2 recorders wrote."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Message, Schema
from numpy.typing import NDArray
from rosbags.rosbag2 import Reader, ReaderError

from twinstudio.flow.record.recording import RecordedSource, Recording, Stretch
from twinstudio.flow.record.ros import JOINT_STATE, PREFIX, Bytes, Frame, stamps_of
from twinstudio.flow.record.scan import scan
from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError, RecordingError
from twinstudio.model.signals import Layout, joint_signals

KINDS = ("joint.position", "joint.velocity", "joint.effort")
MAX_FRAMES = 256
_BATCH = 1000


def read_foreign(
    path: Path,
    topics: Mapping[str, str] | None = None,
    *,
    prismatic: Collection[str] = (),
) -> Recording:
    """The JointState topics of an MCAP file, a ROS 2 bag folder or a .db3 file.

    topics: topic -> role (``cell``, ``twin``), which is the source's name too;
    without it every JointState topic is a source under its own name with the
    role ``cell``. prismatic: joints in m and N; the messages do not tell.
    Stamps are those of the messages' headers, receive stamps the log times.
    A topic with several name lists (two publishers) gives one stretch a list.
    Raises RecordingError if it is no such log or lacks a topic of `topics`.
    """
    path = Path(path)
    found: dict[str, _Topic] = {}
    problems: list[str] = []

    def take(channel: Channel, schema: Schema | None, rows: Bytes) -> None:
        if schema is not None and schema.name == JOINT_STATE:
            if topics is None or channel.topic in topics:
                found.setdefault(channel.topic, _Topic()).take(rows)
            else:
                others.add(channel.topic)
        else:
            others.add(channel.topic)

    others: set[str] = set()
    if path.is_dir() or path.suffix == ".db3":
        _read_bag(path, take)
    else:
        problems += scan(path, take).problems
    _check_topics(path, topics, found, others)
    sources = {}
    for topic, data in found.items():
        name = topics[topic] if topics else topic
        source = data.source(topic, "cell" if topics is None else name, set(prismatic))
        sources[name] = source
        problems += [f"{topic}: {line}" for line in (*data.problems, *source.findings())]
    return Recording(path=path, sources=sources, problems=tuple(problems))


def _check_topics(
    path: Path, topics: Mapping[str, str] | None, found: Collection[str], others: Collection[str]
) -> None:
    absent = [topic for topic in topics or () if topic not in found]
    if absent:
        raise RecordingError(
            f"no sensor_msgs/msg/JointState on {', '.join(absent)}",
            where=str(path),
            hint=f"its topics are {', '.join([*found, *sorted(others)]) or 'none'}",
        )
    if not found:
        raise RecordingError(
            "no sensor_msgs/msg/JointState in it",
            where=str(path),
            hint=f"its topics are {', '.join(sorted(others)) or 'none'}",
        )
    if topics and len(set(topics.values())) < len(topics):
        raise RecordingError("two topics cannot be one source", where=str(path))


@dataclass(slots=True)
class _Topic:
    """The messages of one topic, sorted by their shape."""

    frames: list[Frame] = field(default_factory=list)
    rows: dict[int, list[tuple[int, NDArray[Any]]]] = field(default_factory=dict)
    count: int = 0
    unreadable: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, rows: Bytes) -> None:
        """Message records uint8[n, size], each of whatever shape."""
        left = np.arange(len(rows))
        for number, frame in enumerate(self.frames):
            left = self._match(number, frame, rows, left)
            if not len(left):
                break
        while len(left):
            try:
                frame = self._new_frame(rows[left[0], PREFIX:].tobytes())
            except RecordingError as error:
                self.unreadable[error.what] = self.unreadable.get(error.what, 0) + 1
                left = left[1:]
            else:
                self.frames.append(frame)
                left = self._match(len(self.frames) - 1, frame, rows, left)
        self.count += len(rows)

    def _new_frame(self, payload: bytes) -> Frame:
        if len(self.frames) >= MAX_FRAMES:
            raise RecordingError(f"more than {MAX_FRAMES} lists of names")
        return Frame.parse(payload, len(KINDS))

    def _match(
        self, number: int, frame: Frame, rows: Bytes, left: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        same = frame.matches(rows[left])
        if same.any():
            chosen = left[same]
            # A copy of the records: the unpacked chunk need not stay.
            taken = rows[chosen].reshape(-1).view(frame.dtype)
            self.rows.setdefault(number, []).append((self.count + int(chosen[0]), taken))
        return left[~same]

    def source(self, topic: str, role: str, prismatic: set[str]) -> RecordedSource:
        """The topic as a source; what could not be used goes to `problems`."""
        for what, count in self.unreadable.items():
            self.problems.append(f"{count} messages left out: {what}")
        stretches = []
        for numbers in self._alike():
            frame = self.frames[numbers[0]]
            pieces = sorted(
                (piece for number in numbers for piece in self.rows[number]), key=lambda p: p[0]
            )
            rows = [piece for _, piece in pieces]
            try:
                layout = _layout(frame, prismatic)
            except (LayoutError, RecordingError) as error:
                self.problems.append(f"{sum(map(len, rows))} messages left out: {error}")
            else:
                stretches.append(_stretch(layout, frame, rows))
        if not stretches:
            raise RecordingError(
                f"no usable message: {'; '.join(self.problems) or 'none at all'}", where=topic
            )
        layout = max(stretches, key=lambda s: len(s.block)).block.layout
        return RecordedSource(
            role=role, name=topic, rate=0.0, layout=layout, stretches=tuple(stretches)
        )

    def _alike(self) -> list[list[int]]:
        """Frames that differ in frame_id or byte order alone belong together."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for number, frame in enumerate(self.frames):
            groups.setdefault((frame.names, frame.sizes), []).append(number)
        return list(groups.values())


def _layout(frame: Frame, prismatic: set[str]) -> Layout:
    if not frame.names:
        raise RecordingError("they name no joints")
    wrong = [size for size in frame.sizes if size not in (0, len(frame.names))]
    if wrong:
        raise RecordingError(f"{len(frame.names)} names but {wrong[0]} values")
    kinds = [kind for kind, size in zip(KINDS, frame.sizes, strict=True) if size]
    if not kinds:
        raise RecordingError("they hold names and no values")
    return Layout(joint_signals(frame.names, prismatic, kinds=kinds))


def _stretch(layout: Layout, frame: Frame, rows: list[NDArray[Any]]) -> Stretch:
    fields = [f"a{k}" for k, size in enumerate(frame.sizes) if size]
    values = np.vstack(
        [np.hstack([piece[name] for name in fields]).astype(np.float64) for piece in rows]
    )
    stamps = np.concatenate([stamps_of(piece) for piece in rows])
    received = np.concatenate([piece["log"].astype(np.int64) for piece in rows])
    return Stretch(Block(layout, stamps, values), np.arange(len(stamps)), received)


def _read_bag(path: Path, take: Any) -> None:
    """The messages of a bag that is not one MCAP file, as MCAP records."""
    try:
        with Reader(path) as bag:
            schemas = {
                c.id: Schema(id=0, data=b"", encoding="", name=c.msgtype) for c in bag.connections
            }
            waiting: dict[int, list[bytes]] = {}
            for connection, log, raw in bag.messages():
                rows = waiting.setdefault(connection.id, [])
                record = _record(log, raw)
                if rows and (len(rows) >= _BATCH or len(rows[0]) != len(record)):
                    _flush(connection, schemas, rows, take)
                rows.append(record)
            for connection in bag.connections:
                _flush(connection, schemas, waiting.get(connection.id, []), take)
    except (ReaderError, OSError) as error:
        raise RecordingError(f"is no readable ROS 2 bag: {error}", where=str(path)) from error


def _record(log: int, raw: bytes) -> bytes:
    builder = RecordBuilder()
    Message(channel_id=0, log_time=log, data=raw, publish_time=log, sequence=0).write(builder)
    record: bytes = builder.end()
    return record


def _flush(connection: Any, schemas: dict[int, Schema], rows: list[bytes], take: Any) -> None:
    if rows:
        channel = Channel(0, connection.topic, "cdr", {}, 0)
        data = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
        take(channel, schemas[connection.id], data)
        rows.clear()
