"""Every real data set, against plain numpy and csv readings of the raw files."""

import csv
import itertools
from decimal import Decimal
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

from twinstudio.flow.importers import import_log, read_log
from twinstudio.flow.importers.report import report_of
from twinstudio.flow.record.reader import read_recording
from twinstudio.model.block import Block
from twinstudio.model.scene import data_folder

pytestmark = pytest.mark.data
DATA = data_folder()
EXACT = {"rtol": 1e-12, "atol": 0.0, "equal_nan": True}


def imported(format_: str, source: Path, folder: Path) -> tuple[dict[str, Block], object]:
    """Blocks as they come back from the recording, and the report."""
    out = folder / "out.mcap"
    report = import_log(format_, source, out)
    recording = read_recording(out)
    return {name: each.block for name, each in recording.sources.items()}, report


def ns(seconds: np.ndarray) -> np.ndarray:
    return np.rint(seconds * 1e9).astype(np.int64)


def test_that_panda_gaz_is_imported_exactly(tmp_path: Path) -> None:
    blocks, report = imported("panda_gaz", DATA / "panda_gaz", tmp_path)
    raw = np.loadtxt(DATA / "panda_gaz" / "measured.csv", delimiter=",", skiprows=1)
    given = np.loadtxt(DATA / "panda_gaz" / "commanded_velocity.csv", delimiter=",", skiprows=1)
    cell, command = blocks["cell"], blocks["command"]
    assert np.array_equal(cell.stamps, ns(raw[:, 0]))
    assert np.array_equal(cell.values[:, :21], raw[:, 1:])
    assert np.array_equal(command.stamps, ns(given[:, 0]))
    assert np.array_equal(command.values, given[:, 1:])
    held = [given[np.flatnonzero(ns(given[:, 0]) <= t)[-1], 1:] for t in cell.stamps[::97]]
    assert np.array_equal(cell.of("command.velocity")[::97], held)
    assert (report.rows, report.kept) == (len(raw) + len(given),) * 2
    same = (np.diff(raw[:, 1:], axis=0) == 0).all(axis=1).sum()
    assert report.sources[0].repeated == same > 700
    intervals = np.diff(raw[:, 0])
    assert report.sources[0].gaps == (intervals > 3 * np.median(intervals)).sum()
    assert report.sources[0].intervals[2] == pytest.approx(intervals.max(), abs=1e-9)


def test_that_panda_commands_lead_the_motion_by_20_to_21_ms(tmp_path: Path) -> None:
    blocks, _ = imported("panda_gaz", DATA / "panda_gaz", tmp_path)
    grid = np.arange(0.1, 13.5, 0.001)
    for joint in range(7):
        given, moved = (
            np.interp(grid, block.stamps / 1e9, block.of(name)[:, joint])
            for block, name in (
                (blocks["command"], "command.velocity"),
                (blocks["cell"], "joint.velocity"),
            )
        )
        lags = range(10, 35)
        fit = [np.corrcoef(given[: -k or None], moved[k:])[0, 1] for k in lags]
        assert lags[int(np.argmax(fit))] in (20, 21)


def test_that_emps_is_imported_exactly(tmp_path: Path) -> None:
    blocks, report = imported("emps", DATA / "emps", tmp_path)
    raw = scipy.io.loadmat(DATA / "emps" / "DATA_EMPS.mat", squeeze_me=True)
    cell = blocks["cell"]
    assert np.array_equal(cell.stamps, ns(raw["t"]))
    assert np.array_equal(cell.of("joint.position")[:, 0], raw["qm"])
    assert np.array_equal(cell.of("command.position")[:, 0], raw["qg"])
    assert np.allclose(cell.of("joint.effort")[:, 0], raw["gtau"] * raw["vir"], **EXACT)
    assert report.rows == report.kept == len(raw["t"]) == 24841


