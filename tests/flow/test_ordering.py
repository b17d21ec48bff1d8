"""Whatever happens to events on their way, each is handed on once and in order."""

from hypothesis import given
from hypothesis import strategies as st

from twinstudio.flow.ordering import EventOrder
from twinstudio.flow.protocol import Event


def event(seq):
    return Event(v=1, instance="i", seq=seq, stamp=0, level="info", code="c", text="t")


def seqs(events):
    return [each.seq for each in events]


@given(st.data())
def test_that_events_come_once_in_order_and_lost_ones_are_counted(data):
    total = data.draw(st.integers(1, 30))
    kept_from = data.draw(st.integers(0, 5))
    order = EventOrder()
    handed = seqs(order.answer([]))
    sent = 0
    while sent < total:
        kind = data.draw(st.sampled_from(["heard", "missed", "twice", "asked", "raced"]))
        if kind == "asked":
            since = order.ask()
            handed += seqs(order.answer(event(k) for k in range(max(since, kept_from), sent)))
            continue
        if kind == "raced":  # published between question and answer, and not in it
            since = order.ask()
            known = [event(k) for k in range(max(since, kept_from), sent)]
            handed += seqs(order.add(event(sent)))
            handed += seqs(order.answer(known))
        elif kind != "missed":
            handed += seqs(order.add(event(sent)))
        if kind == "twice":
            handed += seqs(order.add(event(sent)))
        sent += 1
    for _ in range(2):
        since = order.ask()
        handed += seqs(order.answer(event(k) for k in range(max(since, kept_from), sent)))
    assert handed == sorted(set(handed))
    assert set(range(kept_from, total)) <= set(handed)
    assert order.lost <= kept_from
    if total > kept_from:
        assert order.lost == total - len(handed)
    assert not order.incomplete


def test_that_what_was_before_our_time_is_not_lost():
    order = EventOrder()
    assert order.add(event(7)) == []
    order.ask()
    assert seqs(order.answer([event(5), event(6), event(7)])) == [5, 6, 7]
    assert order.lost == 0


def test_that_an_answer_that_ignores_the_question_does_not_stall():
    order = EventOrder()
    order.answer([event(0)])
    order.add(event(3))
    order.ask()
    assert seqs(order.answer([event(0)])) == [3]
    assert order.lost == 2


def test_that_a_flood_of_early_events_is_bounded():
    order = EventOrder()
    order.answer([])
    for seq in range(1, 5000):
        order.add(event(seq))
    assert len(order._early) <= 1000
    handed = []
    while (since := order.ask()) < 5000:
        handed += seqs(order.answer(event(k) for k in range(since, min(since + 256, 5000))))
    assert handed == list(range(5000))
