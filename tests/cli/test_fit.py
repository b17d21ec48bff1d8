"""`twinstudio fit`, `runs promote` and `scene`: from logs to a patch and back."""

import json
from pathlib import Path

import pytest
import typer
from fit_helpers import TRUE_GAIN, axis_log, axis_scene
from plugin_helpers import single_file
from typer.testing import CliRunner

from twinstudio.cli import fit, runs, scenes
from twinstudio.model.errors import JobError, PluginError, SceneError
from twinstudio.model.patches import load_patched
from twinstudio.plugin.slots import InputSlot
from twinstudio.session.fitting import inputs_of

FITS = Path(__file__).parents[1] / "jobs" / "fits_at_work.py"
HOOK = """

from twinstudio.plugin import api


@api.implements
def calibrators():
    return [Tunes]
"""


@pytest.fixture
def folder(tmp_path):
    return axis_scene(tmp_path / "axis")


@pytest.fixture
def log(folder, tmp_path):
    return axis_log(folder, tmp_path / "axis.mcap", 1.0)


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = single_file(tmp_path / "plugins", "tunes", "test.tunes", FITS.read_text() + HOOK)
    file.write_text(file.read_text().replace('kind = "metric"', 'kind = "calibrator"'))
    app = typer.Typer()
    for part in (fit, runs, scenes):
        part.register(app)

    def go(*arguments: str, code: int = 0):
        given = list(arguments)
        if given[0] == "fit":
            given += ["--plugins-dir", str(file.parent)]
        if given[0] != "scene":
            given += ["--runs-dir", str(tmp_path / "runs")]
        done = CliRunner().invoke(app, given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.output

    return go


def test_that_a_fit_tells_findings_intervals_verdict_report_and_what_is_next(
    call, folder, log, tmp_path
):
    told = call(
        "fit", "tunes", "--scene", str(folder), "--log", str(log), "--split", "0.6",
        "--set", f"gain={TRUE_GAIN}", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    for words in (
        "check: little motion; move faster", "0.0450 to 0.0550", "not identifiable",
        "scores", "the twin is better on held-out data", "next:   twinstudio runs promote",
    ):  # fmt: skip
        assert words in told
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "out" / "report.json").is_file()
    run = told.split("runs promote ")[1].split()[0]
    shown = call("runs", "promote", run)
    assert "the twin is better" in shown
    assert load_patched(folder).twin.position_gain == TRUE_GAIN


def test_that_a_fit_as_json_is_one_document(call, folder, log):
    told = json.loads(
        call("fit", "test.tunes", "--scene", str(folder), "--log", str(log),
             "--validate", str(log), "--seed", "4", "--promote", "--json")
    )  # fmt: skip
    assert told["spec"]["seed"] == 4
    assert sorted(told["spec"]["inputs"]) == ["held_out", "log"]
    assert told["calibration"]["trials"][0]["outcome"] == "better"
    assert told["promoted"] == "result 5 'gain'"
    assert Path(told["report"]).is_file()


def test_that_a_patch_that_is_not_better_is_not_promoted(call, folder, log):
    base = ("fit", "tunes", "--scene", str(folder), "--log", str(log), "--set", "gain=0.002")
    told = call(*base, "--promote", code=1)
    assert "nothing is promoted" in told
    assert "the twin is worse" in told
    assert load_patched(folder).twin.position_gain != 0.002
    told = call(*base)
    assert "--force" in told
    run = told.split("runs promote ")[1].split()[0]
    with pytest.raises(JobError, match=r"not better.*--force promotes it all the same"):
        call("runs", "promote", run)
    call("runs", "promote", run, "gain", "--force")
    assert load_patched(folder).twin.position_gain == 0.002


def test_that_a_fatal_finding_is_told_with_status_1(call, folder, log):
    told = call(
        "fit", "tunes", "--scene", str(folder), "--log", str(log), "--set", "fatal=true", code=1
    )
    assert "check: FATAL: nothing moves; move" in told
    assert "cannot be calibrated from: nothing moves" in told


def test_that_patches_are_listed_and_taken_back(call, folder, log):
    call("fit", "tunes", "--scene", str(folder), "--log", str(log), "--promote")
    listed = call("scene", "patches", str(folder))
    assert "'gain' of run" in listed
    assert "twin.position_gain" in listed
    assert "0.01441" in listed
    plain = json.loads(call("scene", "patches", str(folder), "--json"))
    assert plain["values"][0]["nominal"] == 0.01441
    assert "0 patches are left" in call("scene", "undo", str(folder))
    assert "no patch lies on" in call("scene", "patches", str(folder))
    with pytest.raises(SceneError, match="no patch to take back"):
        call("scene", "undo", str(folder))


def test_that_an_unknown_calibrator_is_told_with_those_there_are(call, folder, log):
    with pytest.raises(PluginError, match=r"no calibrator is called 'tune'; .*test\.tunes"):
        call("fit", "tune", "--scene", str(folder), "--log", str(log))


SLOTS = (
    InputSlot("loaded", "With load"),
    InputSlot("empty", "Without", required=False, several=True),
    InputSlot("held_out", "To validate on", required=False, several=True),
)


def test_that_logs_go_by_their_slots():
    assert inputs_of(["a.csv", "empty=b.csv", "empty_2=c=d.csv"], ["v.csv", "w.csv"], SLOTS) == {
        "loaded": "a.csv", "empty": "b.csv", "empty_2": "c=d.csv",
        "held_out": "v.csv", "held_out_2": "w.csv",
    }  # fmt: skip


def test_that_a_path_with_an_equals_sign_is_no_name():
    log = (InputSlot("log", "A log", several=True),)
    assert inputs_of(["gain=2/a.csv", "b.csv", "mapping=m.toml"], [], log) == {
        "log": "gain=2/a.csv", "log_2": "b.csv", "mapping": "m.toml",
    }  # fmt: skip


def test_that_wrong_logs_are_told():
    with pytest.raises(JobError, match=r"input 'empty' is given twice; call one empty_2"):
        inputs_of(["empty=a", "empty=b"], [], SLOTS)
    with pytest.raises(JobError, match="takes no log to validate on"):
        inputs_of(["a"], ["b"], SLOTS[:1])
