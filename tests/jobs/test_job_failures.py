"""Plugins that misbehave: one clear message each, and a run that says failed."""

import os
import re
import time
from pathlib import Path

import psutil
import pytest
from jobs.test_job_kinds import recording

from twinstudio.jobs.capture import HEAD_BYTES, TAIL_BYTES
from twinstudio.model.errors import JobError

FAILURES = {
    "Raises": r"test\.Raises: raised ValueError: the data is odd \(plugins_at_work\.py, line \d+",
    "RaisesRudely": r"raised _RudeError: \(its text cannot be had\)",
    "Exits": r"called sys\.exit\(3\); a plugin returns",
    "ExitsAtOnce": r"ended with exit status 0 and no result.*last output: goodbye",
    "Interrupts": r"raised KeyboardInterrupt, though nobody",
    "CancelsItself": r"raised Cancelled, though nobody",
    "Recurses": r"called itself too deeply",
    "EatsMemory": r"ran out of memory",
    "Crashes": r"SIGSEGV \(segmentation fault\) in plugins_at_work\.py.*last output: about to fall",
    "CrashesInC": r"SIGSEGV.*last output: about to fall",
    "IsKilled": r"SIGKILL \(killed from outside, or .* memory\).*last output: last words",
    "ReturnsNothing": r"test\.ReturnsNothing\.run returned nothing, no list of results",
    "ReturnsOne": r"returned a Scalar, no list of results",
    "ReturnsNumbers": r"result 0 of .* is a float; it must be one of Scalar",
    "ReturnsText": r"returned a str",
    "ReturnsNan": r"result 'figure' is nan, no figure",
    "ReturnsNanRow": r"result 't' of .*row 1 holds NaN",
    "ReturnsWords": r"result 's' of .* is malformed: Expected float, got str",
    "ReturnsInfinitePatch": r"'a\.b' would become inf",
    "ReturnsHalfACharacter": r"result 't' of .*: '\?' holds half a character",
    "ReturnsAnOddName": r"result .*gap' of .*: a name has 1 to 300 characters and none that",
    "ReturnsNoName": r"result '' of .*: a name has 1 to 300 characters",
    "ReturnsAHugeCount": r"result 't' of .*: a whole number has more than 64 bits",
    "RaisesHalfACharacter": r"raised ValueError: *\[31m *odd \(plugins_at_work\.py",
    "MapsWhatFails": r"raised ValueError: invalid literal .* \(plugins_at_work\.py, line \d+",
    "ReturnsNoPicture": r"its data is no PNG",
    "ProgressesOddly": r"progress is nan",
    "FillsItsDisk": r"results could not be kept: there is no room left",
}


@pytest.mark.parametrize("name", FAILURES)
def test_that_a_misbehaving_plugin_leaves_one_clear_message(run, store, name):
    view = run(name)
    assert view.state == "failed"
    assert re.search(FAILURES[name], view.error), view.error
    assert "\n" not in view.error
    kept = store.load(view.id)
    assert (kept.state, kept.error) == ("failed", view.error)
    assert kept.provenance is not None
    assert kept.ended is not None
    assert store.results(view.id) == ()


def test_that_the_traceback_is_kept(run, store):
    assert "the data\nis odd" in store.load(run("Raises").id).trace


def test_that_a_flood_of_output_keeps_its_head_and_tail(run, store):
    view = run("Prints")
    assert view.state == "done"
    log = store.log(view.id)
    assert log.startswith("the beginning\n")
    assert log.endswith("the end\n")
    assert len(log) < HEAD_BYTES + TAIL_BYTES + 1000
    left_out = int(re.search(r"\[\.\.\. (\d+) bytes left out", log)[1])
    note = re.search(r"\n\[\.\.\. .*\]\n", log)[0]
    assert left_out + len(log) - len(note) == 40 * 100_000 + len("the beginning\nthe end\n")


def test_that_output_of_any_origin_and_encoding_is_logged(run, store):
    view = run("PrintsBytes")
    assert view.state == "done"
    assert "raw" in store.log(view.id)
    assert "from a shell" in store.log(view.id)
    assert "and its errors" in store.log(view.id)


@pytest.mark.parametrize(
    "name",
    ["ClosesOutput", "PutsOddStreams", "ForksAndBothReturn", "LeavesThread", "SpeaksOutOfTurn"],
)
def test_that_bad_manners_do_not_spoil_a_good_result(run, store, name):
    view = run(name)
    assert view.state == "done", view.error


def test_that_a_plugin_finds_no_orders_on_its_input(run, store):
    assert store.results(run("ReadsInput").id)[0].value == 0.0


def test_that_a_process_left_behind_is_ended_with_the_job(run, store):
    view = run("Forks")
    pid = int(re.search(r"left (\d+) behind", store.log(view.id))[1])
    deadline = time.monotonic() + 5.0
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.01)
    else:
        assert not psutil.pid_exists(pid)
    assert view.state == "done"


def test_that_a_process_that_left_the_group_holds_nobody_up(run, store):
    view = run("Escapes")
    pid = int(re.search(r"left (\d+) behind", store.log(view.id))[1])
    psutil.Process(pid).kill()
    assert view.state == "done"


