"""A link counts what goes wrong, says it in words, and never gives up."""

import threading
import time
from contextlib import suppress

import msgpack
import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_helpers import LAYOUT, WIDER, RawBridge, plain, until

from twinstudio.flow import answers, protocol
from twinstudio.flow.link import Link
from twinstudio.flow.serve import Endpoint, Handler
from twinstudio.model.errors import LinkError, ProtocolError, SceneError

MS = 1_000_000


@pytest.fixture
def bridge():
    with RawBridge() as bridge:
        yield bridge


@pytest.fixture
def blocks():
    return []


@pytest.fixture
def link(bridge, blocks):
    with Link(bridge.control, sinks=[blocks.append]) as link:
        bridge.subscribed()
        yield link


def received(link, samples):
    return until(lambda: link.health().received >= samples)


def publish(endpoint, n=10):
    now = time.monotonic_ns()
    return endpoint.publish(now - np.arange(n)[::-1] * MS, np.ones((n, 2)))


def test_that_blocks_arrive_as_they_were_published(blocks):
    with (
        Endpoint(role="cell", name="c", layout=LAYOUT, rate=100.0) as endpoint,
        Link(endpoint.control, sinks=[blocks.append]) as link,
    ):
        until(lambda: publish(endpoint) >= 0 and blocks)
        start = blocks[-1].first + 10
        values = np.random.default_rng(1).normal(size=(50, 2))
        stamps = np.arange(50, dtype=np.int64) + 10**18
        for part in (slice(0, 20), slice(20, 21), slice(21, 50)):
            endpoint.publish(stamps[part], values[part])
        until(lambda: blocks[-1].stamps[-1] == stamps[-1])
        here = [block for block in blocks if block.stamps[0] >= 10**18]
        assert np.array_equal(np.vstack([block.values for block in here]), values)
        assert np.array_equal(np.concatenate([block.stamps for block in here]), stamps)
        assert here[0].first >= start
        assert all(block.layout == LAYOUT for block in here)
        assert all(block.received <= time.monotonic_ns() for block in here)
        assert link.health().lost == 0


def test_that_callers_arrays_stay_writeable():
    with Endpoint(role="cell", name="c", layout=LAYOUT, rate=1.0) as endpoint:
        stamps, values = np.zeros(1, dtype=np.int64), np.zeros((1, 2))
        endpoint.publish(stamps, values)
        stamps[0], values[0, 0] = 1, 1.0


def test_that_nobody_answering_is_said_and_the_link_waits_for_it(blocks):
    with RawBridge() as first:
        control, ports = first.control, first.ports
    with Link(control, sinks=[blocks.append]) as link:
        health = link.health()
        assert health.state == "connecting"
        assert "nobody answers yet" in health.text
        with pytest.raises(LinkError, match="was not sent"):
            link.request("hello", timeout=0.05)
        with RawBridge(control=ports[0]) as bridge:
            bridge.subscribed()
            bridge.send(0, [1])
            received(link, 1)
            assert link.health().state == "streaming"


def test_that_a_lost_block_is_counted(bridge, link):
    bridge.send(100, [1, 2])
    bridge.send(105, [3])
    received(link, 3)
    assert link.health().lost == 3


def test_that_nan_repeated_and_reversed_stamps_are_counted_and_handed_on(bridge, link, blocks):
    bridge.send(0, [10, 10, 9, 20], np.nan)
    bridge.send(4, [20], [[1.0, np.nan]])
    bridge.send(5, [5])
    received(link, 6)
    health = link.health()
    assert (health.repeated, health.reversed, health.missing) == (2, 2, 9)
    assert (health.lost, health.garbage) == (0, 0)
    assert [len(block) for block in blocks] == [4, 1, 1]


def test_that_a_restart_is_no_loss(bridge, link, blocks):
    bridge.send(1000, [10**6])
    received(link, 1)
    bridge.description["instance"] = "again"
    bridge.send(7, [3, 4])
    bridge.send(9, [5])
    received(link, 4)
    health = link.health()
    assert (health.restarts, health.lost, health.reversed) == (1, 0, 0)
    assert [block.first for block in blocks] == [1000, 7, 9]
    assert link.description.instance == "again"


def test_that_a_source_on_other_ports_is_found_again(blocks):
    with RawBridge("one") as first, Link(first.control, sinks=[blocks.append]) as link:
        first.subscribed()
        first.send(0, [1])
        received(link, 1)
        ports = first.ports
        first.close()
        until(lambda: link.health().state == "silent")
        assert "silent for" in link.health().text
        with RawBridge("two", control=ports[0]) as second:
            second.subscribed()
            second.send(0, [2])
            received(link, 2)
            assert link.health().restarts == 1
            assert link.health().state == "streaming"


