"""What ``plugins new`` writes runs as a job, and ``plugins run`` runs it."""

import json
from pathlib import Path

import pytest
import typer
from plugin_helpers import single_file
from record_helpers import announced, block
from typer.testing import CliRunner

from twinstudio.cli import plugins
from twinstudio.jobs.spec import RUNNABLE, specify
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError, ParamsError
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.scaffold import filled, names_of, write_project

MOTION = Layout(joint_signals(("a",), kinds=("joint.position", "joint.velocity", "joint.effort")))


def pair_of(path: Path) -> Path:
    writer = announced(path, "twin", "cell", layout=MOTION)
    cell = block(MOTION, 200)
    writer.write("cell", cell)
    writer.write("twin", Block(MOTION, cell.stamps.copy(), 0.9 * cell.values))
    writer.close()
    return path


@pytest.mark.parametrize("kind", RUNNABLE)
def test_that_the_template_of_each_kind_runs_as_a_job(runner, store, tmp_path, kind):
    project = write_project(f"acme-{kind}", kind, tmp_path)
    reads_log = any(slot.name == "log" for slot in KINDS[kind].inputs)
    spec = specify(
        str(project / f"acme_{kind}" / "plugin.py"),
        {},
        seed=1,
        scene="panda_cell",
        inputs={"log": pair_of(tmp_path / "a.mcap")} if reads_log else {},
        duration=0.1 if kind == "bridge" else 0.0,
    )
    view = runner.submit(spec).wait(60.0)
    assert (view.state, view.error) == ("done", "")
    assert store.results(view.id)


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    app = typer.Typer()
    app.command("nothing")(lambda: None)
    plugins.register(app)
    code = filled("calibrator.py", names_of("acme-mean", "calibrator"))
    file = single_file(tmp_path / "plugins", "mean", "acme.mean", code)
    file.write_text(file.read_text().replace('kind = "metric"', 'kind = "calibrator"'))

    def go(*arguments: str):
        done = CliRunner().invoke(app, ["plugins", *arguments, "--plugins-dir", str(file.parent)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return go


def test_that_inputs_split_and_limits_are_given_on_the_command_line(call, tmp_path):
    log = str(pair_of(tmp_path / "a.mcap"))
    told = json.loads(call(
        "run", "acme.mean", "--seed", "1", "--scene", "emps_axis", "--input", f"log={log}",
        "--input", f"log_2=mcap:{log}", "--split", "0.7", "--memory", "2G", "--limit", "60",
        "--json",
    ))  # fmt: skip
    spec = told["spec"]
    assert (spec["split"], spec["memory"], spec["limit"]) == (0.7, 2_000_000_000, 60.0)
    assert spec["inputs"]["log_2"]["format"] == "mcap"
    shown = call("info", "acme.mean")
    assert "--input log" in shown
    assert "--input held_out" in shown


def test_that_mistakes_on_the_command_line_are_told(call, tmp_path):
    log = str(pair_of(tmp_path / "a.mcap"))
    job = ("run", "acme.mean", "--seed", "1", "--scene", "emps_axis", "--input", f"log={log}")
    with pytest.raises(ParamsError, match=r"input .log. is given twice; .* log and log_2"):
        call(*job, "--input", f"log={log}")
    with pytest.raises(JobError, match="there is no input 'lag'"):
        call(*job, "--input", f"lag={log}")
    with pytest.raises(ParamsError, match="'much' is no amount of memory; write --memory 500M"):
        call(*job, "--memory", "much")
    with pytest.raises(JobError, match="split is 1; a share"):
        call(*job, "--split", "1.0")
