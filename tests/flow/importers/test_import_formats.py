"""Small logs of each format, with the defects that real ones have."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.flow.importers import read_log
from twinstudio.flow.importers.bounds import ABSURD
from twinstudio.flow.importers.cmu_push import UNTIMED
from twinstudio.flow.importers.panda_gaz import HEADS, hold
from twinstudio.flow.importers.servo_backlash import signed
from twinstudio.flow.importers.text import FIELDS, NUMBER, TIME
from twinstudio.flow.importers.ur10e_innopolis import JUMP, reachable
from twinstudio.model.block import Block
from twinstudio.model.errors import LogError
from twinstudio.model.signals import Layout, joint_signals


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def panda(folder: Path, measured: list[str], commanded: list[str]) -> Path:
    for name, rows in (("measured.csv", measured), ("commanded_velocity.csv", commanded)):
        write(folder / name, [",".join(HEADS[name]), *rows])
    return folder


def row(time: str, *values: float) -> str:
    return ",".join([time, *map(repr, values)])


def test_that_panda_commands_are_held_from_their_stamp_on(tmp_path: Path) -> None:
    measured = [row(t, *[0.5] * 21) for t in ("0.0005", "0.001", "0.0025", "0.0031")]
    commanded = [row(f"0.00{k}", *[float(k)] * 7) for k in (1, 2)]
    log = read_log("panda_gaz", panda(tmp_path, measured, commanded))
    held = log.sources["cell"].block.of("command.velocity")[:, 0]
    assert np.array_equal(held, [math.nan, 1.0, 2.0, math.nan], equal_nan=True)
    assert log.sources["command"].block.stamps.tolist() == [1_000_000, 2_000_000]
    assert any("2 measured rows have no command" in note for note in log.notes)


def test_that_commands_going_back_in_time_cannot_be_held() -> None:
    layout = Layout(joint_signals(("a",), kinds=("command.velocity",)))
    command = Block(layout, np.array([0, 2, 1], dtype=np.int64), np.zeros((3, 1)))
    with pytest.raises(LogError, match="go back"):
        hold(command, np.array([0], dtype=np.int64))


def test_that_a_panda_row_with_text_or_missing_fields_is_counted(tmp_path: Path) -> None:
    good = row("0.001", *[0.1] * 21)
    measured = [good, "0.002,abc" + ",0" * 20, "0.003,1,2", "x" + ",0" * 21, good]
    commanded = [row(f"0.00{k}", *[0.0] * 7) for k in (0, 1, 2)]
    table = read_log("panda_gaz", panda(tmp_path, measured, commanded)).tables[0]
    assert (table.rows, table.kept) == (5, 2)
    assert dict(table.dropped) == {NUMBER: 1, FIELDS: 1, TIME: 1}


def test_that_panda_needs_both_files(tmp_path: Path) -> None:
    write(tmp_path / "measured.csv", [",".join(HEADS["measured.csv"]), row("0", *[0.0] * 21)])
    with pytest.raises(LogError, match=r"commanded_velocity\.csv: cannot be read"):
        read_log("panda_gaz", tmp_path)


def ur10e_rows(count: int, step: float = 0.01) -> list[str]:
    return [row(f"{k * step:.3f}", *[0.001 * k] * 6, *[0.1] * 24) for k in range(count)]


def test_that_ur10e_garbage_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = ur10e_rows(50)
    rows[3] = row("0.030", *[1e300] * 30)
    rows[10] = row("0.100", *[2.0] * 6, *[0.1] * 24)  # a pose 2 rad away within 10 ms
    path = write(tmp_path / "log.csv", [*rows, "0.5,0.1,0."])
    log = read_log("ur10e_innopolis", path)
    table = log.tables[0]
    assert dict(table.dropped) == {FIELDS: 1, ABSURD: 1, JUMP: 1}
    assert table.where == {FIELDS: [51], ABSURD: [4], JUMP: [11]}
    assert len(log.sources["cell"].block) == 48


def test_that_a_joint_beyond_its_range_is_no_reading(tmp_path: Path) -> None:
    rows = ur10e_rows(20)
    rows[5] = row("0.050", 8.0, *[0.0] * 5, *[0.1] * 24)
    table = read_log("ur10e_innopolis", write(tmp_path / "log.csv", rows)).tables[0]
    assert dict(table.dropped) == {ABSURD: 1}


def test_that_reachable_trusts_the_longest_stretch() -> None:
    stamps = np.arange(10, dtype=np.int64) * 10_000_000
    positions = np.zeros((10, 6))
    positions[:2] = 1.0
    positions[9] = -3.0
    keep = reachable(stamps, positions)
    assert keep.tolist() == [False] * 2 + [True] * 7 + [False]
    assert reachable(stamps, np.zeros((10, 6))).all()


def test_that_a_short_ur10e_log_has_no_model_signals(tmp_path: Path) -> None:
    rows = [row(f"0.{k:02d}", *[0.0] * 18) for k in range(5)]
    log = read_log("ur10e_innopolis", write(tmp_path / "log.csv", rows))
    assert log.sources["cell"].layout.names == ("joint.position", "joint.velocity", "joint.current")


def test_that_one_log_is_never_chosen_silently_among_several(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv"):
        write(tmp_path / name, ur10e_rows(3))
    with pytest.raises(LogError, match=r"holds 2 logs.*choose from a\.csv, b\.csv"):
        read_log("ur10e_innopolis", tmp_path)


def test_that_the_default_of_a_data_set_is_announced(tmp_path: Path) -> None:
    write(tmp_path / "static" / "p.csv", ur10e_rows(3))
    write(tmp_path / "identification" / "ur-20_02_10-30sec_12harm.csv", ur10e_rows(4))
    log = read_log("ur10e_innopolis", tmp_path)
    assert len(log.sources["cell"].block) == 4
    assert "took identification/ur-20_02_10-30sec_12harm.csv, the default" in log.notes[0]


def test_that_emps_force_is_voltage_times_gain(tmp_path: Path) -> None:
    path = tmp_path / "DATA_EMPS.mat"
    column = np.array([[1.0], [2.0], [1e300], [np.nan]])
    time = np.array([[0.0], [0.001], [0.002], [0.003]])
    content = {"t": time, "qm": column, "qg": 2 * column, "vir": column, "gtau": 35.0}
    with np.errstate(over="ignore"):
        scipy.io.savemat(path, content)
    log = read_log("emps", tmp_path)
    block = log.sources["cell"].block
    assert block.of("joint.effort")[:2, 0].tolist() == [35.0, 70.0]
    assert block.layout.units == ("m", "N", "m")
    assert dict(log.tables[0].dropped) == {ABSURD: 1}
    assert len(block) == 3


def test_that_an_emps_file_without_its_variables_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"t": [1.0], "other": [2.0]})
    with pytest.raises(LogError, match=r"looks like mat, not emps: it has no variable qm, qg"):
        read_log("emps", path)


def kuka(path: Path, n: int = 4, **changes: object) -> Path:
    six = np.outer(np.arange(1.0, 7.0), np.ones(n))
    fields = {
        "time_cont": np.arange(n) * 0.004,
        "act_pos_mot_deg": six,
        "act_vel_mot_deg_per_s": 2 * six,
        "act_torque_abs_nm": 3 * six,
        "ref_pos_deg": 4 * six,
        "act_pos_se_deg": np.vstack([six[:3], np.zeros((3, n))]),
        "act_vel_se_deg_per_s": np.vstack([six[:3], np.zeros((3, n))]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, {"rec": {**fields, **changes}})
    return path


def test_that_kuka_angles_are_the_pose_of_the_robot(tmp_path: Path) -> None:
    block = read_log("kuka_kr300", kuka(tmp_path / "data.mat")).sources["cell"].block
    degrees = np.degrees(block.of("joint.position")[0])
    assert np.allclose(degrees, [1, -88, 93, 4, 5, 6], rtol=0, atol=1e-12)
    assert np.allclose(np.degrees(block.of("command.position")[0]), [4, -82, 102, 16, 20, 24])
    assert block.layout.signal("secondary.position").labels == ("a1", "a2", "a3")
    assert np.allclose(block.of("joint.effort")[0] / block.of("motor.effort")[0], [
        1798 / 7, 1872 / 7, 757 / 3, 221, 5032 / 21, 206793 / 1340
    ])  # fmt: skip
    assert block.stamps.tolist() == [0, 4_000_000, 8_000_000, 12_000_000]


def test_that_kuka_takes_a_run_folder_and_lists_two(tmp_path: Path) -> None:
    kuka(tmp_path / "one" / "data.mat")
    kuka(tmp_path / "two" / "data.mat", n=7)
    assert len(read_log("kuka_kr300", tmp_path / "two").sources["cell"].block) == 7
    with pytest.raises(LogError, match=r"choose from one/data\.mat, two/data\.mat"):
        read_log("kuka_kr300", tmp_path)


def test_that_kuka_fields_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = kuka(tmp_path / "data.mat", ref_pos_deg=np.zeros((5, 4)))
    with pytest.raises(LogError, match="not 6 x 4"):
        read_log("kuka_kr300", path)


def schunk(folder: Path, rows: int, inputs: int) -> Path:
    write(folder / "time.csv", [repr(k * 0.004) for k in range(rows)])
    write(folder / "trajectory.csv", [",".join([str(k)] * 12) for k in range(rows)])
    write(folder / "input.csv", [",".join(["1.5"] * 6)] * inputs)
    return folder


def test_that_a_missing_last_schunk_input_is_said(tmp_path: Path) -> None:
    log = read_log("schunk_tum", schunk(tmp_path, 5, 4))
    effort = log.sources["cell"].block.of("command.effort")
    assert np.isnan(effort[-1]).all()
    assert (effort[:-1] == 1.5).all()
    assert any("1 row shorter" in note for note in log.notes)


def test_that_schunk_files_of_unequal_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="5, 5 and 2 rows"):
        read_log("schunk_tum", schunk(tmp_path, 5, 2))


def test_that_a_broken_schunk_row_stops_the_import(tmp_path: Path) -> None:
    schunk(tmp_path, 3, 3)
    write(tmp_path / "input.csv", [",".join(["1"] * 6), "1,2", ",".join(["1"] * 6)])
    with pytest.raises(LogError, match=r"input\.csv: row 2: wrong number of fields, 6 expected"):
        read_log("schunk_tum", tmp_path)


def test_that_schunk_measurements_are_listed_in_their_order(tmp_path: Path) -> None:
    for k in (10, 2):
        schunk(tmp_path / f"measurement_{k}", 3, 3)
    with pytest.raises(LogError, match="choose from measurement_2, measurement_10"):
        read_log("schunk_tum", tmp_path)


POSE = "100 200 10 0.5 0.1 0.2 0.8"


def push(t: int, forces: int = 3, robots: int = 2) -> list[str]:
    return [
        POSE,
        POSE.replace("100", "150"),
        str(forces),
        *(f"143886724{t}.{k:09d} 1.5 -2.5" for k in range(forces)),
        str(robots),
        *(f"143886724{t}.{k:09d} 500 0 20 1 0 0 0.1" for k in range(10, 10 + robots)),
    ]


def test_that_pushes_become_three_sources_in_si(tmp_path: Path) -> None:
    log = read_log("cmu_push", write(tmp_path / "exp.txt", ["2", *push(0), *push(1)]))
    assert {name: len(s.block) for name, s in log.sources.items()} == {
        "force": 6,
        "robot": 4,
        "object": 4,
    }
    thing = log.sources["object"].block
    assert thing.values[0].tolist() == [0.1, 0.2, 0.01, 0.1, 0.2, 0.8, 0.5]
    assert thing.values[1, 0] == 0.15
    start = 1438867240 * 10**9
    assert thing.stamps.tolist() == [start, start + 11, start + 10**9, start + 10**9 + 11]
    assert log.sources["force"].block.stamps[:3].tolist() == [start, start + 1, start + 2]
    assert log.sources["robot"].block.values[0].tolist() == [0.5, 0, 0.02, 0, 0, 0.1, 1]
    assert not log.problems


def test_that_an_unfinished_push_log_is_read_and_reported(tmp_path: Path) -> None:
    lines = ["3", *push(0), *push(1)[:4]]
    log = read_log("cmu_push", write(tmp_path / "exp.txt", lines))
    assert len(log.sources["force"].block) == 4
    assert log.problems == ["the file announces 3 pushes but holds 2"]


def test_that_a_push_log_without_its_count_is_read_and_reported(tmp_path: Path) -> None:
    log = read_log("cmu_push", write(tmp_path / "exp.txt", push(0)))
    assert log.problems == ["the number of pushes is missing from the first line"]


def test_that_lines_behind_the_pushes_are_counted(tmp_path: Path) -> None:
    log = read_log("cmu_push", write(tmp_path / "exp.txt", ["1", *push(0), "1 2", "3 4"]))
    assert log.tables[-1].dropped.total() == 2
    assert any("2 lines" in text for text in log.problems)


def test_that_a_push_without_rows_has_no_time(tmp_path: Path) -> None:
    log = read_log("cmu_push", write(tmp_path / "exp.txt", ["2", *push(0, 0, 0), *push(1)]))
    table = next(table for table in log.tables if table.name == "object")
    assert dict(table.dropped) == {UNTIMED: 2}


def test_that_a_row_with_text_in_a_push_is_counted(tmp_path: Path) -> None:
    lines = push(0)
    lines[3] = "1438867240.1 oops 1"
    log = read_log("cmu_push", write(tmp_path / "exp.txt", ["1", *lines]))
    assert log.tables[0].dropped == {NUMBER: 1}


@given(
    st.lists(st.sampled_from(["2", "0", "3", POSE, "1.0 2 3", "1 2 3 4 5 6 7 8", "oops 1 1", "²"]))
)
def test_that_no_order_of_lines_breaks_the_push_reader(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "exp.txt", lines)
        try:
            log = read_log("cmu_push", path)
        except LogError:
            return
    used = sum(table.rows for table in log.tables)
    assert 0 < used <= len(lines)
    assert all(0 <= table.kept <= table.rows for table in log.tables)


UR3_HEAD = (
    "Num;Timestamp;Current_J0;Temperature_T0;"
    + "".join(f"Current_J{i};Temperature_J{i};" for i in range(1, 6))
    + "".join(f"Speed_J{i};" for i in range(6))
    + "Tool_current;cycle ;Robot_ProtectiveStop;grip_lost;;"
)


def ur3(second: int, speed: str = "0,5", stop: str = "False", grip: str = "True") -> str:
    numbers = ";".join(f"{i},25" for i in range(12))
    time = f"2022-10-26T08:17:{second:02d}.500Z"
    return f"{second};{time};{numbers};{speed};0;0;0;0;0;0,1;1;{stop};{grip};;"


def test_that_ur3_decimal_commas_and_words_are_read(tmp_path: Path) -> None:
    lines = [UR3_HEAD, ur3(1, "-7,39E-30"), ur3(2, "", stop=""), ur3(3, stop="maybe")]
    log = read_log("ur3_cobotops", write(tmp_path / "session1.csv", lines))
    block = log.sources["cell"].block
    assert block.of("joint.velocity")[0, 0] == -7.39e-30
    assert math.isnan(block.of("joint.velocity")[1, 0])
    assert block.of("joint.current")[0].tolist() == [0.25, 2.25, 4.25, 6.25, 8.25, 10.25]
    assert block.of("joint.temperature")[0].tolist() == [1.25, 3.25, 5.25, 7.25, 9.25, 11.25]
    assert block.of("event.grip_lost")[:, 0].tolist() == [1.0, 1.0]
    assert block.of("event.protective_stop")[0, 0] == 0.0
    assert math.isnan(block.of("event.protective_stop")[1, 0])
    assert np.diff(block.stamps).tolist() == [10**9]
    assert log.tables[0].dropped == {NUMBER: 1}


SERVO_HEAD = (
    "timestamp,target pos (2),pos (2),speed (2),load (2),current (2),temp (2),status (2),moving (2)"
)


def test_that_servo_registers_become_si(tmp_path: Path) -> None:
    rows = [
        "2025-11-12T09:53:06.117Z,2048,,,,,,,",
        "2025-11-12T09:53:06.218Z,2048,1024,33118,1132,4,34,0,1",
    ]
    log = read_log("servo_backlash", write(tmp_path / "log.csv", [SERVO_HEAD, *rows]))
    block = log.sources["cell"].block
    assert block.layout.signal("joint.position").labels == ("motor2",)
    assert block.of("command.position")[0, 0] == pytest.approx(math.pi, rel=1e-15)
    assert block.of("joint.position")[1, 0] == pytest.approx(math.pi / 2, rel=1e-15)
    assert block.of("joint.velocity")[1, 0] == pytest.approx(-350 * 2 * math.pi / 4096, rel=1e-15)
    assert block.of("motor.load")[1, 0] == pytest.approx(-0.108, rel=1e-15)
    assert block.of("joint.current")[1, 0] == pytest.approx(0.026, rel=1e-15)
    assert np.isnan(block.values[0]).sum() == 7


def test_that_the_sign_bit_alone_is_minus_zero_and_nan_stays() -> None:
    register = np.array([0.0, 5.0, 32768.0, 32773.0, np.nan])
    assert np.array_equal(signed(register, 1 << 15), [0, 5, 0, -5, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("format_", "lines", "other"),
    [
        ("servo_backlash", [UR3_HEAD, ur3(1)], "ur3_cobotops"),
        ("ur3_cobotops", [SERVO_HEAD, "x"], "servo_backlash"),
        ("ur10e_innopolis", ["1,2,3,4,5,6,7,8,9,10,11,12"], "schunk_tum"),
        ("servo_backlash", ["2", *push(0)], "cmu_push"),
        ("ur3_cobotops", ur10e_rows(2), "ur10e_innopolis"),
        ("cmu_push", [",".join(HEADS["measured.csv"]), "0"], "panda_gaz"),
    ],
)
def test_that_a_log_of_another_format_is_named(
    tmp_path: Path, format_: str, lines: list[str], other: str
) -> None:
    path = write(tmp_path / "log.txt", lines)
    with pytest.raises(LogError, match=f"looks like {other}, not {format_}"):
        read_log(format_, path)


@pytest.mark.parametrize(
    "format_",
    ["emps", "kuka_kr300", "ur10e_innopolis", "cmu_push", "ur3_cobotops", "servo_backlash"],
)
def test_that_missing_empty_and_damaged_files_are_refused(tmp_path: Path, format_: str) -> None:
    with pytest.raises(LogError, match="no such file"):
        read_log(format_, tmp_path / "absent")
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(LogError, match="is empty"):
        read_log(format_, empty)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(LogError, match=r"damaged|no text file|not a log"):
        read_log(format_, damaged)
    (tmp_path / "folder").mkdir()
    with pytest.raises(LogError, match="holds no log of this format; it has nothing"):
        read_log(format_, tmp_path / "folder")