def test_that_a_source_that_comes_back_as_the_same_shows_what_was_missed():
    with RawBridge() as first, Link(first.control) as link:
        first.subscribed()
        first.send(0, [1])
        received(link, 1)
        ports = first.ports
        first.close()
        with RawBridge(control=ports[0], telemetry=ports[1]) as second:
            second.subscribed()
            second.send(11, [12])
            received(link, 2)
            health = link.health()
            assert (health.lost, health.restarts) == (10, 0)


def test_that_blocks_of_an_old_instance_do_not_bring_it_back(bridge, link):
    bridge.send(0, [1])
    received(link, 1)
    bridge.description["instance"] = "two"
    bridge.send(0, [2])
    received(link, 2)
    bridge.send(5, [3, 3], instance="feed")
    until(lambda: link.health().lost == 2)
    assert link.health().restarts == 1


def test_that_a_new_layout_is_asked_for_and_nothing_is_lost(bridge, link, blocks):
    told = []
    link._on_description = told.append
    bridge.send(0, [1])
    received(link, 1)
    bridge.description |= {"revision": 2, "layout": plain(WIDER)}
    bridge.send(1, [2, 3], width=4)
    bridge.send(3, [4], width=4)
    received(link, 4)
    health = link.health()
    assert (health.relayouts, health.lost, health.restarts) == (1, 0, 0)
    assert [block.layout for block in blocks] == [LAYOUT, WIDER, WIDER]
    assert [each.revision for each in told] == [2]


def test_that_blocks_of_the_old_layout_still_on_their_way_are_not_lost(bridge, link, blocks):
    bridge.send(0, [1])
    received(link, 1)
    hellos = len([r for r in bridge.asked if r["op"] == "hello"])
    bridge.description |= {"revision": 2, "layout": plain(WIDER)}
    until(lambda: len([r for r in bridge.asked if r["op"] == "hello"]) > hellos)
    bridge.send(1, [2], layout=1)
    bridge.send(2, [3], width=4)
    received(link, 3)
    assert link.health().lost == 0
    assert [block.layout for block in blocks] == [LAYOUT, LAYOUT, WIDER]


def test_that_a_layout_nobody_describes_is_counted_as_lost(bridge, link):
    bridge.send(0, [1])
    received(link, 1)
    bridge.send(1, [2, 3], layout=9)
    hellos = len(bridge.asked)
    until(lambda: [r["op"] for r in bridge.asked[hellos:]].count("hello") >= 2)
    bridge.send(3, [4])
    received(link, 2)
    assert link.health().lost == 2


def test_that_columns_that_do_not_fit_the_layout_are_garbage(bridge, link):
    bridge.send(0, [1], width=3)
    bridge.send(1, [2])
    received(link, 1)
    assert link.health().garbage == 1


def test_that_another_version_of_telemetry_is_named(bridge, link):
    bridge.send(0, [1], v=2)
    until(lambda: link.health().foreign)
    health = link.health()
    assert health.state == "incompatible"
    assert "speaks protocol 2, this Twinstudio speaks 1: update one of them" in health.text
    bridge.send(0, [1])
    received(link, 1)
    assert link.health().state == "streaming"


def test_that_another_version_of_hello_is_named_and_survived():
    with RawBridge() as bridge:
        good = bridge.answers["hello"]
        bridge.answers["hello"] = lambda request: {"v": 2, "id": request["id"], "answer": {}}
        with Link(bridge.control) as link:
            until(lambda: link.health().state == "incompatible")
            assert "speaks protocol 2" in link.health().text
            bridge.answers["hello"] = lambda r: bridge.reply(r, {"protocol": 3})
            until(lambda: "speaks protocol 3" in link.health().text)
            bridge.answers["hello"] = good
            until(lambda: link.description is not None)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("layout", {"signals": []}, "no signals"),
        ("layout", {"signals": [{"name": "x", "labels": ["a"], "units": ["ell"]}]}, "ell"),
        ("telemetry", 0, "port"),
        ("rate", float("nan"), "rate"),
        ("name", "x" * 5000, "too long"),
        ("role", "boss", "role"),
        ("instance", "", "instance"),
    ],
)
def test_that_a_bad_description_is_explained(field, value, complaint):
    with RawBridge() as bridge:
        bridge.description[field] = value
        with Link(bridge.control) as link:
            until(lambda: complaint in link.health().text)
            assert "answers, but its description is not valid" in link.health().text


