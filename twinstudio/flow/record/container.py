"""An MCAP file that is complete on disk after every checkpoint.

The data section grows by chunks. A checkpoint writes the pending chunk and,
behind it, everything that makes the file complete (index, statistics, footer)
in one write, over the tail that the previous checkpoint left. Chunks already
written are never touched again. If that write fails, the old tail is put back:
its space is allocated already.
"""

import errno
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.well_known import MessageEncoding, Profile
from mcap.writer import MCAP0_MAGIC
from numpy.typing import NDArray

from twinstudio.model.errors import RecordingError

CHUNK = 2 * 2**20
LEVEL = -3
"""Of zstd: as fast as lz4 on joint states (2 GB/s measured) and smaller."""
MAX_CHANNELS = 2**16 - 1


class Container:
    """Writes one MCAP file; not thread-safe. Raises RecordingError.

    library: who writes, for the file's header.
    chunk: bytes after which `full` is true and a checkpoint is due.
    """

    def __init__(
        self, path: Path, *, library: str, chunk: int = CHUNK, overwrite: bool = False
    ) -> None:
        self.path = path
        self.chunk = chunk
        self._fd = _opened(path, overwrite)
        self._open = True
        self._end = 0
        self._tail = b""
        self._span: tuple[int, int] | None = None
        self._before = RecordBuilder()
        self._pending = _Pending()
        self._summary = _Summary()
        self._compress = zstandard.ZstdCompressor(level=LEVEL).compress
        self._before.write(MCAP0_MAGIC)
        Header(Profile.ROS2, library).write(self._before)

    @property
    def size(self) -> int:
        """Bytes of the file on disk, tail included."""
        return self._end + len(self._tail)

    @property
    def full(self) -> bool:
        """Whether enough is pending for a chunk."""
        return bool(self._pending.records.count >= self.chunk)

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last log time in the file on disk [ns], None without messages."""
        return self._span

    @property
    def is_open(self) -> bool:
        """Whether anything can still be written."""
        return self._open

    def schema(self, name: str, encoding: str, data: bytes) -> int:
        """The number of schema `name`, registered if it is new."""
        known = self._summary.schemas
        number = len(known) + 1
        for place, schema in enumerate(known, start=1):
            if schema.name == name:
                return place
        schema = Schema(id=number, data=data, encoding=encoding, name=name)
        known.append(schema)
        schema.write(self._pending.records)
        return number

    def channel(self, topic: str, schema: int, metadata: Mapping[str, str]) -> int:
        """Open a channel. The channel's number."""
        known = self._summary.channels
        if len(known) >= MAX_CHANNELS:
            raise RecordingError(
                f"a file holds at most {MAX_CHANNELS} channels, the layouts change too often",
                where=str(self.path),
            )
        number = len(known) + 1
        channel = Channel(
            id=number,
            topic=topic,
            message_encoding=MessageEncoding.CDR,
            metadata=dict(metadata),
            schema_id=schema,
        )
        known.append(channel)
        channel.write(self._pending.records)
        return number

    def append(self, channel: int, log: NDArray[np.int64], records: bytes | memoryview) -> None:
        """Add n message records of equal length; `log`: their log times, int64[n]."""
        self._pending.append(channel, log, records)

    def attach(self, name: str, media_type: str, data: bytes, *, log_time: int = 0) -> None:
        """Add a file within the file."""
        start = self._before.count
        Attachment(
            create_time=0, log_time=log_time, name=name, media_type=media_type, data=data
        ).write(self._before)
        self._summary.attachments.append(
            AttachmentIndex(
                offset=self._end + start,
                length=self._before.count - start,
                create_time=0,
                log_time=log_time,
                data_size=len(data),
                name=name,
                media_type=media_type,
            )
        )

    def metadata(self, name: str, entries: Mapping[str, str]) -> None:
        """Add a named set of keys and values."""
        start = self._before.count
        Metadata(name=name, metadata=dict(entries)).write(self._before)
        self._summary.metadata.append(
            MetadataIndex(offset=self._end + start, length=self._before.count - start, name=name)
        )

    def checkpoint(self) -> None:
        """Make the file on disk complete with all that was added; at once if nothing was.

        Raises RecordingError if the disk does not take it; the file then ends as
        the previous checkpoint left it and nothing more can be written.
        """
        if not self._open:
            raise RecordingError("the recording is closed", where=str(self.path))
        if self._tail and not self._before.count and not self._pending.records.count:
            return
        body = self._before.end()
        if self._pending.messages or self._pending.records.count:
            body += self._pending.end(self._end + len(body), self._compress, self._summary)
        tail = self._summary.end(self._end + len(body))
        self._replace_tail(body, tail)

    def close(self) -> None:
        """Checkpoint, hand everything to the disk and close; a second call does nothing."""
        if not self._open:
            return
        try:
            self.checkpoint()
            os.fsync(self._fd)
        except OSError as error:
            raise self._failure(error, "") from error
        finally:
            self._shut()

    def _replace_tail(self, body: bytes, tail: bytes) -> None:
        try:
            _write(self._fd, body + tail, self._end)
        except OSError as error:
            damage = self._restore()
            self._shut()
            raise self._failure(error, damage) from error
        self._end += len(body)
        # A tail only ever grows, so nothing of the old one sticks out behind it.
        self._tail = tail
        self._span = self._summary.span

    def _restore(self) -> str:
        """Put the previous tail back; what went wrong doing so, or nothing."""
        try:
            _write(self._fd, self._tail, self._end)
            os.ftruncate(self._fd, self._end + len(self._tail))
        except OSError as error:
            return f", its index could not be put back ({error.strerror}): it opens by scanning"
        return ""

    def _failure(self, error: OSError, damage: str) -> RecordingError:
        kept = self._kept()
        return RecordingError(
            f"{_REASONS.get(error.errno or 0, error.strerror or 'write failed')}:"
            f" recording stopped, kept {kept:.1f} s in {self.path}{damage}",
            hint="free some space, or record to another disk",
        )

    def _kept(self) -> float:
        return (self.span[1] - self.span[0]) / 1e9 if self.span else 0.0

    def _shut(self) -> None:
        if self._open:
            self._open = False
            os.close(self._fd)


