"""Streams received without loss, and how soon they are in the history."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from twinstudio.bench.row import Row
from twinstudio.flow.history import History
from twinstudio.flow.link import Link
from twinstudio.model.block import Block
from twinstudio.model.health import Health

BUDGET = 128 * 2**20


class Receiver:
    """A link with a history, and how long each block took from arrival into it."""

    def __init__(self, control: str) -> None:
        self._history: History | None = None
        self.delays: list[int] = []
        self.samples = 0
        self.link = Link(control, sinks=[self._take])

    def _take(self, block: Block) -> None:
        if self._history is None:
            self._history = History(block.layout, BUDGET)
        self._history.append(block)
        assert block.received is not None
        self.delays.append(time.monotonic_ns() - block.received)
        self.samples += len(block)

    def close(self) -> Health:
        """The link's state at the end."""
        health = self.link.health()
        self.link.close()
        return health


@contextmanager
def synthetic(rate: int, batch: int, role: str) -> Iterator[str]:
    """A synthetic source as a child process; yields its control address."""
    arguments = [str(rate), str(batch), role]
    process = subprocess.Popen(
        [sys.executable, "-m", "twinstudio.bench.source", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["control"]
    finally:
        process.communicate(timeout=10)


def measure(seconds: float) -> list[Row]:
    """Two sources of 64 columns at 1 kHz; then one at 10 kHz in batches."""
    with synthetic(1000, 5, "cell") as cell, synthetic(1000, 5, "twin") as twin:
        healths, delays = _receive([cell, twin], seconds)
    lost = sum(health.lost for health in healths)
    rate = min(health.received for health in healths) / seconds
    p99 = float(np.percentile(delays, 99)) / 1e6
    rows = [
        Row("stream.2x64.lost", lost, f"samples in {seconds:g} s", "0", lost == 0),
        Row("stream.2x64.rate", rate, "Hz each", ">= 990", rate >= 990),
        Row("stream.2x64.to_history_p99", p99, "ms", "< 10", p99 < 10),
    ]
    with synthetic(10_000, 100, "cell") as fast:
        healths, _ = _receive([fast], seconds)
    rate = healths[0].received / seconds
    lost = healths[0].lost
    return [
        *rows,
        Row("stream.10kHz.lost", lost, f"samples in {seconds:g} s", "0", lost == 0),
        Row("stream.10kHz.rate", rate, "Hz", ">= 9900", rate >= 9900),
    ]


def _receive(controls: list[str], seconds: float) -> tuple[list[Health], list[int]]:
    receivers = [Receiver(control) for control in controls]
    deadline = time.monotonic() + 10.0
    while any(r.samples == 0 for r in receivers) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(seconds)
    healths = [receiver.close() for receiver in receivers]
    return healths, [delay for receiver in receivers for delay in receiver.delays]
