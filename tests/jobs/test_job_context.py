"""The context of a job, and the one that authors test with: they must not differ."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinstudio.jobs.context import WorkerContext
from twinstudio.model.errors import JobError
from twinstudio.plugin.context import Cancelled, JobContext
from twinstudio.plugin.testing import FakeContext

Told = list[tuple[float, str]]


def real(told: Told, cancel: threading.Event, folder: Path) -> WorkerContext:
    return WorkerContext(
        seed=3,
        inputs={"log": folder},
        scratch=folder,
        cancel=cancel,
        report=lambda fraction, text: told.append((fraction, text)),
    )


@pytest.fixture(params=["real", "fake"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "real":
        yield real([], threading.Event(), tmp_path)
    else:
        with FakeContext(3, inputs={"log": tmp_path}) as fake:
            yield fake


def double(x: int) -> int:
    return 2 * x


def test_that_tasks_are_mapped_in_order(context: JobContext) -> None:
    assert context.map(double, iter(range(5))) == [0, 2, 4, 6, 8]
    assert context.map(double, range(5), workers=2) == [0, 2, 4, 6, 8]
    assert context.map(double, []) == []


@pytest.mark.parametrize("workers", [0, -1])
def test_that_nobody_cannot_do_the_work(context: JobContext, workers: int) -> None:
    with pytest.raises(JobError, match=f"{workers} workers cannot"):
        context.map(double, range(2), workers=workers)


def test_that_what_a_task_raises_comes_out(context: JobContext) -> None:
    with pytest.raises(ZeroDivisionError):
        context.map(lambda x: 1 // x, [1, 0])


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf")])
def test_that_progress_goes_from_0_to_1(context: JobContext, fraction: float) -> None:
    with pytest.raises(JobError, match=r"progress is .*; it goes from 0 to 1|progress is"):
        context.progress(fraction)


def test_that_the_generator_is_that_of_the_seed(context: JobContext) -> None:
    assert context.rng.normal() == np.random.default_rng(3).normal()
    assert list(context.inputs) == ["log"]
    assert context.scratch.is_dir()


def test_that_both_tell_the_same_progress_of_a_map(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("twinstudio.jobs.context.PROGRESS_SECONDS", 0.0)
    told: Told = []
    real(told, threading.Event(), tmp_path).map(double, range(3))
    with FakeContext() as fake:
        fake.map(double, range(3))
    assert told == fake.said
    assert told[0] == (0.0, "0 of 3")
    assert told[-1] == (1.0, "3 of 3")


def cancelled_within(context: JobContext, cancel: Callable[[], None]) -> list[int]:
    done: list[int] = []

    def work(k: int) -> None:
        done.append(k)
        if k == 1:
            cancel()

    with pytest.raises(Cancelled):
        context.map(work, range(5))
    return done


def test_that_both_end_a_map_at_the_next_task_when_cancelled(tmp_path: Path) -> None:
    event = threading.Event()
    assert cancelled_within(real([], event, tmp_path), event.set) == [0, 1]
    with FakeContext(cancel_after=2) as fake:
        assert cancelled_within(fake, lambda: None) == [0, 1]
        assert [text for _, text in fake.said] == ["0 of 5", "1 of 5"]


def test_that_a_job_with_an_end_checks_out_there(tmp_path: Path) -> None:
    context = real([], threading.Event(), tmp_path)
    context.end_after(1e-9)
    assert (context.over, context.cancelled) == (True, False)
    assert context.share == 1.0
    with pytest.raises(Cancelled):
        context.checkpoint()
    context.end_after(0)
    context.checkpoint()
    assert context.share == 0.0