_REASONS = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full (quota used up)",
    errno.EFBIG: "disk full (largest allowed file reached)",
    errno.EIO: "the disk reports an error",
}


class _Pending:
    """The chunk being collected and where its messages are."""

    def __init__(self) -> None:
        self.records = RecordBuilder()
        self.messages = 0
        self._index: dict[int, list[NDArray[np.int64]]] = {}
        self._first = self._last = 0

    def append(self, channel: int, log: NDArray[np.int64], records: bytes | memoryview) -> None:
        count = len(log)
        entries = np.empty((count, 2), dtype="<i8")
        entries[:, 0] = log
        entries[:, 1] = self.records.count + np.arange(count) * (len(records) // count)
        self._index.setdefault(channel, []).append(entries)
        self.records.write(records)
        low, high = int(log.min()), int(log.max())
        self._first = min(self._first, low) if self.messages else low
        self._last = max(self._last, high) if self.messages else high
        self.messages += count

    def end(self, start: int, compress: Callable[[bytes], bytes], summary: "_Summary") -> bytes:
        """The chunk that will stand at `start`, with its message indexes; then empty."""
        raw = self.records.end()
        chunk = Chunk(
            compression="zstd",
            data=compress(raw),
            message_end_time=self._last,
            message_start_time=self._first,
            uncompressed_crc=zlib.crc32(raw),
            uncompressed_size=len(raw),
        )
        out = RecordBuilder()
        chunk.write(out)
        length = out.count
        offsets = {}
        for channel, parts in self._index.items():
            offsets[channel] = start + out.count
            entries = np.concatenate(parts).tobytes()
            out.start_record(Opcode.MESSAGE_INDEX)
            out.write2(channel)
            out.write4(len(entries))
            out.write(entries)
            out.finish_record()
        summary.add_chunk(
            ChunkIndex(
                chunk_length=length,
                chunk_start_offset=start,
                compression=chunk.compression,
                compressed_size=len(chunk.data),
                message_end_time=self._last,
                message_index_length=out.count - length,
                message_index_offsets=offsets,
                message_start_time=self._first,
                uncompressed_size=len(raw),
            ),
            {channel: sum(map(len, parts)) for channel, parts in self._index.items()},
        )
        self._index, self.messages, self._first, self._last = {}, 0, 0, 0
        data: bytes = out.end()
        return data


class _Summary:
    """What stands behind the data: an index of all of it."""

    def __init__(self) -> None:
        self.schemas: list[Schema] = []
        self.channels: list[Channel] = []
        self.attachments: list[AttachmentIndex] = []
        self.metadata: list[MetadataIndex] = []
        self.statistics = Statistics(0, 0, {}, 0, 0, 0, 0, 0, 0)
        # Chunk indexes are the part that grows without end: kept as bytes.
        self._chunks = bytearray()

    def add_chunk(self, index: ChunkIndex, counts: dict[int, int]) -> None:
        builder = RecordBuilder()
        index.write(builder)
        self._chunks += builder.end()
        total = self.statistics
        total.chunk_count += 1
        if not counts:
            return
        first = not total.message_count
        total.message_start_time = (
            index.message_start_time
            if first
            else min(total.message_start_time, index.message_start_time)
        )
        total.message_end_time = max(total.message_end_time, index.message_end_time)
        total.message_count += sum(counts.values())
        for channel, count in counts.items():
            previous = total.channel_message_counts.get(channel, 0)
            total.channel_message_counts[channel] = previous + count

    @property
    def span(self) -> tuple[int, int] | None:
        total = self.statistics
        return (total.message_start_time, total.message_end_time) if total.message_count else None

    def end(self, start: int) -> bytes:
        """DataEnd, summary, footer and magic for a data section that ends at `start`."""
        out = RecordBuilder()
        DataEnd(data_section_crc=0).write(out)
        begin = out.count
        groups: list[SummaryOffset] = []
        self._count()
        self._group(out, start, Opcode.SCHEMA, self.schemas, groups)
        self._group(out, start, Opcode.CHANNEL, self.channels, groups)
        self._group(out, start, Opcode.STATISTICS, [self.statistics], groups)
        if self._chunks:
            groups.append(SummaryOffset(Opcode.CHUNK_INDEX, start + out.count, len(self._chunks)))
            out.write(self._chunks)
        self._group(out, start, Opcode.ATTACHMENT_INDEX, self.attachments, groups)
        self._group(out, start, Opcode.METADATA_INDEX, self.metadata, groups)
        offsets = start + out.count
        for group in groups:
            group.write(out)
        data: bytes = out.end()
        # The footer's checksum covers the summary and the footer's own first fields.
        footer = _footer(start + begin, offsets, 0)
        checksum = zlib.crc32(footer[:-4], zlib.crc32(data[begin:]))
        return b"".join((data, _footer(start + begin, offsets, checksum), MCAP0_MAGIC))

    def _count(self) -> None:
        self.statistics.schema_count = len(self.schemas)
        self.statistics.channel_count = len(self.channels)
        self.statistics.attachment_count = len(self.attachments)
        self.statistics.metadata_count = len(self.metadata)

    @staticmethod
    def _group(
        out: RecordBuilder,
        start: int,
        opcode: Opcode,
        records: Sequence[McapRecord],
        groups: list[SummaryOffset],
    ) -> None:
        begin = out.count
        for record in records:
            record.write(out)
        if records:
            groups.append(SummaryOffset(opcode, start + begin, out.count - begin))


def _footer(start: int, offsets: int, checksum: int) -> bytes:
    out = RecordBuilder()
    Footer(start, offsets, checksum).write(out)
    data: bytes = out.end()
    return data


def _opened(path: Path, overwrite: bool) -> int:
    flags = os.O_RDWR | os.O_CREAT | (os.O_TRUNC if overwrite else os.O_EXCL)
    try:
        return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)
    except FileExistsError as error:
        raise RecordingError(
            "exists already", where=str(path), hint="choose another name or delete it"
        ) from error
    except OSError as error:
        raise RecordingError(f"cannot be written: {error.strerror}", where=str(path)) from error


def _write(fd: int, data: bytes, position: int) -> None:
    """All of `data` at `position`; a disk that is filling up takes a part first."""
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, position)
        view, position = view[done:], position + done
