"""The command line over runs."""

import json

import pytest
import typer
from typer.testing import CliRunner

from twinstudio.cli import runs
from twinstudio.model.errors import JobError


@pytest.fixture
def call(store):
    app = typer.Typer()
    app.command("nothing")(lambda: None)
    runs.register(app)

    def go(command: str, *arguments: str, code: int = 0):
        given = ["runs", command, *arguments, "--runs-dir", str(store.folder)]
        done = CliRunner().invoke(app, given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.stdout

    return go


def test_that_runs_are_listed_and_shown(call, run):
    identity = run("Dice").id
    assert identity in call("list")
    assert "no runs in" in call("list", "--state", "failed")
    listed = json.loads(call("list", "--json"))
    assert [(head["id"], head["state"]) for head in listed] == [(identity, "done")]
    shown = call("show", identity)
    for words in (
        "test.dice (command)",
        "│ mean",
        "curve: a curve of 2000 points",
        "twin.behind = 0.1",
    ):
        assert words in shown
    plain = json.loads(call("show", identity, "--json"))
    assert plain["spec"]["seed"] == 7
    assert [result["type"] for result in plain["results"]] == [
        "scalar", "scalar", "series", "table", "image", "patch",
    ]  # fmt: skip


def test_that_a_run_is_reproduced_and_compared(call, run):
    identity = run("Dice").id
    outcome = json.loads(call("reproduce", identity, "--json"))
    assert outcome["same"] is True
    assert "the same numbers" in call("reproduce", identity)
    assert "results: no difference" in call("compare", identity, outcome["run"])
    failed = run("Raises").id
    assert "not the same" in call("reproduce", failed, code=1)


def test_that_a_run_goes_out_in_and_away(call, run, store, tmp_path):
    identity = run("Dice").id
    before = store.results(identity)
    call("export", identity, str(tmp_path / "a.zip"))
    call("delete", identity)
    assert store.list() == ()
    assert json.loads(call("import", str(tmp_path / "a.zip"), "--json")) == {"id": identity}
    assert store.results(identity) == before
    with pytest.raises(JobError, match="there is no run"):
        call("show", "20260101-000000-000000")


def test_that_a_job_runs_from_the_command_line(spec, store, capsys):
    identity = runs.run_job_cli(spec("Dice"), store=store)
    assert store.load(identity).state == "done"
    assert "│ mean" in capsys.readouterr().out
    runs.run_job_cli(spec("Dice"), store=store, as_json=True)
    assert json.loads(capsys.readouterr().out)["state"] == "done"
    with pytest.raises(JobError, match=r"the data is odd.*runs show"):
        runs.run_job_cli(spec("Raises"), store=store)


def test_that_a_patch_is_promoted_by_its_number(call, run, tmp_path):
    from shutil import copytree

    from twinstudio.model.patches import load_patched
    from twinstudio.model.scene import scenes_folder

    scene = tmp_path / "scene"
    copytree(scenes_folder() / "emps_axis", scene)
    identity = run("Draws", scene=scene, draws=3).id
    assert "draw (result 2): could be" in call("show", identity)
    with pytest.raises(JobError, match=r"3 patches to choose from; .*1 draw, 2 draw, 3 draw"):
        call("promote", identity, "--scene", str(scene))
    told = call("promote", identity, "--scene", str(scene), "--result", "2", "--json")
    assert json.loads(told) == {"run": identity, "result": 2, "name": "draw"}
    shown = json.loads(call("show", identity, "--json"))
    gain = shown["results"][1]["changes"][0]["value"]
    assert load_patched(scene).twin.position_gain == gain
