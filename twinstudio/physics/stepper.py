"""Stepping a world and keeping what every step measured, at little extra cost.

A step of the demo scene takes some 40 us, so nothing is computed per step that
can wait for the end of a block. What PyBullet returns is packed into C doubles at
once: kept as tuples of floats, it costs twice as much in cache misses and garbage
collection.
"""

import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Stamps, Values
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.signals import Layout, joint_signals, pose_signal
from twinstudio.physics.drives import arm_drives, told_of
from twinstudio.physics.expansion import expansion_of
from twinstudio.physics.world import CommandKind, World

if TYPE_CHECKING:
    from twinstudio.mechanisms.arm import ArmDrives

OBJECTS_EVERY = 10
"""Steps between two readings of the object poses; in between, the last one holds."""
MEASURED = ("joint.position", "joint.velocity", "joint.effort")
Row = Sequence[float]
_CURRENT, _CASE = 3, 4
"""Rows of what drives tell, see `twinstudio.mechanisms.arm.TOLD`."""


def twin_layout(
    world: World, command: CommandKind | None, told: Sequence[str] = MEASURED
) -> Layout:
    """What a twin publishes: `told`, and the signal ``command.<command>`` if there is one."""
    kinds = told if command is None else (*told, f"command.{command}")
    objects = (pose_signal(f"object.{name}.pose") for name in world.movable)
    joints = joint_signals(world.joints, world.prismatic, kinds=kinds)
    return Layout((*joints, pose_signal("tcp.pose"), *objects))


