"""Writes sources, events and clocks into one recording."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
import numpy as np
from mcap.data_stream import RecordBuilder
from mcap.records import Message
from mcap.well_known import SchemaEncoding
from numpy.typing import NDArray

import twinstudio
from twinstudio.flow.clock import ClockModel
from twinstudio.flow.protocol import Event
from twinstudio.flow.record.container import Container
from twinstudio.flow.record.ros import (
    DEFINITIONS,
    LAST_STAMP,
    TEXT,
    Filler,
    parts,
    text_message,
)
from twinstudio.flow.record.schema import (
    CLOCK_TOPIC,
    FORMAT,
    METADATA,
    SCENE,
    SESSION,
    SOURCE_METADATA,
    SOURCE_NAME,
    ChannelInfo,
    ClockRecord,
    EventRecord,
    SourceInfo,
)
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError
from twinstudio.model.provenance import Provenance
from twinstudio.model.signals import Layout
from twinstudio.model.views import Entry

LAST_SEQUENCE = 2**63 - 1
_RECORD = 256 * 2**10  # bytes filled at a time: stays in the processor's cache


class Describes(Protocol):
    """What a recording must know of a source; `flow.protocol.Description` fits."""

    @property
    def role(self) -> Any:
        """``cell`` or ``twin``."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def layout(self) -> Layout:
        """What its columns mean."""

    @property
    def rate(self) -> float:
        """Nominal samples per second, 0 if irregular."""


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A `Describes` for sources that never said hello, e.g. imported logs."""

    role: str
    name: str
    layout: Layout
    rate: float = 0.0


@dataclass(slots=True)
class _Source:
    info: SourceInfo
    revision: int = 0


class RecordingWriter:
    """Writes a recording; not thread-safe (see `Recorder`). Raises RecordingError.

    scene_text: the scene.toml in force. overwrite: replace a file that exists;
    without it that is an error. The file is complete on disk after every
    checkpoint; one comes by itself whenever a chunk is full.
    """

    def __init__(
        self,
        path: Path,
        *,
        scene_text: str = "",
        provenance: Provenance | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        library = f"twinstudio {twinstudio.__version__}"
        self._file = Container(self.path, library=library, overwrite=overwrite)
        self._sources: dict[str, _Source] = {}
        self._channels: dict[tuple[object, ...], list[tuple[int, Filler]]] = {}
        self._logs: dict[str, int] = {}
        entries = {"format": FORMAT, "wall": str(time.time_ns()), "local": str(time.monotonic_ns())}
        if provenance is not None:
            entries["provenance"] = msgspec.json.encode(provenance).decode()
        self._file.metadata(METADATA, entries)
        if scene_text:
            self._file.attach(SCENE, "application/toml", scene_text.encode())
        self._file.checkpoint()

    @property
    def bytes(self) -> int:
        """Size of the file on disk."""
        return self._file.size

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last log time on disk [ns], None without messages."""
        return self._file.span

    @property
    def is_open(self) -> bool:
        """False after `close` and after a write that failed."""
        return self._file.is_open

    def source(self, name: str, description: Describes) -> None:
        """Announce source `name` (``cell``, ``twin``), or what changed about it."""
        if not SOURCE_NAME.match(name) or name in (SESSION, "twinstudio"):
            raise RecordingError(
                f"'{name}' cannot name a source", hint="use letters, digits and _, e.g. cell"
            )
        info = SourceInfo(
            source=name,
            role=description.role,
            name=description.name,
            rate=description.rate,
            layout=description.layout,
        )
        known = self._sources.get(name)
        if known is not None and known.info == info:
            return
        self._sources[name] = _Source(info, known.revision + 1 if known else 0)
        self._file.metadata(SOURCE_METADATA, {"source": msgspec.json.encode(info).decode()})

    def write(self, name: str, block: Block) -> None:
        """Add `block` of source `name`, NaN, repeats and reversals included.

        A layout other than the announced one counts as a change of layout.
        Raises RecordingError, and writes nothing of the block, for a stamp that
        ROS time cannot hold (below 0 or past 2147483647.999999999 s).
        """
        self.write_all(name, [block])

    def write_all(self, name: str, blocks: Sequence[Block]) -> None:
        """Several blocks of one source at once; cheaper than one by one."""
        for block in blocks:
            _check(name, block)
        start = 0
        for end in range(1, len(blocks) + 1):
            if end == len(blocks) or not _alike(blocks[start], blocks[end]):
                self._write_alike(name, blocks[start:end])
                start = end

    def event(self, name: str, event: Event | Entry, *, at: int | None = None) -> None:
        """Add an event of source `name`, or of the session (name ``session``).

        at: local time it was seen [ns]; without it the event's own stamp, or now
        for an entry of the session log, whose stamp is wall-clock time.
        """
        record = EventRecord.of(event)
        if at is None:
            at = event.stamp if isinstance(event, Event) else time.monotonic_ns()
        # A stamp that the file cannot hold stays in the record itself.
        publish = record.stamp if 0 <= record.stamp <= LAST_SEQUENCE else at
        self._message(f"/{name}/events", at, publish, record)

    def clock(self, name: str, model: ClockModel, *, at: int | None = None) -> None:
        """Add what is known of the clock of source `name` at local time `at` [ns]."""
        at = time.monotonic_ns() if at is None else at
        record = ClockRecord.of(name, at, model)
        self._message(CLOCK_TOPIC, at, at, record)

    def note(self, text: str, *, code: str = "note", at: int | None = None) -> None:
        """Add a remark to the events of the session."""
        at = time.monotonic_ns() if at is None else at
        record = EventRecord(seq=0, stamp=at, level="info", code=code, text=text)
        self._message(f"/{SESSION}/events", at, at, record)

    def checkpoint(self) -> None:
        """Bring everything to the file and make it complete; cheap if nothing is new."""
        self._file.checkpoint()

    def close(self) -> None:
        """Checkpoint and close; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_alike(self, name: str, blocks: Sequence[Block]) -> None:
        source = self._announced(name, blocks[0].layout)
        sent = blocks[0].received is not None
        stamps = np.concatenate([block.stamps for block in blocks])
        values = np.vstack([block.values for block in blocks])
        sequence = np.concatenate([np.arange(b.first, b.first + len(b)) for b in blocks])
        log = np.repeat([b.received or 0 for b in blocks], [len(b) for b in blocks])
        log = log if sent else stamps
        rows = max(1, _RECORD // (8 * values.shape[1] + 256))
        for start, end in _stretches(sequence >> 32, rows):
            part = slice(start, end)
            for channel, filler in self._opened(source, sent, int(sequence[start]) >> 32):
                records = filler.fill(
                    channel, stamps[part], values[part], sequence[part], log[part]
                )
                self._file.append(channel, log[part], records.data.cast("B"))
            if self._file.full:
                self._file.checkpoint()

    def _announced(self, name: str, layout: Layout) -> _Source:
        source = self._sources.get(name)
        if source is None:
            known = ", ".join(self._sources) or "none"
            raise RecordingError(
                f"source '{name}' was never announced", hint=f"call source() first; known: {known}"
            )
        if source.info.layout != layout:
            changed = msgspec.structs.replace(source.info, layout=layout)
            source = self._sources[name] = _Source(changed, source.revision + 1)
        return source

    def _opened(self, source: _Source, sent: bool, high: int) -> list[tuple[int, Filler]]:
        """The channels for samples that share all but their low 32 bits of sequence."""
        info = source.info
        key = (info.source, info.role, info.name, info.rate, info.layout.digest, sent, high)
        channels = self._channels.get(key)
        if channels is None:
            group = len(self._channels)
            channels = []
            for part in parts(info.layout):
                about = ChannelInfo(
                    **msgspec.structs.asdict(info),
                    part=part.topic,
                    revision=source.revision,
                    group=group,
                    sent=sent,
                    sequence_high=high,
                )
                schema = self._schema(part.message)
                number = self._file.channel(
                    f"/{info.source}/{part.topic}", schema, about.as_metadata()
                )
                channels.append((number, Filler(part)))
            self._channels[key] = channels
        return channels

    def _schema(self, message: str) -> int:
        return self._file.schema(message, SchemaEncoding.ROS2, DEFINITIONS[message].encode())

    def _message(self, topic: str, log: int, publish: int, record: msgspec.Struct) -> None:
        """One JSON text as a ROS message, given its checks and its channel.

        Not as a JSON message: libraries that read ROS recordings open no file that
        holds anything else.
        """
        for stamp in (log, publish):
            if not 0 <= stamp <= LAST_SEQUENCE:
                raise RecordingError(f"{topic}: time {stamp} ns cannot be stored; it is negative")
        channel = self._logs.get(topic)
        if channel is None:
            channel = self._logs[topic] = self._file.channel(topic, self._schema(TEXT), {})
        builder = RecordBuilder()
        Message(
            channel_id=channel,
            log_time=log,
            data=text_message(msgspec.json.encode(record)),
            publish_time=publish,
            sequence=0,
        ).write(builder)
        self._file.append(channel, np.array([log]), builder.end())


def _check(name: str, block: Block) -> None:
    """Refuse what the file cannot hold exactly."""
    if len(block):
        low, high = int(block.stamps.min()), int(block.stamps.max())
        if low < 0 or high > LAST_STAMP:
            wrong = low if low < 0 else high
            raise RecordingError(
                f"source '{name}': a stamp of {wrong} ns is outside of what ROS time can hold"
                f" (0 to {LAST_STAMP} ns)",
                hint="its clock must count from a start that is not in the future",
            )
    if not 0 <= block.first <= LAST_SEQUENCE - len(block):
        raise RecordingError(f"source '{name}': sequence number {block.first} is out of range")
    if block.received is not None and not 0 <= block.received <= LAST_SEQUENCE:
        raise RecordingError(f"source '{name}': receive stamp {block.received} ns is out of range")


def _alike(one: Block, other: Block) -> bool:
    """Whether two blocks can go into one array."""
    same = one.layout is other.layout or one.layout == other.layout
    return same and (one.received is None) == (other.received is None)


def _stretches(high: NDArray[np.int64], rows: int) -> list[tuple[int, int]]:
    """Slices of at most `rows` samples within which `high` does not change."""
    cuts = {*range(0, len(high), rows), len(high), *(np.flatnonzero(np.diff(high)) + 1).tolist()}
    edges = sorted(cuts)
    return list(itertools.pairwise(edges))
