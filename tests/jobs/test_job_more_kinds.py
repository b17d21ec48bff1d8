"""Bridges, residual learners and HIL suites as jobs."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from jobs.test_job_kinds import recording
from jobs.test_job_logs import emps
from record_helpers import SMALL, announced, block

from twinstudio.flow.record import read_recording
from twinstudio.jobs import job as job_module
from twinstudio.jobs.reproduce import reproduce
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError
from twinstudio.model.results import Scalar, Table

WAIT = 60.0


def figures(results) -> dict[str, float]:
    return {r.name: r.value for r in results if isinstance(r, Scalar)}


# --- bridges


def test_that_a_bridge_records_until_its_duration_is_over(run, store):
    view = run("Brings", duration=0.3)
    assert view.state == "done", view.error
    path = store.path(view.id) / "results" / "recording.mcap"
    samples = read_recording(path).source("cell").block
    assert np.array_equal(samples.values[:, 0], np.arange(len(samples)))
    assert np.array_equal(samples.stamps, 1_000_000 * np.arange(len(samples)))
    assert figures(store.results(view.id))["samples"] == len(samples) > 2
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert store.load(view.id).files["results/recording.mcap"] == digest
    assert "the robot is let go" in store.log(view.id)


def test_that_a_bridge_that_ends_by_itself_is_done(run, store):
    view = run("Brings", {"blocks": 5})
    assert (view.state, view.error) == ("done", "")
    assert figures(store.results(view.id)) == {"samples": 10.0, "span": pytest.approx(0.009)}


def test_that_a_bridge_that_delivers_nothing_ends_in_time_too(run, store):
    view = run("Waiting", duration=0.1)
    assert view.state == "done", view.error
    assert figures(store.results(view.id)) == {"samples": 0.0, "span": 0.0}


def test_that_what_a_cancelled_bridge_brought_is_kept(runner, store, spec):
    job = runner.submit(spec("Brings"))
    while "samples" not in job.view().message:
        assert not job.wait(0.01).over
    job.cancel()
    view = job.wait(WAIT)
    assert (view.state, view.error) == ("cancelled", "it was cancelled")
    path = store.path(view.id) / "results" / "recording.mcap"
    count = len(read_recording(path).source("cell").block)
    assert figures(store.results(view.id))["samples"] == count > 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", "raised OSError: the robot hung up"),
        ("tuple", r"test\.brings\.blocks yielded a ndarray; yield \(stamps, values\)"),
        ("shape", "does not fit its layout: values must be"),
        ("stamps", "does not fit its layout: stamps must be int64"),
    ],
)
def test_that_a_bridge_that_fails_loses_nothing_that_came(run, store, fault, words):
    view = run("Brings", {"fault": fault})
    assert view.state == "failed"
    assert re.search(words, view.error), view.error
    path = store.path(view.id) / "results" / "recording.mcap"
    assert len(read_recording(path).source("cell").block) == 4
    assert figures(store.results(view.id))["samples"] == 4.0


def test_that_a_bridge_without_a_layout_is_refused(run):
    assert "layout returned a list, no Layout" in run("Brings", {"fault": "layout"}).error


def test_that_a_bridge_that_is_killed_leaves_its_recording(run, store):
    view = run("Brings", {"fault": "crashes"})
    assert view.state == "failed"
    assert (store.path(view.id) / "results" / "recording.mcap").stat().st_size > 0
    assert any("recording.mcap holds what came" in note for note in store.load(view.id).notes)


def test_that_only_a_bridge_has_a_duration(spec):
    assert spec("Brings", duration=2.0).duration == 2.0
    with pytest.raises(JobError, match="duration 2 has no use: a command ends by itself"):
        spec("Dice", duration=2.0)
    with pytest.raises(JobError, match=r"duration is -1"):
        spec("Brings", duration=-1.0)


# --- residual learners


def halved(path: Path, count: int = 200) -> Path:
    """A twin that shows half of what the cell does, so that half is left to learn."""
    writer = announced(path, "twin", "cell", layout=SMALL)
    cell = block(SMALL, count)
    writer.write("cell", cell)
    writer.write("twin", Block(SMALL, cell.stamps.copy(), 0.5 * cell.values))
    writer.close()
    return path


def test_that_a_residual_is_learned_and_scored_on_what_was_not_fitted(run, store, tmp_path, runner):
    log = halved(tmp_path / "a.mcap")
    view = run("Learns", inputs={"log": log}, split=0.6)
    assert view.state == "done", view.error
    model, *scores, by_time = store.results(view.id)
    unseen = block(SMALL, 200).values[120:, 0]
    found = figures(scores)
    assert found["rms before a"] == pytest.approx(0.5 * np.sqrt(np.mean(unseen**2)))
    assert found["rms after a"] < 1e-12
    assert by_time.rows[0][:2] == pytest.approx((0.0, 0.015))
    assert len(by_time.rows) == 5
    assert by_time.rows[-1][1] == pytest.approx(0.079)
    content = (store.path(view.id) / "results" / "model.bin").read_bytes()
    assert isinstance(model, Table)
    assert model.rows == (("results/model.bin", len(content), hashlib.sha256(content).hexdigest()),)
    assert store.load(view.id).files["results/model.bin"] == model.rows[0][2]
    assert "the first 0.6 of the log" in " ".join(store.load(view.id).notes)
    assert reproduce(view.id, runner).same


def test_that_a_model_that_changed_on_disk_is_not_passed_off(run, store, tmp_path):
    view = run("Learns", inputs={"log": halved(tmp_path / "a.mcap")})
    (store.path(view.id) / "results" / "model.bin").write_bytes(b"another")
    with pytest.raises(JobError, match=r"model\.bin is not what the run wrote"):
        store.results(view.id)


def test_that_a_residual_may_be_scored_on_a_log_of_its_own(run, store, tmp_path):
    inputs = {"log": halved(tmp_path / "a.mcap"), "held_out": halved(tmp_path / "b.mcap", 50)}
    view = run("Learns", inputs=inputs)
    assert view.state == "done", view.error
    assert store.results(view.id)[-1].rows[-1][1] == pytest.approx(0.049)


def test_that_samples_without_a_reading_are_left_out_and_counted(run, store, tmp_path):
    writer = announced(tmp_path / "a.mcap", "twin", "cell", layout=SMALL)
    cell = block(SMALL, 100)
    values = cell.values.copy()
    values[:10] = np.nan
    writer.write("cell", Block(SMALL, cell.stamps.copy(), values))
    writer.write("twin", Block(SMALL, cell.stamps.copy(), 0.5 * cell.values))
    writer.close()
    view = run("Learns", inputs={"log": tmp_path / "a.mcap"})
    assert view.state == "done", view.error
    notes = store.load(view.id).notes
    assert "input 'log': 10 of 100 samples lack a reading, left out" in notes


def test_that_a_residual_of_the_twin_of_a_scene_is_learned(run, store, tmp_path):
    log = emps(tmp_path / "DATA_EMPS.mat", 800)
    view = run("Learns", scene="emps_axis", inputs={"log": log})
    assert view.state == "done", view.error
    assert any("ran commanded" in note for note in store.load(view.id).notes)
    assert figures(store.results(view.id))["rms before axis"] > 0.0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("text", "fit returned a str, no bytes"),
        ("shape", r"predict returned \[1, 50\]; return float64\[50, 1\]"),
        ("nan", "predict returned numbers that are not finite"),
        ("list", "predict returned list"),
    ],
)
def test_that_a_faulty_learner_fails_in_one_line(run, tmp_path, fault, words):
    view = run("Learns", {"fault": fault}, inputs={"log": halved(tmp_path / "a.mcap")})
    assert view.state == "failed"
    assert re.search(words, view.error), view.error


def test_that_a_signal_that_is_not_there_is_named(run, tmp_path):
    view = run("LearnsOther", inputs={"log": halved(tmp_path / "a.mcap")})
    assert "do not both have joint.velocity; both have joint.position" in view.error
    view = run("Learns", inputs={"log": recording(tmp_path / "b.mcap", "cell")})
    assert "holds no twin" in view.error


# --- HIL suites

SUITE = """
import pytest

