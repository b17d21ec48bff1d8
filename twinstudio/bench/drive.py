"""What the drive kernel costs with every mechanism on, against a step of PyBullet."""

import math
import statistics
import time

import numpy as np
from msgspec import structs

from twinstudio.bench.row import Row
from twinstudio.bench.twin_drive import EVERYTHING
from twinstudio.mechanisms.drives import JointDrives
from twinstudio.model.drive import Transmission
from twinstudio.model.scene import load_scene
from twinstudio.physics.world import World

TURNS = 40
TURN = 500
MOST = 0.2
SWING = 0.3
GEAR = Transmission(
    backlash=(1e-3,),
    stiffness=(1e4,),
    damping=(10.0,),
    ripple=(0.1,),
    ripple_order=(100.0,),
    error=(1e-4,),
    error_order=(2.0,),
)


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - a fixed number of steps
    """Kernel and stepSimulation of the demo scene take turns in one process; medians count.

    The kernel's cost includes its call from Python; the joints move as a motion program
    would move them, so that friction slides, sticks and turns.
    """
    scene = load_scene("panda_cell")
    kernel, engine = [], []
    with World(scene) as world:
        world.driver("position")(scene.robot.home)
        step = world.stepper()
        drives = _Drives(len(scene.robot.joints))
        for turn in range(TURNS + 1):
            begun = time.perf_counter()
            for _ in range(TURN):
                step()
            stepped = time.perf_counter() - begun
            used = drives.take(turn)
            if turn:  # the first warms up
                engine.append(stepped / TURN)
                kernel.append(used / TURN)
    cost, share = statistics.median(kernel), statistics.median(kernel) / statistics.median(engine)
    return [
        Row("drive.kernel", share, "of a PyBullet step", "<= 0.2", share <= MOST),
        Row("drive.kernel_time", cost * 1e6, "us a step of the arm", "<= 15", cost <= 15e-6),
    ]


class _Drives:
    """Drives of joints that swing, in step with their commands."""

    def __init__(self, joints: int) -> None:
        drive = structs.replace(EVERYTHING, transmission=GEAR)
        self._drives = JointDrives(drive, joints, 1e-3, np.random.default_rng(0))
        phases = math.tau * np.arange(4000) / 4000
        self._position = np.tile(SWING * np.sin(phases)[:, None], (1, joints))
        self._velocity = np.tile(SWING * math.tau / 4 * np.cos(phases)[:, None], (1, joints))
        self._bias, self._inertia = np.full(joints, 5.0), np.full(joints, 0.5)

    def take(self, turn: int) -> float:
        """Seconds of a turn."""
        drives, bias, inertia = self._drives, self._bias, self._inertia
        rows = [(k, k % 4000) for k in range(turn * TURN, (turn + 1) * TURN)]
        begun = time.perf_counter()
        for k, row in rows:
            position = self._position[row]
            drives.effort(k * 1_000_000, position, self._velocity[row], position, bias, inertia)
        return time.perf_counter() - begun
