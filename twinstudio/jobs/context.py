"""What a plugin gets to see of the process that runs it."""

import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from twinstudio.plugin.context import Cancelled, fraction_of, one_by_one, workers_of

A = TypeVar("A")
B = TypeVar("B")
PROGRESS_SECONDS = 0.05
"""Progress is passed on at most this often."""
CHECK_SECONDS = 0.05


class WorkerContext:
    """The `JobContext` of a worker process.

    report: passes (fraction, message) on. cancel: set when the job was cancelled.
    """

    def __init__(
        self,
        *,
        seed: int,
        inputs: Mapping[str, Path],
        scratch: Path,
        cancel: threading.Event,
        report: Callable[[float, str], None],
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._inputs = MappingProxyType(dict(inputs))
        self._scratch = scratch
        self._cancel = cancel
        self._report = report
        self._reported = -math.inf
        self._begun = time.monotonic()
        self._end = math.inf

    def end_after(self, seconds: float) -> None:
        """Let the next check-ins after `seconds` raise Cancelled too; 0 for no such end."""
        self._begun = time.monotonic()
        self._end = self._begun + seconds if seconds else math.inf

    @property
    def cancelled(self) -> bool:
        """Whether the job was cancelled."""
        return self._cancel.is_set()

    @property
    def over(self) -> bool:
        """Whether the job was cancelled, or its time is over."""
        return self.cancelled or time.monotonic() >= self._end

    @property
    def share(self) -> float:
        """How much of its time is over, 0 to 1; 0 where it has no end."""
        return min(1.0, (time.monotonic() - self._begun) / (self._end - self._begun))

    @property
    def rng(self) -> np.random.Generator:
        """Seeded from the run's seed."""
        return self._rng

    @property
    def inputs(self) -> Mapping[str, Path]:
        """Files of the run by name, checked against their content hashes."""
        return self._inputs

    @property
    def scratch(self) -> Path:
        """An empty folder that goes away with the job."""
        return self._scratch

    def progress(self, fraction: float, message: str = "") -> None:
        """Say how far it is; raises Cancelled, or JobError for what is no fraction."""
        self.checkpoint()
        self.tell(fraction_of(fraction), message)

    def tell(self, fraction: float, message: str) -> None:
        """Say how far it is, without ending here."""
        if time.monotonic() - self._reported >= PROGRESS_SECONDS or fraction >= 1.0:
            self._reported = time.monotonic()
            self._report(float(fraction), str(message))

    def checkpoint(self) -> None:
        """Raise Cancelled if the job was cancelled, or its time is over."""
        if self.over:
            raise Cancelled

    def log(self, text: str) -> None:
        """Write a line into the run's log, beside what is printed."""
        sys.stdout.flush()
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        sys.stderr.flush()

    def map(self, work: Callable[[A], B], items: Iterable[A], *, workers: int = 1) -> list[B]:
        """Results of `work` over `items`, in order, with progress.

        workers: processes that share the tasks. With more than 1, `work` must be a
        function of a module, items and results are copied between processes, and
        no task may use this context; give each its own seed, drawn from `rng`.
        """
        if workers_of(workers) > 1:
            return self._shared(work, list(items), workers)
        return one_by_one(self, work, items)

    def _shared(self, work: Callable[[A], B], tasks: list[A], workers: int) -> list[B]:
        # Forked, so that they know the plugin's module however it was loaded.
        forked = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(min(workers, os.cpu_count() or 1), mp_context=forked)
        try:
            futures = [pool.submit(work, task) for task in tasks]
            found = [self._awaited(future, k, len(tasks)) for k, future in enumerate(futures)]
            self.progress(1.0, f"{len(tasks)} of {len(tasks)}")
            return found
        finally:
            # A worker in the midst of a long task is ended with the job's process group.
            pool.shutdown(wait=False, cancel_futures=True)

    def _awaited(self, future: "Future[B]", k: int, count: int) -> B:
        self.progress(k / count, f"{k} of {count}")
        while True:
            try:
                return future.result(timeout=CHECK_SECONDS)
            except TimeoutError:
                if future.done():
                    raise  # the task's own
                self.checkpoint()
