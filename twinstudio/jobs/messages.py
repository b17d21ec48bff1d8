"""What worker and runner say to each other: one JSON object a line."""

from typing import Any, Literal

import msgspec

from twinstudio.jobs.record import State
from twinstudio.model.provenance import Provenance

LONGEST_LINE = 4 * 2**20


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready", tag_field="say"):
    """The worker has started and is about to load the plugin."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag="prepared", tag_field="say"):
    """What is about to run, and on what."""

    provenance: Provenance
    plugin_digest: str


class Entered(msgspec.Struct, frozen=True, kw_only=True, tag="state", tag_field="say"):
    """The job entered `state`."""

    state: State


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress", tag_field="say"):
    """How far it is, 0 to 1."""

    fraction: float
    message: str = ""


class Note(msgspec.Struct, frozen=True, kw_only=True, tag="log", tag_field="say"):
    """A line that belongs into the record."""

    text: str


class End(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="say"):
    """The last word: how it went, and the results that there are."""

    state: Literal["done", "failed", "cancelled"]
    error: str = ""
    trace: str = ""
    results: list[dict[str, Any]] = []
    results_file: str = ""
    files: dict[str, str] = {}


Message = Ready | Prepared | Entered | Progress | Note | End
CANCEL = b'{"do":"cancel"}\n'


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the runner asks of the worker."""

    do: Literal["cancel"]


def encode(message: Message) -> bytes:
    """`message` as one line."""
    return msgspec.json.encode(message) + b"\n"


_decoder = msgspec.json.Decoder(Message)


def decode(line: bytes) -> Message:
    """The message of a line; raises msgspec.MsgspecError for anything else."""
    message: Message = _decoder.decode(line)
    return message
