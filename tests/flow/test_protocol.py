"""The protocol page says what the code does, to the byte."""

import re
from pathlib import Path

import msgpack
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twinstudio
from twinstudio.flow import protocol, serve
from twinstudio.model.block import Block
from twinstudio.model.errors import ProtocolError
from twinstudio.model.quantity import UNITS
from twinstudio.model.signals import MAX_WIDTH, Layout, Signal, joint_signals

PAGE = (Path(twinstudio.__file__).parent / "docs" / "protocol.md").read_text(encoding="utf-8")
LAYOUT = Layout(joint_signals(("a", "b"), kinds=("joint.position",)))


def example(name):
    match = re.search(rf"```hex {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
    assert match, f"the page has no example {name}"
    return bytes.fromhex(match.group(1))


def test_that_the_example_of_telemetry_is_true_to_the_byte():
    block = Block(
        LAYOUT,
        np.array([1_000_000_000, 1_001_000_000], dtype=np.int64),
        np.array([[0.5, -1.25], [0.5, np.nan]]),
        first=4000,
    )
    frames = protocol.encode_telemetry(block, instance="9f86d081884c7d65", layout=1)
    assert [bytes(f) for f in frames] == [example(f"telemetry.{k}") for k in range(4)]


def test_that_the_example_of_a_ping_is_true_to_the_byte():
    request = protocol.decode(example("ping.request"), protocol.Request)
    assert request == protocol.Request(v=1, id=7, op="ping", args={})
    assert protocol.encode(request) == example("ping.request")
    reply = protocol.decode(example("ping.reply"), protocol.Reply)
    pong = msgspec.convert(reply.result, protocol.Pong)
    assert pong == protocol.Pong(received=5_000_000_000, sent=5_000_004_000)


@pytest.mark.parametrize(
    "struct",
    [
        protocol.TelemetryHeader,
        protocol.Event,
        protocol.ImageHeader,
        protocol.Request,
        protocol.Reply,
        protocol.Operation,
        protocol.Description,
        protocol.Pong,
        Layout,
        Signal,
    ],
)
def test_that_every_field_stands_in_the_page(struct):
    missing = [field for field in struct.__struct_fields__ if f"`{field}`" not in PAGE]
    assert not missing


def test_that_every_limit_stands_in_the_page():
    limits = (
        protocol.MAX_FRAME,
        protocol.MAX_HEADER,
        protocol.MAX_SAMPLES,
        protocol.MAX_TEXT,
        MAX_WIDTH,
        serve.EVENTS_PER_REPLY,
        serve.KEPT_EVENTS,
        serve.SEND_QUEUE,
    )
    assert not [limit for limit in limits if not re.search(rf"\b{limit}\b", PAGE)]
    assert f"version {protocol.VERSION}" in PAGE


def test_that_the_units_of_the_page_are_known():
    listed = re.search(r"multiples that files may use: (.*?)\.\n", PAGE, re.DOTALL)
    names = re.findall(r"`([^`]+)`", listed.group(1))
    assert len(names) > 10
    for name in names:
        assert UNITS[name].factor == 1.0


def test_that_an_unknown_field_is_ignored_and_a_missing_one_is_not():
    fields = {"v": 1, "id": 1, "op": "hello"}
    assert protocol.decode(msgpack.packb(fields | {"new": 5}), protocol.Request).op == "hello"
    with pytest.raises(ProtocolError, match="op"):
        protocol.decode(msgpack.packb({"v": 1, "id": 1}), protocol.Request)


def test_that_another_version_is_named():
    with pytest.raises(ProtocolError, match="version 2; this end speaks version 1"):
        protocol.decode(msgpack.packb({"v": 2, "other": 1}), protocol.Request)


@given(
    st.integers(1, 20),
    st.integers(0, 2**62),
    st.data(),
)
def test_that_a_block_survives_the_wire_bit_by_bit(n, first, data):
    raw = data.draw(st.binary(min_size=n * 24, max_size=n * 24))
    stamps = np.frombuffer(raw[: 8 * n], dtype="<i8")
    values = np.frombuffer(raw[8 * n :], dtype="<f8").reshape(n, 2)
    block = Block(LAYOUT, stamps, values, first)
    frames = [bytes(f) for f in protocol.encode_telemetry(block, instance="i", layout=3)]
    header = protocol.telemetry_header(frames)
    back = protocol.decode_telemetry(header, frames, LAYOUT, received=5)
    assert (header.layout, back.first, back.received) == (3, first, 5)
    assert back.stamps.tobytes() == stamps.tobytes()
    assert back.values.tobytes() == values.tobytes()
    assert not back.values.flags.writeable


@given(st.lists(st.binary(max_size=100), max_size=6))
def test_that_random_frames_raise_nothing_but_protocol_errors(frames):
    with pytest.raises(ProtocolError):
        protocol.telemetry_header([b"telemetry", *frames])
