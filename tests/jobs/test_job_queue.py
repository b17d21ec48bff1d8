"""The queue, cancelling, and what happens when the runner goes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from twinstudio.jobs.record import VANISHED
from twinstudio.jobs.runner import Runner
from twinstudio.model.errors import JobError

WAIT = 60.0


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


@pytest.fixture
def gate(tmp_path):
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


@pytest.fixture
def waits(spec, gate):
    """A job that runs until the gate has a file ``open``: hashed while that is absent."""
    return lambda **more: spec("Waits", inputs={"gate": gate}, **more)


def test_that_no_more_run_at_once_than_allowed_and_in_order(runner, waits, gate):
    jobs = [runner.submit(waits(title=f"job {k}")) for k in range(4)]
    until(lambda: [j.view().state for j in jobs[:2]] == ["running", "running"])
    assert [view.title for view in runner.jobs()] == [f"job {k}" for k in range(4)]
    assert [j.view().state for j in jobs[2:]] == ["queued", "queued"]
    jobs[0].cancel()
    until(lambda: jobs[2].view().state == "running")
    assert jobs[3].view().state == "queued"


def test_that_progress_and_an_estimate_are_shown(runner, waits):
    job = runner.submit(waits())
    until(lambda: job.view().progress == 0.25)
    view = job.view()
    assert view.message == "waiting"
    assert view.left is not None
    assert view.left >= 0.0
    assert view.started is not None
    job.cancel()


def test_that_a_queued_job_is_cancelled_at_once_and_recorded(store, waits):
    with Runner(store, at_once=1) as runner:
        first, second = runner.submit(waits()), runner.submit(waits())
        second.cancel()
        assert second.wait(WAIT).state == "cancelled"
        assert store.load(second.id).error == "it was cancelled before it started"
        first.cancel()
        first.wait(WAIT)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("Deaf", "did not heed it and was terminated"),
        ("Stubborn", "did not heed it and was killed"),
        ("Stops", "did not heed it and was killed"),
        ("Swallows", "it was cancelled"),
        ("MapsForever", "it was cancelled"),
    ],
)
def test_that_a_cancel_ends_every_job(runner, store, spec, name, how):
    job = runner.submit(spec(name))
    until(lambda: job.view().state == "running")
    if name != "MapsForever":
        until(lambda: job.view().progress == 0.25)
    job.cancel()
    view = job.wait(WAIT)
    assert view.state == "cancelled"
    assert how in view.error
    assert store.load(job.id).state == "cancelled"


def test_that_a_cancel_of_what_is_over_changes_nothing(runner, run):
    view = run("Dice")
    runner.cancel(view.id)
    assert runner.wait(view.id, WAIT).state == "done"
    with pytest.raises(JobError, match="there is no job"):
        runner.cancel("20260101-000000-000000")


def test_that_waiting_ends_with_its_time(runner, waits):
    job = runner.submit(waits())
    assert not job.wait(0.01).over
    job.cancel()
    assert job.wait(WAIT).over


def test_that_closing_cancels_what_is_left(store, waits):
    runner = Runner(store, at_once=1)
    jobs = [runner.submit(waits()) for _ in range(3)]
    until(lambda: jobs[0].view().state == "running")
    runner.close()
    assert [job.view().state for job in jobs] == ["cancelled"] * 3
    with pytest.raises(JobError, match="closed"):
        runner.submit(waits())
    runner.close()


def test_that_a_job_killed_from_outside_is_failed(runner, store, waits):
    job = runner.submit(waits())
    until(lambda: job.view().state == "running")
    os.kill(worker_of(store, job.id), signal.SIGKILL)
    view = job.wait(WAIT)
    assert view.state == "failed"
    assert "SIGKILL" in view.error


def test_that_output_can_be_read_while_it_runs(runner, spec):
    job = runner.submit(spec("Dice"))
    job.wait(WAIT)
    assert "printed" in runner.recent_output(job.id)


def test_that_a_run_whose_runner_died_is_shown_as_failed_and_its_worker_goes(store, tmp_path):
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from twinstudio.jobs.runner import Runner\n"
        "from twinstudio.jobs.spec import specify\n"
        "from twinstudio.jobs.store import Store\n"
        "runner = Runner(Store(Path(sys.argv[1])))\n"
        "job = runner.submit(specify(sys.argv[2], {}, seed=1))\n"
        "while job.view().progress != 0.25: time.sleep(0.01)\n"
        "print(job.id, flush=True)\n"
        "time.sleep(3600)\n"
    )
    plugin = f"{Path(__file__).parent}/plugins_at_work.py:Deaf"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(store.folder), plugin], stdout=subprocess.PIPE, text=True
    ) as process:
        identity = process.stdout.readline().strip()
        assert store.load(identity).state == "running"
        with pytest.raises(JobError, match="is under way"):
            store.delete(identity)
        with pytest.raises(JobError, match="is under way"):
            store.export(identity, tmp_path / "a.zip")
        worker = psutil.Process(worker_of(store, identity))
        process.kill()
    assert (store.load(identity).state, store.load(identity).error) == ("failed", VANISHED)
    assert [(h.state, h.error) for h in store.list()] == [("failed", VANISHED)]
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    store.delete(identity)
    assert store.list() == ()


def worker_of(store, identity: str) -> int:
    """Process id of the worker of a run."""
    folder = str(store.path(identity))
    for process in psutil.process_iter(["cmdline"]):
        if folder in (process.info["cmdline"] or []):
            return process.pid
    raise AssertionError("there is no worker")
