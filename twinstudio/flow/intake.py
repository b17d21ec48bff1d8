"""Telemetry of one source in the order of its layouts: what to hand on, keep, or lose."""

from collections import deque
from collections.abc import Callable

from twinstudio.flow import protocol
from twinstudio.flow.meter import Meter
from twinstudio.flow.protocol import Description, TelemetryHeader
from twinstudio.model.block import Block
from twinstudio.model.errors import ProtocolError, TwinstudioError

HELD_BYTES = 32 * 2**20
_MOST = 1 << 62
_Held = tuple[TelemetryHeader, list[bytes], int]


class Intake:
    """Turns telemetry messages into blocks, given the descriptions that go with them.

    A message whose instance or layout is not known yet is kept, at most
    HELD_BYTES in all, until a description answers for it; what must be given up
    is counted as lost. Not thread-safe. All times are local ns.

    adopted: called with each description before the first block it applies to.
    deliver: called with each block, in order.
    """

    def __init__(
        self,
        meter: Meter,
        *,
        adopted: Callable[[Description], None],
        deliver: Callable[[Block], None],
    ) -> None:
        self._meter = meter
        self._adopted = adopted
        self._deliver = deliver
        self._upcoming: Description | None = None
        self._retired: deque[str] = deque(maxlen=16)
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self.description: Description | None = None

    @property
    def asking(self) -> bool:
        """Whether messages wait for a description."""
        return bool(self._held)

    def retired(self, instance: str) -> bool:
        """Whether `instance` was here before, and was followed by another."""
        return instance in self._retired

    def telemetry(self, frames: list[bytes], received: int) -> None:
        """Take in a telemetry message; raises ProtocolError if it is none."""
        header = protocol.telemetry_header(frames)
        if header.first >= _MOST:
            raise ProtocolError("sequence number out of bounds")
        if self._upcoming is not None and _fits(header, self._upcoming):
            self._adopt(self._upcoming)
        if self.description is not None and _fits(header, self.description):
            self._hand_on((header, frames, received), self.description)
        else:
            self._unknown((header, frames, received))

    def describe(self, new: Description, asked: int) -> None:
        """Take in the answer to a hello that left at `asked`."""
        old, planned = self.description, self._upcoming
        if old is None or old.instance != new.instance:
            self._adopt(new)
        elif old.revision != new.revision:
            here = any(_fits(held[0], new) for held in self._held)
            if here or (planned is not None and planned.revision == new.revision):
                self._adopt(new)
            else:
                # Blocks of the old layout may still be on their way: wait for the
                # first of the new one, or for the next answer.
                self._upcoming = new
        self._release(asked)

    def _adopt(self, new: Description) -> None:
        old, self.description, self._upcoming = self.description, new, None
        if old is not None and old.instance != new.instance:
            self._retired.append(old.instance)
        self._adopted(new)

    def _hand_on(self, held: _Held, description: Description) -> None:
        header, frames, received = held
        block = protocol.decode_telemetry(header, frames, description.layout, received=received)
        self._meter.block(block, received)
        self._deliver(block)

    def _unknown(self, held: _Held) -> None:
        header, current = held[0], self.description
        if header.instance in self._retired:
            self._meter.lost(header.n)
            return
        same = current is not None and header.instance == current.instance
        if current is not None and same and header.layout < current.revision:
            return  # the gap in the numbering counts it
        self._keep(held)
        while self._held_bytes > HELD_BYTES:
            oldest = self._held.popleft()
            self._held_bytes -= _size(oldest)
            self._give_up(oldest)

    def _keep(self, held: _Held) -> None:
        self._held.append(held)
        self._held_bytes += _size(held)

    def _release(self, asked: int) -> None:
        """Hand on what is understood now; give up what the answer should have told of."""
        waiting, self._held, self._held_bytes = self._held, deque(), 0
        for held in waiting:
            current = self.description
            if current is not None and _fits(held[0], current):
                try:
                    self._hand_on(held, current)
                except TwinstudioError as error:
                    self._meter.garbage(str(error), held[2])
            elif held[2] < asked:
                self._give_up(held)
            else:
                self._keep(held)

    def _give_up(self, held: _Held) -> None:
        # Of the instance in force, the gap in the numbering counts it.
        current = self.description
        if current is None or held[0].instance != current.instance:
            self._meter.lost(held[0].n)


def _fits(header: TelemetryHeader, description: Description) -> bool:
    return header.instance == description.instance and header.layout == description.revision


def _size(held: _Held) -> int:
    # 500 bytes stand for the Python objects around a small message.
    return len(held[1][2]) + len(held[1][3]) + 500