def test_passes(): pass
def test_fails(): assert 1 + 1 == 3
@pytest.mark.skip(reason="no gripper")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_expected(): assert False
@pytest.fixture
def broken(): raise RuntimeError("no robot")
def test_set_up(broken): pass
@pytest.fixture
def late():
    yield
    raise RuntimeError("brakes")
def test_torn_down(late): pass
def test_fixtures(job_context, suite_params):
    job_context.log("in the suite")
    assert suite_params.limit == 2.0
    assert 0.0 <= job_context.rng.uniform() < 1.0
"""


def suite(folder: Path, text: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "test_it.py").write_text(text)
    return {"folder": str(folder)}


def test_that_each_test_of_a_suite_is_a_row_of_the_result(run, store, tmp_path, runner):
    view = run("Suite", suite(tmp_path / "s", SUITE))
    assert (view.state, view.error) == ("done", "")
    *verdict, tests = store.results(view.id)
    assert figures(verdict) == {"failed": 3.0, "passed": 2.0, "skipped": 1.0, "xfailed": 1.0}
    assert verdict[0].name == "failed"
    assert tests.columns == ("test", "outcome", "duration", "message")
    rows = {row[0].partition("::")[2]: row for row in tests.rows}
    assert {name: row[1] for name, row in rows.items()} == {
        "test_passes": "passed", "test_fails": "failed", "test_skipped": "skipped",
        "test_expected": "xfailed", "test_set_up": "error", "test_torn_down": "error",
        "test_fixtures": "passed",
    }  # fmt: skip
    assert "assert (1 + 1) == 3 (test_it.py, line 5)" in rows["test_fails"][3]
    assert "no gripper" in rows["test_skipped"][3]
    assert "RuntimeError: no robot" in rows["test_set_up"][3]
    assert all(row[2] >= 0.0 for row in tests.rows)
    assert "in the suite" in store.log(view.id)
    # How long a test took differs each time, and is no difference.
    assert reproduce(view.id, runner).same


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_of_that_name", "could not be run: .*No module named 'nothing_of_that"),
        ("def (", "could not be run: .*SyntaxError"),
        ("x = 1", "the suite has no tests"),
        ("import sys; sys.exit(3)", "could not be run"),
        ("def test_it(): import os; os._exit(5)", "exit status 5 and no result"),
        ("import pytest\ndef test_it(): pytest.exit('enough')", "stopped by .*enough"),
        ("def test_it(): raise KeyboardInterrupt", "stopped by KeyboardInterrupt"),
    ],
)
def test_that_a_suite_that_cannot_be_run_is_a_failed_job(run, tmp_path, text, words):
    view = run("Suite", suite(tmp_path / "s", text))
    assert view.state == "failed"
    assert re.search(words, view.error), view.error
    assert "\n" not in view.error


def test_that_a_suite_that_is_not_there_is_refused(run, tmp_path):
    assert "no path that exists" in run("Suite", {"folder": str(tmp_path / "none")}).error


def test_that_settings_further_up_do_not_reach_a_suite(run, store, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('not yours')")
    view = run("Suite", suite(tmp_path / "s", "def test_it(): pass"))
    assert view.state == "done", view.error
    assert figures(store.results(view.id))["passed"] == 1.0


def test_that_a_cancelled_suite_keeps_what_was_tested(runner, store, spec, tmp_path, monkeypatch):
    monkeypatch.setattr(job_module, "TERMINATE_SECONDS", WAIT)  # it heeds the cancel by itself
    text = (
        "import time\n"
        "def test_first(): pass\n"
        "def test_waits(job_context):\n"
        "    while not job_context.cancelled: time.sleep(0.005)\n"
        "def test_last(): pass\n"
    )
    job = runner.submit(spec("Suite", suite(tmp_path / "s", text)))
    while "1 of 3" not in job.view().message:
        assert not job.wait(0.01).over
    job.cancel()
    view = job.wait(WAIT)
    assert view.state == "cancelled", view.error
    tests = store.results(view.id)[-1]
    assert [row[0].partition("::")[2] for row in tests.rows] == ["test_first", "test_waits"]
