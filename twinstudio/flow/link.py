"""The subscribing side: one connection to an endpoint that never gives up."""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

import msgspec
import zmq

from twinstudio.flow import protocol
from twinstudio.flow.answers import check_event, other_version, read_description
from twinstudio.flow.asking import Asker, UnreadableError, spoken
from twinstudio.flow.believable import astray
from twinstudio.flow.clock import ClockEstimator, ClockModel
from twinstudio.flow.intake import Intake
from twinstudio.flow.lifeline import Lifeline
from twinstudio.flow.meter import Meter
from twinstudio.flow.ordering import EventOrder
from twinstudio.flow.protocol import Description, Event, Pong, Reply
from twinstudio.flow.security import Security, parse_address
from twinstudio.model.block import Block
from twinstudio.model.errors import LinkError, ProtocolError, TwinstudioError
from twinstudio.model.health import Health

RECEIVE_QUEUE = 20_000
_SECOND = 1_000_000_000
_MS = 1_000_000
_BURST = 10  # pings right after connecting
_BATCH = 500  # messages taken in before replies and timers get their turn
_LOG = logging.getLogger(__name__)

Sink = Callable[[Block], None]


class Link:
    """A connection to the endpoint whose control socket is ``tcp://host:port``.

    One thread owns the sockets and calls, in order and without copies, each sink
    with every block, on_event with every event exactly once, and on_description
    with each new description before the first block that follows it. They must
    be quick. Whatever the endpoint does is counted and shown in `health`.
    Raises LinkError for an address or keys that cannot be used.
    """

    def __init__(
        self,
        control: str,
        *,
        security: Security | None = None,
        sinks: Sequence[Sink] = (),
        on_event: Callable[[Event], None] | None = None,
        on_description: Callable[[Description], None] | None = None,
    ) -> None:
        self._host, _ = parse_address(control)
        self._control = control
        self._security = security or Security()
        self._sinks = tuple(sinks)
        self._on_event = on_event
        self._on_description = on_description
        self._meter = Meter(control, time.monotonic_ns())
        self._description: Description | None = None
        self._described = threading.Event()
        self._intake = Intake(self._meter, adopted=self._adopted, deliver=self._deliver)
        self._clock = ClockEstimator()
        self._order = EventOrder()
        self._question: tuple[EventOrder, int] | None = None
        self._due = {"hello": 0, "ping": 0, "events": 0}
        self._burst = _BURST
        self._lock = threading.Lock()
        self._stopping = False
        self._telemetry = ""
        self._open()
        self._thread = threading.Thread(target=self._run, name=f"link {control}", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sub = self._context.socket(zmq.SUB)
        self._dealer = self._context.socket(zmq.DEALER)
        self._wake = self._context.socket(zmq.PAIR)
        self._nudge = self._context.socket(zmq.PAIR)
        try:
            self._wake.bind("inproc://wake")
            self._nudge.connect("inproc://wake")
            for socket in (self._sub, self._dealer):
                socket.linger = 0
                socket.maxmsgsize = protocol.MAX_FRAME
                socket.ipv6 = ":" in self._host
                socket.reconnect_ivl = 50
                socket.reconnect_ivl_max = 1000
                # A pulled cable closes no connection: ask every second.
                socket.heartbeat_ivl = 1000
                socket.heartbeat_timeout = 3000
                self._security.join(socket)
            self._sub.rcvhwm = RECEIVE_QUEUE
            self._sub.subscribe(b"")
            self._dealer.immediate = True
            self._dealer.connect(self._control)
        except (LinkError, zmq.ZMQError) as error:
            self._context.destroy(linger=0)
            if isinstance(error, LinkError):
                raise
            raise LinkError(f"cannot connect: {error.strerror}", where=self._control) from error
        self._asker = Asker(self._dealer, self._control)
        self._lifelines = [(each, Lifeline(each)) for each in (self._sub, self._dealer)]

    @property
    def control(self) -> str:
        """Where the endpoint answers."""
        return self._control

    @property
    def description(self) -> Description | None:
        """Who is at the other end, None until it has told."""
        return self._description

    @property
    def clock(self) -> ClockModel | None:
        """How the source's clock runs against ``time.monotonic_ns``, None until known."""
        return self._clock.model()

    @property
    def clock_steps(self) -> int:
        """How often the source's clock was set while this instance of it ran."""
        return self._clock.steps

    def health(self) -> Health:
        """State, figures and counts now; cheap."""
        return self._meter.health(self.clock, time.monotonic_ns())

    def add_sink(self, sink: Sink) -> None:
        """Call `sink` with every block from now on."""
        with self._lock:
            self._sinks = (*self._sinks, sink)

    def remove_sink(self, sink: Sink) -> None:
        """Do not call `sink` any more, apart from a call that is under way."""
        with self._lock:
            self._sinks = tuple(each for each in self._sinks if each != sink)

    def wait(self, timeout: float = 5.0) -> Description:
        """The description, as soon as there is one; raises LinkError after `timeout` s."""
        if not self._described.wait(timeout) or self._description is None:
            raise LinkError(self.health().text)
        return self._description

    def request(self, op: str, timeout: float = 2.0, **args: Any) -> Any:
        """Ask the endpoint for `op` and wait for the result, from any thread but ours.

        Raises LinkError if it refuses, does not answer within `timeout` s, or is
        not there; then nothing was sent and nothing will be.
        """
        if threading.current_thread() is self._thread:
            raise LinkError("a sink cannot ask and wait", hint="ask from another thread")
        return self._asker.call(op, args, timeout, self._rouse)

    def close(self) -> None:
        """Disconnect; may be called again, from any thread."""
        with self._lock:
            self._stopping = True
        self._rouse()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rouse(self) -> None:
        with self._lock:
            if not self._nudge.closed:
                # A full queue of nudges wakes just as well.
                with suppress(zmq.Again):
                    self._nudge.send(b"", flags=zmq.DONTWAIT)

    # Everything below runs on the link's own thread.

    def _run(self) -> None:
        poller = zmq.Poller()
        for socket in (self._sub, self._dealer, self._wake):
            poller.register(socket, zmq.POLLIN)
        try:
            while not self._stopping:
                ready = dict(poller.poll(self._pause()))
                if self._wake in ready:
                    self._wake.recv()
                if self._dealer in ready:
                    self._take_replies()
                if self._sub in ready:
                    self._take_messages()
                self._tick(time.monotonic_ns())
        except Exception as error:  # noqa: BLE001 - logged, and shown in health
            self._meter.fail(f"internal error, connect again: {type(error).__name__}: {error}")
            _LOG.exception("the link to %s broke", self._control)
        finally:
            self._shut()

    def _shut(self) -> None:
        self._stopping = True
        self._meter.close()
        self._asker.close()
        for _, lifeline in self._lifelines:
            lifeline.close()
        with self._lock:
            for socket in (self._sub, self._dealer, self._wake, self._nudge):
                socket.close(linger=0)
        self._context.term()

    def _pause(self) -> int:
        """How long to sleep at most [ms]."""
        if self._asker.eager:
            return 5
        wait = min(self._due.values()) - time.monotonic_ns()
        return min(100, max(0, math.ceil(wait / _MS)))

    def _tick(self, now: int) -> None:
        """Ask what is due."""
        self._asker.flush(now)
        self._dial_again(now)
        if now >= self._due["hello"]:
            self._asker.ask("hello", {}, self._on_hello)
            known = self._description is not None and not self._intake.asking
            self._due["hello"] = now + (1000 if known else 100) * _MS
        if now >= self._due["ping"]:
            if self._description is not None:
                self._asker.ask("ping", {}, self._on_pong)
                self._burst = max(0, self._burst - 1)
            self._due["ping"] = now + (15 if self._burst else 250) * _MS
        if now >= self._due["events"]:
            if self._description is not None:
                self._ask_events()
            self._due["events"] = now + _SECOND

    def _dial_again(self, now: int) -> None:
        for socket, lifeline in self._lifelines:
            if lifeline.lost(now):
                self._meter.garbage("a message over the size limit, or none of ZeroMQ's", now)
                address = self._telemetry if socket is self._sub else self._control
                with suppress(zmq.ZMQError):
                    socket.disconnect(address)
                socket.connect(address)

    def _soon(self, what: str, within: int = 0) -> None:
        self._due[what] = min(self._due[what], time.monotonic_ns() + within)

    def _take_replies(self) -> None:
        for _ in range(_BATCH):
            try:
                if not self._asker.receive():
                    return
            except UnreadableError as error:
                self._bad(error.version, str(error))

    def _take_messages(self) -> None:
        for _ in range(_BATCH):
            try:
                frames = self._sub.recv_multipart(flags=zmq.DONTWAIT)
            except zmq.Again:
                return
            received = time.monotonic_ns()
            try:
                self._take(frames, received)
            except TwinstudioError as error:
                self._bad(spoken(frames[1]) if len(frames) > 1 else None, str(error))

    def _take(self, frames: list[bytes], received: int) -> None:
        topic = frames[0]
        if topic == protocol.TELEMETRY:
            self._intake.telemetry(frames, received)
            if self._intake.asking:
                self._soon("hello", 20 * _MS)
        elif topic == protocol.EVENT and len(frames) == 2 and len(frames[1]) <= protocol.MAX_HEADER:
            self._on_published(protocol.decode(frames[1], Event))
        elif topic != protocol.IMAGE:
            raise ProtocolError("neither telemetry, event nor image")

    def _bad(self, version: int | None, why: str) -> None:
        if version is not None and version != protocol.VERSION:
            self._meter.foreign(version, time.monotonic_ns())
        else:
            self._meter.garbage(why, time.monotonic_ns())

    def _on_hello(self, reply: Reply, sent: int, received: int) -> None:
        if self._stopping:
            return
        self._meter.answer(received)
        try:
            description = self._same(reply) or read_description(reply)
        except ProtocolError as error:
            version = other_version(reply)
            if version is not None:
                self._meter.foreign(version, received)
            else:
                self._meter.complain(str(error))
            return
        self._meter.understood()
        self._intake.describe(description, sent)

    def _same(self, reply: Reply) -> Description | None:
        """The description in force, if the reply repeats it; saves checking it again."""
        current, result = self._description, reply.result
        if current is None or not isinstance(result, dict):
            return None
        key = (result.get("protocol"), result.get("instance"), result.get("revision"))
        return current if key == (current.protocol, current.instance, current.revision) else None

    def _adopted(self, new: Description) -> None:
        old, self._description = self._description, new
        self._meter.described(new, time.monotonic_ns())
        if old is None or old.instance != new.instance:
            self._clock = ClockEstimator()
            self._order = EventOrder()
            self._question = None
            self._burst = _BURST
            self._soon("ping")
            self._soon("events")
        self._follow(f"tcp://{self._host}:{new.telemetry}")
        self._described.set()
        if self._on_description is not None:
            self._tell(self._on_description, new)

    def _follow(self, address: str) -> None:
        if address == self._telemetry:
            return
        if self._telemetry:
            with suppress(zmq.ZMQError):
                self._sub.disconnect(self._telemetry)
        self._sub.connect(address)
        self._telemetry = address

    def _deliver(self, block: Block) -> None:
        wrong = astray(block, self.clock)
        if wrong is not None and block.received is not None:
            self._meter.astray(int(wrong.sum()), block.received)
        for sink in self._sinks:
            self._tell(sink, block)

    def _on_pong(self, reply: Reply, sent: int, received: int) -> None:
        if self._stopping:
            return
        self._meter.answer(received)
        try:
            pong = msgspec.convert(reply.result, Pong)
        except msgspec.ValidationError as error:
            self._meter.garbage(f"the answer to ping: {error}", received)
            return
        steps = self._clock.steps
        if not self._clock.add(sent, pong.received, pong.sent, received):
            self._meter.garbage("the answer to ping has impossible stamps", received)
        if self._clock.steps > steps:
            self._meter.restamped()

    def _on_published(self, event: Event) -> None:
        current = self._description
        check_event(event)
        if current is None or event.instance != current.instance:
            if not self._intake.retired(event.instance):
                self._soon("hello")  # a new instance: its events are asked for then
            return
        self._hand_on(self._order.add(event))
        if self._order.incomplete:
            self._ask_events()

    def _ask_events(self) -> None:
        now = time.monotonic_ns()
        # An endpoint that went away took the question along.
        if self._question is None or now - self._question[1] > 2 * _SECOND:
            question = (self._order, now)
            args = {"since": self._order.ask()}
            sent = self._asker.ask(
                "events", args, lambda reply, *_: self._on_events(question, reply)
            )
            self._question = question if sent else None

    def _on_events(self, question: tuple[EventOrder, int], reply: Reply) -> None:
        if self._stopping or question is not self._question:
            return
        self._question = None
        order, instance = question[0], self._description.instance if self._description else ""
        try:
            events = msgspec.convert(reply.result, list[Event]) if reply.ok else []
            for event in events:
                check_event(event)
        except (msgspec.ValidationError, ProtocolError) as error:
            self._meter.garbage(f"the answer to events: {error}", time.monotonic_ns())
            events = []
        since, lost = order.since, order.lost
        self._hand_on(order.answer(e for e in events if e.instance == instance))
        if order.lost > lost:
            self._meter.events_lost(order.lost - lost)
        if order.since > since or order.incomplete:
            self._ask_events()

    def _hand_on(self, events: list[Event]) -> None:
        if self._on_event is not None:
            for event in events:
                self._tell(self._on_event, event)

    def _tell(self, listener: Callable[[Any], None], what: object) -> None:
        try:
            listener(what)
        except Exception as error:  # noqa: BLE001 - one listener must not silence the others
            name = getattr(listener, "__qualname__", type(listener).__name__)
            self._meter.fail(f"listener {name} failed: {type(error).__name__}: {error}")
