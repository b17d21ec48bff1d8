"""An endpoint answers what it understands, says why not else, and never blocks."""

import threading
import time

import msgpack
import numpy as np
import psutil
import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_helpers import LAYOUT, WIDER, until

from twinstudio.flow import protocol, serve
from twinstudio.flow.protocol import Operation
from twinstudio.flow.serve import Endpoint, Handler
from twinstudio.model.errors import LayoutError, LinkError, ProtocolError
from twinstudio.model.signals import Layout, Signal


def make(**other):
    settings = {"role": "cell", "name": "c", "layout": LAYOUT, "rate": 10.0}
    return Endpoint(**(settings | other))


class Client:
    """A plain socket that asks."""

    def __init__(self, endpoint, kind=zmq.DEALER):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.linger = 0
        self.socket.connect(endpoint.control)

    def ask(self, **fields):
        self.socket.send(msgpack.packb({"v": 1, "id": 1, **fields}))
        return self.answer()

    def answer(self):
        assert self.socket.poll(10_000), "no reply"
        return msgpack.unpackb(self.socket.recv())

    def close(self):
        self.context.destroy(linger=0)


@pytest.fixture(scope="module")
def endpoint():
    with make() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def client(endpoint):
    client = Client(endpoint)
    yield client
    client.close()


@pytest.fixture
def listener():
    context = zmq.Context()
    sub = context.socket(zmq.SUB)
    yield sub
    context.destroy(linger=0)


def listen(sub, endpoint):
    """Subscribe, and wait until messages come through."""
    sub.connect(f"tcp://127.0.0.1:{endpoint.description.telemetry}")
    sub.subscribe(b"")
    until(lambda: endpoint.event("info", "knock", "is it open?") and sub.poll(10))
    mark = endpoint.event("info", "open", "it is").seq
    while msgpack.unpackb(sub.recv_multipart()[1])["seq"] < mark:
        pass


def test_that_hello_describes_the_endpoint(endpoint, client):
    reply = client.ask(op="hello")
    assert (reply["v"], reply["id"], reply["ok"]) == (1, 1, True)
    result = reply["result"]
    assert (result["protocol"], result["role"], result["revision"]) == (1, "cell", 1)
    assert result["instance"] == endpoint.instance
    assert len(bytes.fromhex(result["instance"])) == 8
    assert [s["name"] for s in result["layout"]["signals"]] == ["joint.position"]


def test_that_a_pong_has_two_stamps_of_the_endpoints_clock(client):
    before = time.monotonic_ns()
    result = client.ask(op="ping")["result"]
    assert before <= result["received"] <= result["sent"] <= time.monotonic_ns()


def test_that_a_req_socket_is_answered_too(endpoint):
    client = Client(endpoint, zmq.REQ)
    assert client.ask(op="ping")["ok"]
    client.close()


def test_that_every_start_is_another_instance(endpoint):
    with make() as other:
        assert other.instance != endpoint.instance


@pytest.mark.parametrize(
    ("request_fields", "complaint"),
    [
        ({"op": "dance"}, "unknown operation 'dance'; known: hello, ping, events"),
        ({"op": "hello", "v": 2}, "protocol version 2; this end speaks version 1"),
        ({"op": 5}, "not a valid Request"),
        ({"op": "hello", "args": []}, "not a valid Request"),
        ({"op": "events"}, "events needs 'since'"),
        ({"op": "events", "args": {"since": -1}}, "events needs 'since'"),
        ({"op": "events", "args": {"since": True}}, "events needs 'since'"),
    ],
)
def test_that_a_request_that_cannot_be_met_is_answered(client, request_fields, complaint):
    reply = client.ask(**({"id": 77} | request_fields))
    assert (reply["id"], reply["ok"], reply["v"]) == (77, False, 1)
    assert complaint in reply["error"]


def test_that_garbage_is_counted(endpoint, client):
    count = endpoint.garbage
    for frames in ([b"\xc1"], [b"", b""], [b"a", b"b"], [b"a", b"b", b"c"], [b"\x91" * 5000]):
        client.socket.send_multipart(frames)
    client.socket.send(msgpack.packb({"op": "hello"}))
    assert client.ask(op="hello")["ok"]
    assert endpoint.garbage == count + 6


bodies = st.one_of(
    st.binary(max_size=300),
    st.dictionaries(
        st.sampled_from(["v", "op", "args", "x"]),
        st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=5), st.none()),
    ).map(msgpack.packb),
)


@given(st.lists(st.lists(bodies, min_size=1, max_size=4), max_size=6))
@settings(max_examples=60, deadline=None)
def test_that_no_bytes_stop_an_endpoint(endpoint, client, messages):
    for frames in messages:
        client.socket.send_multipart(frames)
    mark = 2**40
    client.socket.send(msgpack.packb({"v": 1, "id": mark, "op": "ping", "args": {}}))
    until(lambda: client.answer()["id"] == mark)


