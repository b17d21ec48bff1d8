"""What tests of the wire share: waiting, and a bridge that does only as it is told."""

import threading
import time
from collections.abc import Callable
from typing import Any, Self

import msgpack
import numpy as np
import zmq

from twinstudio.model.signals import Layout, joint_signals

LAYOUT = Layout(joint_signals(("a", "b"), kinds=("joint.position",)))
WIDER = Layout(joint_signals(("a", "b"), kinds=("joint.position", "joint.velocity")))


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait for a true result of `condition`, and give it; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError("it did not come about in time")
        time.sleep(0.005)
    return result


def plain(layout: Layout) -> dict[str, Any]:
    """A layout as msgpack has it."""
    return {
        "signals": [
            {"name": s.name, "labels": list(s.labels), "units": list(s.units)}
            for s in layout.signals
        ]
    }


class RawBridge:
    """A publisher made of plain sockets, that can misbehave.

    `answers` maps an operation to a function from the request to the reply's body
    (bytes as they are; a dict is packed), or to None for silence.
    """

    def __init__(self, instance: str = "feed", control: int = 0, telemetry: int = 0) -> None:
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.pub = self.context.socket(zmq.XPUB)
        for socket, port in ((self.router, control), (self.pub, telemetry)):
            socket.linger = 0
            socket.bind(f"tcp://127.0.0.1:{port or '*'}")
        self.control = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.ports = [
            int(s.getsockopt_string(zmq.LAST_ENDPOINT).rsplit(":", 1)[1])
            for s in (self.router, self.pub)
        ]
        self.description: dict[str, Any] = {
            "protocol": 1,
            "instance": instance,
            "role": "cell",
            "name": "raw",
            "software": "test",
            "telemetry": self.ports[1],
            "revision": 1,
            "layout": plain(LAYOUT),
            "rate": 5.0,
        }
        self.events: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any] | None] = {
            "hello": lambda request: self.reply(request, self.description),
            "ping": self._pong,
            "events": lambda request: self.reply(
                request, [e for e in self.events if e["seq"] >= request["args"]["since"]]
            ),
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def reply(self, request: dict[str, Any], result: Any) -> dict[str, Any]:
        return {"v": 1, "id": request["id"], "ok": True, "result": result}

    def header(self, first: int, n: int = 1, **other: Any) -> dict[str, Any]:
        return {
            "v": 1,
            "instance": self.description["instance"],
            "layout": self.description["revision"],
            "first": first,
            "n": n,
            "width": 2,
            **other,
        }

    def subscribed(self) -> None:
        """Wait until someone listens."""
        assert self.pub.poll(10_000)
        assert self.pub.recv() == b"\x01"

    def send(self, first: int, stamps: list[int], values: Any = 0.0, **other: Any) -> None:
        """Publish samples as they are given; `other` overrides header fields."""
        header = self.header(first, len(stamps), **other)
        table = np.broadcast_to(np.asarray(values, dtype="<f8"), (len(stamps), header["width"]))
        self.pub.send_multipart(
            [
                b"telemetry",
                msgpack.packb(header),
                np.array(stamps, dtype="<i8").tobytes(),
                table.tobytes(),
            ]
        )

    def event(self, seq: int, *, published: bool = True, kept: bool = True) -> None:
        event = {
            "v": 1,
            "instance": self.description["instance"],
            "seq": seq,
            "stamp": seq,
            "level": "info",
            "code": "test",
            "text": f"event {seq}",
            "data": {},
        }
        if kept:
            self.events.append(event)
        if published:
            self.pub.send_multipart([b"event", msgpack.packb(event)])

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.context.destroy(linger=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pong(self, request: dict[str, Any]) -> dict[str, Any]:
        now = time.monotonic_ns()
        return self.reply(request, {"received": now, "sent": now})

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self.router.poll(10):
                continue
            who, body = self.router.recv_multipart()
            request = msgpack.unpackb(body)
            self.asked.append(request)
            answer = self.answers.get(request["op"])
            result = answer(request) if answer is not None else None
            if result is not None:
                data = result if isinstance(result, bytes) else msgpack.packb(result)
                self.router.send_multipart([who, data])
