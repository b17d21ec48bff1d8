"""What drives with every mechanism add to a step of the twin, on the demo scene."""

import math
import statistics
import time

from msgspec import structs

from twinstudio.bench.row import Row
from twinstudio.model.drive import (
    Cable,
    CommandPath,
    Controller,
    Drive,
    Encoders,
    Friction,
    Motor,
    Thermal,
    Transmission,
)
from twinstudio.model.scene import load_scene
from twinstudio.physics.drives import arm_drives
from twinstudio.physics.stepper import Stepper
from twinstudio.physics.world import World

TURN = 500
TURNS = 40
SWING = 0.2
MOST = 0.2

EVERYTHING = Drive(
    command=CommandPath(latency=(0.0043,), jitter=0.001, jitter_kind="gamma"),
    controller=Controller(
        stiffness=(600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0),
        damping=(50.0, 50.0, 50.0, 50.0, 30.0, 25.0, 15.0),
        integral_time=(2.0,),
        feedforward=0.9,
        current_lag=(0.0005,),
    ),
    motor=Motor(armature=(0.2,), drive_gain=(10.0,), max_current=(8.7,)),
    transmission=Transmission(
        ripple=(0.1,), ripple_order=(100.0,), error=(1e-4,), error_order=(2.0,)
    ),
    friction=Friction(
        coulomb=(1.0,),
        viscous=(0.5,),
        breakaway=(1.3,),
        stribeck=(0.05,),
        presliding=(1e-3,),
        elements=4,
        load_motor=(0.02,),
        temperature=(-0.005,),
        viscous_temperature=(40.0,),
    ),
    thermal=Thermal(
        resistance=(1.0,),
        winding_capacity=(100.0,),
        case_capacity=(500.0,),
        winding_to_case=(1.0,),
        case_to_ambient=(1.0,),
    ),
    cable=Cable(stiffness=(0.5,), pull=(0.1,)),
    encoders=Encoders(resolution=(1e-5,), noise=(1e-5,), velocity_noise=(1e-3,)),
)


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - a fixed number of steps
    """Twin with PyBullet's motors and twin with drives take turns, under the same commands.

    The figure is the median over turns of the one's time over the other's, less one. The
    drives add time of their own and save some of the solver's, which has no motors to
    solve; `drive.twin_compute` is their own part alone.
    """
    plain = load_scene("panda_cell")
    driven = structs.replace(plain, drive=EVERYTHING)
    shares, own = [], []
    with World(plain) as one, World(driven) as other:
        turns = [_Turns(one), _Turns(other)]
        for turn in range(TURNS + 1):
            taken = [each.take() for each in turns]
            if turn:  # the first warms up
                shares.append(taken[1] / taken[0] - 1.0)
                own.append(turns[1].compute() / taken[0])
    share, compute = statistics.median(shares), statistics.median(own)
    unit = "of a step without"
    return [
        Row("drive.twin_step", share, f"{unit}, more", "<= 0.2", share <= MOST),
        Row("drive.twin_compute", compute, unit, "<= 0.2", compute <= MOST),
    ]


class _Turns:
    """Steps one twin, turn after turn."""

    def __init__(self, world: World) -> None:
        self._world, self._home = world, world.scene.robot.home
        self._stepper, self._k = Stepper(world, "position"), 0
        self._drives = arm_drives(world, 0)

    def take(self) -> float:
        """Seconds of a turn."""
        commands = [self._command(self._k + k) for k in range(TURN)]
        begun = time.perf_counter()
        for command in commands:
            self._stepper.advance(self._k * 1_000_000, command)
            self._k += 1
        self._stepper.take()
        return time.perf_counter() - begun

    def compute(self) -> float:
        """Seconds of the drives alone over as many steps, from where the joints are now."""
        position, velocity, _ = self._world.joint_state()
        assert self._drives is not None
        self._drives.place(position, velocity)
        state = position.tolist(), velocity.tolist()
        begun = time.perf_counter()
        for k in range(TURN):
            self._drives.step(k * 1_000_000, *state)
        return time.perf_counter() - begun

    def _command(self, k: int) -> list[float]:
        swing = SWING * math.sin(math.pi * k * 1e-3) * (1.0 - math.exp(-k / 500.0))
        return [q + swing for q in self._home]
