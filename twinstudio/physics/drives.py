"""The drives of a scene's joints beside its world.

What they need is imported with the first scene that has any: others start faster.
"""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from twinstudio.model.drive import Controller, Drive, per_joint
from twinstudio.model.scene import Scene
from twinstudio.physics.world import World

if TYPE_CHECKING:
    from twinstudio.mechanisms.arm import ArmDrives
    from twinstudio.mechanisms.rigid import RigidBody

CURRENT, TEMPERATURE = "joint.current", "joint.temperature"


def has_drives(drive: Drive) -> bool:
    """Whether mechanisms move the joints, in place of PyBullet's own motors."""
    if structs.replace(drive, off=()) == Drive():
        return False
    from twinstudio.mechanisms.tables import in_effect  # noqa: PLC0415 - as said above

    return structs.replace(in_effect(drive), off=()) != Drive()


def arm_drives(world: World, seed: int) -> "ArmDrives | None":
    """The drives of the scene's joints, at rest; None where it has none.

    A drive without limits of effort has those of the robot, and one without a
    controller that of PyBullet's motors, see `_controller`.
    Raises SceneError when the drive's mechanisms do not fit the joints or each other.
    """
    scene = world.scene
    if not has_drives(scene.drive):
        return None
    from twinstudio.mechanisms.arm import ArmDrives  # noqa: PLC0415 - as said above
    from twinstudio.mechanisms.rigid import RigidBody  # noqa: PLC0415

    drive, motor = scene.drive, scene.drive.motor
    if not motor.max_effort and "saturation" not in drive.off:
        motor = structs.replace(motor, max_effort=tuple(world.max_effort))
    body = RigidBody(world.tree(), world.inertias(), scene.simulation.gravity)
    off = tuple(name for name in drive.off if name != "controller")
    controller = _controller(scene, body)
    drive = structs.replace(drive, motor=motor, controller=controller, off=off)
    return ArmDrives(drive, body, scene.simulation.step, np.random.default_rng(seed))


def _controller(scene: Scene, body: "RigidBody") -> Controller:
    """The drive's controller, or what PyBullet's motors with the scene's gains do.

    Those lower the speed in a step of dt by `velocity_gain` of it and add `position_gain`
    e / dt, for an error e of position: with an inertia J, a stiffness J position_gain / dt^2
    and a damping J velocity_gain / dt on top of the weight. J is what each joint moves at
    home. Gains above 1 / joints, the default among them, would shake joints that move
    each other: there the drive is the kernel's ideal one, whose J is that of the moment.
    """
    drive, gains, step = scene.drive, scene.twin, scene.simulation.step
    given = drive.controller.stiffness and "controller" not in drive.off
    if given or gains.velocity_gain * body.joints > 1.0:
        return drive.controller if given else Controller()
    armature = () if "armature" in drive.off else drive.motor.armature
    mass = body.mass_matrix(np.array(scene.robot.home))
    mass += np.diag(per_joint(armature, body.joints))
    felt = 1.0 / np.diag(np.linalg.inv(mass))
    return Controller(
        stiffness=tuple((felt * gains.position_gain / step**2).tolist()),
        damping=tuple((felt * gains.velocity_gain / step).tolist()),
        feedforward=1.0,
        velocity_feedforward=0.0,
    )


def told_of(drive: Drive) -> tuple[str, ...]:
    """Signals that drives tell beside those of every twin."""
    if "thermal" not in drive.off and drive.thermal.resistance:
        return (CURRENT, TEMPERATURE)
    return (CURRENT,) if drive.motor.drive_gain else ()
