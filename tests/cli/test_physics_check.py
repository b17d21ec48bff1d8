"""``twinstudio physics check``: a table or JSON, and a status that tells what moves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from world_helpers import PENDULUM, PENDULUM_SCENE, scene_in

COARSE = PENDULUM_SCENE + '[simulation]\nstep = "20 ms"\n'


def check(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "twinstudio", "physics", "check", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_that_json_and_status_tell_of_results_that_move(tmp_path):
    scene_in(tmp_path, COARSE, PENDULUM)
    done = check(tmp_path, "--seconds", "1", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert any(change["moves"] for change in told["changes"])
    assert told["verdict"].startswith("half the step moves")


def test_that_a_table_ends_with_a_verdict_in_words(tmp_path):
    scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    done = check(tmp_path, "--seconds", "0.5", "--bound", "0.5")
    assert done.returncode == 0, done.stderr
    assert "joint position" in done.stdout
    assert "no result moves by more than 0.5" in done.stdout


@pytest.mark.parametrize("options", [("--seconds", "0"), ("--bound", "7")])
def test_that_impossible_options_are_refused(tmp_path, options):
    scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    done = check(tmp_path, *options)
    assert done.returncode == 2
    assert options[0] in done.stderr
