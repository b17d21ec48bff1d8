"""What a recording says in JSON: names of its topics and records."""

import re
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.protocol import Event
from twinstudio.model.signals import Layout
from twinstudio.model.views import Entry

FORMAT = "1"
METADATA = "twinstudio"
SOURCE_METADATA = "twinstudio.source"
SCENE = "scene.toml"
SESSION = "session"
CLOCK_TOPIC = "/twinstudio/clock"
SOURCE_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_]{0,62}\Z")


class SourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One source as it was announced; metadata record `SOURCE_METADATA`.

    source: its name in this file. role: ``cell`` or ``twin``. name: what people
    call it. rate: nominal samples per second, 0 if irregular.
    """

    source: str
    role: str
    name: str
    rate: float
    layout: Layout


class ChannelInfo(SourceInfo, frozen=True, kw_only=True):
    """What the metadata of a channel of samples says.

    part: last word of the topic; which columns the channel carries follows from
    it and the layout. revision: how often the source had changed before.
    group: channels of one group carry the same samples, message by message.
    sent: whether log times are receive stamps. sequence_high: upper bits of the
    sequence numbers, whose lower 32 stand in the messages.
    """

    part: str
    revision: int
    group: int
    sent: bool
    sequence_high: int

    def as_metadata(self) -> dict[str, str]:
        """Keys and values as MCAP holds them: strings alone, the layout as JSON."""
        entries = {field: getattr(self, field) for field in self.__struct_fields__}
        return {
            f"twinstudio.{key}": value
            if isinstance(value, str)
            else msgspec.json.encode(value).decode()
            for key, value in entries.items()
        }

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> Self | None:
        """The reverse of `as_metadata`, None for a channel that is not ours.

        Raises msgspec.ValidationError if it claims to be and is not.
        """
        if "twinstudio.part" not in metadata:
            return None
        raw: dict[str, Any] = {
            key.removeprefix("twinstudio."): value
            for key, value in metadata.items()
            if key.startswith("twinstudio.")
        }
        raw["layout"] = msgspec.json.decode(raw.get("layout", ""))
        return msgspec.convert(raw, cls, strict=False)


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a source or of the session; stamp: its own clock [ns]."""

    seq: int
    stamp: int
    level: str
    code: str
    text: str
    data: dict[str, Any] = {}
    instance: str = ""

    @classmethod
    def of(cls, event: Event | Entry) -> Self:
        """An event from the wire, or an entry of the session log."""
        if isinstance(event, Event):
            return cls(
                seq=event.seq,
                stamp=event.stamp,
                level=event.level,
                code=event.code,
                text=event.text,
                data=event.data,
                instance=event.instance,
            )
        return cls(
            seq=event.seq, stamp=event.stamp, level=event.level, code=event.kind, text=event.text
        )


class ClockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of a source's clock at local time `at` [ns].

    offset: source minus local clock [s]; bound: of its error [s]. The rest are the
    fields of `ClockModel`, from which `model` makes the very same model again.
    """

    source: str
    at: int
    offset: float
    bound: float
    reference: int
    shift: int
    skew: float
    margin: float
    skew_margin: float

    @classmethod
    def of(cls, source: str, at: int, model: ClockModel) -> Self:
        """The clock of `source` as known at local time `at` [ns]."""
        return cls(
            source=source,
            at=at,
            offset=model.offset,
            bound=model.bound,
            reference=model.reference,
            shift=model.shift,
            skew=model.skew,
            margin=model.margin,
            skew_margin=model.skew_margin,
        )

    def model(self) -> ClockModel:
        """The clock model that was recorded."""
        return ClockModel(self.reference, self.shift, self.skew, self.margin, self.skew_margin)
