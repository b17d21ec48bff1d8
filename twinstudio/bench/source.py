"""A synthetic cell or twin in a process of its own: 64 columns of sines at a steady rate.

``python -m twinstudio.bench.source RATE BATCH ROLE`` prints its control address
as JSON and publishes until its standard input closes. Its eight joints are the
Panda's and one finger, so that a scene's twin can follow it.
"""

import json
import select
import sys
import time

import numpy as np

from twinstudio.flow.protocol import Role
from twinstudio.flow.serve import Endpoint
from twinstudio.model.signals import Layout, joint_signals

FINGER = "panda_finger_joint1"
JOINTS = (*(f"panda_joint{k}" for k in range(1, 8)), FINGER)
HOME = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785, 0.02)
SWING = (*(0.2,) * 7, 0.01)
PERIODS = tuple(3.0 + 0.4 * k for k in range(8))
KINDS = (
    *(f"joint.{kind}" for kind in ("position", "velocity", "effort", "current", "temperature")),
    *(f"command.{kind}" for kind in ("position", "velocity", "effort")),
)
LAYOUT = Layout(joint_signals(JOINTS, (FINGER,), kinds=KINDS))


def samples(stamps: np.ndarray, start: int) -> np.ndarray:
    """Eight signals of eight joints, float64[n, 64]; the motion is 15 ms behind its command."""
    time_s = ((stamps - start) / 1e9)[:, None]
    angle = 2 * np.pi * time_s / np.array(PERIODS)
    late = angle - 2 * np.pi * 0.015 / np.array(PERIODS)
    swing, rate = np.array(SWING), 2 * np.pi / np.array(PERIODS)
    position, command = (
        np.array(HOME) + swing * np.sin(late),
        np.array(HOME) + swing * np.sin(angle),
    )
    velocity, asked = swing * rate * np.cos(late), swing * rate * np.cos(angle)
    effort, warm = 5.0 * np.sin(late), np.full_like(late, 25.0)
    return np.hstack([position, velocity, effort, effort / 2, warm, command, asked, effort])


def publish(rate: int, batch: int, role: Role) -> None:
    """Publish until standard input closes."""
    period = 10**9 // rate
    with Endpoint(role=role, name="synthetic", layout=LAYOUT, rate=rate) as endpoint:
        print(json.dumps({"control": endpoint.control}), flush=True)
        start, sent = time.monotonic_ns(), 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            due = start + (sent + batch) * period
            time.sleep(max(0.0, (due - time.monotonic_ns()) / 1e9))
            stamps = start + (np.arange(batch, dtype=np.int64) + sent) * period
            endpoint.publish(stamps, samples(stamps, start))
            sent += batch


if __name__ == "__main__":
    publish(int(sys.argv[1]), int(sys.argv[2]), "twin" if sys.argv[3] == "twin" else "cell")
