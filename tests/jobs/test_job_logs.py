"""Logs as inputs of a job: any format that can be imported, by name, and split."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from jobs.test_job_kinds import recording
from record_helpers import LAYOUT, SMALL, announced, block

from twinstudio.jobs.reproduce import reproduce
from twinstudio.model.errors import JobError
from twinstudio.model.signals import Layout, joint_signals

SCENE = "emps_axis"
MAPPING = """
time = {column = "t"}
[[signal]]
name = "joint.position"
columns = ["q"]
unit = "deg"
labels = ["axis"]
"""


def emps(path: Path, count: int = 400) -> Path:
    """A log like that of the positioning axis, with a motion of its own."""
    t = 0.001 * np.arange(count)
    q = 0.1 * np.sin(3.0 * t)
    scipy.io.savemat(path, {"t": t, "qm": q, "qg": q, "vir": np.cos(t), "gtau": [[35.15]]})
    return path


def csv(path: Path, count: int = 100) -> Path:
    path.write_text("t,q\n" + "".join(f"{0.01 * k:.2f},{k}\n" for k in range(count)))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def figures(store, view) -> dict[str, float]:
    assert view.state == "done", view.error
    return {result.name: result.value for result in store.results(view.id)}


def test_that_a_calibrator_reads_a_foreign_log_and_says_as_what(run, store, tmp_path):
    view = run("Fits", scene=SCENE, inputs={"log": emps(tmp_path / "DATA_EMPS.mat")})
    assert figures(store, view) == {"samples": 300.0, "held out": 100.0}
    notes = store.load(view.id).notes
    assert "input 'log' is read as emps" in notes
    assert any("joint.effort is the controller output" in note for note in notes)


def test_that_a_folder_is_a_log_too(run, store, folder):
    emps(folder / "DATA_EMPS.mat")
    (folder / "README.txt").write_text("An axis, measured, at 1 kHz\n")
    view = run("Fits", scene=SCENE, inputs={"log": folder})
    assert figures(store, view)["samples"] == 300.0


def test_that_a_csv_is_read_by_its_mapping_whose_hash_is_kept(run, store, tmp_path, runner):
    (tmp_path / "map.toml").write_text(MAPPING)
    inputs = {"log": csv(tmp_path / "a.csv"), "mapping": tmp_path / "map.toml"}
    view = run("Fits", scene=SCENE, inputs=inputs)
    assert figures(store, view) == {"samples": 75.0, "held out": 25.0}
    assert set(store.load(view.id).spec.inputs) == {"log", "mapping"}
    assert reproduce(view.id, runner).same


def test_that_a_mapping_may_be_that_of_one_log(run, store, tmp_path):
    (tmp_path / "map.toml").write_text(MAPPING)
    (tmp_path / "other.toml").write_text(MAPPING.replace('["q"]', '["r"]'))
    other = csv(tmp_path / "b.csv", 40)
    other.write_text(other.read_text().replace("t,q", "t,r"))
    inputs = {
        "log": csv(tmp_path / "a.csv"),
        "held_out": other,
        "mapping": tmp_path / "map.toml",
        "held_out.mapping": tmp_path / "other.toml",
    }
    view = run("Fits", scene=SCENE, inputs=inputs)
    assert figures(store, view) == {"samples": 100.0, "held out": 40.0}


def test_that_a_csv_without_a_mapping_fails_in_one_line(run, tmp_path):
    view = run("Fits", scene=SCENE, inputs={"log": csv(tmp_path / "a.csv")})
    assert view.state == "failed"
    assert "mapping" in view.error
    assert "\n" not in view.error


def test_that_labels_that_are_no_joints_of_the_scene_are_noted(run, store, tmp_path):
    (tmp_path / "map.toml").write_text(MAPPING.replace('labels = ["axis"]', ""))
    inputs = {"log": csv(tmp_path / "a.csv"), "mapping": tmp_path / "map.toml"}
    view = run("Fits", scene=SCENE, inputs=inputs)
    assert any("has no position of axis of scene" in n for n in store.load(view.id).notes)


def test_that_a_format_may_be_named(run, store, tmp_path):
    log = emps(tmp_path / "DATA_EMPS.mat")
    view = run("Fits", scene=SCENE, inputs={"log": f"emps:{log}"})
    assert figures(store, view)["samples"] == 300.0
    assert store.load(view.id).spec.inputs["log"].given == f"emps:{log}"
    wrong = run("Fits", scene=SCENE, inputs={"log": f"kuka_kr300:{log}"})
    assert "this looks like emps, not kuka_kr300" in wrong.error


def test_that_files_beside_the_input_are_not_read_unnoticed(run, folder):
    rows = "".join(f"{0.001 * k},{','.join(['0.5'] * 21)}\n" for k in range(50))
    names = ",".join(f"{q}{i}" for q in ("q", "dq", "tau") for i in range(1, 8))
    (folder / "measured.csv").write_text(f"t,{names}\n{rows}")
    names = ",".join(f"dq{i}_cmd" for i in range(1, 8))
    rows = "".join(f"{0.001 * k + 0.0005},{','.join(['0.5'] * 7)}\n" for k in range(50))
    (folder / "commanded_velocity.csv").write_text(f"t,{names}\n{rows}")
    view = run("Fits", scene="panda_cell", inputs={"log": folder / "measured.csv"})
    assert view.state == "failed"
    assert "takes commanded_velocity.csv too" in view.error
    assert f"give the folder instead: {folder}" in view.error
    assert run("Fits", scene="panda_cell", inputs={"log": folder}).state == "done"


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"hello there\n"])
def test_that_what_is_no_log_is_told_in_one_line(run, tmp_path, content):
    (tmp_path / "odd").write_bytes(content)
    view = run("Fits", scene=SCENE, inputs={"log": tmp_path / "odd"})
    assert view.state == "failed"
    assert "is no log that can be recognised; write FORMAT:PATH" in view.error


def test_that_a_folder_of_two_formats_must_be_told_apart(run, folder):
    emps(folder / "DATA_EMPS.mat")
    recording(folder / "a.mcap", "cell")
    view = run("Fits", scene=SCENE, inputs={"log": folder})
    assert "holds logs of emps, mcap" in view.error
    view = run("Fits", scene=SCENE, inputs={"log": f"emps:{folder}"})
    assert view.state == "done", view.error


def test_that_other_sources_of_a_log_stand_beside_the_cell(run, store, tmp_path):
    writer = announced(tmp_path / "a.mcap", "cell", layout=SMALL)
    from twinstudio.flow.record import SourceDescription

    writer.source("command", SourceDescription("cell", "the command", LAYOUT, 1000.0))
    writer.write("cell", block(SMALL, 100))
    writer.write("command", block(LAYOUT, 20, step=5_000_000))
    writer.close()
    view = run("Fits", scene=SCENE, inputs={"log": tmp_path / "a.mcap"})
    # Both are cut at the instant of sample 75 of the cell.
    assert figures(store, view) == {"samples": 75.0, "log.command": 15.0, "held out": 30.0}


def test_that_a_metric_compares_a_log_with_the_twin_of_a_scene(run, store, tmp_path):
    log = emps(tmp_path / "DATA_EMPS.mat")
    view = run("Worst", scene=SCENE, inputs={"log": log})
    assert np.isfinite(figures(store, view)["worst"])
    assert any("ran commanded" in note for note in store.load(view.id).notes)
    view = run("Worst", inputs={"log": log})
    assert "or give a scene whose twin is run" in view.error


def test_that_a_twin_that_is_run_for_a_log_can_be_ended(tmp_path):
    from twinstudio.jobs.logs import LogReader
    from twinstudio.jobs.spec import Input
    from twinstudio.model.scene import load_scene
    from twinstudio.plugin.context import Cancelled

    def cancelled(share: float) -> None:
        raise Cancelled

    log = Input(path=str(emps(tmp_path / "DATA_EMPS.mat", 6000)), digest="")
    reader = LogReader({"log": log}, lambda _: None, cancelled)
    with pytest.raises(Cancelled):
        reader.pair("log", load_scene(SCENE))


def test_that_a_pair_is_made_of_samples_whose_stamps_advance(run, store, tmp_path):
    writer = announced(tmp_path / "a.mcap", "twin", "cell", layout=SMALL)
    writer.write("twin", block(SMALL, 100, seed=1))
    writer.write("cell", block(SMALL, 50))
    writer.write("cell", block(SMALL, 50, first=50, start=40_000_000))
    writer.close()
    view = run("Worst", inputs={"log": tmp_path / "a.mcap"})
    assert view.state == "done", view.error
    notes = " | ".join(store.load(view.id).notes)
    assert re.search(r"cell: \d+ samples whose stamp does not advance are left out", notes)


def test_that_a_recording_without_samples_is_refused(run, tmp_path):
    writer = announced(
        tmp_path / "a.mcap", "cell", layout=Layout(joint_signals(("a",), kinds=("joint.position",)))
    )
    writer.close()
    view = run("Fits", scene=SCENE, inputs={"log": tmp_path / "a.mcap"})
    assert "holds no samples of the cell" in view.error


def test_that_inputs_are_held_to_what_the_plugin_declares(spec, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    with pytest.raises(JobError, match=r"no input 'lgo'; its inputs: log, log_2 \.\.\., held_out,"):
        spec("Fits", scene=SCENE, inputs={"lgo": log})
    with pytest.raises(JobError, match=r"the input 'log' is missing \(Log of the cell"):
        spec("Fits", scene=SCENE, inputs={"held_out": log})
    with pytest.raises(JobError, match=r"no input 'log'; it takes no inputs"):
        spec("Dice", inputs={"log": log})
    with pytest.raises(JobError, match=r"no input 'log_2'"):
        spec("Worst", inputs={"log": log, "log_2": log})
    with pytest.raises(JobError, match=r"input 'log' is a file, and .* is a folder"):
        spec("Reads", inputs={"log": tmp_path})
    with pytest.raises(JobError, match=r"input 'gate' is a folder, and .* is a file"):
        spec("Waits", inputs={"gate": log})
    with pytest.raises(JobError, match=r"no input 'mapping'"):
        spec("Reads", inputs={"log": log, "mapping": log})


def test_that_a_slot_may_take_several_logs(run, store, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    other = recording(tmp_path / "b.mcap", "cell", count=40)
    inputs = {"log": log, "log_2": other, "held_out_fast": other, "held_out": log}
    view = run("Fits", scene=SCENE, inputs=inputs)
    assert figures(store, view) == {"samples": 100.0, "log_2": 40.0, "held out": 140.0}
    assert store.results(view.id)[-1].note == "held_out held_out_fast"


@pytest.mark.parametrize(("split", "count"), [(0.5, 50.0), (0.7, 70.0), (0.999, 100.0)])
def test_that_the_share_to_solve_with_can_be_given(run, store, tmp_path, runner, split, count):
    log = recording(tmp_path / "a.mcap", "cell")
    view = run("Fits", scene=SCENE, inputs={"log": log}, split=split)
    assert figures(store, view) == {"samples": count, "held out": 100.0 - count}
    assert store.load(view.id).spec.split == split
    assert reproduce(view.id, runner).same


def test_that_a_share_that_makes_no_sense_is_refused(spec, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    for split in (0.0, 1.0, -0.5, 75.0, float("nan")):
        with pytest.raises(JobError, match=r"split is .*above 0 and below 1"):
            spec("Fits", scene=SCENE, inputs={"log": log}, split=split)
    with pytest.raises(JobError, match=r"no use: 'held_out' is held out already"):
        spec("Fits", scene=SCENE, inputs={"log": log, "held_out": log}, split=0.5)
    with pytest.raises(JobError, match=r"no use: a command holds nothing out"):
        spec("Dice", split=0.5)
    assert spec("Fits", scene=SCENE, inputs={"log": log}).split == 0.75
    assert spec("Fits", scene=SCENE, inputs={"log": log, "held_out": log}).split is None


@pytest.mark.data
@pytest.mark.parametrize(
    ("log", "scene", "format_"),
    [
        ("panda_gaz", "panda_cell", "panda_gaz"),
        ("emps", "emps_axis", "emps"),
        ("kuka_kr300/FF_A", "emps_axis", "kuka_kr300"),
        ("ur10e_innopolis/identification/ur-20_02_10-30sec_12harm.csv", "emps_axis",
         "ur10e_innopolis"),
        ("ur3_cobotops", "emps_axis", "ur3_cobotops"),
        ("servo_backlash", "emps_axis", "servo_backlash"),
        ("schunk_tum/Robot/measurement_1", "emps_axis", "schunk_tum"),
        ("cmu_push/30_90_30_30_30_90/exp0.txt", "emps_axis", "cmu_push"),
        ("imu_mpu6050", "emps_axis", "mat"),
    ],
)  # fmt: skip
def test_that_logs_of_real_robots_are_recognised(data, log, scene, format_):
    from twinstudio.jobs.logs import LogReader
    from twinstudio.jobs.spec import Input
    from twinstudio.model.scene import load_scene

    notes: list[str] = []
    reader = LogReader({"log": Input(path=str(data / log), digest="")}, notes.append)
    blocks = reader.blocks("log", load_scene(scene))
    assert f"input 'log' is read as {format_}" in notes
    assert all(len(b) for b in blocks.values())
    assert ("log" in blocks) == (format_ != "cmu_push")


@pytest.mark.data
def test_that_a_real_log_is_compared_with_the_twin_of_its_scene(data, run, store):
    view = run("Worst", scene="emps_axis", inputs={"log": data / "emps"})
    assert figures(store, view)["worst"] > 0.0
