"""Questions over a DEALER socket and what becomes of them."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
import zmq

from twinstudio.flow import protocol
from twinstudio.flow.protocol import Reply, Request
from twinstudio.model.errors import LinkError, ProtocolError

_SECOND = 1_000_000_000
_EXPIRY = 30 * _SECOND

Done = Callable[[Reply, int, int], None]
"""Called with the reply, when the request left and when the reply came [ns]."""


class Versioned(msgspec.Struct):
    """What every message of every version of the protocol has."""

    v: int


def spoken(data: bytes) -> int | None:
    """The protocol version of a message, None if it does not say."""
    try:
        return msgspec.msgpack.decode(data, type=Versioned).v
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(slots=True, eq=False)
class _Call:
    op: str
    args: dict[str, Any]
    deadline: int
    answer: "Future[Reply]" = field(default_factory=Future)
    sent: bool = False


class Asker:
    """Sends requests and matches replies; all but `call` on the socket's thread.

    The socket is of type DEALER with IMMEDIATE set, so that nothing is queued for
    an endpoint that is not there: a command must not reach a robot that starts
    up a minute later.
    """

    def __init__(self, socket: "zmq.Socket[bytes]", address: str) -> None:
        self._socket = socket
        self._address = address
        self._ids = count(1)
        self._waiting: dict[int, tuple[Done, int]] = {}
        self._calls: deque[_Call] = deque()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def eager(self) -> bool:
        """Whether calls wait for the endpoint to be there."""
        return bool(self._calls)

    def call(self, op: str, args: dict[str, Any], timeout: float, wake: Callable[[], None]) -> Any:
        """Ask from any other thread and wait; raises LinkError."""
        call = _Call(op, args, time.monotonic_ns() + round(timeout * _SECOND))
        _must_encode(op, args)
        with self._lock:
            if self._closed:
                raise LinkError(f"the link to {self._address} is closed")
            self._calls.append(call)
        wake()
        try:
            reply = call.answer.result(timeout)
        except FutureTimeoutError:
            raise self._late(call, timeout) from None
        if not reply.ok:
            raise LinkError(reply.error or "refused without a reason", where=self._address)
        return reply.result

    def ask(self, op: str, args: dict[str, Any], done: Done) -> bool:
        """Send one request; False if the endpoint is not there."""
        number = next(self._ids)
        request = protocol.encode(Request(v=protocol.VERSION, id=number, op=op, args=args))
        sent = time.monotonic_ns()
        try:
            self._socket.send(request, flags=zmq.DONTWAIT)
        except zmq.Again:
            return False
        self._waiting[number] = (done, sent)
        return True

    def flush(self, now: int) -> None:
        """Send what `call` left, and forget what nobody waits for any more."""
        for _ in range(len(self._calls)):
            call = self._calls.popleft()
            if now > call.deadline:
                continue
            call.sent = self.ask(call.op, call.args, _deliver_to(call))
            if not call.sent:
                self._calls.append(call)
        if len(self._waiting) > 100:
            for number, (_, sent) in list(self._waiting.items()):
                if now - sent > _EXPIRY:
                    del self._waiting[number]

    def receive(self) -> bool:
        """Take in one reply if there is one; False if not.

        Raises UnreadableError for a message that is none.
        """
        try:
            frames = self._socket.recv_multipart(flags=zmq.DONTWAIT)
        except zmq.Again:
            return False
        received = time.monotonic_ns()
        try:
            reply = protocol.decode(frames[-1], Reply)
        except ProtocolError as error:
            raise UnreadableError(str(error), spoken(frames[-1])) from error
        done, sent = self._waiting.pop(reply.id, (None, 0))
        if done is not None:
            done(reply, sent, received)
        return True

    def close(self) -> None:
        """Tell everyone who still waits that nothing will come."""
        with self._lock:
            self._closed = True
            calls = list(self._calls)
        closed = Reply(v=protocol.VERSION, id=0, ok=False, error="the link was closed")
        for call in calls:
            _resolve(call, closed)
        for done, sent in list(self._waiting.values()):
            done(closed, sent, 0)

    def _late(self, call: _Call, timeout: float) -> LinkError:
        if call.sent:
            return LinkError(
                f"no answer to '{call.op}' within {timeout:g} s",
                where=self._address,
                hint="it may still be carried out; is the endpoint busy?",
            )
        return LinkError(
            f"nobody answers, '{call.op}' was not sent", where=self._address, hint="is it running?"
        )


class UnreadableError(ProtocolError):
    """A reply that is none; `version` is the protocol version it names, if any."""

    def __init__(self, what: str, version: int | None) -> None:
        super().__init__(what)
        self.version = version


def _deliver_to(call: _Call) -> Done:
    def done(reply: Reply, sent: int, received: int) -> None:  # noqa: ARG001
        _resolve(call, reply)

    return done


def _resolve(call: _Call, reply: Reply) -> None:
    with suppress(Exception):
        call.answer.set_result(reply)


def _must_encode(op: str, args: dict[str, Any]) -> None:
    try:
        data = protocol.encode(Request(v=protocol.VERSION, id=0, op=op, args=args))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LinkError(f"arguments of '{op}' cannot be sent: {error}") from error
    if len(data) > protocol.MAX_FRAME:
        raise LinkError(f"arguments of '{op}' are {len(data)} bytes; limit {protocol.MAX_FRAME}")
