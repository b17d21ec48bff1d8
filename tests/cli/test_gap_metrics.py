"""``twinstudio gap LOG --metric``: metrics of plugins beside the table, whatever they do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from metric_helpers import metrics_in

from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout, joint_signals

LAYOUT = Layout(joint_signals(("axis",), ("axis",), kinds=("joint.position", "joint.velocity")))
GAP = 0.25


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of both sides of the one-axis scene, `GAP` m apart."""
    path = tmp_path_factory.mktemp("log") / "axis.mcap"
    stamps = 10**9 + 2_000_000 * np.arange(500, dtype=np.int64)
    t = stamps / 1e9
    cell = np.stack([np.sin(5 * t), 5 * np.cos(5 * t)], axis=1)
    writer = RecordingWriter(path)
    for name, shift in (("cell", 0.0), ("twin", GAP)):
        writer.source(name, SourceDescription(name, f"the {name}", LAYOUT, 500.0))
        writer.write(name, Block(LAYOUT, stamps, cell + np.array([shift, 0.0])))
    writer.close()
    return path


class Home:
    """A user with metrics of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        metrics_in(folder / "plugins", "sound", "raises", "typed", "nan", "rich", "broken")

    def gap(self, log: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "twinstudio", "gap", log, "--scene", "emps_axis"]
        command += ["--plugins-dir", self._folder / "plugins", *arguments]
        return subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            env=os.environ
            | {"XDG_DATA_HOME": str(self._folder), "XDG_CONFIG_HOME": str(self._folder)},
            timeout=100,
            check=False,
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("twinstudio:")]


def test_that_metrics_stand_in_table_json_and_report(home: Home, log: Path, tmp_path: Path) -> None:
    wanted = ["--metric", "try.sound:width=1 cm,mode=b", "--metric", "try.rich"]
    html = tmp_path / "report.html"
    done = home.gap(log, *wanted, "--html", html)
    assert done.returncode == 0, done.stderr
    for text in ("Metric sound: try.sound 1.5", "width=0.01", "rms of twin", " m ", "by joint"):
        assert text in done.stdout
    page = html.read_text()
    for text in ("try.sound 1.5", "width = 0.01", "rms of twin", "&lt;j1&gt;", "curve</b>"):
        assert text in page
    told = json.loads(home.gap(log, *wanted, "--json").stdout)
    first, second = told["metrics"]
    assert (first["plugin"], first["version"], first["error"]) == ("try.sound", "1.5", None)
    assert first["params"] == {"width": 0.01, "mode": "b"}
    (figure,) = first["results"]
    rms = (GAP**2 / 2) ** 0.5  # half of the columns do not differ
    assert figure["value"] == pytest.approx(rms + 0.01, abs=1e-6)
    assert (figure["unit"], figure["low"], figure["high"]) == ("m", 0.0, 9.0)
    assert [result["type"] for result in second["results"]] == ["scalar", "table", "series"]


def test_that_metrics_that_fail_are_a_line_each_and_the_rest_is_printed(
    home: Home, log: Path
) -> None:
    wanted = [word for name in ("raises", "typed", "nan", "broken", "sound")
              for word in ("--metric", f"try.{name}")]  # fmt: skip
    done = home.gap(log, *wanted)
    assert done.returncode == 1
    lines = complaints(done)
    assert len(lines) == 4
    for line, name, reason in zip(
        lines,
        ("raises", "typed", "nan", "broken"),
        ("raised ValueError: no such joint", "returned a dict", "is nan", "nowhere_to_be_found"),
        strict=True,
    ):
        assert line.startswith(f"twinstudio: metric try.{name} 1.5: ")
        assert reason in line
    assert "Gap, twin minus cell, 500 samples" in done.stdout
    assert "rms of twin" in done.stdout


def test_that_a_failure_is_told_in_json_too(home: Home, log: Path) -> None:
    done = home.gap(log, "--metric", "try.nan", "--metric", "try.sound", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["joints"][0]["position_rmse"] == pytest.approx(GAP)
    assert [bool(one["error"]) for one in told["metrics"]] == [True, False]
    assert told["metrics"][0]["results"] == []


def test_that_metrics_and_repeats_go_together(home: Home, log: Path) -> None:
    done = home.gap(log, "--repeat", log, "--metric", "try.sound", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["joints"][0]["position_floor"] == pytest.approx(0.0, abs=1e-12)
    assert told["metrics"][0]["results"]


def test_that_without_a_metric_the_list_is_empty(home: Home, log: Path) -> None:
    assert json.loads(home.gap(log, "--json").stdout)["metrics"] == []


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("try.sund", "did you mean 'try.sound'?"),
        ("try.sound:width=3 m", "allowed 0 to 1 m"),
        ("try.sound:wide=1", "unknown key 'wide'"),
        ("try.sound:width", "write name=value"),
    ],
)
def test_that_a_typing_error_is_told_before_anything_is_computed(
    home: Home, log: Path, metric: str, reason: str
) -> None:
    done = home.gap(log, "--metric", metric)
    assert done.returncode == 1
    (line,) = complaints(done)
    assert reason in line
    assert done.stdout == ""