@pytest.mark.parametrize("run", ["", "FF_A", "FF_B", "FF_B/data.mat"])
def test_that_kuka_kr300_is_imported_exactly(tmp_path: Path, run: str) -> None:
    blocks, report = imported("kuka_kr300", DATA / "kuka_kr300" / run, tmp_path)
    path = DATA / "kuka_kr300" / (run.removesuffix("/data.mat") or "FF_A") / "data.mat"
    raw = scipy.io.loadmat(path, squeeze_me=True, struct_as_record=False)["rec"]
    cell = blocks["cell"]
    offset = np.array([0, -90, 90, 0, 0, 0])
    position = np.deg2rad(raw.act_pos_mot_deg.T + offset)
    assert np.allclose(cell.of("joint.position"), position, rtol=1e-12, atol=1e-15)
    reference = np.deg2rad(raw.ref_pos_deg.T + offset)
    assert np.allclose(cell.of("command.position"), reference, rtol=1e-12, atol=1e-15)
    assert np.allclose(cell.of("joint.velocity"), np.deg2rad(raw.act_vel_mot_deg_per_s.T), **EXACT)
    assert np.array_equal(cell.of("motor.effort"), raw.act_torque_abs_nm.T)
    gears = scipy.io.loadmat(path, squeeze_me=True, struct_as_record=False)["para"].u
    assert np.allclose(cell.of("joint.effort"), raw.act_torque_abs_nm.T * gears, **EXACT)
    second = np.deg2rad(raw.act_pos_se_deg.T + offset)[:, :3]
    assert np.allclose(cell.of("secondary.position"), second, rtol=1e-12, atol=1e-15)
    assert np.array_equal(cell.stamps, ns(raw.time_cont))
    assert report.rows == report.kept == 2501


def test_that_kuka_torques_are_those_of_the_motors() -> None:
    # The feed-forward gravity torque of axis 2 that the file carries passes 1 kN m at the
    # joint; the logged torques only get there times the gear ratio.
    block = read_log("kuka_kr300", DATA / "kuka_kr300").sources["cell"].block
    motor = np.abs(block.of("motor.effort")).max(axis=0)
    joint = np.abs(block.of("joint.effort")).max(axis=0)
    assert motor.max() < 20.0
    raw = scipy.io.loadmat(DATA / "kuka_kr300" / "FF_A" / "data.mat", squeeze_me=True)
    assert raw["tau_g_all"][1].max() > 1000.0
    assert joint[1] > 1000.0


def ur10e_logs() -> list[Path]:
    return sorted((DATA / "ur10e_innopolis").glob("*/*.csv"))


@pytest.mark.parametrize("path", ur10e_logs(), ids=lambda path: path.stem)
def test_that_ur10e_logs_are_imported_exactly(tmp_path: Path, path: Path) -> None:
    blocks, report = imported("ur10e_innopolis", path, tmp_path)
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    raw = np.array(rows, dtype=np.float64)
    garbage = range(1, 20) if path.stem.startswith("ur-19_09_27") else range(0)
    raw = np.delete(raw, garbage, axis=0)
    assert np.array_equal(blocks["cell"].values, raw[:, 1:])
    assert np.array_equal(blocks["cell"].stamps, ns(raw[:, 0]))
    assert report.rows == len(rows)
    assert report.kept == len(rows) - len(garbage)
    assert sum(report.dropped.values()) == len(garbage)


def test_that_the_garbage_of_ur_19_09_27_is_found_and_told_apart(tmp_path: Path) -> None:
    path = DATA / "ur10e_innopolis" / "identification" / "ur-19_09_27-11_32_02.csv"
    _, report = imported("ur10e_innopolis", path, tmp_path)
    assert report.dropped == {"absurd value": 13, "out of reach of its neighbours": 6}
    assert report.tables[0].where["absurd value"][0] == 2
    assert any("rows left out: 13 x absurd value" in text for text in report.problems)


def schunk_logs() -> list[Path]:
    return sorted((DATA / "schunk_tum" / "Robot").glob("measurement_*"))[::6]


@pytest.mark.parametrize("folder", schunk_logs(), ids=lambda path: path.name)
def test_that_schunk_logs_are_imported_exactly(tmp_path: Path, folder: Path) -> None:
    blocks, report = imported("schunk_tum", folder, tmp_path)
    time_, states, inputs = (
        np.loadtxt(folder / f"{name}.csv", delimiter=",")
        for name in ("time", "trajectory", "input")
    )
    cell = blocks["cell"]
    assert np.array_equal(cell.stamps, ns(time_))
    assert np.array_equal(np.hstack([cell.of("joint.position"), cell.of("joint.velocity")]), states)
    assert np.array_equal(cell.of("command.effort")[:-1], inputs)
    assert np.isnan(cell.of("command.effort")[-1]).all()
    assert (report.rows, report.kept, report.nan) == (len(time_), len(time_), 6)


