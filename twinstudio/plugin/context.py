"""What a running plugin may use: its generator, its inputs, its scratch folder, its progress."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from twinstudio.model.errors import JobError

A = TypeVar("A")
B = TypeVar("B")


class JobContext(Protocol):
    """Given to every job; the only way a plugin talks to the outside."""

    @property
    def rng(self) -> np.random.Generator:
        """Seeded from the run's seed; all randomness of a run comes from here."""

    @property
    def inputs(self) -> Mapping[str, Path]:
        """Files of the run by name, checked against their content hashes."""

    @property
    def scratch(self) -> Path:
        """An empty folder that goes away with the job."""

    def progress(self, fraction: float, message: str = "") -> None:
        """Say how far it is, 0 to 1. Also where a cancelled job ends: it raises Cancelled."""

    def checkpoint(self) -> None:
        """End here if the job was cancelled (raises Cancelled); cheap, call it often."""

    def log(self, text: str) -> None:
        """Write a line into the run's log."""

    def map(self, work: Callable[[A], B], items: Iterable[A], *, workers: int = 1) -> list[B]:
        """Results of `work` over many small tasks, in order, with progress.

        workers: processes that share the tasks; with more than one, `work` must be a
        function of a module, and a task that needs randomness brings a seed drawn from `rng`.
        """


class Cancelled(BaseException):
    """Raised in a plugin whose job was cancelled; let it pass."""


def fraction_of(value: float) -> float:
    """`value` as a progress from 0 to 1; raises JobError for anything else."""
    if not -1e-9 <= value <= 1.0 + 1e-9:
        raise JobError(f"progress is {value}", hint="it goes from 0 to 1")
    return min(max(float(value), 0.0), 1.0)


def workers_of(count: int) -> int:
    """`count` as a number of processes; raises JobError for less than one."""
    if count < 1:
        raise JobError(f"{count} workers cannot do anything", hint="it takes 1 at least")
    return count


def one_by_one(context: JobContext, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """What `JobContext.map` does in one process: a check-in before each task and at the end."""
    tasks = list(items)
    results = []
    for k, task in enumerate(tasks):
        context.progress(k / len(tasks), f"{k} of {len(tasks)}")
        results.append(work(task))
    context.progress(1.0, f"{len(tasks)} of {len(tasks)}")
    return results
