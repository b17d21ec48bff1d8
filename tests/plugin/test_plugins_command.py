"""``twinstudio plugins`` as typed in a terminal."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from plugin_helpers import HEADER, clean_environment, home_of, single_file, twinstudio


def loaded(done: "subprocess.CompletedProcess[str]") -> Any:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_that_a_thread_of_a_plugin_does_not_keep_the_command(tmp_path: Path) -> None:
    code = "import threading\nthreading.Thread(target=threading.Event().wait, name='mine').start()"
    file = single_file(tmp_path, "reach", "acme.reach")
    file.write_text(f"{file.read_text()}\n{code}\n")
    done = twinstudio(
        "plugins", "info", "acme.reach", "--plugins-dir", str(tmp_path), home=tmp_path
    )
    assert done.returncode == 0
    assert "acme.reach" in done.stdout
    assert "left behind and ended: thread 'mine', which a plugin started" in done.stderr


def test_that_a_new_plugin_is_built_installed_listed_validated_and_removed(
    tmp_path: Path,
) -> None:
    """The whole life of a third party's plugin, in a clean environment without a network."""
    programs = clean_environment(tmp_path / "env")
    python = str(programs / "python")

    def run(*arguments: str) -> Any:
        return loaded(twinstudio("plugins", *arguments, "--json", home=tmp_path, python=python))

    project = run("new", "acme-settling", "--kind", "randomizer")
    assert project["id"] == "acme.settling"
    wheel = ["-m", "pip", "wheel", "-q", "--no-deps", "-w", "dist", project["path"]]
    subprocess.run([python, *wheel], cwd=tmp_path, env=home_of(tmp_path), check=True, timeout=90)
    (built,) = (tmp_path / "dist").glob("*.whl")
    changes = run("install", str(built), "--yes", "--offline")["changes"]
    assert changes == [{"name": "acme-settling", "version": "0.1.0", "before": ""}]
    assert run("install", str(built), "--yes", "--offline")["changes"] == []
    listed = {entry["id"]: entry for entry in run("list")}
    entry = listed["acme.settling"]
    assert (entry["state"], entry["version"]) == ("unused", "0.1.0")
    assert (entry["origin"], entry["first_party"]) == ("acme-settling", False)
    safe = {entry["id"]: entry["state"] for entry in run("list", "--safe")}
    assert safe["acme.settling"] == "disabled"
    assert run("validate", "acme.settling")[0]["passed"]
    job = ("acme.settling", "spread=0.1", "--seed", "1", "--scene", "panda_cell")
    ran = run("run", *job)
    assert (ran["state"], ran["spec"]["version"]) == ("done", "0.1.0")
    assert run("run", *job)["results"] == ran["results"] == _drawn_by_script(python, tmp_path)
    assert run("disable", "acme.settling")["state"] == "disabled"
    assert run("enable", "acme.settling")["state"] == "unused"
    assert run("uninstall", "acme-settling", "--yes") == {"uninstalled": "acme-settling"}
    assert "acme.settling" not in {entry["id"] for entry in run("list")}


SCRIPT = """
import json, pathlib, sys
import msgspec
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.spec import specify
from twinstudio.jobs.store import Store
from twinstudio.plugin.catalog import Places, open_catalog
cls = open_catalog(Places()).load("acme.settling")
with Runner(Store(pathlib.Path("runs"))) as runner:
    job = runner.submit(specify(cls, {"spread": 0.1}, seed=1, scene="panda_cell"))
    view = job.wait(60.0)
    assert view.state == "done", view
    print(json.dumps(msgspec.to_builtins(runner.store.results(view.id))))
"""


