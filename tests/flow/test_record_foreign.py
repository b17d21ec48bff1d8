"""JointState topics that other recorders wrote."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

from twinstudio.flow.record import read_foreign, read_recording
from twinstudio.flow.record.ros import DEFINITIONS, JOINT_STATE, build_payload, parse_shape
from twinstudio.model.errors import RecordingError

STORE = get_typestore(Stores.ROS2_HUMBLE)


def message(stamp: int, names: list[str], *arrays: list[float], frame: str = "") -> bytes:
    """A JointState as the rosbags library writes it."""
    types = STORE.types
    header = types["std_msgs/msg/Header"](
        types["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9)), frame
    )
    numbers = [np.array(array, dtype=np.float64) for array in arrays]
    told: Any = types[JOINT_STATE](header, names, *numbers)
    return bytes(STORE.serialize_cdr(told, JOINT_STATE))


def _file(
    path: Path,
    messages: dict[str, list[bytes]],
    *,
    compression: CompressionType = CompressionType.LZ4,
    use_chunking: bool = True,
) -> None:
    writer = McapWriter(str(path), compression=compression, use_chunking=use_chunking)
    writer.start("ros2")
    schema = writer.register_schema(JOINT_STATE, "ros2msg", DEFINITIONS[JOINT_STATE].encode())
    other = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
    channels = {topic: writer.register_channel(topic, "cdr", schema) for topic in messages}
    chatter = writer.register_channel("/chatter", "cdr", other)
    writer.add_message(chatter, 1, b"\x00\x01\x00\x00\x02\x00\x00\x00a\x00", 1)
    for k in range(max(map(len, messages.values()))):
        for topic, some in messages.items():
            if k < len(some):
                writer.add_message(channels[topic], 1000 + k, some[k], 1000 + k)
    writer.finish()


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("use_chunking", [True, False])
def test_that_joint_states_of_another_recorder_are_read(
    tmp_path: Path, compression: CompressionType, use_chunking: bool
) -> None:
    path = tmp_path / "a.mcap"
    some = [message(5 + k, ["a", "b"], [k, 2], [], [3, k]) for k in range(50)]
    _file(path, {"/joint_states": some}, compression=compression, use_chunking=use_chunking)
    recording = read_foreign(path, {"/joint_states": "cell"}, prismatic=["b"])
    source = recording.sources["cell"]
    assert (source.role, source.name, source.lost) == ("cell", "/joint_states", 0)
    assert source.layout.columns == (
        "joint.position/a", "joint.position/b", "joint.effort/a", "joint.effort/b",
    )  # fmt: skip
    assert source.layout.units == ("rad", "m", "N m", "N")
    assert source.block.stamps.tolist() == list(range(5, 55))
    assert source.received is not None
    assert source.received.tolist() == list(range(1000, 1050))
    assert source.block.values.tolist() == [[k, 2, 3, k] for k in range(50)]
    assert recording.problems == ()


def test_that_without_a_choice_every_joint_state_topic_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    one = message(1, ["a"], [1], [], [])
    _file(path, {"/x/joint_states": [one], "/y": [one]})
    assert list(read_recording(path).sources) == ["/x/joint_states", "/y"]


def test_that_publishers_sharing_a_topic_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    arm = [message(k, ["a", "b"], [k, k], [], [], frame="base") for k in range(6)]
    hand = [message(k, ["finger"], [k], [k], []) for k in range(6)]
    shared = [m for pair in zip(arm, hand, strict=True) for m in pair]
    _file(path, {"/joint_states": shared, "/b": [message(1, ["a"], [1], [], [])]})
    recording = read_foreign(path, {"/joint_states": "twin"})
    stretches = recording.sources["twin"].stretches
    assert [s.block.layout.width for s in stretches] == [2, 2]
    assert [s.block.stamps.tolist() for s in stretches] == [list(range(6))] * 2
    assert any("1 changes of layout" in line for line in recording.problems)


def test_that_unusable_messages_are_counted_with_their_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    some = [
        message(1, ["a", "b"], [1, 2], [], []),
        message(2, ["a", "b"], [1], [], []),
        message(3, [], [1], [], []),
        message(4, ["a", "a"], [1, 2], [], []),
        message(5, ["a"], [], [], []),
        message(6, ["a", "b"], [1, 2], [], [])[:30],
        b"\x00\x07\x00\x00" + bytes(20),
    ]
    _file(path, {"/joint_states": some})
    recording = read_foreign(path, {"/joint_states": "cell"})
    assert len(recording.sources["cell"].block) == 1
    told = " | ".join(recording.problems)
    for reason in (
        "2 names but 1 values", "they name no joints", "labels repeat",
        "names and no values", "shorter than it says", "not in plain CDR",
    ):  # fmt: skip
        assert reason in told


def test_that_padding_does_not_matter_and_big_endian_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    plain = bytearray(message(7, ["abc", "de"], [1.5, 2.5], [], []))
    dirty = bytearray(plain)
    gap = bytes(plain).index(b"de\x00\x00") + 3  # the byte between the text and the next length
    dirty[gap] = 0xAA
    dirty[2:4] = b"\x12\x34"
    big = (
        b"\x00\x00\x00\x00"
        + (0).to_bytes(4, "big") + (8).to_bytes(4, "big")
        + (1).to_bytes(4, "big") + bytes(4)
        + (2).to_bytes(4, "big")
        + (4).to_bytes(4, "big") + b"abc\x00"
        + (3).to_bytes(4, "big") + b"de\x00\x00"
        + (2).to_bytes(4, "big") + np.array([1.5, 2.5], dtype=">f8").tobytes()
        + bytes(8)
    )  # fmt: skip
    _file(path, {"/joint_states": [bytes(plain), bytes(dirty), big]})
    source = read_foreign(path).sources["/joint_states"]
    assert source.block.values.tolist() == [[1.5, 2.5]] * 3
    assert source.block.stamps.tolist() == [7, 7, 8]


@pytest.mark.parametrize("storage", list(StoragePlugin))
def test_that_a_ros_bag_folder_is_read(tmp_path: Path, storage: StoragePlugin) -> None:
    path = tmp_path / "bag"
    with BagWriter(path, version=8, storage_plugin=storage) as bag:
        connection = bag.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        for k in range(30):
            bag.write(connection, 100 + k, message(k, ["a"], [k], [], []))
    recording = read_foreign(path, {"/joint_states": "cell"})
    assert recording.sources["cell"].block.values[:, 0].tolist() == list(range(30))
    file = next(f for f in path.iterdir() if f.suffix in (".db3", ".mcap"))
    assert len(read_foreign(file).sources["/joint_states"].block) == 30


def test_that_an_absent_topic_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    _file(path, {"/joint_states": [message(1, ["a"], [1], [], [])]})
    with pytest.raises(RecordingError, match=r"on /arm; its topics are /chatter, /joint_states"):
        read_foreign(path, {"/arm": "cell"})


@given(st.binary(max_size=80))
def test_that_garbage_is_an_error_and_nothing_else(data: bytes) -> None:
    with suppress(RecordingError):
        parse_shape(data, 3)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
    ),
    st.lists(st.integers(0, 5), max_size=3),
)
def test_that_a_shape_is_what_was_built(names: list[str], sizes: list[int]) -> None:
    shape = parse_shape(build_payload(names, sizes), len(sizes))
    assert shape.names == tuple(names)
    assert shape.sizes == tuple(sizes)
