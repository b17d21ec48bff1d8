"""The wire format, version 1. ``docs/protocol.md`` says the same in prose.

Telemetry, events and images go out on a PUB socket; requests and replies go
over a ROUTER socket. A message is a msgpack header, followed for telemetry by
raw little-endian arrays. Nothing here touches a socket.
"""

from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError, ProtocolError
from twinstudio.model.signals import MAX_WIDTH, Layout

VERSION = 1
MAX_SAMPLES = 100_000
MAX_FRAME = 64 * 2**20
MAX_HEADER = 64 * 2**10
MAX_TEXT = 4096

TELEMETRY = b"telemetry"
EVENT = b"event"
IMAGE = b"image"

Role = Literal["cell", "twin"]
Level = Literal["info", "warning", "alarm"]


class TelemetryHeader(msgspec.Struct, frozen=True, kw_only=True, array_like=False):
    """Announces n samples; may be lost, losses show in `first`.

    instance: the publisher's identity, new at every start.
    layout: revision of the layout in use; hello tells its signals.
    """

    v: int
    instance: str
    layout: int
    first: int
    n: int
    width: int


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened once; never dropped, `seq` counts from 0.

    stamp: ns on the publisher's clock. code: stable, for programs; text: for people.
    """

    v: int
    instance: str
    seq: int
    stamp: int
    level: Level
    code: str
    text: str
    data: dict[str, Any] = {}


class ImageHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A camera image; latest only, may be lost. Payload uint8[height, width, 3]."""

    v: int
    instance: str
    seq: int
    stamp: int
    camera: str
    width: int
    height: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks: `op` and its arguments; `id` comes back in the reply.

    Every endpoint answers ``hello``, ``ping``, ``events`` (since) and whatever
    its description lists under `operations`.
    """

    v: int
    id: int
    op: str
    args: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to request `id`: a `result`, or an `error` in plain words."""

    v: int
    id: int
    ok: bool
    result: Any = None
    error: str = ""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A request an endpoint understands beyond the three every one does.

    args: argument name -> what it is, with its unit.
    """

    name: str
    help: str
    args: dict[str, str] = {}


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to hello: who is there, what it publishes, what it can do.

    telemetry: TCP port of the PUB socket, on the host of the control socket.
    rate: nominal samples per second, 0 if irregular.
    revision: number of `layout`; it goes up when the layout changes.
    """

    protocol: int
    instance: str
    role: Role
    name: str
    software: str
    telemetry: int
    revision: int
    layout: Layout
    rate: float
    scene: str = ""
    operations: tuple[Operation, ...] = ()


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ping: when it came in and when it left, ns, publisher's clock."""

    received: int
    sent: int


_ENCODER = msgspec.msgpack.Encoder()
M = TypeVar("M", bound=msgspec.Struct)


def encode(message: msgspec.Struct) -> bytes:
    """A header, request or reply as msgpack."""
    return _ENCODER.encode(message)


def decode(data: bytes | memoryview, kind: type[M]) -> M:
    """Msgpack `data` as a `kind` of this protocol version; raises ProtocolError."""
    if len(data) > MAX_FRAME:
        raise ProtocolError(f"a message of {len(data)} bytes exceeds the limit of {MAX_FRAME}")
    try:
        message = msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, LayoutError, RecursionError) as error:
        raise ProtocolError(
            _version_problem(data) or f"not a valid {kind.__name__}: {error}"
        ) from error
    version = getattr(message, "v", VERSION)
    if version != VERSION:
        raise ProtocolError(_wrong_version(version))
    return message


def encode_telemetry(block: Block, *, instance: str, layout: int) -> list[bytes | memoryview]:
    """`block` as the frames of one telemetry message."""
    if len(block) > MAX_SAMPLES:
        raise ProtocolError(f"a block of {len(block)} samples; at most {MAX_SAMPLES} a message")
    header = TelemetryHeader(
        v=VERSION,
        instance=instance,
        layout=layout,
        first=block.first,
        n=len(block),
        width=block.layout.width,
    )
    stamps = np.ascontiguousarray(block.stamps, dtype="<i8")
    values = np.ascontiguousarray(block.values, dtype="<f8")
    return [TELEMETRY, encode(header), stamps.tobytes(), values.tobytes()]


def telemetry_header(frames: list[bytes]) -> TelemetryHeader:
    """The checked header of a telemetry message; raises ProtocolError.

    After this the payload frames are known to have the sizes the header says.
    """
    if len(frames) != 4:
        raise ProtocolError(f"telemetry has 4 frames, got {len(frames)}")
    if len(frames[1]) > MAX_HEADER:
        raise ProtocolError(f"a header of {len(frames[1])} bytes exceeds {MAX_HEADER}")
    header = decode(frames[1], TelemetryHeader)
    if not 1 <= header.n <= MAX_SAMPLES or not 1 <= header.width <= MAX_WIDTH:
        raise ProtocolError(f"telemetry of {header.n} samples x {header.width} columns")
    if header.first < 0 or len(header.instance) > 64:
        raise ProtocolError("telemetry header out of bounds")
    wanted = (8 * header.n, 8 * header.n * header.width)
    if (len(frames[2]), len(frames[3])) != wanted:
        raise ProtocolError(
            f"payload has {len(frames[2])} and {len(frames[3])} bytes,"
            f" the header promises {wanted[0]} and {wanted[1]}"
        )
    return header


def decode_telemetry(
    header: TelemetryHeader, frames: list[bytes], layout: Layout, *, received: int
) -> Block:
    """The block of a telemetry message whose header was checked; zero-copy views."""
    if header.width != layout.width:
        raise ProtocolError(f"{header.width} columns, but the layout in force has {layout.width}")
    stamps = np.frombuffer(frames[2], dtype="<i8").astype(np.int64, copy=False)
    values = np.frombuffer(frames[3], dtype="<f8").astype(np.float64, copy=False)
    return Block(layout, stamps, values.reshape(header.n, header.width), header.first, received)


def _wrong_version(version: object) -> str:
    return f"protocol version {version}; this end speaks version {VERSION}"


def _version_problem(data: bytes | memoryview) -> str:
    """A complaint about another version, when that is why a message did not parse."""
    try:
        raw = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    version = raw.get("v") if isinstance(raw, dict) else None
    return _wrong_version(version) if version is not None and version != VERSION else ""
