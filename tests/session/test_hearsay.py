"""A source that floods the log with events cannot drown the rest."""

from twinstudio.flow.protocol import Event
from twinstudio.session.hearsay import MOST, Hearsay
from twinstudio.session.journal import Journal


def event(text: str) -> Event:
    return Event(v=1, instance="i", seq=0, stamp=0, level="info", code="code", text=text)


def test_that_a_flood_is_held_back_counted_and_told() -> None:
    journal, now = Journal(), [0.0]
    hearsay = Hearsay(journal, lambda: now[0])
    for k in range(MOST + 50):
        hearsay.tell("cell", event(f"event {k}"))
    hearsay.tell("twin", event("something that matters"))
    assert len(journal.since(0)) == MOST + 1
    now[0] = 2.0
    hearsay.catch_up("cell")
    assert journal.since(0)[-1].text.startswith("50 more events")
    hearsay.tell("cell", event("calm again"))
    assert journal.since(0)[-1].text == "calm again"


def test_that_an_event_without_words_shows_its_code() -> None:
    journal = Journal()
    Hearsay(journal).tell("cell", event(""))
    assert journal.since(0)[-1].text == "code"