def test_that_silence_is_told_from_absence(bridge, link):
    bridge.send(0, [1])
    received(link, 1)
    until(lambda: link.health().state == "silent")
    assert "it still answers; is the robot's bridge publishing?" in link.health().text
    bridge.send(1, [2])
    until(lambda: link.health().state == "streaming")


def test_that_events_arrive_once_and_in_order():
    events = []
    with RawBridge() as bridge:
        bridge.event(0, published=False)
        with Link(bridge.control, on_event=events.append) as link:
            bridge.subscribed()
            until(lambda: len(events) == 1)
            bridge.event(1, published=False)
            bridge.event(2)
            bridge.event(2, kept=False)
            bridge.event(4, published=False, kept=False)
            bridge.event(3)
            until(lambda: len(events) == 4)
            bridge.event(4, published=False)  # nothing follows that would show the gap
            until(lambda: len(events) == 5)
            assert [event.seq for event in events] == [0, 1, 2, 3, 4]
            assert link.health().events_lost == 0


def test_that_events_nobody_has_any_more_are_counted():
    events = []
    with RawBridge() as bridge:
        bridge.event(50, published=False)
        with Link(bridge.control, on_event=events.append) as link:
            bridge.subscribed()
            until(lambda: events)
            assert link.health().events_lost == 0  # they were before our time
            bridge.event(54, kept=False)
            until(lambda: len(events) == 2)
            assert link.health().events_lost == 3


def test_that_many_missed_events_are_fetched_in_portions():
    events = []
    with Endpoint(role="twin", name="t", layout=LAYOUT, rate=1.0) as endpoint:
        for k in range(5000):
            endpoint.event("info", "k", "text", k=k)
        with Link(endpoint.control, on_event=events.append):
            until(lambda: len(events) == 5000)
            assert [event.data["k"] for event in events] == list(range(5000))


def test_that_a_restarted_source_has_events_and_a_clock_of_its_own():
    events = []
    with RawBridge() as bridge:
        for seq in range(3):
            bridge.event(seq, published=False)
        with Link(bridge.control, on_event=events.append) as link:
            until(lambda: len(events) == 3 and link.clock is not None)
            bridge.events.clear()
            bridge.answers["ping"] = lambda r: bridge.reply(r, {"received": 5, "sent": 5})
            bridge.description["instance"] = "again"
            bridge.event(0, published=False)
            until(lambda: len(events) == 4)
            assert [(e.instance, e.seq) for e in events[2:]] == [("feed", 2), ("again", 0)]
            until(lambda: link.clock is not None and link.clock.offset < -1.0)
            assert link.health().events_lost == 0


def test_that_the_clock_of_the_source_is_found(blocks):
    ahead = 3_600_000_000_000

    def clock():
        return time.monotonic_ns() + ahead

    with (
        Endpoint(role="cell", name="c", layout=LAYOUT, rate=10.0, clock=clock) as endpoint,
        Link(endpoint.control, sinks=[blocks.append]) as link,
    ):
        until(lambda: link.clock is not None)
        until(lambda: endpoint.publish(np.array([clock()]), np.zeros((1, 2))) >= 0 and blocks)
        model = link.clock
        assert abs(model.offset - 3600.0) <= model.bound
        time.sleep(0.11)  # the figures are computed anew ten times a second
        health = link.health()
        assert 0 <= health.latency_p50 + model.bound < 60.0
        assert health.offset_bound < 60.0


def handlers():
    def fail(args):
        raise SceneError("no such scene", where=args["path"], hint="look again")

    def break_(args):
        return 1 / 0

    calls = {"echo": lambda args: args, "fail": fail, "break": break_, "set": lambda _: {1, "a"}}
    return {
        name: Handler(protocol.Operation(name=name, help=name), call)
        for name, call in calls.items()
    }


@pytest.fixture
def served():
    with (
        Endpoint(role="twin", name="t", layout=LAYOUT, rate=1.0, operations=handlers()) as endpoint,
        Link(endpoint.control) as link,
    ):
        yield endpoint, link


