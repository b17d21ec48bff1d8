"""ROS 2 logs of other recorders, and our own recordings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

from twinstudio.flow.importers import import_log, read_log
from twinstudio.flow.importers.messages import LENGTHS, NAMELESS, TWICE
from twinstudio.flow.importers.ros import UNREADABLE
from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.model.block import Block
from twinstudio.model.errors import LogError
from twinstudio.model.signals import Layout, Signal

STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
Entry = tuple[str, str, int, bytes]


def kind(name: str) -> Any:
    return STORE.types[name]


def header(ns: int) -> Any:
    time = kind("builtin_interfaces/msg/Time")(sec=ns // 10**9, nanosec=ns % 10**9)
    return kind("std_msgs/msg/Header")(stamp=time, frame_id="")


def vector(*xyz: float) -> Any:
    return kind("geometry_msgs/msg/Vector3")(*xyz)


def entry(topic: str, log: int, message: Any) -> Entry:
    name = message.__msgtype__
    return topic, name, log, bytes(STORE.serialize_cdr(message, name))


def joints(
    log: int, names: list[str], *arrays: list[float], topic: str = "/joint_states", stamp: int = -1
) -> Entry:
    filled = [np.array(a, dtype=np.float64) for a in (*arrays, [], [], [])][:3]
    at = header(log - 1 if stamp < 0 else stamp)
    return entry(topic, log, kind(JOINT_STATE)(at, names, *filled))


def mcap(path: Path, entries: Iterable[Entry], encoding: str = "cdr") -> Path:
    with path.open("wb") as stream:
        writer = McapWriter(stream, chunk_size=512)
        writer.start(profile="ros2", library="a test")
        channels: dict[str, int] = {}
        for topic, name, log, data in entries:
            if topic not in channels:
                schema = writer.register_schema(name, "ros2msg", b"")
                channels[topic] = writer.register_channel(topic, encoding, schema)
            writer.add_message(channels[topic], log, data, log)
        writer.finish()
    return path


def bag(path: Path, entries: Iterable[Entry]) -> Path:
    with BagWriter(path, version=9) as writer:
        connections: dict[str, Any] = {}
        for topic, name, log, data in entries:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, name, typestore=STORE)
            writer.write(connections[topic], log, data)
    return path


LOG = [
    joints(100 + k, ["a", "b"], [0.1 * k, 1.0], [0.2, 2.0], topic="/robot/joint_states")
    for k in range(5)
]


@pytest.mark.parametrize(("format_", "make"), [("mcap", mcap), ("rosbag2", bag)])
def test_that_joint_states_become_the_cell(tmp_path: Path, format_: str, make: Any) -> None:
    found = read_log(format_, make(tmp_path / "log.mcap", LOG))
    block = found.sources["cell"].block
    assert block.layout.names == ("joint.position", "joint.velocity")
    assert block.layout.signal("joint.position").labels == ("a", "b")
    assert block.stamps.tolist() == [99, 100, 101, 102, 103]
    assert block.of("joint.position")[:, 0].tolist() == [0.1 * k for k in range(5)]
    assert "source 'cell' is topic /robot/joint_states, stamped by its headers" in found.notes


def test_that_joints_may_change_their_order_and_come_and_go(tmp_path: Path) -> None:
    entries = [
        joints(10, ["a", "b"], [1.0, 2.0]),
        joints(20, ["b", "a"], [4.0, 3.0]),
        joints(30, ["c"], [5.0], [6.0]),
    ]
    block = read_log("mcap", mcap(tmp_path / "x.mcap", entries)).sources["cell"].block
    nan = np.nan
    wanted = [[1, 2, nan, nan, nan, nan], [3, 4, nan, nan, nan, nan], [nan, nan, 5, nan, nan, 6]]
    assert np.array_equal(block.values, wanted, equal_nan=True)


def test_that_messages_without_sense_are_counted(tmp_path: Path) -> None:
    topic, name, _, data = joints(50, ["a"], [1.0])
    entries = [
        joints(10, ["a"], [1.0]),
        joints(20, ["a"], [1.0, 2.0]),
        joints(30, [], []),
        joints(40, ["a", "a"], [1.0, 2.0]),
        (topic, name, 50, data[:10]),
    ]
    table = read_log("mcap", mcap(tmp_path / "x.mcap", entries)).tables[0]
    assert (table.rows, table.kept) == (5, 1)
    assert dict(table.dropped) == {LENGTHS: 1, NAMELESS: 1, TWICE: 1, UNREADABLE: 1}


def test_that_a_topic_without_header_stamps_uses_recording_time_throughout(tmp_path: Path) -> None:
    entries = [joints(10, ["a"], [1.0], stamp=7), joints(20, ["a"], [1.0], stamp=0)]
    found = read_log("mcap", mcap(tmp_path / "x.mcap", entries))
    assert found.sources["cell"].block.stamps.tolist() == [10, 20]
    assert any("stamped when recorded" in note for note in found.notes)


def test_that_other_numeric_messages_become_sources_and_the_rest_is_listed(tmp_path: Path) -> None:
    wrench = kind("geometry_msgs/msg/Wrench")(vector(1, 2, 3), vector(4, 5, 6))
    turn = kind("geometry_msgs/msg/Quaternion")(0.0, 0.0, 0.0, 1.0)
    place = kind("geometry_msgs/msg/Pose")(kind("geometry_msgs/msg/Point")(1.0, 2.0, 3.0), turn)
    none = np.zeros(9)
    imu = kind("sensor_msgs/msg/Imu")(
        header(4), turn, none, vector(1, 2, 3), none, vector(4, 5, 6), none
    )
    entries = [
        joints(1, ["a"], [1.0], topic="/arm/command"),
        entry("/ft", 2, kind("geometry_msgs/msg/WrenchStamped")(header(2), wrench)),
        entry("/tool", 3, kind("geometry_msgs/msg/PoseStamped")(header(3), place)),
        entry("/imu", 4, imu),
        entry("/9/heat", 5, kind("sensor_msgs/msg/Temperature")(header(5), 21.5, 0.0)),
        entry("/say", 6, kind("std_msgs/msg/String")("hello")),
        entry("/say", 7, kind("std_msgs/msg/String")("again")),
    ]
    found = read_log("mcap", mcap(tmp_path / "x.mcap", entries))
    values = {name: source.block.values[0].tolist() for name, source in found.sources.items()}
    assert values == {
        "arm_command": [1.0],
        "ft": [1, 2, 3, 4, 5, 6],
        "tool": [1, 2, 3, 0, 0, 0, 1],
        "imu": [0, 0, 0, 1, 1, 2, 3, 4, 5, 6],
        "topic_9_heat": [21.5],
    }
    assert found.sources["arm_command"].layout.names == ("command.position",)
    assert "left out: 2 of /say (std_msgs/msg/String)" in found.notes


def test_that_two_joint_topics_get_two_names(tmp_path: Path) -> None:
    entries = [
        joints(1, ["a"], [1.0], topic="/x/y"),
        joints(2, ["a"], [2.0], topic="/left/joint_states"),
        joints(3, ["a"], [3.0], topic="/x_y"),
    ]
    found = read_log("mcap", mcap(tmp_path / "x.mcap", entries))
    assert found.sources["cell"].block.values[0, 0] == 2.0
    assert set(found.sources) == {"cell", "x_y", "x_y_2"}


def test_that_a_file_that_breaks_off_is_read_to_the_break(tmp_path: Path) -> None:
    entries = [joints(10 * k + 1, ["a"], [1.0]) for k in range(100)]
    path = mcap(tmp_path / "x.mcap", entries)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = read_log("mcap", path)
    assert 10 < len(found.sources["cell"].block) < 100
    assert "breaks off" in found.problems[0]


def test_that_a_log_without_anything_readable_says_what_it_has(tmp_path: Path) -> None:
    path = mcap(tmp_path / "x.mcap", [entry("/say", 6, kind("std_msgs/msg/String")("hello"))])
    with pytest.raises(LogError, match=r"no message that can become a source.*1 of /say"):
        read_log("mcap", path)
    path = mcap(tmp_path / "y.mcap", [("/j", JOINT_STATE, 1, b"{}")], encoding="json")
    with pytest.raises(LogError, match=r"1 of /j \(json message\)"):
        read_log("mcap", path)


def test_that_what_is_no_mcap_or_bag_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    path.write_text("t,q1,q2\n", encoding="utf-8")
    with pytest.raises(LogError, match="looks like panda_gaz, not mcap"):
        read_log("mcap", path)
    with pytest.raises(LogError, match=r"no metadata\.yaml"):
        read_log("rosbag2", _text(tmp_path / "x.db3"))
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "metadata.yaml").write_text("nonsense: [", encoding="utf-8")
    with pytest.raises(LogError, match="cannot be read"):
        read_log("rosbag2", tmp_path / "bag")


def _text(path: Path) -> Path:
    path.write_text("SQLite", encoding="utf-8")
    return path


def test_that_a_bag_is_found_below_its_folder_or_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "bags").mkdir()
    folder = bag(tmp_path / "bags" / "monday", LOG)
    log = read_log("rosbag2", tmp_path / "bags")
    assert "took monday, the only bag in the folder" in log.notes
    inside = next(folder.glob("*.db3"))
    assert len(read_log("rosbag2", inside).sources["cell"].block) == 5


def test_that_our_own_recording_keeps_its_layout_and_every_sample(tmp_path: Path) -> None:
    layout = Layout((Signal(name="tool.force", labels=("fx", "fy"), units=("N", "N")),))
    stamps = np.array([5, 5, 3, 9], dtype=np.int64)
    block = Block(layout, stamps, np.arange(8.0).reshape(4, 2))
    with RecordingWriter(tmp_path / "own.mcap") as writer:
        writer.source("twin", SourceDescription("twin", "x", layout, 10.0))
        writer.write("twin", block)
    report = import_log("mcap", tmp_path / "own.mcap", tmp_path / "again.mcap")
    assert (report.rows, report.kept) == (4, 4)
    assert (report.sources[0].duplicated, report.sources[0].backward) == (1, 1)
    found = read_log("mcap", tmp_path / "again.mcap").sources["twin"]
    assert found.role == "twin"
    assert found.layout == layout
    assert np.array_equal(found.block.values, block.values)
    assert np.array_equal(found.block.stamps, stamps)
