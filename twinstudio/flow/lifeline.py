"""Notices a connection that ZeroMQ gave up for good.

A peer that goes away is dialled again by ZeroMQ itself. One that breaks ZeroMQ's
own rules, by a message over the size limit for instance, is cut off and never
dialled again, and nobody is told: the link would stay deaf for ever.
"""

import zmq
from zmq.utils.monitor import parse_monitor_message

PATIENCE = 500_000_000
"""ns after a cut in which ZeroMQ begins to dial again, if it means to."""
_WATCHED = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_CONNECT_DELAYED
    | zmq.EVENT_CONNECT_RETRIED
)


class Lifeline:
    """Watches the connections of `socket`; on the socket's own thread."""

    def __init__(self, socket: "zmq.Socket[bytes]") -> None:
        self._socket = socket
        self._monitor = socket.get_monitor_socket(events=_WATCHED)
        self._monitor.linger = 0
        self._cut: int | None = None

    def lost(self, now: int) -> bool:
        """Whether the connection was cut and is not dialled again; true once a cut."""
        while self._monitor.poll(0):
            message = parse_monitor_message(self._monitor.recv_multipart())
            self._cut = now if message["event"] == zmq.EVENT_DISCONNECTED else None
        if self._cut is None or now - self._cut < PATIENCE:
            return False
        self._cut = None
        return True

    def close(self) -> None:
        """Stop watching; before the socket is closed."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