class Stepper:
    """Advances `world` and remembers one row of `layout` a step until it is taken.

    A row is the world at its stamp, before the step: joint position and velocity,
    the effort of the drives over the step that ended there, and the command whose
    hold begins there. Object poses are read every `objects_every` steps.

    Where the scene has drives with mechanisms, they move the joints under commands of
    position, and what is told of joints is what their sensors tell; the tool's pose is
    the true one, with its links as warm as they are.
    """

    def __init__(
        self,
        world: World,
        command: CommandKind | None,
        *,
        objects_every: int = OBJECTS_EVERY,
        seed: int = 0,
    ) -> None:
        """`seed`: of all that the drives and their sensors draw."""
        self.world = world
        self._objects_every = objects_every
        self.command = command
        self._arm = arm_drives(world, seed)
        told = MEASURED if self._arm is None else (*MEASURED, *told_of(world.scene.drive))
        self.layout = twin_layout(world, command, told)
        self._tool = Kinematics(world.tree())
        self._expansion = expansion_of(world)
        self._width = len(world.joints) * (len(told) + (command is not None))
        self._pack = struct.Struct(f"{self._width}d").pack
        self._read = world.reader()
        self._step = world.stepper()
        self._drive = world.driver(command or "position")
        if self._arm is not None:
            self._drive = world.driver("effort")
            self._told = self._arm.told[: len(told)]
            self.moved()
        self._read_objects = [world.object_reader(name) for name in world.movable]
        self._count = 0
        self._last: Row | None = None
        # PyBullet reports no motor effort when it is the one that was asked for.
        self._effort: Row | None = [0.0] * len(world.joints) if command == "effort" else None
        self._held = np.full((1, 7 * len(world.movable)), np.nan)
        self._clear()

    def __len__(self) -> int:
        """Rows that wait to be taken."""
        return len(self._stamps)

    def _clear(self) -> None:
        self._stamps = array("q")
        self._rows = bytearray()
        self._truth = bytearray()
        self._warmth = bytearray()
        self._objects = array("d")
        self._object_rows: list[int] = []

    def advance(self, stamp: int, target: Row) -> None:
        """One step under the command `target`, SI, one value a joint.

        A target that is the very object of the last call is not set again:
        motors keep it. An effort acts for one step and always is.
        """
        if self._arm is not None:
            self._advance_by(self._arm, stamp, target)
            return
        position, velocity, _, effort = zip(*self._read(), strict=False)
        self._rows += self._pack(*position, *velocity, *(self._effort or effort), *target)
        if not self._count % self._objects_every:
            self._see_objects()
        self._count += 1
        self._stamps.append(stamp)
        if target is not self._last or self._effort is not None:
            self._last = target
            self._drive(target)
            if self._effort is not None:
                self._effort = target
        self._step()

    def _advance_by(self, arm: "ArmDrives", stamp: int, target: Row) -> None:
        """One step in which the drives move the arm."""
        position, velocity, _, _ = zip(*self._read(), strict=False)
        if target is not self._last:
            self._last = target
            arm.target[:] = target
        effort = arm.step(stamp, position, velocity)
        self._rows += self._told.tobytes()
        self._rows += arm.target.tobytes()
        self._truth += arm.state[0].tobytes()
        if self._expansion is not None:
            self._warmth += arm.told[_CASE].tobytes()
        if not self._count % self._objects_every:
            self._see_objects()
        self._count += 1
        self._stamps.append(stamp)
        self._drive(effort)
        self._step()

    def impose(self, stamp: int, state: tuple[Row, Row], effort: Row, command: Row | None) -> None:
        """One step with the joints set to `state`, position and velocity.

        effort: what goes into the row as such. command: likewise.
        """
        self.world.set_joints(*state)
        position, velocity, _, _ = zip(*self._read(), strict=False)
        extra = () if self._arm is None else self._imposed(self._arm, position, effort)
        self._rows += self._pack(*position, *velocity, *effort, *extra, *(command or ()))
        if not self._count % self._objects_every:
            self._see_objects()
        self._count += 1
        self._stamps.append(stamp)
        self._step()

    def _imposed(self, arm: "ArmDrives", position: Row, effort: Row) -> list[float]:
        """What a row holds beside position, velocity and effort; keeps what poses need."""
        arm.told[_CURRENT] = arm.current_for(effort)
        arm.told[_CASE] = arm.temperatures[:, 1]
        self._truth += array("d", position).tobytes()
        if self._expansion is not None:
            self._warmth += arm.told[_CASE].tobytes()
        extra: list[float] = self._told[len(MEASURED) :].ravel().tolist()
        return extra

    def moved(self) -> None:
        """Let the drives go on from where the joints are; say so after `World.set_joints`."""
        self._last = None
        if self._arm is not None:
            position, velocity, _ = self.world.joint_state()
            self._arm.place(position, velocity)

    def forget_command(self) -> None:
        """Set the next target even if it is the last one; say so after `World.reset`."""
        self.moved()
        if self._effort is not None:
            self._effort = [0.0] * len(self.world.joints)

    def take(self) -> tuple[Stamps, Values]:
        """The rows since the last call: int64[n] ns, float64[n, layout.width]."""
        n = len(self._stamps)
        measured = np.frombuffer(self._rows).reshape(n, self._width)
        position = measured[:, : len(self.world.joints)]
        if self._arm is not None:
            position = np.frombuffer(self._truth).reshape(position.shape)
        tool = self._tool.tool_poses(position)
        if self._expansion is not None:
            warmth = np.full(position.shape, self.world.scene.drive.thermal.ambient)
            if self._arm is not None:
                warmth = np.frombuffer(self._warmth).reshape(position.shape)
            tool[:, :3] += self._expansion.shift(position, warmth)
        values = np.hstack([measured, tool, self._object_columns(n)])
        stamps = np.array(self._stamps, dtype=np.int64)
        self._clear()
        return stamps, values

    def _see_objects(self) -> None:
        for read in self._read_objects:
            position, orientation = read()
            self._objects.extend(position + orientation)
        self._object_rows.append(len(self._stamps))

    def _object_columns(self, n: int) -> NDArray[np.float64]:
        """Object poses of n rows, each the newest reading; float64[n, 7 objects]."""
        seen = np.array(self._objects).reshape(len(self._object_rows), self._held.shape[1])
        known = np.vstack([self._held, seen])
        newest = np.searchsorted(self._object_rows, np.arange(n), side="right")
        self._held = known[-1:]
        return known[newest]
