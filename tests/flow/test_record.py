"""What is written is what is read, here and in other people's libraries."""

import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from record_helpers import JOINTS, LAYOUT, SMALL, announced, block, same_bits
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.protocol import VERSION, Event
from twinstudio.flow.record import RecordingWriter, SourceDescription, read_recording
from twinstudio.flow.record.ros import LAST_STAMP, parts
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError
from twinstudio.model.provenance import provenance
from twinstudio.model.signals import Layout, Signal, joint_signals
from twinstudio.model.views import Entry

LAYOUTS = (
    LAYOUT,
    SMALL,
    Layout(joint_signals(("ä b", "x/y"), kinds=("joint.velocity", "command.effort"))),
    Layout((Signal(name="imu.rate", labels=("x", "y", "z"), units=("rad/s",) * 3),)),
)


def test_that_values_stamps_and_numbers_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    blocks = [block(first=5, received=77), block(first=15, start=10**7, received=99)]
    odd = blocks[0].values.copy()
    odd[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    odd[1, 0] = np.array([0x7FF8DEADBEEF0001], dtype=np.uint64).view(np.float64)[0]
    blocks[0] = Block(LAYOUT, blocks[0].stamps, odd, 5, 77)
    with announced(path, "cell") as writer:
        for each in blocks:
            writer.write("cell", each)
    source = read_recording(path).sources["cell"]
    assert source.layout == source.block.layout == LAYOUT
    assert (source.role, source.name, source.rate) == ("cell", "the cell", 1000.0)
    for told, wanted in zip(source.main.blocks(), blocks, strict=True):
        assert same_bits(told.values, wanted.values)
        assert np.array_equal(told.stamps, wanted.stamps)
        assert (told.first, told.received) == (wanted.first, wanted.received)


@st.composite
def written(draw: st.DrawFn) -> Block:
    layout = draw(st.sampled_from(LAYOUTS))
    count = draw(st.integers(0, 6))
    stamps = draw(st.lists(st.integers(0, LAST_STAMP), min_size=count, max_size=count))
    bits = draw(
        st.lists(
            st.integers(0, 2**64 - 1), min_size=count * layout.width, max_size=count * layout.width
        )
    )
    values = np.array(bits, dtype=np.uint64).view(np.float64).reshape(count, layout.width)
    first = draw(
        st.one_of(st.integers(0, 100), st.integers(2**32 - 9, 2**32 + 9), st.just(2**63 - 9))
    )
    received = draw(st.one_of(st.none(), st.integers(0, 2**63 - 1)))
    return Block(layout, np.array(stamps, dtype=np.int64), values.copy(), first, received)


@settings(max_examples=60, deadline=None)
@given(st.lists(written(), max_size=6))
def test_that_any_blocks_come_back_in_order(blocks: list[Block]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mcap"
        with announced(path, "twin") as writer:
            for each in blocks:
                writer.write("twin", each)
        source = read_recording(path).sources["twin"]
    told = [b for stretch in source.stretches for b in stretch.blocks()]
    rows = [row for b in blocks for row in _rows(b)]
    assert [row for b in told for row in _rows(b)] == rows


def _rows(each: Block) -> list[tuple[object, ...]]:
    return [
        (each.layout.digest, int(s), v.tobytes(), each.first + k, each.received)
        for k, (s, v) in enumerate(zip(each.stamps, each.values, strict=True))
    ]


def test_that_every_column_of_a_layout_is_stored_once() -> None:
    for layout in LAYOUTS:
        columns = [c for part in parts(layout) for some in part.columns for c in some]
        assert sorted(columns) == list(range(layout.width))


def test_that_joint_signals_of_other_joints_do_not_share_a_message() -> None:
    layout = Layout(
        joint_signals(("a", "b"), kinds=("joint.position",))
        + joint_signals(("b",), kinds=("joint.effort",))
    )
    assert [part.topic for part in parts(layout)] == ["joint_states", "signals"]


def test_that_the_mcap_library_decodes_joint_states(tmp_path: Path) -> None:
    path, wanted = _one_block(tmp_path)
    with path.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        assert reader.get_header().profile == "ros2"
        topics: dict[str, list[object]] = {}
        for schema, channel, message, told in reader.iter_decoded_messages():
            assert schema is not None
            topics.setdefault(f"{channel.topic} {schema.name}", []).append((message, told))
    assert {topic: len(messages) for topic, messages in topics.items()} == {
        "/cell/joint_states sensor_msgs/msg/JointState": 10,
        "/cell/command sensor_msgs/msg/JointState": 10,
        "/cell/signals twinstudio_msgs/msg/Samples": 10,
    }
    for k, (message, told) in enumerate(topics["/cell/joint_states sensor_msgs/msg/JointState"]):
        stamp = told.header.stamp.sec * 10**9 + told.header.stamp.nanosec
        assert stamp == message.publish_time == wanted.stamps[k]
        assert (message.log_time, message.sequence) == (555, 3 + k)
        assert tuple(told.name) == JOINTS
        assert list(told.velocity) == []
        assert list(told.position) == wanted.of("joint.position")[k].tolist()
        assert list(told.effort) == wanted.of("joint.effort")[k].tolist()
    for k, (_, told) in enumerate(topics["/cell/signals twinstudio_msgs/msg/Samples"]):
        assert told.name[0] == "tcp.pose/x"
        assert told.value[:7] == wanted.of("tcp.pose")[k].tolist()


def test_that_the_rosbags_library_decodes_joint_states_with_its_own_types(tmp_path: Path) -> None:
    path, wanted = _one_block(tmp_path)
    store = get_typestore(Stores.ROS2_HUMBLE)
    with AnyReader([path]) as bag:
        assert bag.message_count == 30
        chosen = [c for c in bag.connections if c.topic == "/cell/command"]
        assert [c.msgtype for c in chosen] == ["sensor_msgs/msg/JointState"]
        told = [store.deserialize_cdr(raw, c.msgtype) for c, _, raw in bag.messages(chosen)]
        samples = [c for c in bag.connections if c.topic == "/cell/signals"]
        values = [bag.deserialize(raw, c.msgtype).value for c, _, raw in bag.messages(samples)]
    assert same_bits(np.array([m.velocity for m in told]), wanted.of("command.velocity"))
    assert all(len(m.position) == 0 and len(m.effort) == 0 for m in told)
    assert same_bits(np.array(values)[:, -1:], wanted.of("ambient.temperature"))


def _one_block(tmp_path: Path) -> tuple[Path, Block]:
    path = tmp_path / "a.mcap"
    wanted = block(first=3, start=1_999_999_995, received=555)
    with announced(path, "cell") as writer:
        writer.write("cell", wanted)
    return path, wanted


@pytest.mark.parametrize("stamp", [-1, LAST_STAMP + 1, 2**63 - 1, -(2**63)])
def test_that_a_stamp_ros_cannot_hold_is_refused_and_nothing_of_its_block_written(
    tmp_path: Path, stamp: int
) -> None:
    path = tmp_path / "a.mcap"
    with announced(path, "cell", layout=SMALL) as writer:
        bad = Block(SMALL, np.array([5, stamp]), np.zeros((2, 1)))
        with pytest.raises(RecordingError, match="outside of what ROS time can hold"):
            writer.write("cell", bad)
        writer.write("cell", block(SMALL))
    assert len(read_recording(path).sources["cell"].block) == 10


def test_that_a_change_of_layout_opens_new_channels(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with announced(path, "cell") as writer:
        writer.write("cell", block())
        writer.write("cell", block(SMALL, 4, first=10, start=10**8))
        writer.write("cell", block(first=14, start=10**9))
    recording = read_recording(path)
    source = recording.sources["cell"]
    assert [(s.block.layout, len(s.block)) for s in source.stretches] == [
        (LAYOUT, 10), (SMALL, 4), (LAYOUT, 10),
    ]  # fmt: skip
    assert any("2 changes of layout" in line for line in recording.problems)


def test_that_sources_can_be_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with announced(path, "cell", "twin") as writer:
        writer.write("twin", block())
    assert list(read_recording(path, ["twin"]).sources) == ["twin"]
    assert "cell: no samples" in read_recording(path).problems
    with pytest.raises(RecordingError, match=r"no source 'arm'.*cell, twin"):
        read_recording(path, ["arm"])


def test_that_defects_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    values = np.zeros((5, 1))
    values[2] = np.nan
    with announced(path, "cell", layout=SMALL) as writer:
        writer.write("cell", Block(SMALL, np.array([10, 20, 20, 15, 40]), values, 0))
        writer.write("cell", Block(SMALL, np.array([50]), np.zeros((1, 1)), 12))
        writer.write("cell", Block(SMALL, np.array([60]), np.zeros((1, 1)), 0))
    recording = read_recording(path)
    source = recording.sources["cell"]
    assert (source.lost, source.restarts, source.repeated) == (7, 1, 1)
    assert (source.reversed, source.missing) == (1, 1)
    assert "cell: 7 samples lost, by sequence number" in recording.problems


def test_that_events_clocks_scene_and_provenance_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    made = provenance(seed=4)
    model = ClockModel(reference=10**12, shift=-(10**15) - 1, skew=1e-6, margin=2e-5)
    with RecordingWriter(path, scene_text="name = 'ä'\n", provenance=made) as writer:
        writer.source("cell", SourceDescription("cell", "x", SMALL))
        event = Event(
            v=VERSION,
            instance="i",
            seq=7,
            stamp=9,
            level="alarm",
            code="c",
            text="t",
            data={"a": 1},
        )
        writer.event("cell", event, at=123)
        writer.event("session", Entry(seq=1, stamp=5, level="info", kind="cell", text="hello"))
        writer.clock("cell", model, at=10**12)
        writer.note("remark")
    recording = read_recording(path)
    assert recording.scene_text == "name = 'ä'\n"
    assert recording.provenance == made
    assert recording.clocks["cell"][0].model() == model
    first, second, third = recording.events
    assert (first.source, first.at, first.event.data) == ("cell", 123, {"a": 1})
    assert (second.source, second.event.code, third.event.text) == ("session", "cell", "remark")
    assert recording.started is not None


def test_that_an_existing_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_text("precious")
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(path)
    assert path.read_text() == "precious"
    RecordingWriter(path, overwrite=True).close()
    assert read_recording(path).sources == {}


@pytest.mark.parametrize("name", ["", "session", "a/b", "1st", "cell\n"])
def test_that_a_name_no_topic_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with RecordingWriter(tmp_path / "a.mcap") as writer:
        with pytest.raises(RecordingError, match="cannot name a source"):
            writer.source(name, SourceDescription("cell", "x", SMALL))
        with pytest.raises(RecordingError, match="never announced"):
            writer.write("twin", block(SMALL))


@pytest.mark.parametrize("content", [b"", b"no mcap at all", b"PK\x03\x04" * 20])
def test_that_a_wrong_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="is no MCAP file") as caught:
        read_recording(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(RecordingError, match="cannot be read"):
        read_recording(tmp_path / "absent.mcap")


def test_that_a_large_block_is_spread_over_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    wanted = block(count=30_000)
    with announced(path, "cell") as writer:
        writer.write("cell", wanted)
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    assert len(summary.chunk_indexes) > 3
    assert same_bits(read_recording(path).sources["cell"].block.values, wanted.values)


def test_that_the_message_index_points_at_the_messages(tmp_path: Path) -> None:
    from mcap.records import MessageIndex
    from mcap.stream_reader import StreamReader, get_chunk_data_stream

    path, _ = _one_block(tmp_path)
    with path.open("rb") as stream:
        records = list(StreamReader(stream, emit_chunks=True).records)
    chunk = next(r for r in records if type(r).__name__ == "Chunk" and r.message_end_time)
    data_stream, size = get_chunk_data_stream(chunk)
    data = data_stream.read(size)
    indexes = [r for r in records if isinstance(r, MessageIndex)]
    assert len(indexes) == 3
    for index in indexes:
        assert len(index.records) == 10
        for log, offset in index.records:
            assert data[offset] == 5
            assert int.from_bytes(data[offset + 9 : offset + 11], "little") == index.channel_id
            assert int.from_bytes(data[offset + 15 : offset + 23], "little") == log


def test_that_the_metadata_of_a_channel_tells_its_layout(tmp_path: Path) -> None:
    path, _ = _one_block(tmp_path)
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    for channel in summary.channels.values():
        told = msgspec.json.decode(channel.metadata["twinstudio.layout"], type=Layout)
        assert told == LAYOUT
        assert channel.metadata["twinstudio.role"] == "cell"


def test_that_an_event_with_a_stamp_the_file_cannot_hold_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    wild = Event(v=1, instance="i", seq=0, stamp=-5, level="info", code="c", text="kept")
    with announced(path, "cell") as writer:
        writer.event("cell", wild, at=7)
    (found,) = read_recording(path).events
    assert (found.event.text, found.event.stamp) == ("kept", -5)


def test_that_a_file_with_events_and_clocks_opens_in_the_rosbags_library(tmp_path: Path) -> None:
    path, _ = _one_block(tmp_path)
    with RecordingWriter(path, overwrite=True) as writer:
        writer.source("cell", SourceDescription("cell", "the cell", LAYOUT, 1000.0))
        writer.write("cell", block(first=0, start=0, received=5))
        writer.clock("cell", ClockModel(reference=1, shift=2), at=3)
        writer.note("Grüße", at=4)
    with AnyReader([path]) as bag:
        texts = [c for c in bag.connections if c.msgtype == "std_msgs/msg/String"]
        assert {c.topic for c in texts} == {"/twinstudio/clock", "/session/events"}
        told = [bag.deserialize(raw, c.msgtype).data for c, _, raw in bag.messages(texts)]
    assert any(msgspec.json.decode(text).get("text") == "Grüße" for text in told)
    assert [event.event.text for event in read_recording(path).events] == ["Grüße"]
