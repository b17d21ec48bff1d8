"""Child processes, with small stand-ins instead of a twin."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from twinstudio.model.errors import ProcessError
from twinstudio.session import child as module
from twinstudio.session.child import Child


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose content a Child runs instead of Twinstudio."""
    script = tmp_path / "script.py"
    real = module.subprocess.Popen

    def start(command: list[str], **options: object) -> object:
        return real([sys.executable, str(script), *command[3:]], **options)

    monkeypatch.setattr(module.subprocess, "Popen", start)
    return script


READY = "import json, sys\nprint(json.dumps({'control': 'tcp://x'}), flush=True)\n"


def test_that_a_child_announces_itself_and_ends_when_asked(program: Path) -> None:
    program.write_text(READY + "sys.stdin.read()\n")
    child = Child("twin", [])
    assert child.ready()["control"] == "tcp://x"
    assert child.running
    child.stop()
    assert child.obituary() == "ended with exit status 0"


def test_that_a_child_that_dies_early_is_told_with_its_last_words(program: Path) -> None:
    program.write_text("import sys\nprint('bad URDF', file=sys.stderr)\nsys.exit(3)\n")
    child = Child("twin", [])
    try:
        with pytest.raises(ProcessError, match="twin: ended with exit status 3: bad URDF"):
            child.ready()
    finally:
        child.stop()


def test_that_a_child_that_takes_its_time_to_die_is_told_as_dead(program: Path) -> None:
    program.write_text(
        "import os, sys, time\nprint('bad URDF', file=sys.stderr)\n"
        "os.close(1)\ntime.sleep(0.3)\nos._exit(3)\n"
    )
    child = Child("twin", [])
    try:
        with pytest.raises(ProcessError, match="twin: ended with exit status 3: bad URDF"):
            child.ready()
    finally:
        child.stop()


def test_that_a_killed_child_is_told_by_its_signal(program: Path) -> None:
    program.write_text(READY + "sys.stdin.read()\n")
    child = Child("twin", [])
    child.ready()
    os.kill(child.pid, signal.SIGKILL)
    child.stop()
    assert "signal SIGKILL" in child.obituary()


def test_that_a_silent_child_is_given_up(program: Path) -> None:
    program.write_text("import sys\nsys.stdin.read()\n")
    child = Child("twin", [])
    with pytest.raises(ProcessError, match="did not get ready within"):
        child.ready(0.3)
    child.stop()


def test_that_a_start_can_be_given_up(program: Path) -> None:
    program.write_text("import sys\nsys.stdin.read()\n")
    child, enough = Child("twin", []), threading.Event()
    enough.set()
    with pytest.raises(ProcessError, match="given up"):
        child.ready(60.0, unless=enough)
    child.stop()


def test_that_a_child_that_ignores_everything_is_killed(program: Path) -> None:
    program.write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        + READY
        + "time.sleep(60)\n"
    )
    child = Child("twin", [])
    child.ready()
    child.stop(patience=0.3)
    assert "SIGKILL" in child.obituary()
