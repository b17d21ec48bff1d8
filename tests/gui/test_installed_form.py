"""A third party's plugin, new, built and installed, runs from its form as it does elsewhere."""

import json
import subprocess
from pathlib import Path

from plugin_helpers import clean_environment, home_of, twinstudio

TESTS = Path(__file__).resolve().parents[1]


def test_that_an_installed_plugin_gives_the_same_from_its_form_and_the_command_line(
    tmp_path: Path,
) -> None:
    programs = clean_environment(tmp_path / "env")
    python = str(programs / "python")

    def plugins(*arguments: str) -> str:
        done = twinstudio("plugins", *arguments, "--json", home=tmp_path, python=python)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    project = json.loads(plugins("new", "acme-settling", "--kind", "randomizer"))
    plugins("install", project["path"], "--yes", "--offline")
    done = subprocess.run(
        [python, "-m", "gui.installed_form", "acme.settling", "spread", "10 %"],
        cwd=tmp_path,
        env=home_of(tmp_path) | {"PYTHONPATH": str(TESTS), "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    from_form = json.loads(done.stdout.splitlines()[-1])
    job = ("acme.settling", "spread=0.1", "--seed", str(from_form["seed"]), "--scene", "panda_cell")
    assert from_form["results"] == json.loads(plugins("run", *job))["results"]
    plugins("uninstall", "acme-settling", "--yes")
    assert "acme.settling" not in plugins("list")
