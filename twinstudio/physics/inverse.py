"""Inverse dynamics of a scene's robot: the effort that a motion takes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import msgspec
import numpy as np

from twinstudio.model.errors import PhysicsError
from twinstudio.model.scene import Scene
from twinstudio.physics.drives import arm_drives
from twinstudio.physics.world import World

if TYPE_CHECKING:
    from twinstudio.mechanisms.arm import ArmDrives

# PyBullet calls an inertia matrix asymmetric from 1e-15 kg m^2 on, an absolute
# bound, which rounding alone exceeds for links of 100 kg. Masses are divided by
# this power of two, which is exact, and efforts multiplied by it.
_SCALE = 2.0**20


class InverseDynamics:
    """Effort of the driven joints for a motion, with the masses of model and scene.

    It has a PyBullet client of its own, with the robot alone: PyBullet caches the
    masses at the first use and then ignores every change, so one client serves
    one set of masses. Gravity counts, and armature, friction and cables where the scene's
    drives have any; what the robot touches does not.
    """

    def __init__(self, scene: Scene) -> None:
        self._world = World(msgspec.structs.replace(scene, objects=()), shapes=False)
        self._arm = arm_drives(self._world, 0)
        self._begun = False
        client, robot = self._world.client, self._world.robot
        for link in range(-1, client.getNumJoints(robot)):
            mass, _, inertia = client.getDynamicsInfo(robot, link)[:3]
            client.changeDynamics(
                robot,
                link,
                mass=mass / _SCALE,
                localInertiaDiagonal=[part / _SCALE for part in inertia],
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the PyBullet client."""
        self._world.close()

    def effort(
        self, position: Sequence[float], velocity: Sequence[float], acceleration: Sequence[float]
    ) -> list[float]:
        """N m or N a driven joint, for rad or m, and their derivatives; held joints rest.

        With drives, one call after the other is one motion: presliding friction moves on.
        Raises PhysicsError if PyBullet finds the masses of the model impossible.
        """
        if self._arm is not None:
            return self._with_drives(self._arm, position, velocity, acceleration)
        world, count = self._world, len(self._world.rest)
        q, qd, qdd = list(world.rest), [0.0] * count, [0.0] * count
        for k, dof in enumerate(world.dofs):
            q[dof], qd[dof], qdd[dof] = position[k], velocity[k], acceleration[k]
        try:
            found = world.client.calculateInverseDynamics(world.robot, q, qd, qdd)
        except (SystemError, RuntimeError) as error:
            raise PhysicsError(
                "PyBullet refuses to compute efforts with this model",
                where=world.scene.robot.model,
                hint="check that inertias are positive and obey the triangle inequality",
            ) from error
        if len(found) != count:
            raise PhysicsError(f"PyBullet computed {len(found)} efforts for {count} joints")
        return [found[dof] * _SCALE for dof in world.dofs]

    def _with_drives(
        self, arm: "ArmDrives", position: Sequence[float], velocity: Sequence[float],
        acceleration: Sequence[float],
    ) -> list[float]:  # fmt: skip
        """Effort of the motors of drives with mechanisms."""
        if not self._begun:
            self._begun = True
            arm.place(np.asarray(position), np.asarray(velocity))
        return arm.along(position, velocity, acceleration)
