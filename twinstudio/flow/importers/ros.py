"""ROS 2 recordings: joint states and a few other numeric messages become sources."""

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mcap.exceptions import EndOfFile
from mcap.records import Channel, Metadata, Schema
from mcap.records import Message as McapMessage
from mcap.stream_reader import StreamReader
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.typesys import Stores, get_typestore

from twinstudio.flow.importers.locate import Found, existing, one_file
from twinstudio.flow.importers.log import ImportedLog, ImportedSource, Tally, cell, nominal_rate
from twinstudio.flow.importers.messages import COLLECTORS, JOINT_STATE, Collector
from twinstudio.flow.importers.sniff import wrong
from twinstudio.flow.protocol import Role
from twinstudio.flow.record.reader import read_recording
from twinstudio.flow.record.schema import METADATA
from twinstudio.model.errors import LogError

STORE = Stores.ROS2_HUMBLE
UNREADABLE = "message that does not decode"


class Raw(NamedTuple):
    """One message as stored; log_time in ns."""

    topic: str
    type: str
    log_time: int
    data: bytes


def read_mcap(source: Path) -> ImportedLog:
    """The MCAP file `source`, or the one in the folder; ROS 2 (CDR) messages are read."""
    found = one_file(source, "*.mcap")
    with found.path.open("rb") as stream:
        if not stream.read(5).startswith(b"\x89MCAP"):
            raise wrong(found.path, "mcap", "it does not start as an MCAP file")
    if is_ours(found.path):
        return _own(found)
    problems: list[str] = []
    log = _collect(_mcap_messages(found.path, problems), found, [found.path])
    log.problems[:0] = problems
    return log


def read_rosbag2(source: Path) -> ImportedLog:
    """The rosbag2 folder `source` (or a file in it, or the one bag below it)."""
    existing(source)
    if source.is_file() and not (source.parent / "metadata.yaml").is_file():
        if source.suffix == ".mcap":
            return read_mcap(source)
        raise wrong(source, "rosbag2", "there is no metadata.yaml beside it")
    folder = source.parent if source.is_file() else source
    note = ""
    if not (folder / "metadata.yaml").is_file():
        bag = one_file(folder, "**/metadata.yaml")
        folder, note = bag.path.parent, f"took {bag.path.parent.name}, the only bag in the folder"
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return _collect(_bag_messages(folder), Found(folder, note), files)


def _bag_messages(folder: Path) -> Iterator[Raw]:
    try:
        with AnyReader([folder]) as reader:
            for connection, log_time, data in reader.messages():
                yield Raw(connection.topic, connection.msgtype, log_time, bytes(data))
    except (AnyReaderError, OSError) as error:
        raise LogError(f"cannot be read: {error}", where=str(folder)) from error


def _records(path: Path) -> Iterator[Any]:
    with path.open("rb") as stream:
        yield from StreamReader(stream).records


def is_ours(path: Path) -> bool:
    """Whether the file says that Twinstudio wrote it; told by its first records."""
    try:
        for count, record in enumerate(_records(path)):
            if isinstance(record, Metadata) and record.name == METADATA:
                return True
            if isinstance(record, McapMessage) or count > 100:
                return False
    except Exception:  # noqa: BLE001 - damage is reported when the messages are read
        return False
    return False


def _mcap_messages(path: Path, problems: list[str]) -> Iterator[Raw]:
    """Messages in file order; a file that breaks off is read as far as it goes."""
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    try:
        for record in _records(path):
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, McapMessage):
                channel = channels[record.channel_id]
                schema = schemas.get(channel.schema_id)
                kind = schema.name if schema and channel.message_encoding == "cdr" else ""
                name = kind or f"{channel.message_encoding} message"
                yield Raw(channel.topic, name, record.log_time, record.data)
    except (EndOfFile, struct.error):
        problems.append("the file breaks off; everything before the break was read")
    except Exception as error:  # noqa: BLE001 - the reader raises anything on damaged bytes
        problems.append(f"the file is damaged and was read up to there: {error!r}")


def _collect(messages: Iterable[Raw], found: Found, files: list[Path]) -> ImportedLog:
    store = get_typestore(STORE)
    collectors: dict[str, Collector] = {}
    left: Counter[tuple[str, str]] = Counter()
    for raw in messages:
        make = COLLECTORS.get(raw.type)
        if make is None:
            left[raw.topic, raw.type] += 1
            continue
        if raw.topic not in collectors:
            collectors[raw.topic] = make(raw.topic)
        _add(collectors[raw.topic], raw, store.deserialize_cdr)
    notes = [found.note] if found.note else []
    notes += [f"left out: {count} of {topic} ({kind})" for (topic, kind), count in left.items()]
    return _log(collectors, found, files, notes)


def _add(collector: Collector, raw: Raw, decode: Callable[[bytes, str], Any]) -> None:
    collector.tally.rows += 1
    try:
        message = decode(raw.data, raw.type)
    except Exception:  # noqa: BLE001 - the decoder raises anything on damaged bytes
        collector.tally.drop(UNREADABLE, [collector.tally.rows])
        return
    collector.add(message, raw.log_time)


def _log(
    collectors: dict[str, Collector], found: Found, files: list[Path], notes: list[str]
) -> ImportedLog:
    sources: dict[str, ImportedSource] = {}
    names = _names(collectors)
    tables: list[Tally] = []
    for topic, collector in collectors.items():
        tables.append(collector.tally)
        block = collector.block()
        if block is None or not len(block):
            notes.append(f"nothing usable in {topic}")
            continue
        sources[names[topic]] = cell(block, nominal_rate(block.stamps))
        notes.append(f"source '{names[topic]}' is topic {topic}, {collector.clock}")
    if not sources:
        seen = "; ".join(notes) or "it is empty"
        known = ", ".join(kind.rpartition("/")[2] for kind in COLLECTORS)
        raise LogError(
            f"holds no message that can become a source ({seen})",
            where=str(found.path),
            hint=f"read are {known}",
        )
    if any(collector.type == JOINT_STATE for collector in collectors.values()):
        notes.append("JointState does not tell prismatic joints: rad, rad/s and N m are assumed")
    return ImportedLog(sources, tables, files, notes)


def _names(collectors: dict[str, Collector]) -> dict[str, str]:
    """A source name for each topic; the first measured joint states are ``cell``."""
    joints = [t for t, c in collectors.items() if c.type == JOINT_STATE and not c.command]
    joints.sort(key=lambda topic: not topic.endswith("joint_states"))
    names = {joints[0]: "cell"} if joints else {}
    for topic in collectors:
        if topic in names:
            continue
        base = re.sub(r"[^A-Za-z0-9]+", "_", topic).strip("_")[:50]
        base = base if base[:1].isalpha() else f"topic_{base}"
        name, k = base, 2
        while name in names.values() or name in ("session", "twinstudio"):
            name, k = f"{base}_{k}", k + 1
        names[topic] = name
    return names


def _own(found: Found) -> ImportedLog:
    """A recording of Twinstudio: its sources as they are, layouts included."""
    recording = read_recording(found.path)
    sources, tables = {}, []
    for name, source in recording.sources.items():
        if len(source.block):
            role: Role = "twin" if source.role == "twin" else "cell"
            sources[name] = ImportedSource(role, source.layout, source.block, source.rate)
            tables.append(Tally(name, rows=len(source.block)))
    if not sources:
        raise LogError("is a recording without samples", where=str(found.path))
    notes = [found.note] if found.note else []
    notes.append("this is a Twinstudio recording already; its events, clocks and scene stay there")
    return ImportedLog(sources, tables, [found.path], notes, list(recording.problems))
