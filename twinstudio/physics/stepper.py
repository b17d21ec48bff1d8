"""Stepping a world and keeping what every step measured, at little extra cost.

A step of the demo scene takes some 40 us, so nothing is computed per step that
can wait for the end of a block. What PyBullet returns is packed into C doubles at
once: kept as tuples of floats, it costs twice as much in cache misses and garbage
collection.
"""

import struct
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Stamps, Values
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.signals import Layout, joint_signals, pose_signal
from twinstudio.physics.world import CommandKind, World

OBJECTS_EVERY = 10
"""Steps between two readings of the object poses; in between, the last one holds."""
MEASURED = ("joint.position", "joint.velocity", "joint.effort")
Row = Sequence[float]


def twin_layout(world: World, command: CommandKind | None) -> Layout:
    """What a twin publishes, with the signal ``command.<command>`` if there is one."""
    kinds = MEASURED if command is None else (*MEASURED, f"command.{command}")
    objects = (pose_signal(f"object.{name}.pose") for name in world.movable)
    joints = joint_signals(world.joints, world.prismatic, kinds=kinds)
    return Layout((*joints, pose_signal("tcp.pose"), *objects))


class Stepper:
    """Advances `world` and remembers one row of `layout` a step until it is taken.

    A row is the world at its stamp, before the step: joint position and velocity,
    the effort of the drives over the step that ended there, and the command whose
    hold begins there. Object poses are read every `objects_every` steps.
    """

    def __init__(
        self, world: World, command: CommandKind | None, *, objects_every: int = OBJECTS_EVERY
    ) -> None:
        self.world = world
        self._objects_every = objects_every
        self.command = command
        self.layout = twin_layout(world, command)
        self._tool = Kinematics(world.tree())
        self._width = len(world.joints) * (len(MEASURED) + (command is not None))
        self._pack = struct.Struct(f"{self._width}d").pack
        self._read = world.reader()
        self._step = world.stepper()
        self._drive = world.driver(command or "position")
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
        self._objects = array("d")
        self._object_rows: list[int] = []

    def advance(self, stamp: int, target: Row) -> None:
        """One step under the command `target`, SI, one value a joint.

        A target that is the very object of the last call is not set again:
        motors keep it. An effort acts for one step and always is.
        """
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

    def impose(self, stamp: int, state: tuple[Row, Row], effort: Row, command: Row | None) -> None:
        """One step with the joints set to `state`, position and velocity.

        effort: what goes into the row as such. command: likewise.
        """
        self.world.set_joints(*state)
        position, velocity, _, _ = zip(*self._read(), strict=False)
        self._rows += self._pack(*position, *velocity, *effort, *(command or ()))
        if not self._count % self._objects_every:
            self._see_objects()
        self._count += 1
        self._stamps.append(stamp)
        self._step()

    def forget_command(self) -> None:
        """Set the next target even if it is the last one; say so after `World.reset`."""
        self._last = None
        if self._effort is not None:
            self._effort = [0.0] * len(self.world.joints)

    def take(self) -> tuple[Stamps, Values]:
        """The rows since the last call: int64[n] ns, float64[n, layout.width]."""
        n = len(self._stamps)
        measured = np.frombuffer(self._rows).reshape(n, self._width)
        tool = self._tool.tool_poses(measured[:, : len(self.world.joints)])
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
