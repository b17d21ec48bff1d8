"""What an endpoint may answer, checked field by field beyond what types say."""

import math

import msgspec

from twinstudio.flow import protocol
from twinstudio.flow.protocol import Description, Event, Reply
from twinstudio.model.errors import ProtocolError, TwinstudioError
from twinstudio.model.words import one_line

LONGEST_NAME = 100


def check_event(event: Event) -> None:
    """Raises ProtocolError for an event beyond the limits."""
    if len(event.text) > protocol.MAX_TEXT or not 0 <= event.seq < 1 << 62:
        raise ProtocolError("event out of bounds")


def read_description(reply: Reply) -> Description:
    """The checked description in a reply to hello; raises ProtocolError."""
    if not reply.ok:
        raise ProtocolError(f"refuses hello: {one_line(reply.error, 200)}")
    try:
        description = msgspec.convert(reply.result, Description)
    except (msgspec.ValidationError, TwinstudioError) as error:
        raise ProtocolError(f"its description is not valid: {error}") from error
    if description.protocol != protocol.VERSION:
        raise ProtocolError(f"it speaks protocol {description.protocol}")
    if not 1 <= len(description.instance) <= 64 or not 0 < description.telemetry < 65536:
        raise ProtocolError("its description is not valid: instance or telemetry port")
    if not (math.isfinite(description.rate) and description.rate >= 0):
        raise ProtocolError(f"its description is not valid: rate {description.rate}")
    texts = (description.name, description.software, description.scene)
    if any(len(text) > protocol.MAX_TEXT for text in texts):
        raise ProtocolError("its description is not valid: name, software or scene is too long")
    if description.layout.width < 1:
        raise ProtocolError("its description is not valid: the layout has no signals")
    name = one_line(description.name, LONGEST_NAME) or "a source without a name"
    return msgspec.structs.replace(description, name=name)


def other_version(reply: Reply) -> int | None:
    """The protocol a hello's answer speaks of, if it is not ours."""
    result = reply.result if isinstance(reply.result, dict) else {}
    version = result.get("protocol")
    return version if isinstance(version, int) and version != protocol.VERSION else None
