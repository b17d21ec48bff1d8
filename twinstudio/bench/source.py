"""A synthetic source in a process of its own: columns of sines at a steady rate.

``python -m twinstudio.bench.source COLUMNS RATE BATCH ROLE`` prints its control
address as JSON and publishes until its standard input closes.
"""

import json
import select
import sys
import time

import numpy as np

from twinstudio.flow.serve import Endpoint
from twinstudio.model.signals import Layout, Signal

JOINTS = 8


def layout_of(columns: int) -> Layout:
    """`columns` / 8 signals of eight joints each; the first is ``joint.position``."""
    labels = tuple(f"joint{k}" for k in range(JOINTS))
    names = ["joint.position", *(f"test.signal{k}" for k in range(1, columns // JOINTS))]
    return Layout(
        tuple(Signal(name=name, labels=labels, units=("rad",) * JOINTS) for name in names)
    )


def publish(columns: int, rate: int, batch: int, role: str) -> None:
    """Publish until standard input closes."""
    layout = layout_of(columns)
    period = 10**9 // rate
    phases = np.linspace(0.0, 6.0, columns)
    with Endpoint(role=role, name="synthetic", layout=layout, rate=rate) as endpoint:  # type: ignore[arg-type]
        print(json.dumps({"control": endpoint.control}), flush=True)
        start, sent = time.monotonic_ns(), 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            due = start + (sent + batch) * period
            time.sleep(max(0.0, (due - time.monotonic_ns()) / 1e9))
            stamps = start + (np.arange(batch, dtype=np.int64) + sent) * period
            endpoint.publish(stamps, np.sin(stamps[:, None] * 6e-9 + phases))
            sent += batch


if __name__ == "__main__":
    publish(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
