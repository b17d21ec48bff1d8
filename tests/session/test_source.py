"""A source's history goes on whatever the stamps do, and says what it left out."""

import time

import pytest
from wire_helpers import RawBridge, until

from twinstudio.session.source import Source

HOUR = 3600 * 10**9


@pytest.fixture
def bridge():
    with RawBridge() as bridge:
        yield bridge


@pytest.fixture
def told():
    return []


@pytest.fixture
def source(bridge, told):
    source = Source(
        "cell",
        bridge.control,
        joints=("a", "b"),
        budget=2**20,
        title="cell",
        on_event=lambda *_: None,
        on_description=lambda *_: None,
        on_trouble=lambda role, text: told.append(f"{role}: {text}"),
    )
    bridge.subscribed()
    until(lambda: source.link.clock is not None)
    yield source
    source.close()


def newest(source):
    latest = source.history.latest() if source.history is not None else None
    return None if latest is None else latest.values[0, 0]


def test_that_one_wild_stamp_does_not_stop_the_history(bridge, source, told):
    bridge.send(0, [time.monotonic_ns()], 1.0)
    until(lambda: newest(source) == 1.0)
    bridge.send(1, [time.monotonic_ns() + 10 * HOUR], 2.0)
    bridge.send(2, [time.monotonic_ns()], 3.0)
    until(lambda: newest(source) == 3.0)
    assert len(told) == 1
    assert "3.6e+04 s ahead of its clock" in told[0]


def test_that_a_history_ahead_of_a_clock_that_was_set_back_starts_anew(bridge, source, told):
    bridge.send(0, [time.monotonic_ns()], 1.0)
    until(lambda: newest(source) == 1.0)
    bridge.answers["ping"] = lambda request: bridge.reply(
        request, {"received": time.monotonic_ns() - HOUR, "sent": time.monotonic_ns() - HOUR}
    )
    until(lambda: source.link.clock_steps > 0)
    bridge.send(1, [time.monotonic_ns() - HOUR], 2.0)
    until(lambda: newest(source) == 2.0)
    assert told == ["cell: its clock was set while it ran; what is held may jump"]
