"""Goes through an MCAP file from its start, with or without its index.

Messages are handed over many at once: where consecutive records have the same
channel and length they are one array uint8[n, size].
"""

import io
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Chunk, Header, Metadata, Schema
from mcap.stream_reader import CRCValidationError, get_chunk_data_stream
from mcap.writer import MCAP0_MAGIC

from twinstudio.flow.record.ros import PREFIX, Bytes
from twinstudio.model.errors import RecordingError

MAX_RECORD = 2**32
_KEY = 11  # opcode, length and channel of a message record
_DAMAGE = (
    McapError,
    CRCValidationError,
    struct.error,
    UnicodeDecodeError,
    ValueError,
    RuntimeError,  # lz4
    zstandard.ZstdError,
)

Visit = Callable[[Channel, "Schema | None", Bytes], None]


@dataclass(slots=True)
class Scan:
    """What a file holds beside its messages, and what is wrong with it."""

    library: str = ""
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: list[Metadata] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def scan(path: Path, visit: Visit) -> Scan:
    """Hand every message of `path` to `visit`, in the order of the file.

    A damaged or missing part costs the messages in it and a line in `problems`.
    Raises RecordingError for a file that cannot be read or is no MCAP.
    """
    found = Scan()
    try:
        with path.open("rb") as stream:
            if stream.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
                raise RecordingError(
                    "is no MCAP file",
                    where=str(path),
                    hint="import other logs with twinstudio import",
                )
            _check_end(stream, found)
            for place, opcode, data in _records(stream, found):
                _take(place, opcode, data, found, visit)
    except OSError as error:
        raise RecordingError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return found


def _check_end(stream: BinaryIO, found: Scan) -> None:
    stream.seek(-len(MCAP0_MAGIC), io.SEEK_END)
    start = stream.tell()
    if start < len(MCAP0_MAGIC) or stream.read() != MCAP0_MAGIC:
        found.problems.append(
            "no footer: its writer stopped in the middle; read from the start as far as it goes"
        )
    stream.seek(len(MCAP0_MAGIC))


def _records(stream: BinaryIO, found: Scan) -> Iterator[tuple[int, int, bytes]]:
    """Place, opcode and content of the records up to the end of the data."""
    while True:
        place = stream.tell()
        head = stream.read(9)
        if len(head) < 9:
            break
        opcode, length = struct.unpack("<BQ", head)
        if opcode in (Opcode.DATA_END, Opcode.FOOTER):
            return
        if length > MAX_RECORD:
            found.problems.append(f"byte {place}: no valid record; the rest is not read")
            return
        if opcode == Opcode.MESSAGE_INDEX:
            stream.seek(length, io.SEEK_CUR)
            continue
        data = stream.read(length)
        if len(data) < length:
            found.problems.append(f"byte {place}: the file ends within a record; it is not read")
            return
        yield place, opcode, head + data if opcode == Opcode.MESSAGE else data
    if not found.problems:
        found.problems.append("the file ends without an end of its data")


def _take(place: int, opcode: int, data: bytes, found: Scan, visit: Visit) -> None:
    try:
        if opcode == Opcode.CHUNK:
            _chunk(place, data, found, visit)
        elif opcode == Opcode.MESSAGE:
            _messages(data, found, visit)
        else:
            _describe(opcode, data, found)
    except _DAMAGE as error:
        what = "a chunk" if opcode == Opcode.CHUNK else "a record"
        found.problems.append(f"byte {place}: {what} is damaged and left out ({error})")


def _describe(opcode: int, data: bytes, found: Scan) -> None:
    stream = ReadDataStream(io.BytesIO(data))
    if opcode == Opcode.HEADER:
        found.library = Header.read(stream).library
    elif opcode == Opcode.SCHEMA:
        schema = Schema.read(stream)
        found.schemas[schema.id] = schema
    elif opcode == Opcode.CHANNEL:
        channel = Channel.read(stream)
        found.channels[channel.id] = channel
    elif opcode == Opcode.METADATA:
        found.metadata.append(Metadata.read(stream))
    elif opcode == Opcode.ATTACHMENT:
        found.attachments.append(Attachment.read(stream))


def _chunk(place: int, data: bytes, found: Scan, visit: Visit) -> None:
    chunk = Chunk.read(ReadDataStream(io.BytesIO(data)))
    if chunk.uncompressed_size > MAX_RECORD:
        raise ValueError(f"{chunk.uncompressed_size} bytes unpacked")
    stream, length = get_chunk_data_stream(chunk, validate_crc=True)
    if length != chunk.uncompressed_size:
        found.problems.append(
            f"byte {place}: a chunk has {length} bytes, {chunk.uncompressed_size} were announced"
        )
    _messages(stream.read(length), found, visit)


def _messages(data: bytes, found: Scan, visit: Visit) -> None:
    """The records of an unpacked chunk; consecutive messages of one shape at once."""
    place = 0
    while place + 9 <= len(data):
        opcode, length = struct.unpack_from("<BQ", data, place)
        end = place + 9 + length
        if end > len(data):
            raise ValueError("a record reaches past the end of its chunk")
        if opcode != Opcode.MESSAGE:
            _describe(opcode, data[place + 9 : end], found)
            place = end
            continue
        if length < PREFIX - 9:
            raise ValueError(f"a message record of {length} bytes")
        rows = _run(data, place, 9 + length)
        place += rows.size
        number = int.from_bytes(data[end - length : end - length + 2], "little")
        channel = found.channels.get(number)
        if channel is None:
            raise ValueError(f"a message of channel {number}, which is not described")
        visit(channel, found.schemas.get(channel.schema_id), rows)


def _run(data: bytes, place: int, stride: int) -> Bytes:
    """All records from `place` on that begin like the first one, uint8[n, stride].

    Looks ahead in doubling steps, so that short runs stay cheap.
    """
    most = (len(data) - place) // stride
    rows = np.frombuffer(data, dtype=np.uint8, count=most * stride, offset=place)
    rows = rows.reshape(most, stride)
    key = data[place : place + _KEY]
    if most == 1 or data[place + stride : place + stride + _KEY] != key:
        return rows[:1]
    wanted, count, step = np.frombuffer(key, dtype=np.uint8), 2, 16
    while count < most:
        other = (rows[count : count + step, :_KEY] != wanted).any(axis=1)
        if other.any():
            return rows[: count + int(other.argmax())]
        count, step = min(count + step, most), step * 2
    return rows