def test_that_requests_are_answered_to_many_threads(served):
    _, link = served
    wrong = []

    def ask(k):
        for j in range(20):
            answer = link.request("echo", timeout=20.0, k=k, j=j)
            wrong.extend([answer] if answer != {"k": k, "j": j} else [])

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_that_refusals_come_as_one_line(served):
    _, link = served
    with pytest.raises(LinkError, match="no such scene; look again"):
        link.request("fail", path="x.toml")
    with pytest.raises(LinkError, match=r"unknown operation 'dance'; known: hello, .*echo"):
        link.request("dance")
    with pytest.raises(LinkError, match="cannot be sent"):
        link.request("echo", what=object())


def test_that_a_broken_handler_raises_an_alarm_and_the_endpoint_lives_on(served):
    _, link = served
    events = []
    link._on_event = events.append
    with pytest.raises(LinkError, match="internal error: ZeroDivisionError"):
        link.request("break")
    until(lambda: any(event.code == "internal-error" for event in events))
    assert link.request("echo", x=1) == {"x": 1}


def test_that_no_answer_in_time_is_an_error(bridge, link):
    with pytest.raises(LinkError, match=r"no answer to 'dance' within 0\.1 s"):
        link.request("dance", timeout=0.1)


def test_that_a_request_to_nobody_is_never_sent_later():
    with RawBridge() as first:
        control, ports = first.control, first.ports
    with Link(control) as link:
        with pytest.raises(LinkError, match="nobody answers"):
            link.request("move", timeout=0.05)
        with RawBridge(control=ports[0]) as bridge:
            bridge.subscribed()
            until(lambda: len(bridge.asked) > 3)
            assert "move" not in [request["op"] for request in bridge.asked]


def test_that_a_sink_cannot_block_its_own_link(bridge):
    errors = []

    def sink(block):
        try:
            link.request("hello")
        except LinkError as error:
            errors.append(str(error))

    with Link(bridge.control, sinks=[sink]) as link:
        bridge.subscribed()
        bridge.send(0, [1])
        until(lambda: errors)
        assert "ask from another thread" in errors[0]


def test_that_a_failing_sink_is_named_and_the_others_go_on(bridge, link, blocks):
    def bad_sink(block):
        raise ValueError("full")

    link.add_sink(bad_sink)
    bridge.send(0, [1])
    bridge.send(1, [2])
    received(link, 2)
    assert "bad_sink failed: ValueError: full" in link.health().text
    assert len(blocks) == 2
    link.remove_sink(bad_sink)


@pytest.mark.parametrize("address", ["", "tcp://", "tcp://h:0", "tcp://h:99999", "ipc://x", "h:1"])
def test_that_an_address_that_is_none_is_refused(address):
    with pytest.raises(LinkError, match=r"tcp://HOST:PORT"):
        Link(address)


def test_that_garbage_is_counted_and_survived(bridge, link):
    rubbish = [
        [b"telemetry"],
        [b"telemetry", b"\xc1", b"", b""],
        [b"event", b"\x80"],
        [b"event", b"\xff" * 100_000],
        [b"what"],
        [b"telemetry", msgpack.packb(bridge.header(0)), b"short", b""],
        [b"telemetry", msgpack.packb(bridge.header(2**63)), bytes(8), bytes(16)],
        [b"telemetry", msgpack.packb(bridge.header(-1)), bytes(8), bytes(16)],
        [b"telemetry", b"\x91" * 60_000, bytes(8), bytes(16)],
    ]
    for frames in rubbish:
        bridge.pub.send_multipart(frames)
    bridge.answers["ping"] = lambda _: b"\xc1\xc1"
    bridge.send(0, [1])
    received(link, 1)
    until(lambda: link.health().garbage > len(rubbish))
    assert link.health().state != "closed"
    bridge.answers["ping"] = lambda r: bridge.reply(r, {"received": 2**63, "sent": -(2**63)})
    count = link.health().garbage
    until(lambda: link.health().garbage > count)


@pytest.fixture(scope="module")
def fuzzed():
    with RawBridge() as bridge, Link(bridge.control) as link:
        bridge.subscribed()
        yield bridge, link


words = st.sampled_from([b"telemetry", b"event", b"image", b""])
keys = st.sampled_from(["v", "instance", "layout", "first", "n", "width", "seq", "id", "ok", "x"])
atoms = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=9)
)
packed = st.dictionaries(keys, atoms).map(msgpack.packb)
bodies = st.one_of(st.binary(max_size=200), packed)
numbers = iter(range(10**9))