def test_that_a_run_removed_by_its_own_plugin_is_recorded_all_the_same(run, store):
    view = run("RemovesItsRun")
    assert view.state == "failed"
    assert "cannot be written" in view.error
    assert store.load(view.id).state == "failed"


def test_that_a_plugin_that_closes_everything_fails_plainly(run, store):
    view = run("ClosesEverything")
    assert view.state == "failed"
    assert store.load(view.id).error == view.error
    assert "ended with exit status" in view.error


def test_that_a_plugin_cannot_write_its_own_record(run, store):
    view = run("SpoilsItsRecord")
    assert store.load(view.id).state == view.state == "done"


def test_that_a_job_is_held_to_its_limit(run):
    view = run("Stubborn", limit=1.0)
    assert view.state == "failed"
    assert "did not end within its limit of 1 s" in view.error


def test_that_an_input_that_changed_since_is_named(runner, spec, tmp_path):
    file = tmp_path / "a.bin"
    file.write_bytes(b"then")
    made = spec("Reads", inputs={"log": file})
    file.write_bytes(b"now!")
    view = runner.submit(made).wait(60)
    assert view.state == "failed"
    assert "input 'log' has changed since the job was made" in view.error
    assert str(file) in view.error
    file.unlink()
    assert "input 'log' is gone" in runner.submit(made).wait(60).error


def test_that_an_input_that_might_never_end_is_refused(spec, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JobError, match="input 'log' cannot be read: Is no regular file"):
        spec("Reads", inputs={"log": tmp_path / "pipe"})


def test_that_an_input_that_became_a_pipe_fails_the_job(runner, spec, tmp_path):
    log = tmp_path / "log"
    log.write_text("x")
    made = spec("Reads", inputs={"log": log})
    log.unlink()
    os.mkfifo(log)
    view = runner.submit(made).wait(60.0)
    assert view.state == "failed"
    assert "Is no regular file" in view.error


def test_that_names_that_no_record_can_hold_are_refused(runner, spec, tmp_path):
    log = tmp_path / os.fsdecode(b"\xff")
    log.write_text("x")
    with pytest.raises(JobError, match=r"names of its inputs cannot be recorded: .*; use names"):
        runner.submit(spec("Reads", inputs={"log": log}))
    assert runner.submit(spec("Dice")).wait(60.0).state == "done"


def test_that_a_folder_that_changed_since_is_named(runner, spec, tmp_path):
    folder = tmp_path / "gate"
    folder.mkdir()
    made = spec("Waits", inputs={"gate": folder})
    (folder / "open").touch()
    view = runner.submit(made).wait(60)
    assert "input 'gate' has changed since the job was made" in view.error


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("ChecksOddly", {}, r"check returned no list of findings; return Finding objects"),
        ("ChecksOddly", {"fatal": True}, r"check returned no list of findings"),
        ("SolvesOddly", {}, r"result 'gain' is nan, no figure"),
        ("SolvesOddly", {"breaks": True}, r"called sys\.exit\(1\)"),
        ("MeasuresOddly", {}, r"measure returned a dict, no list of results"),
    ],
)
def test_that_every_kind_is_held_to_what_it_returns(run, store, tmp_path, name, params, words):
    log = recording(tmp_path / "a.mcap", "twin", "cell")
    view = run(name, params, scene="emps_axis", inputs={"log": log})
    assert view.state == store.load(view.id).state == "failed"
    assert re.search(words, view.error), view.error
    assert "\n" not in view.error


def test_that_a_scene_that_changed_since_is_named(runner, spec, tmp_path):
    from shutil import copytree

    from twinstudio.model.scene import scenes_folder

    scene = tmp_path / "scene"
    copytree(scenes_folder() / "emps_axis", scene)
    made = spec("Draws", scene=scene)
    with (scene / "scene.toml").open("a") as stream:
        stream.write("\n# a change\n")
    view = runner.submit(made).wait(60)
    assert view.state == "failed"
    assert "the scene has changed since" in view.error


def test_that_a_randomizer_must_return_a_patch(run):
    assert "returned NoneType, no Patch" in run("DrawsNothing", scene="emps_axis").error


def test_that_a_plugin_whose_file_is_gone_fails_plainly(runner, tmp_path):
    from twinstudio.jobs.spec import specify

    file = tmp_path / "mine.py"
    file.write_text(
        "from twinstudio.plugin.kinds import Command\n"
        "from twinstudio.model.params import Params\n"
        "class Mine(Command[Params]):\n"
        "    params = Params\n"
        "    def run(self, context, params):\n"
        "        return []\n"
    )
    made = specify(str(file), {}, seed=1)
    assert made.source == f"{file}:Mine"
    assert runner.submit(made).wait(60).state == "done"
    file.unlink()
    view = runner.submit(made).wait(60)
    assert view.state == "failed"
    assert str(file) in view.error


def test_that_nothing_of_a_failed_run_is_left_open(run):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("Raises", "Crashes", "IsKilled"):
        run(name)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
