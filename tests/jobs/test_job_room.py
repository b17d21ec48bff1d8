"""A results folder without room: the failure is told, and recorded if at all possible."""

import shutil
import subprocess
from pathlib import Path

import pytest

from twinstudio.jobs import files
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.store import Store

WAIT = 60.0


@pytest.fixture
def small(tmp_path):
    """A store on a disk of 512 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None:
        pytest.skip("there is no mount command")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("a small disk cannot be mounted here: needs more rights")
    yield folder
    subprocess.run([unmount, str(folder)], check=True)


def fill(folder: Path, leave: int = 0) -> None:
    file = folder / "ballast"
    with file.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size - leave)


def test_that_a_job_that_fills_the_disk_is_recorded_as_failed(small, spec):
    store = Store(small / "runs")
    with Runner(store) as runner:
        view = runner.submit(spec("FillsScratch")).wait(WAIT)
    assert view.state == "failed"
    assert "there is no room left" in view.error
    assert store.load(view.id).error == view.error


def test_that_results_without_room_are_a_failure_that_is_recorded(small, spec):
    fill(small, leave=110_000)  # the reserve and the record, but no long results
    store = Store(small / "runs")
    with Runner(store) as runner:
        view = runner.submit(spec("Many")).wait(WAIT)
    assert view.state == "failed"
    assert "no room left" in view.error
    assert store.load(view.id).state == "failed"


def test_that_a_full_disk_fails_a_job_at_once_and_the_next_one_too(small, spec):
    fill(small)
    with Runner(Store(small / "runs"), at_once=1) as runner:
        views = [runner.submit(spec("Dice")).wait(WAIT) for _ in range(2)]
    assert [view.state for view in views] == ["failed"] * 2
    assert "its run could not be kept: there is no room left" in views[0].error


def test_that_a_folder_that_cannot_be_made_fails_a_job(tmp_path, spec):
    (tmp_path / "file").write_text("")
    with Runner(Store(tmp_path / "file" / "runs")) as runner:
        view = runner.submit(spec("Dice")).wait(WAIT)
    assert view.state == "failed"
    assert "could not be kept" in view.error
    assert "no room" not in view.error


def test_that_a_failed_write_leaves_the_former_file(small):
    path = small / "a.json"
    files.write_atomically(path, b"then")
    fill(small)
    with pytest.raises(OSError, match="No space"):
        files.write_atomically(path, bytes(65_536))
    assert path.read_bytes() == b"then"
    assert sorted(p.name for p in small.iterdir()) == ["a.json", "ballast"]
