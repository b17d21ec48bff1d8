"""The publishing side: an endpoint that streams telemetry and answers requests."""

import logging
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import msgspec
import numpy as np
import zmq
from numpy.typing import NDArray

from twinstudio import __version__
from twinstudio.flow import protocol
from twinstudio.flow.protocol import (
    Description,
    Event,
    ImageHeader,
    Level,
    Operation,
    Pong,
    Reply,
    Request,
)
from twinstudio.flow.security import ZAP, Security, answer_zap
from twinstudio.model.block import Block, Stamps, Values
from twinstudio.model.errors import LinkError, ProtocolError, TwinstudioError
from twinstudio.model.signals import MAX_WIDTH, Layout

KEPT_EVENTS = 10_000
EVENTS_PER_REPLY = 256
SEND_QUEUE = 20_000
_LINGER = 100  # ms: the reply to a stop request still gets out
_OURS = ("hello", "ping", "events")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handler:
    """What an endpoint does for one operation beyond hello, ping and events.

    call: gets the arguments, returns what msgpack can hold. It runs on the
    endpoint's own thread, so be quick; a TwinstudioError becomes an error reply.
    """

    operation: Operation
    call: Callable[[dict[str, Any]], Any]


class _RequestId(msgspec.Struct):
    id: int


class Endpoint:
    """One source on the wire: a PUB socket and a ROUTER socket that one thread answers.

    publish, event and relayout may be called from any thread and never block: what
    a slow subscriber cannot take is lost to it, and it sees that by the sequence
    numbers. Raises LinkError if it may not or cannot listen on `host`.

    rate: nominal samples per second, 0 if irregular.
    clock: the source's monotonic clock [ns]; ping answers and events are stamped by it.
    """

    def __init__(  # noqa: PLR0913 - a description has that many fields
        self,
        *,
        role: protocol.Role,
        name: str,
        layout: Layout,
        rate: float,
        scene: str = "",
        host: str = "127.0.0.1",
        control_port: int = 0,
        telemetry_port: int = 0,
        security: Security | None = None,
        operations: Mapping[str, Handler] | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        _used(layout)
        if not (math.isfinite(rate) and rate >= 0):
            raise LinkError(f"a rate of {rate} Hz", hint="give samples per second, 0 if irregular")
        self.instance = secrets.token_hex(8)
        self._handlers = _checked(operations or {})
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0
        self._events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._event_seq = 0
        self._images: dict[str, int] = {}
        self._garbage = 0
        self._closed = False
        self._open(host, control_port, telemetry_port, security or Security())
        self._control = _address(self._router)
        self._description = Description(
            protocol=protocol.VERSION,
            instance=self.instance,
            role=role,
            name=name,
            software=f"Twinstudio {__version__}",
            telemetry=_port(self._pub),
            revision=1,
            layout=layout,
            rate=rate,
            scene=scene,
            operations=tuple(handler.operation for handler in self._handlers.values()),
        )
        self._thread = threading.Thread(target=self._run, name=f"endpoint {name}", daemon=True)
        self._thread.start()

    def _open(self, host: str, control: int, telemetry: int, security: Security) -> None:
        security.check_bind(host)
        allowed = security.allowed()
        self._allowed = allowed or frozenset()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._zap = self._context.socket(zmq.REP) if allowed is not None else None
        self._router = self._context.socket(zmq.ROUTER)
        self._pub = self._context.socket(zmq.PUB)
        self._wake = self._context.socket(zmq.PAIR)
        self._stop = self._context.socket(zmq.PAIR)
        try:
            if self._zap is not None:
                self._zap.bind(ZAP)
            self._wake.bind("inproc://stop")
            self._stop.connect("inproc://stop")
            self._pub.sndhwm = SEND_QUEUE
            for socket, port in ((self._router, control), (self._pub, telemetry)):
                socket.linger = _LINGER
                socket.maxmsgsize = protocol.MAX_FRAME
                socket.ipv6 = ":" in host
                security.serve(socket)
                _bind(socket, host, port)
        except (LinkError, zmq.ZMQError):
            self._context.destroy(linger=0)
            raise

    @property
    def control(self) -> str:
        """Where requests go, ``tcp://host:port``."""
        return self._control

    @property
    def description(self) -> Description:
        """What hello answers."""
        return self._description

    @property
    def garbage(self) -> int:
        """Requests that were none, so far."""
        return self._garbage

    def publish(self, stamps: Stamps, values: Values) -> int:
        """Send samples: stamps int64[n] ns, values float64[n, width]; never blocks.

        Numbers the samples and returns the number of the first. Raises LayoutError
        for shapes that do not fit, LinkError after close.
        """
        with self._lock:
            self._must_be_open()
            first = self._next
            layout = self._description.layout
            # Views, so that the caller's own arrays stay writeable.
            block = Block(layout, np.asarray(stamps).view(), np.asarray(values).view(), first)
            step = min(protocol.MAX_SAMPLES, protocol.MAX_FRAME // (8 * layout.width))
            for start in range(0, len(block), step):
                part = block.part(slice(start, min(start + step, len(block))))
                self._send(
                    protocol.encode_telemetry(
                        part, instance=self.instance, layout=self._description.revision
                    )
                )
            self._next += len(block)
        return first

    def event(self, level: Level, code: str, text: str, **data: Any) -> Event:
        """Tell what happened, now; kept for those who missed it.

        Raises ProtocolError if it is too long, or `data` is nothing msgpack can hold.
        """
        if len(text) > protocol.MAX_TEXT:
            raise ProtocolError(
                f"an event's text of {len(text)} characters; at most {protocol.MAX_TEXT}"
            )
        with self._lock:
            self._must_be_open()
            event = Event(
                v=protocol.VERSION,
                instance=self.instance,
                seq=self._event_seq,
                stamp=self._clock(),
                level=level,
                code=code,
                text=text,
                data=data,
            )
            encoded = _encoded(event, protocol.MAX_HEADER)
            self._events.append(event)
            self._event_seq += 1
            self._send([protocol.EVENT, encoded])
        return event

    def image(self, camera: str, stamp: int, pixels: NDArray[np.uint8]) -> None:
        """Send a camera image, uint8[height, width, 3], taken at `stamp` ns; may be lost.

        Raises ProtocolError for another shape, or one that is too big.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            raise ProtocolError(f"an image is uint8[h, w, 3], not {pixels.dtype}{pixels.shape}")
        if pixels.nbytes > protocol.MAX_FRAME:
            raise ProtocolError(f"an image of {pixels.nbytes} bytes; limit {protocol.MAX_FRAME}")
        with self._lock:
            self._must_be_open()
            seq = self._images.get(camera, 0)
            header = ImageHeader(
                v=protocol.VERSION,
                instance=self.instance,
                seq=seq,
                stamp=stamp,
                camera=camera,
                width=pixels.shape[1],
                height=pixels.shape[0],
            )
            self._send([protocol.IMAGE, _encoded(header, protocol.MAX_HEADER), pixels.tobytes()])
            self._images[camera] = seq + 1

    def relayout(self, layout: Layout) -> None:
        """Publish columns of another layout from now on; numbering goes on."""
        with self._lock:
            self._description = msgspec.structs.replace(
                self._description, layout=_used(layout), revision=self._description.revision + 1
            )

    def close(self) -> None:
        """Stop answering and let go of the ports; may be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._stop.send(b"")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _must_be_open(self) -> None:
        if self._closed:
            raise LinkError(f"the endpoint '{self._description.name}' is closed")

    def _send(self, frames: list[bytes | memoryview]) -> None:
        # PUB drops for a subscriber whose queue is full, so this cannot block.
        self._pub.send_multipart(frames, flags=zmq.DONTWAIT)

    def _run(self) -> None:
        poller = zmq.Poller()
        sockets = [self._router, self._wake, *([self._zap] if self._zap else [])]
        for socket in sockets:
            poller.register(socket, zmq.POLLIN)
        try:
            while True:
                ready = dict(poller.poll())
                if self._wake in ready:
                    break
                if self._zap is not None and self._zap in ready:
                    answer_zap(self._zap, self._allowed)
                if self._router in ready:
                    self._serve_one()
        finally:
            self._router.close()
            self._pub.close()
            self._wake.close()
            self._stop.close()
            if self._zap is not None:
                self._zap.close()
            self._context.term()

    def _serve_one(self) -> None:
        frames = self._router.recv_multipart()
        received = self._clock()
        # DEALER sends [body], REQ sends [empty, body]; the reply goes the same way.
        if len(frames) not in (2, 3) or (len(frames) == 3 and frames[1]):
            self._garbage += 1
            return
        reply = self._reply(frames[-1], received)
        if reply is not None:
            self._router.send_multipart([*frames[:-1], reply], flags=zmq.DONTWAIT)

    def _reply(self, data: bytes, received: int) -> bytes | None:
        """The encoded reply to a request, None if it is not even clear to which."""
        try:
            request = protocol.decode(data, Request)
        except ProtocolError as error:
            self._garbage += 1
            try:
                number = msgspec.msgpack.decode(data, type=_RequestId).id
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None
            return _refusal(number, str(error))
        if request.op == "ping":
            pong = Pong(received=received, sent=self._clock())
            return _success(request.id, pong)
        try:
            return _success(request.id, self._result(request))
        except TwinstudioError as error:
            return _refusal(request.id, str(error))
        except Exception as error:  # noqa: BLE001 - a bug in one handler must not end the endpoint
            return self._failed(request, error)

    def _result(self, request: Request) -> Any:
        if request.op == "hello":
            return self._description
        if request.op == "events":
            return self._events_since(request.args.get("since"))
        handler = self._handlers.get(request.op)
        if handler is None:
            known = ", ".join((*_OURS, *self._handlers))
            raise LinkError(f"unknown operation '{request.op[:100]}'", hint=f"known: {known}")
        return handler.call(request.args)

    def _events_since(self, since: object) -> list[Event]:
        if not isinstance(since, int) or isinstance(since, bool) or since < 0:
            raise LinkError("events needs 'since', the first number wanted, from 0 up")
        with self._lock:
            oldest = self._events[0].seq if self._events else 0
            start = max(0, since - oldest)
            return list(islice(self._events, start, start + EVENTS_PER_REPLY))

    def _failed(self, request: Request, error: Exception) -> bytes:
        text = f"internal error: {type(error).__name__}: {error}"[: protocol.MAX_TEXT - 100]
        _LOG.error("operation '%s' failed", request.op, exc_info=error)
        with suppress(LinkError):  # closed meanwhile
            self.event("alarm", "internal-error", f"operation '{request.op[:40]}': {text}")
        return _refusal(request.id, text)


def _checked(operations: Mapping[str, Handler]) -> dict[str, Handler]:
    for name, handler in operations.items():
        if name in _OURS or name != handler.operation.name:
            raise LinkError(f"operation '{name}' is reserved, or is called otherwise itself")
    return dict(operations)


def _used(layout: Layout) -> Layout:
    if not 1 <= layout.width <= MAX_WIDTH:
        raise LinkError(f"an endpoint publishes 1 to {MAX_WIDTH} columns, not {layout.width}")
    return layout


def _bind(socket: "zmq.Socket[bytes]", host: str, port: int) -> None:
    address = f"tcp://{host}:{port or '*'}"
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        raise LinkError(
            f"cannot listen on {address}: {error.strerror}", hint="choose another port or host"
        ) from error


def _port(socket: "zmq.Socket[bytes]") -> int:
    return int(_address(socket).rsplit(":", 1)[1])


def _address(socket: "zmq.Socket[bytes]") -> str:
    return socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")


def _encoded(message: msgspec.Struct, limit: int) -> bytes:
    try:
        data = protocol.encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"msgpack cannot hold it: {error}") from error
    if len(data) > limit:
        raise ProtocolError(f"a message of {len(data)} bytes; at most {limit}")
    return data


def _success(number: int, result: Any) -> bytes:
    reply = Reply(v=protocol.VERSION, id=number, ok=True, result=result)
    return _encoded(reply, protocol.MAX_FRAME)


def _refusal(number: int, error: str) -> bytes:
    text = error if len(error) <= protocol.MAX_TEXT else error[: protocol.MAX_TEXT - 2] + " …"
    return protocol.encode(Reply(v=protocol.VERSION, id=number, ok=False, error=text))
