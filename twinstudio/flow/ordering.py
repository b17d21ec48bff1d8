"""Events in order, each exactly once, though PUB may lose, repeat or outrun them."""

from collections.abc import Iterable

from twinstudio.flow.protocol import Event

_KEPT = 1000


class EventOrder:
    """Puts the events of one instance in order.

    Events come in by `add` as they are published and by `answer` as replies to
    ``events``; both return what may be handed on now, in order. `lost` counts
    those that the publisher no longer has.
    """

    def __init__(self) -> None:
        self._next: int | None = None
        self._early: dict[int, Event] = {}
        self._asked: int | None = None
        self.lost = 0

    @property
    def since(self) -> int:
        """The first number still wanted."""
        return self._next or 0

    @property
    def incomplete(self) -> bool:
        """Whether something is known to be missing."""
        return self._next is None or bool(self._early)

    def ask(self) -> int:
        """The `since` to ask for now; remembers what the reply must reach."""
        self._asked = min(self._early, default=None)
        return self.since

    def add(self, event: Event) -> list[Event]:
        """Take in a published event."""
        # Beyond _KEPT the event is not held: it is asked for again when its turn comes.
        if event.seq >= self.since and len(self._early) < _KEPT:
            self._early[event.seq] = event
        return self._ready() if self._next is not None else []

    def answer(self, events: Iterable[Event]) -> list[Event]:
        """Take in the reply to the last `ask`: oldest first, perhaps not all."""
        # Those before `since` were not asked for and say nothing.
        wanted = (event for event in events if event.seq >= self.since)
        known = sorted(wanted, key=lambda event: event.seq)
        first = known[0].seq if known else self._asked
        if self._next is None:
            self._next = first or 0
        elif first is not None and first > self._next:
            self.lost += first - self._next
            self._next = first
        self._asked = None
        self._early.update((event.seq, event) for event in known)
        return self._ready()

    def _ready(self) -> list[Event]:
        ready = []
        assert self._next is not None
        while (event := self._early.pop(self._next, None)) is not None:
            ready.append(event)
            self._next += 1
        for seq in [seq for seq in self._early if seq < self._next]:
            del self._early[seq]
        return ready
