"""What a user meets when things are not as they should be: one line, and nothing left over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from twinstudio.cli import main as program
from twinstudio.model.scene import scenes_folder

PROGRAM = [sys.executable, "-m", "twinstudio"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment.pop("QT_QPA_PLATFORM", None)
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
        check=False,
    )


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode not in (0, -6, 134)
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("twinstudio: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_that_a_window_without_a_display_is_refused_with_what_to_do() -> None:
    assert "demo --headless" in complaint(run("open", "panda_cell"))


def test_that_a_display_that_does_not_answer_is_named() -> None:
    done = subprocess.run(
        [*PROGRAM, "open", "panda_cell"],
        capture_output=True,
        text=True,
        env={"DISPLAY": ":4711", "PATH": "/usr/bin:/bin"},
        timeout=60,
        check=False,
    )
    assert "':4711' does not answer" in complaint(done)


def test_that_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n0,1\n1,2\n")
    assert "is a folder" in complaint(run("import", "csv", tmp_path / "a.csv", tmp_path))
    missing = tmp_path / "none" / "x.mcap"
    assert "folder" in complaint(run("import", "csv", tmp_path / "a.csv", missing))


def test_that_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("")
    said = complaint(run("demo", "--headless", "--seconds", "2", "--out", file))
    assert str(file) in said


def test_that_a_scene_by_another_file_name_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text((scenes_folder() / "panda_cell" / "scene.toml").read_text())
    assert "scene.toml" in complaint(run("cell", other))


def test_that_a_path_that_is_not_there_does_not_mean_a_shipped_scene(tmp_path: Path) -> None:
    assert "there is no scene" in complaint(run("cell", tmp_path / "panda_cell"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("odd"), "a fault of Twinstudio: RuntimeError: odd; please report it"),
        (MemoryError("2 TiB"), "a fault of Twinstudio: MemoryError"),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied"),
    ],
)
def test_that_what_nobody_foresaw_is_one_line_and_a_file_for_us(
    error: Exception,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(program, "app", fail)
    monkeypatch.setattr(program, "_with_command", list)
    with pytest.raises(SystemExit) as ended:
        program.main([])
    assert ended.value.code
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1
    kept = list(tmp_path.rglob("fault-*.txt"))
    assert bool(kept) == ("fault" in words)
    assert all("Traceback" in file.read_text() for file in kept)


def test_that_output_nobody_reads_any_more_is_no_fault() -> None:
    done = subprocess.run(
        f"{sys.executable} -m twinstudio info | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("wait", [0.15, 0.3, 0.6, 0.9, 1.2])
def test_that_an_interrupt_ends_a_process_however_early_it_comes(wait: float) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "cell", "emps_axis"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert said == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_that_closed_standard_streams_are_no_fault(closed: str) -> None:
    done = subprocess.run(
        f"exec {sys.executable} -m twinstudio gap nothing.mcap --scene emps_axis {closed}",
        shell=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "nothing.mcap" in done.stderr
