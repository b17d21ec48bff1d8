"""The core of the emulated cell: a robot with its controller, block by block.

It runs on MuJoCo, an engine the twin does not share, with friction, motors,
sensors and delays of its own from ``cell.toml``, which the twin never reads.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Block, joined
from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.scene import Scene
from twinstudio.model.signals import Layout, Signal, joint_signals, pose_signal
from twinstudio.physics.celldrive import CommandLine, Controller, Friction, Heat
from twinstudio.physics.cellfile import CellTruth, PayloadTruth, load_cell, per_joint
from twinstudio.physics.mjmodel import InverseModel, Plant
from twinstudio.physics.program import Player, Program, Setpoints
from twinstudio.physics.sensors import Sensors

Floats = NDArray[np.float64]
STEP = 0.001
RATE = 1000.0
JOINT_KINDS = (
    "joint.position",
    "joint.velocity",
    "joint.effort",
    "joint.current",
    "joint.temperature",
    "command.position",
    "command.velocity",
)
_ROS_ORDER = [0, 1, 2, 4, 5, 6, 3]


@dataclass(frozen=True, slots=True, eq=False)
class _Track:
    """What happened in one block, before any sensor: float64[n, joints]; poses [n, m, 7]."""

    position: Floats
    velocity: Floats
    motor: Floats
    link: Floats
    friction_power: Floats
    poses: Floats


class EmulatedCell:
    """A robot with its controller, one block at a time; free of clocks and sockets.

    start: stamp [ns] of the first sample. The same scene, truth and state of `rng`
    give the same samples, bit by bit. Not thread-safe.
    """

    def __init__(
        self, scene: Scene, truth: CellTruth, rng: np.random.Generator, *, start: int = 0
    ) -> None:
        self.truth = truth
        self.joints = scene.robot.joints
        count, home = len(self.joints), np.asarray(scene.robot.home)
        self.steps = max(1, round(truth.block / STEP))
        for_sensors, for_command = rng.spawn(2)
        self.sensors = Sensors(truth.sensors, count, for_sensors)
        self.plant = Plant(scene, truth, step=STEP)
        self.friction = Friction(truth.friction, count, step=STEP)
        self.heat = Heat(truth.thermal, count, span=self.steps * STEP)
        self.player = Player(Program(home, truth.program, truth.motion), step=STEP)
        self._model = InverseModel(scene, truth)
        self._controller = Controller(truth.controller, truth.motor, count, step=STEP)
        self._line = CommandLine(truth.command, home, for_command, step=STEP)
        self._torque_constant = per_joint(truth.motor.torque_constant, count) * per_joint(
            truth.motor.gear, count
        )
        self.layout = _layout(self.joints, self.plant.prismatic, self.plant.loose)
        self._next = start
        self._sent = 0
        self._must_be_steady()
        self.plant.reset(home - per_joint(truth.sensors.offset, count))
        self.friction.set_temperature(self.heat.case)

    @property
    def next_stamp(self) -> int:
        """Stamp [ns] of the sample that comes next."""
        return self._next

    def move_clock(self, by: int) -> None:
        """Leave `by` ns out: the next sample is stamped later by that."""
        self._next += by

    def advance(self) -> Block:
        """The next block, ``truth.block`` long; raises PhysicsError if the motion diverges."""
        sent = self.player.advance(self.steps)
        track = self._move(self._line.pass_on(sent))
        if not self.plant.healthy():
            raise PhysicsError(
                "the emulated cell's motion diverged",
                hint="lower stiffness and damping in the cell file, or the payload",
            )
        values = self._measured(track, sent)
        stamps = self._next + np.arange(self.steps, dtype=np.int64) * round(STEP * 1e9)
        block = Block(self.layout, stamps, values, self._sent)
        self._next += self.steps * round(STEP * 1e9)
        self._sent += self.steps
        return block

    def run(self, seconds: float) -> Block:
        """As many blocks as cover `seconds`, as one; as fast as the machine gives."""
        blocks = max(1, int(np.ceil(seconds / (self.steps * STEP) - 1e-9)))
        return joined([self.advance() for _ in range(blocks)])

    def carry(self, mass: float) -> None:
        """Change the payload's mass [kg]; its centre stays."""
        self.plant.carry(PayloadTruth(mass=mass, centre=self.truth.payload.centre))

    def _move(self, wanted: Setpoints) -> _Track:
        """Run the steps of one block."""
        count, joints = self.steps, len(self.joints)
        noise = self.sensors.noise("position", count)
        speed_noise = self.sensors.noise("velocity", count)
        poses = np.empty((count, 1 + len(self.plant.loose), 7))
        empty = np.empty((5, count, joints))
        track = _Track(empty[0], empty[1], empty[2], empty[3], empty[4], poses)
        plant, friction, controller = self.plant, self.friction, self._controller
        for k in range(count):
            v = plant.v
            q, speed = self.sensors.encoder(plant.q, noise[k]), v + speed_noise[k]
            model = self._model.effort(q, speed, wanted.acceleration[k])
            motor = controller.effort(q, speed, (wanted.position[k], wanted.velocity[k]), model)
            rub = friction.effort(v)
            plant.step(motor - rub)
            track.position[k], track.velocity[k], track.motor[k] = q, speed, motor
            track.link[k] = motor - rub - plant.armature * plant.acceleration
            track.friction_power[k] = rub * v
            plant.poses(track.poses[k])
        return track

    def _measured(self, track: _Track, sent: Setpoints) -> Floats:
        """What the sensors say of `track`, float64[n, width]; the joints warm up by it."""
        sensors, span = self.sensors, self.layout.span
        values = np.empty((self.steps, self.layout.width))
        current = track.motor / self._torque_constant
        at_link = self.truth.sensors.effort_side == "link"
        values[:, span("joint.position")] = track.position
        values[:, span("joint.velocity")] = track.velocity
        values[:, span("joint.effort")] = sensors.effort(track.link if at_link else track.motor)
        values[:, span("joint.current")] = sensors.current(current)
        case = np.tile(self.heat.case, (self.steps, 1))
        values[:, span("joint.temperature")] = sensors.temperature(case)
        values[:, span("command.position")] = sent.position
        values[:, span("command.velocity")] = sent.velocity
        poses = sensors.poses(track.poses[..., _ROS_ORDER])
        for k, name in enumerate(("tcp.pose", *map(_object, self.plant.loose))):
            values[:, span(name)] = poses[:, k]
        values[:, span("ambient.temperature")] = self.heat.ambient
        self.heat.advance((current**2).mean(axis=0), track.friction_power.mean(axis=0))
        self.friction.set_temperature(self.heat.case)
        return values

    def _must_be_steady(self) -> None:
        """Refuse a cell that would shake itself to pieces at this step.

        Explicit damping D and stiffness K of an inertia J need D dt < J and
        K dt^2 < J; the smallest J is that of the joint with all others free.
        """
        inertia = self.plant.least_inertia()
        controller = self._controller
        stiff = (controller.stiffness + self.friction.stiffness) * STEP**2 / inertia
        damped = controller.damping * STEP / inertia
        for k, name in enumerate(self.joints):
            if max(stiff[k], damped[k]) >= 1.0:
                which = "controller.damping" if damped[k] >= stiff[k] else "controller.stiffness"
                raise SceneError(
                    f"joint '{name}' is unstable at a step of {STEP * 1e3:g} ms:"
                    f" its least inertia is {inertia[k]:.3g}",
                    hint=f"lower {which}, raise motor.armature or friction.presliding",
                )


def emulated_cell(scene: Scene, rng: np.random.Generator, *, start: int = 0) -> EmulatedCell:
    """The emulated cell that belongs to `scene`.

    Raises SceneError if the scene names none, or its cell file is malformed;
    PhysicsError if its model cannot be built.
    """
    if not scene.cell.emulated:
        raise SceneError(
            f"scene '{scene.name}' has no emulated cell",
            hint="name a cell file under [cell] emulated, or connect a cell",
        )
    truth = load_cell(scene.path(scene.cell.emulated), scene.robot.joints)
    return EmulatedCell(scene, truth, rng, start=start)


def _object(name: str) -> str:
    return f"object.{name}.pose"


def _layout(joints: tuple[str, ...], prismatic: tuple[str, ...], loose: tuple[str, ...]) -> Layout:
    return Layout(
        (
            *joint_signals(joints, prismatic, kinds=JOINT_KINDS),
            pose_signal("tcp.pose"),
            *(pose_signal(_object(name)) for name in loose),
            Signal(name="ambient.temperature", labels=("ambient",), units=("degC",)),
        )
    )
