"""Reads recordings back, exactly as they were written."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from mcap.records import Channel, Schema
from mcap.well_known import MessageEncoding
from numpy.typing import NDArray

from twinstudio.flow.record.foreign import read_foreign
from twinstudio.flow.record.recording import (
    RecordedEvent,
    RecordedSource,
    Recording,
    Stretch,
    no_source,
)
from twinstudio.flow.record.ros import PREFIX, Bytes, Filler, parts, stamps_of, text_of
from twinstudio.flow.record.scan import Scan, scan
from twinstudio.flow.record.schema import (
    CLOCK_TOPIC,
    METADATA,
    SCENE,
    SOURCE_METADATA,
    ChannelInfo,
    ClockRecord,
    EventRecord,
    SourceInfo,
)
from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError, RecordingError
from twinstudio.model.provenance import Provenance

Ints = NDArray[np.int64]


def read_recording(path: Path, sources: Collection[str] | None = None) -> Recording:
    """All of the recording `path`, or of its `sources` alone.

    A file without a footer is read as far as it goes; `problems` says so. An
    MCAP file of another ROS 2 recorder gives its JointState topics, see
    `read_foreign`. Raises RecordingError for anything else, or if a source named
    in `sources` is not in it.
    """
    path = Path(path)
    collector = _Collector(sources)
    found = scan(path, collector.take)
    if not any(record.name == METADATA for record in found.metadata):
        return read_foreign(path)
    return collector.finish(path, found)


@dataclass(slots=True)
class _Part:
    """The rows of one channel, decoded as they come."""

    filler: Filler
    sequence: list[Ints] = field(default_factory=list)
    log: list[Ints] = field(default_factory=list)
    stamps: list[Ints] = field(default_factory=list)
    rows: list[NDArray[Any]] = field(default_factory=list)
    count: int = 0

    def take(self, data: Bytes) -> None:
        rows = self.filler.frame.view(data)
        self.sequence.append(rows["sequence"].astype(np.int64))
        self.log.append(rows["log"].astype(np.int64))
        self.stamps.append(stamps_of(rows))
        # Numbers alone, so that the unpacked chunk can go.
        self.rows.append(self.filler.numbers(rows))
        self.count += len(rows)


@dataclass(slots=True)
class _Group:
    """The channels that together carry the samples of one source and layout."""

    info: ChannelInfo
    parts: dict[str, _Part] = field(default_factory=dict)

    def stretch(self) -> tuple[Stretch, str]:
        """All rows, and what does not fit."""
        pieces = list(self.parts.values())
        count = min(piece.count for piece in pieces)
        first = pieces[0]
        stamps = _joined(first.stamps)[:count]
        sequence = _joined(first.sequence)[:count]
        problem = "" if all(p.count == count for p in pieces) else "channels of unequal length"
        values = np.empty((count, self.info.layout.width))
        for piece in pieces:
            if not np.array_equal(_joined(piece.sequence)[:count], sequence):
                problem = "channels that do not fit together"
            piece.filler.place(np.concatenate([*piece.rows, piece.filler.none])[:count], values)
        sequence = sequence + (self.info.sequence_high << 32)
        received = _joined(first.log)[:count] if self.info.sent else None
        start = int(sequence[0]) if count else 0
        return Stretch(Block(self.info.layout, stamps, values, start), sequence, received), problem


class _Collector:
    """Sorts the messages of a file to their sources."""

    def __init__(self, sources: Collection[str] | None) -> None:
        self._wanted = sources
        self._groups: dict[int, _Group] = {}
        self._channels: dict[int, tuple[_Group, _Part] | None] = {}
        self._order: list[tuple[int, int]] = []
        self._events: list[RecordedEvent] = []
        self._clocks: dict[str, list[ClockRecord]] = {}
        self._bad: dict[str, int] = {}

    def take(self, channel: Channel, schema: Schema | None, rows: Bytes) -> None:
        """Consecutive messages of one channel."""
        del schema
        try:
            if channel.id not in self._channels:
                self._channels[channel.id] = self._described(channel)
            known = self._channels[channel.id]
            if known is None:
                self._take_json(channel, rows)
            elif self._wanted is None or known[0].info.source in self._wanted:
                group, part = known
                part.take(rows)
                if part is next(iter(group.parts.values())):
                    self._order.append((group.info.group, len(rows)))
        except (RecordingError, LayoutError, msgspec.MsgspecError):
            self._bad[channel.topic] = self._bad.get(channel.topic, 0) + len(rows)

    def _described(self, channel: Channel) -> tuple[_Group, _Part] | None:
        info = ChannelInfo.of(channel.metadata)
        if info is None:
            return None
        group = self._groups.get(info.group)
        if group is None:
            group = self._groups[info.group] = _Group(info)
            group.parts = {part.topic: _Part(Filler(part)) for part in parts(info.layout)}
        if info.part not in group.parts:
            raise RecordingError(f"channel {channel.topic} carries no part of its layout")
        return group, group.parts[info.part]

    def _take_json(self, channel: Channel, rows: Bytes) -> None:
        topic = channel.topic
        for row in rows:
            at = int.from_bytes(row[15:23].tobytes(), "little")
            data = row[PREFIX:].tobytes()
            if channel.message_encoding == MessageEncoding.CDR:  # once these were plain JSON
                data = text_of(data)
            if topic == CLOCK_TOPIC:
                clock = msgspec.json.decode(data, type=ClockRecord)
                self._clocks.setdefault(clock.source, []).append(clock)
            elif topic.endswith("/events"):
                event = msgspec.json.decode(data, type=EventRecord)
                name = topic.removeprefix("/").removesuffix("/events")
                self._events.append(RecordedEvent(name, at, event))

    def finish(self, path: Path, found: Scan) -> Recording:
        """Everything put together."""
        problems = list(found.problems)
        problems += [f"{topic}: {n} messages could not be read" for topic, n in self._bad.items()]
        infos = _announced(found, problems)
        sources = {}
        for name in infos if self._wanted is None else self._wanted:
            if name not in infos:
                raise no_source(name, path, infos)
            sources[name] = source = self._source(infos[name], problems)
            problems += [f"{name}: {line}" for line in source.findings()]
        about = next(record.metadata for record in found.metadata if record.name == METADATA)
        texts = [a.data for a in found.attachments if a.name == SCENE]
        return Recording(
            path=path,
            sources=sources,
            events=tuple(self._events),
            clocks={name: tuple(samples) for name, samples in self._clocks.items()},
            scene_text=texts[-1].decode(errors="replace") if texts else "",
            provenance=_provenance(about, problems),
            started=_started(about),
            problems=tuple(problems),
        )

    def _source(self, info: SourceInfo, problems: list[str]) -> RecordedSource:
        whole = {}
        for number, group in self._groups.items():
            if group.info.source == info.source:
                whole[number], problem = group.stretch()
                if problem:
                    problems.append(f"{info.source}: {problem}; what does not fit is left out")
        return RecordedSource(
            role=info.role,
            name=info.name,
            rate=info.rate,
            layout=info.layout,
            stretches=_in_order(whole, [o for o in self._order if o[0] in whole]),
        )


def _in_order(whole: dict[int, Stretch], order: list[tuple[int, int]]) -> tuple[Stretch, ...]:
    """The samples of all groups of a source as they came, joined where one layout holds."""
    used = dict.fromkeys(whole, 0)
    cut: list[Stretch] = []
    for number, runs in groupby(order, key=lambda item: item[0]):
        start = used[number]
        used[number] = end = start + sum(count for _, count in runs)
        cut.append(_part(whole[number], start, end))
    stretches: list[Stretch] = []
    for _, alike in groupby(cut, key=lambda s: (s.block.layout.digest, s.received is None)):
        stretch = _merged(list(alike))
        if len(stretch.block):
            stretches.append(stretch)
    return tuple(stretches)


def _part(stretch: Stretch, start: int, end: int) -> Stretch:
    if start == 0 and end >= len(stretch.block):
        return stretch
    received = None if stretch.received is None else stretch.received[start:end]
    sequence = stretch.sequence[start:end]
    block = stretch.block
    return Stretch(
        Block(
            block.layout,
            block.stamps[start:end],
            block.values[start:end],
            int(sequence[0]) if len(sequence) else 0,
        ),
        sequence,
        received,
    )


def _merged(stretches: list[Stretch]) -> Stretch:
    if len(stretches) == 1:
        return stretches[0]
    first = stretches[0].block
    block = Block(
        first.layout,
        np.concatenate([s.block.stamps for s in stretches]),
        np.vstack([s.block.values for s in stretches]),
        first.first,
    )
    received = [s.received for s in stretches if s.received is not None]
    return Stretch(
        block,
        np.concatenate([s.sequence for s in stretches]),
        np.concatenate(received) if received else None,
    )


def _joined(arrays: list[Ints]) -> Ints:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def _announced(found: Scan, problems: list[str]) -> dict[str, SourceInfo]:
    """What was announced last of each source."""
    infos: dict[str, SourceInfo] = {}
    for record in found.metadata:
        if record.name == SOURCE_METADATA:
            try:
                info = msgspec.json.decode(record.metadata.get("source", ""), type=SourceInfo)
            except (msgspec.MsgspecError, LayoutError) as error:
                problems.append(f"the description of a source could not be read: {error}")
            else:
                infos[info.source] = info
    return infos


def _provenance(about: dict[str, str], problems: list[str]) -> Provenance | None:
    if "provenance" not in about:
        return None
    try:
        return msgspec.json.decode(about["provenance"], type=Provenance)
    except msgspec.MsgspecError as error:
        problems.append(f"its provenance could not be read: {error}")
        return None


def _started(about: dict[str, str]) -> tuple[int, int] | None:
    wall, local = about.get("wall", ""), about.get("local", "")
    return (int(wall), int(local)) if wall.isdecimal() and local.isdecimal() else None