@given(st.lists(st.lists(st.one_of(words, bodies), min_size=1, max_size=5), max_size=5), bodies)
@settings(max_examples=60, deadline=None)
def test_that_no_bytes_stop_a_link(fuzzed, messages, answer):
    bridge, link = fuzzed
    bridge.answers["ping"] = lambda _: answer
    for frames in messages:
        bridge.pub.send_multipart(frames)
    samples = link.health().received
    bridge.send(next(numbers), [time.monotonic_ns()])
    received(link, samples + 1)


fields = st.sampled_from(list(protocol.Description.__struct_fields__))
trees = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
signals = st.fixed_dictionaries({"name": trees, "labels": trees, "units": trees})
GOOD = {
    "protocol": 1,
    "instance": "i",
    "role": "cell",
    "name": "n",
    "software": "s",
    "telemetry": 1,
    "revision": 1,
    "layout": plain(LAYOUT),
    "rate": 1.0,
}


@given(st.one_of(trees, st.dictionaries(fields, trees).map(lambda odd: GOOD | odd), signals))
def test_that_any_answer_to_hello_is_a_description_or_a_protocol_error(result):
    if set(result if isinstance(result, dict) else ()) == {"name", "labels", "units"}:
        result = GOOD | {"layout": {"signals": [result]}}
    reply = protocol.Reply(v=1, id=1, ok=True, result=result)
    answers.other_version(reply)
    with suppress(ProtocolError):
        answers.read_description(reply)


def test_that_a_description_as_it_should_be_is_taken():
    reply = protocol.Reply(v=1, id=1, ok=True, result=GOOD)
    assert answers.read_description(reply).layout == LAYOUT


def test_that_nothing_is_left_after_close():
    process = psutil.Process()
    with RawBridge() as bridge:
        for connect in (bridge.control, "tcp://127.0.0.1:9"):  # warm up what stays for good
            Link(connect).close()
    threads, files, tasks = threading.active_count(), process.num_fds(), process.num_threads()
    for _ in range(3):
        with RawBridge() as bridge:
            link = Link(bridge.control)
            bridge.subscribed()
            link.close()
            link.close()
            assert link.health().state == "closed"
            with pytest.raises(LinkError, match="closed"):
                link.request("hello")
            Link(bridge.control).close()
    until(lambda: process.num_fds() <= files)
    until(lambda: process.num_threads() <= tasks)
    assert threading.active_count() == threads


def test_that_closing_ends_a_request_under_way(bridge):
    link = Link(bridge.control)
    bridge.subscribed()
    errors = []

    def ask():
        try:
            link.request("dance", timeout=60.0)
        except LinkError as error:
            errors.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: any(request["op"] == "dance" for request in bridge.asked))
    link.close()
    thread.join()
    assert "closed" in errors[0]


def test_that_a_message_over_the_size_limit_does_not_make_the_link_deaf(bridge, link):
    bridge.send(0, [1])
    received(link, 1)
    bridge.pub.send_multipart([b"telemetry", bytes(protocol.MAX_FRAME + 1)])
    first = 1

    def heard_again():
        nonlocal first
        bridge.send(first, [1 + first])
        first += 1
        time.sleep(0.05)
        return link.health().received > 1

    until(heard_again)
    assert link.health().garbage == 1


def test_that_a_reply_over_the_size_limit_does_not_make_the_link_mute(bridge, link):
    bridge.send(0, [1])
    received(link, 1)
    bridge.answers["big"] = lambda _: bytes(protocol.MAX_FRAME + 1)
    with pytest.raises(LinkError, match="no answer to 'big'"):
        link.request("big", timeout=0.2)
    bridge.answers["small"] = lambda request: bridge.reply(request, "here")

    def answered():
        with suppress(LinkError):
            return link.request("small", timeout=0.5) == "here"
        return False

    until(answered)


def test_that_messages_that_cannot_be_read_are_not_called_silence(bridge, link):
    bridge.send(0, [1])
    received(link, 1)

    def complained():
        bridge.pub.send_multipart([b"telemetry", msgpack.packb(bridge.header(1)), bytes(8), b"x"])
        time.sleep(0.05)
        return "cannot be read: payload has 8 and 1 bytes" in link.health().text

    until(complained)
    assert link.health().state == "silent"


def test_that_stamps_its_clock_cannot_have_shown_are_counted_and_said(bridge, link, blocks):
    until(lambda: link.clock is not None)
    now = time.monotonic_ns()
    bridge.send(0, [now, now + 3600 * 10**9])
    received(link, 2)
    until(lambda: "stamps that its clock cannot have shown" in link.health().text)
    assert link.health().astray == 1
    assert len(blocks[-1]) == 2  # handed on: a recording keeps what was sent