def push_rows(path: Path, width: int) -> list[list[str]]:
    rows = [line.split() for line in path.read_text().splitlines()]
    return [row for row in rows if len(row) == width]


def cmu_logs() -> list[Path]:
    return sorted((DATA / "cmu_push").glob("*/*.txt"))


@pytest.mark.parametrize("path", cmu_logs(), ids=lambda path: path.stem)
def test_that_pushes_are_imported_exactly(tmp_path: Path, path: Path) -> None:
    blocks, report = imported("cmu_push", path, tmp_path)
    for name, width, scale in (("force", 3, 1.0), ("robot", 8, 1e-3)):
        rows = push_rows(path, width)
        if not rows:
            assert name not in blocks
            continue
        stamps = [int(Decimal(row[0]) * 10**9) for row in rows]
        assert blocks[name].stamps.tolist() == stamps
        first = np.array([row[1:3] for row in rows], dtype=np.float64) * scale
        assert np.allclose(blocks[name].values[:, :2], first, **EXACT)
        back = sum(b < a for a, b in itertools.pairwise(stamps))
        assert next(s for s in report.sources if s.name == name).backward == back
    poses = np.array(push_rows(path, 7), dtype=np.float64)
    wanted = np.hstack([poses[:, :3] / 1e3, poses[:, 4:], poses[:, 3:4]])
    assert np.allclose(blocks["object"].values, wanted, **EXACT)
    assert report.rows == report.kept


def test_that_the_push_object_lies_flat_so_its_quaternion_starts_with_w() -> None:
    pose = (
        read_log("cmu_push", DATA / "cmu_push").sources["object"].block.of("object.triangle.pose")
    )
    assert np.abs(pose[:, 3:5]).max() < 0.05
    assert np.allclose(np.linalg.norm(pose[:, 3:], axis=1), 1.0, atol=1e-5)


def test_that_unfinished_push_logs_are_reported() -> None:
    folder = DATA / "cmu_push" / "30_90_30_30_30_90"
    said = {path.stem: read_log("cmu_push", path).problems for path in folder.glob("*.txt")}
    assert said["exp1"] == ["the file announces 10 pushes but holds 2"]
    assert "the log has no force rows" in said["exp2_30"]
    assert said["exp0"] == ["the number of pushes is missing from the first line"]
    assert said["exp7_20"] == []


def comma(text: str) -> float:
    return float(text.replace(",", ".")) if text else np.nan