def test_that_samples_are_numbered_through(listener):
    with make() as endpoint:
        listen(listener, endpoint)
        for n in (3, 0, 1, 2):
            endpoint.publish(np.arange(n, dtype=np.int64), np.full((n, 2), float(n)))
        headers = []
        for _ in range(3):
            topic, header, stamps, values = listener.recv_multipart()
            assert topic == b"telemetry"
            header = msgpack.unpackb(header)
            headers.append((header["first"], header["n"], header["width"], header["layout"]))
            n = header["n"]
            assert np.array_equal(np.frombuffer(stamps, "<i8"), np.arange(n))
            assert np.array_equal(np.frombuffer(values, "<f8"), np.full(2 * n, float(n)))
        assert headers == [(0, 3, 2, 1), (3, 1, 2, 1), (4, 2, 2, 1)]


def test_that_a_big_block_goes_out_in_parts(listener, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_SAMPLES", 4)
    with make() as endpoint:
        listen(listener, endpoint)
        endpoint.publish(np.arange(10, dtype=np.int64), np.zeros((10, 2)))
        headers = [msgpack.unpackb(listener.recv_multipart()[1]) for _ in range(3)]
        assert [(h["first"], h["n"]) for h in headers] == [(0, 4), (4, 4), (8, 2)]


def test_that_a_new_layout_has_a_new_revision_and_numbering_goes_on(listener):
    with make() as endpoint:
        listen(listener, endpoint)
        endpoint.publish(np.zeros(2, dtype=np.int64), np.zeros((2, 2)))
        endpoint.relayout(WIDER)
        endpoint.publish(np.zeros(1, dtype=np.int64), np.zeros((1, 4)))
        headers = [msgpack.unpackb(listener.recv_multipart()[1]) for _ in range(2)]
        assert [(h["first"], h["width"], h["layout"]) for h in headers] == [(0, 2, 1), (2, 4, 2)]
        client = Client(endpoint)
        assert client.ask(op="hello")["result"]["revision"] == 2
        client.close()


@pytest.mark.parametrize(
    ("stamps", "values"),
    [
        (np.zeros(1), np.zeros((1, 2))),
        (np.zeros(1, dtype=np.int64), np.zeros((1, 3))),
        (np.zeros(1, dtype=np.int64), np.zeros((2, 2))),
        (np.zeros(1, dtype=np.int64), np.zeros((1, 2), dtype=np.float32)),
    ],
)
def test_that_samples_of_the_wrong_shape_are_refused(endpoint, stamps, values):
    with pytest.raises(LayoutError):
        endpoint.publish(stamps, values)


def test_that_publishing_never_blocks_on_a_subscriber_that_does_not_read(listener, monkeypatch):
    monkeypatch.setattr(serve, "SEND_QUEUE", 10)
    listener.rcvhwm = 1
    with make() as endpoint:
        listen(listener, endpoint)
        stamps, values = np.zeros(10_000, dtype=np.int64), np.zeros((10_000, 2))
        thread = threading.Thread(
            target=lambda: [endpoint.publish(stamps, values) for _ in range(500)]
        )
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        seen = []
        while listener.poll(500):
            seen.append(msgpack.unpackb(listener.recv_multipart()[1])["first"])
        assert len(seen) < 500
        assert seen == sorted(seen)


def test_that_images_go_out_numbered_by_camera(listener):
    with make() as endpoint:
        listen(listener, endpoint)
        pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
        for camera in ("left", "right", "left"):
            endpoint.image(camera, 5, pixels)
        seen = []
        for _ in range(3):
            topic, header, payload = listener.recv_multipart()
            header = msgpack.unpackb(header)
            assert (topic, payload, header["stamp"]) == (b"image", pixels.tobytes(), 5)
            assert (header["height"], header["width"]) == (2, 4)
            seen.append((header["camera"], header["seq"]))
        assert seen == [("left", 0), ("right", 0), ("left", 1)]
        with pytest.raises(ProtocolError, match="uint8"):
            endpoint.image("left", 5, pixels[:, :, 0])


def test_that_events_are_kept_for_those_who_missed_them(monkeypatch):
    monkeypatch.setattr(serve, "KEPT_EVENTS", 300)
    with make() as endpoint:
        client = Client(endpoint)
        for k in range(1000):
            endpoint.event("warning", "k", f"number {k}", k=k)
        events = client.ask(op="events", args={"since": 0})["result"]
        assert [e["seq"] for e in events] == list(range(700, 956))
        assert events[0]["data"] == {"k": 700}
        assert events[0]["level"] == "warning"
        events = client.ask(op="events", args={"since": 998})["result"]
        assert [e["seq"] for e in events] == [998, 999]
        assert client.ask(op="events", args={"since": 5000})["result"] == []
        client.close()


def test_that_an_event_that_cannot_be_sent_is_refused_and_takes_no_number(endpoint):
    before = endpoint.event("info", "a", "b").seq
    with pytest.raises(ProtocolError, match="at most 4096"):
        endpoint.event("info", "a", "x" * 5000)
    with pytest.raises(ProtocolError, match="cannot hold"):
        endpoint.event("info", "a", "b", what=object())
    with pytest.raises(ProtocolError, match="at most"):
        endpoint.event("info", "a", "b", what="x" * 70_000)
    assert endpoint.event("info", "a", "b").seq == before + 1


def test_that_events_come_from_many_threads_in_order(listener):
    listener.rcvhwm = 0
    with make() as endpoint:
        listen(listener, endpoint)
        first = endpoint.event("info", "start", "").seq

        def tell():
            for _ in range(100):
                endpoint.event("info", "k", "")
                endpoint.publish(np.zeros(1, dtype=np.int64), np.zeros((1, 2)))

        threads = [threading.Thread(target=tell) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        messages = [listener.recv_multipart() for _ in range(801)]
        events = [msgpack.unpackb(m[1])["seq"] for m in messages if m[0] == b"event"]
        samples = [msgpack.unpackb(m[1])["first"] for m in messages if m[0] == b"telemetry"]
        assert events == list(range(first, first + 401))
        assert samples == list(range(400))


def test_that_reserved_operations_and_empty_layouts_are_refused():
    handler = Handler(Operation(name="ping", help=""), lambda args: args)
    with pytest.raises(LinkError, match="reserved"):
        make(operations={"ping": handler})
    with pytest.raises(LinkError, match="called otherwise"):
        make(operations={"pong": handler})
    with pytest.raises(LinkError, match="columns"):
        make(layout=Layout(()))
    with pytest.raises(LinkError, match="a rate of nan Hz"):
        make(rate=float("nan"))


def test_that_a_taken_port_is_one_clear_line(endpoint):
    port = int(endpoint.control.rsplit(":", 1)[1])
    with pytest.raises(LinkError, match=rf"cannot listen on tcp://127\.0\.0\.1:{port}: Address"):
        make(control_port=port)


def test_that_a_reply_to_stop_gets_out_before_the_end():
    stopped = threading.Event()
    handler = Handler(Operation(name="stop", help=""), lambda _: stopped.set() or "bye")
    for _ in range(5):
        stopped.clear()
        with make(operations={"stop": handler}) as endpoint:
            client = Client(endpoint)
            client.socket.send(msgpack.packb({"v": 1, "id": 1, "op": "stop", "args": {}}))
            assert stopped.wait(10)
        assert client.answer()["result"] == "bye"
        client.close()


def test_that_an_endpoint_can_close_itself_from_a_handler():
    endpoint = make(
        operations={"stop": Handler(Operation(name="stop", help=""), lambda _: endpoint.close())}
    )
    client = Client(endpoint)
    assert client.ask(op="stop")["ok"]
    until(lambda: not endpoint._thread.is_alive())
    client.close()


def test_that_a_closed_endpoint_says_so():
    endpoint = make()
    endpoint.close()
    endpoint.close()
    with pytest.raises(LinkError, match="closed"):
        endpoint.publish(np.zeros(1, dtype=np.int64), np.zeros((1, 2)))
    with pytest.raises(LinkError, match="closed"):
        endpoint.event("info", "a", "b")


def test_that_nothing_is_left_after_close():
    process = psutil.Process()
    make().close()
    files, tasks, threads = process.num_fds(), process.num_threads(), threading.active_count()
    for _ in range(3):
        with make() as endpoint:
            client = Client(endpoint)
            client.ask(op="hello")
            endpoint.publish(np.zeros(1, dtype=np.int64), np.zeros((1, 2)))
        client.close()
        with pytest.raises(LinkError):
            make(host="nowhere.invalid", security=serve.Security(insecure=True))
    until(lambda: process.num_fds() <= files)
    until(lambda: process.num_threads() <= tasks)
    assert threading.active_count() == threads


def test_that_wide_signals_fit(endpoint):
    labels = tuple(f"c{k}" for k in range(4096))
    layout = Layout((Signal(name="x", labels=labels, units=("m",) * 4096),))
    with make(layout=layout) as wide:
        client = Client(wide)
        assert len(client.ask(op="hello")["result"]["layout"]["signals"][0]["labels"]) == 4096
        client.close()
