"""Ten simulated hours at 1 kHz: the history stays inside its budget, memory stays flat."""

import gc

import numpy as np
import psutil

from twinstudio.bench.row import Row
from twinstudio.flow.history import History
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout, joint_signals

HOURS = 10
RATE = 1000
BLOCK = 1000
BUDGET = 64 * 2**20
KINDS = ("joint.position", "joint.velocity", "joint.effort", "command.position")


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - simulated time, run as fast as it goes
    """Feed ten hours in blocks of a second; memory is read every simulated half hour."""
    layout = Layout(joint_signals([f"joint{k}" for k in range(7)], kinds=KINDS))
    history = History(layout, BUDGET, rate=RATE)
    values = np.random.default_rng(1).normal(size=(BLOCK, layout.width))
    process = psutil.Process()
    resident, largest = [], 0
    for second in range(HOURS * 3600):
        stamps = (np.arange(BLOCK) + second * BLOCK) * (10**9 // RATE)
        history.append(Block(layout, stamps.astype(np.int64), values, second * BLOCK))
        if second % 1800 == 1799:
            gc.collect()
            resident.append(process.memory_info().rss)
            largest = max(largest, history.nbytes)
    after_filling = resident[1:]
    growth = max(after_filling) / min(after_filling) - 1.0
    span = history.span()
    assert span is not None
    shown = (span[1] - span[0]) / 3.6e12
    return [
        Row("history.budget", largest / BUDGET, "of its byte budget", "<= 1", largest <= BUDGET),
        Row("history.reach", shown, "h still shown", f">= {HOURS - 0.1}", shown >= HOURS - 0.1),
        Row("memory.growth", growth, "of resident memory over 10 h", "<= 0.05", growth <= 0.05),
    ]
