"""How a connection is doing, in figures and in plain words."""

from typing import Literal

import msgspec

LinkState = Literal["connecting", "streaming", "silent", "incompatible", "closed"]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """State of one link since it was opened; all counts only go up.

    text: the state in words a user understands, with what to do.
    rate: samples per second over the last second or so.
    latency_p50, latency_p99: source stamp to arrival [s], last few seconds; NaN
        before the clock is known.
    offset, offset_bound: source clock minus local clock [s] and its uncertainty.
    age: seconds since the last sample arrived; inf before the first.
    lost: samples missing by sequence number. repeated, reversed: samples whose
    stamp is that of, or before, their predecessor's. astray: samples whose stamp
    the source's clock cannot have shown, far ahead of their arrival for instance.
    missing: NaN readings.
    garbage: messages that are none. foreign: messages of another protocol
    version. restarts, relayouts: how often the source came back as another
    instance, or changed its layout. events_lost: events that could not be had again.
    """

    state: LinkState
    text: str
    rate: float = 0.0
    latency_p50: float = float("nan")
    latency_p99: float = float("nan")
    offset: float = float("nan")
    offset_bound: float = float("inf")
    age: float = float("inf")
    received: int = 0
    lost: int = 0
    repeated: int = 0
    reversed: int = 0
    astray: int = 0
    missing: int = 0
    garbage: int = 0
    foreign: int = 0
    restarts: int = 0
    relayouts: int = 0
    events_lost: int = 0