def test_that_ur3_cobotops_is_imported_exactly(tmp_path: Path) -> None:
    blocks, report = imported("ur3_cobotops", DATA / "ur3_cobotops", tmp_path)
    with (DATA / "ur3_cobotops" / "session1.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter=";"))
    cell = blocks["cell"]
    for i in range(6):
        heat = "Temperature_T0" if i == 0 else f"Temperature_J{i}"
        for name, column in (
            ("joint.current", f"Current_J{i}"),
            ("joint.temperature", heat),
            ("joint.velocity", f"Speed_J{i}"),
        ):
            wanted = [comma(row[column]) for row in rows]
            assert np.array_equal(cell.of(name)[:, i], wanted, equal_nan=True)
    grips = [row["grip_lost"] == "True" for row in rows]
    assert np.array_equal(cell.of("event.grip_lost")[:, 0], grips)
    assert np.nansum(cell.of("event.protective_stop")) == 75
    assert np.isnan(cell.of("event.protective_stop")).sum() == 10
    first = np.datetime64("2022-10-26T08:17:21.847", "ns").astype(np.int64)
    assert cell.stamps[0] == first
    wanted_stamps = np.array([row["Timestamp"][:-1] for row in rows], dtype="datetime64[ns]")
    assert np.array_equal(cell.stamps, wanted_stamps.astype(np.int64))
    assert (report.rows, report.kept) == (2869, 2869)
    assert report.nan == 8 + 18 * 10 + 10


@pytest.mark.parametrize("name", ["single", "nocomp2"])
def test_that_servo_logs_are_imported_exactly(tmp_path: Path, name: str) -> None:
    path = DATA / "servo_backlash" / f"motor_telemetry_{name}.csv"
    blocks, report = imported("servo_backlash", path, tmp_path)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    cell = blocks["cell"]
    for label in cell.layout.signal("joint.position").labels:
        i = label.removeprefix("motor")
        k = cell.layout.column("joint.position", label)
        wanted = np.array([comma(row[f"pos ({i})"]) for row in rows]) * (2 * np.pi / 4096)
        assert np.allclose(cell.values[:, k], wanted, **EXACT)
        speed = [comma(row[f"speed ({i})"]) for row in rows]
        signed = np.array([-(v - 32768) if v >= 32768 else v for v in speed])
        k = cell.layout.column("joint.velocity", label)
        assert np.allclose(cell.values[:, k], signed * (2 * np.pi / 4096), **EXACT)
    empty = sum(value == "" for row in rows for value in row.values())
    assert report.nan == empty
    assert report.rows == report.kept == len(rows)


def test_that_servo_speeds_have_the_sign_and_unit_of_the_motion() -> None:
    block = read_log("servo_backlash", DATA / "servo_backlash").sources["cell"].block
    moved = np.gradient(block.of("joint.position")[:, 0], block.stamps / 1e9)
    told = block.of("joint.velocity")[:, 0]
    assert np.corrcoef(moved, told)[0, 1] > 0.8
    assert np.polyfit(moved, told, 1)[0] == pytest.approx(1.0, abs=0.35)


def test_that_servo_temperature_glitches_are_kept_and_counted(tmp_path: Path) -> None:
    path = DATA / "servo_backlash" / "motor_telemetry_nocomp2.csv"
    blocks, report = imported("servo_backlash", path, tmp_path)
    assert set(report.sources[0].spikes) == {"joint.temperature/motor2", "joint.temperature/motor4"}
    assert np.nanmax(blocks["cell"].of("joint.temperature")[:, 3]) == 92.0


def test_that_the_imu_is_recognised_without_a_mapping(tmp_path: Path) -> None:
    blocks, report = imported("mat", DATA / "imu_mpu6050", tmp_path)
    folder = DATA / "imu_mpu6050" / "rest_1"
    with h5py.File(folder / "mpu6050_accelerometer.mat") as file:
        accel = file["accelBuffer"][()]
    with h5py.File(folder / "mpu6050_gyroscope.mat") as file:
        gyro = file["gyroBuffer"][()]
    cell = blocks["cell"]
    assert np.array_equal(cell.stamps, ns(accel[0]))
    assert np.allclose(cell.of("imu.acceleration"), accel[1:].T * 9.80665, **EXACT)
    assert np.allclose(cell.of("imu.angular_velocity"), np.deg2rad(gyro[1:].T), **EXACT)
    assert report.rows == report.kept == 13181
    alone = read_log("mat", folder / "mpu6050_gyroscope.mat")
    assert alone.sources["cell"].layout.names == ("imu.angular_velocity",)


SETS = (
    "panda_gaz", "emps", "kuka_kr300", "ur10e_innopolis", "schunk_tum", "cmu_push",
    "ur3_cobotops", "servo_backlash",
)  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_that_a_data_set_imports_by_its_folder_and_says_what_it_took(
    tmp_path: Path, name: str
) -> None:
    _, report = imported(name, DATA / name, tmp_path)
    assert report.rows > 200
    assert name == "panda_gaz" or report.notes[0].startswith("took ")
    again = import_log("mcap", tmp_path / "out.mcap", tmp_path / "again.mcap")
    assert again.rows == sum(source.samples for source in report.sources)


def test_that_the_report_of_a_log_can_be_made_without_writing() -> None:
    log = read_log("cmu_push", DATA / "cmu_push")
    report = report_of("cmu_push", DATA / "cmu_push", Path("nowhere"), log)
    assert report.sources[0].gaps == 19