def _drawn_by_script(python: str, folder: Path) -> Any:
    done = subprocess.run(
        [python, "-c", SCRIPT],
        cwd=folder,
        env=home_of(folder),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return loaded(done)


def test_that_plugins_of_the_folder_of_user_data_are_listed(tmp_path: Path) -> None:
    single_file(tmp_path / ".local/share/twinstudio/plugins", "reach", "acme.reach")
    entries = loaded(twinstudio("plugins", "list", "--json", home=tmp_path))
    assert "acme.reach" in {entry["id"] for entry in entries}


def test_that_a_failure_is_listed_with_its_reason_and_a_trace(tmp_path: Path) -> None:
    single_file(tmp_path / "tools", "reach", "acme.reach", code="print('hello')\n1 / 0\n")
    (tmp_path / "tools" / "bad.py").write_text(HEADER.format(id="acme.bad").replace("api", "apo"))
    options = ["--plugins-dir", "tools"]
    done = twinstudio("plugins", "list", *options, home=tmp_path)
    assert done.returncode == 0
    assert "unknown key 'apo'" in done.stdout
    about = loaded(twinstudio("plugins", "info", "acme.reach", "--json", *options, home=tmp_path))
    assert about["plugin"]["state"] == "failed"
    assert "ZeroDivisionError" in about["plugin"]["trace"]
    done = twinstudio("plugins", "validate", "acme.reach", *options, home=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("acme.reach: FAILED\n")


def test_that_a_plugin_that_ends_its_process_is_a_line_too(tmp_path: Path) -> None:
    code = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    file = single_file(tmp_path / "tools", "reach", "acme.reach", code=code)
    done = twinstudio("plugins", "validate", str(file), home=tmp_path)
    assert done.returncode == 1
    assert "was killed by SIGSEGV" in done.stdout


def test_that_info_shows_the_parameters(tmp_path: Path) -> None:
    single_file(tmp_path / "tools", "reach", "acme.reach")
    done = twinstudio("plugins", "info", "acme.reach", "--plugins-dir", "tools", home=tmp_path)
    assert "Signal that is compared" in done.stdout
    assert "joint.position" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("info", "acme.nowhere"), "there is no plugin 'acme.nowhere'"),
        (("list", "--plugins-dir", "nowhere"), "nowhere: there is no such folder"),
        (("validate", "."), "give a plugin's id, its single file or the folder of its project"),
        (("new", "Acme", "--kind", "metric"), "'Acme' is no name for a project"),
        (("enable", "acme.nowhere"), "there is no plugin 'acme.nowhere'"),
        (("uninstall", "acme-nowhere"), "no package 'acme-nowhere' is installed"),
        (("run", "acme.nowhere", "--seed", "1"), "there is no plugin 'acme.nowhere'"),
        (("install", "nowhere.whl"), "there is no such wheel or folder"),
    ],
)
def test_that_a_mistake_is_one_line_and_status_one(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = twinstudio("plugins", *arguments, home=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("twinstudio: ")
    assert complaint in line


def test_that_nothing_is_installed_unless_somebody_agrees(tmp_path: Path) -> None:
    new = loaded(
        twinstudio("plugins", "new", "acme-reach", "--kind", "hil", "--json", home=tmp_path)
    )
    done = twinstudio("plugins", "install", new["path"], "--offline", home=tmp_path)
    assert done.returncode == 1
    assert "will install acme-reach 0.1.0" in done.stdout
    assert "all your rights" in done.stdout
    assert "nobody is there to agree; add --yes" in done.stderr
    entries = loaded(twinstudio("plugins", "list", "--json", home=tmp_path))
    assert "acme.reach" not in {entry["id"] for entry in entries}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("signal=", "nonsense"), "'nonsense' is no assignment; write name=value"),
        (("singal=x",), "unknown key 'singal'; known keys here: signal"),
        (("--input", "log"), "'log' is no input; write --input name=path"),
        (("--input", "log=nowhere.mcap"), "input 'log' is missing"),
    ],
)
def test_that_a_job_that_cannot_be_made_is_a_line(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    single_file(tmp_path / "tools", "reach", "acme.reach")
    options = ["--plugins-dir", "tools", "--seed", "1"]
    done = twinstudio("plugins", "run", "acme.reach", *arguments, *options, home=tmp_path)
    assert done.returncode == 1
    assert complaint in done.stderr
