"""The command line as a user meets it: a process, its output and its exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import twinstudio
from twinstudio.flow.record import read_recording

PROGRAM = [sys.executable, "-m", "twinstudio"]


def run(*arguments: object, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    if home is not None:
        environment |= {"HOME": str(home), "XDG_DATA_HOME": str(home)}
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
        check=False,
    )


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "command",
    ["open", "demo", "twin", "cell", "import", "replay", "record", "gap", "bench", "info"],
)
def test_that_every_command_has_help_with_an_example(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert "twinstudio" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["gap", "nothing.mcap", "--scene", "panda_cell"], "nothing.mcap"),
        (["gap", __file__, "--scene", "panda_cell"], "test_command_line.py"),
        (["twin", "no_such_scene"], "there is no scene 'no_such_scene'"),
        (["replay", "nothing.mcap"], "nothing.mcap"),
        (["import", "tape", ".", "x.mcap"], "tape"),
        (["import", "emps", "nowhere", "x.mcap"], "nowhere"),
        (["record", "x.mcap"], "nothing to record"),
        (["record", "x.mcap", "--cell", "tcp://127.0.0.1:9"], "tcp://127.0.0.1:9"),
        (["bench", "nonsense"], "no measurement 'nonsense'; there are alignment"),
    ],
)
def test_that_a_failure_is_one_plain_line_and_a_status(
    arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.returncode == 1, done
    (line,) = [text for text in done.stderr.splitlines() if text.startswith("twinstudio:")]
    assert complaint in line
    assert "Traceback" not in done.stderr


def test_that_the_version_is_told() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout.strip()) == (0, twinstudio.__version__)


def test_that_a_scene_without_its_data_set_says_where_to_look(tmp_path: Path) -> None:
    environment = {**os.environ, "TWINSTUDIO_DATA": str(tmp_path)}
    done = subprocess.run(
        [*PROGRAM, "twin", "ur10e"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert str(tmp_path / "ur10e_innopolis" / "urdf" / "ur10e.urdf") in done.stderr
    assert "set TWINSTUDIO_DATA to the folder" in done.stderr


def test_that_info_tells_versions_and_paths() -> None:
    facts = figures(run("info", "--json"))
    assert {"twinstudio", "python", "packages", "opengl", "scenes", "recordings"} <= set(facts)


def test_that_the_headless_demo_ends_in_figures_a_recording_and_a_report(tmp_path: Path) -> None:
    done = run("demo", "--headless", "--seconds", "3", "--out", tmp_path, "--json")
    told = figures(done)
    assert told["overall"]["position_rmse"] > 0.0
    assert len(told["joints"]) == 7
    (recording,) = tmp_path.glob("*.mcap")
    assert set(read_recording(recording).sources) == {"cell", "twin"}
    (report,) = tmp_path.glob("*.html")
    assert "panda_joint7" in report.read_text()


def test_that_a_recorded_pair_gives_a_gap_without_running_a_twin(tmp_path: Path) -> None:
    run("demo", "--headless", "--seconds", "3", "--out", tmp_path)
    (recording,) = tmp_path.glob("*.mcap")
    told = figures(run("gap", recording, "--scene", "panda_cell", "--json"))
    for joint in told["joints"]:
        assert 0.0 < joint["position_rmse"] < 0.1
        assert 5.0 < joint["command_to_motion_ms"] < 60.0  # a loaded machine stalls
    table = run("gap", recording, "--scene", "panda_cell").stdout
    assert all(unit in table for unit in ("[mrad | mm]", "[rad/s | m/s]", "[N m | N]", "[ms]"))
    assert "floor" not in table  # one run has no repeats


def test_that_endpoints_are_recorded_and_replayed(tmp_path: Path) -> None:
    out = tmp_path / "axis.mcap"
    with endpoint("cell", "emps_axis") as control:
        told = figures(run("record", out, "--cell", control, "--seconds", "1.5", "--json"))
    assert told["lost"] == {"cell": 0}
    assert told["bytes"] == out.stat().st_size
    with endpoint("replay", str(out)) as control:
        again = tmp_path / "again.mcap"
        figures(run("record", again, "--cell", control, "--seconds", "0.8", "--json"))
    assert len(read_recording(again).sources["cell"].block) > 100


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "scene", "low", "high"),
    [("panda_gaz", "panda_cell", 20, 21), ("emps", "emps_axis", 7, 7)],
)
def test_that_a_real_log_goes_from_import_to_its_gap(
    name: str, scene: str, low: int, high: int, tmp_path: Path, data: Path
) -> None:
    out = tmp_path / f"{name}.mcap"
    assert figures(run("import", name, data / name, out, "--json"))["kept"] > 0
    told = figures(run("gap", out, "--scene", scene, "--json"))
    for joint in told["joints"]:
        assert low <= round(joint["command_to_motion_ms"]) <= high
        assert joint["position_rmse"] > 0.0


@pytest.mark.data
def test_that_a_log_without_commands_has_no_made_up_motion_gap(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "ur10e.mcap"
    run("import", "ur10e_innopolis", data / "ur10e_innopolis", out)
    told = figures(run("gap", out, "--scene", "ur10e", "--json"))
    for joint in told["joints"]:
        assert joint["position_rmse"] is None
        assert joint["command_to_motion_ms"] is None
        assert joint["effort_rmse"] > 0.0


class endpoint:  # noqa: N801 - reads as a context manager
    """A ``twinstudio`` process that serves; gives its control address."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            [*PROGRAM, *self._arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        return str(json.loads(self._process.stdout.readline())["control"])

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(10) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_that_an_interrupted_recording_is_kept(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "interrupted.mcap"
    with endpoint("cell", "emps_axis") as control:
        process = subprocess.Popen([*PROGRAM, "record", str(out), "--cell", control])
        try:
            deadline = time.monotonic() + 20
            while not (out.exists() and out.stat().st_size > 20_000):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(number)
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.wait()
    assert len(read_recording(out).sources["cell"].block) > 100
