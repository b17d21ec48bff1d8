"""What PyBullet knows about a body, as our own types: joints, tree, visual shapes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.inertias import Inertias
from twinstudio.model.kinematics import JointKind, KinematicTree, Link
from twinstudio.model.rotations import matrix, pose
from twinstudio.model.scene import Robot
from twinstudio.physics.shapes import Form, Visual

__all__ = [
    "Joint", "Visual", "chosen_joints", "inertias_of", "joints_of", "tree_of", "visuals_of",
]  # fmt: skip

# PyBullet's numbers for joint types and for shapes; they are part of its wire
# format and do not change.
_JOINTS: dict[int, JointKind] = {0: "revolute", 1: "prismatic", 4: "fixed"}
_FORMS: dict[int, Form] = {
    2: "sphere", 3: "box", 4: "cylinder", 5: "mesh", 6: "plane", 7: "capsule",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Joint:
    """One joint and the link it carries.

    axis: unit vector in the link's inertial frame. lower, upper: rad or m,
    infinite without limits. max_effort: N m or N, 0 if the model sets none.
    """

    index: int
    name: str
    kind: JointKind
    link: str
    parent: int
    axis: tuple[float, float, float]
    lower: float
    upper: float
    max_effort: float


def joints_of(client: Any, body: int) -> list[Joint]:
    """All joints of a body in PyBullet's order.

    Raises PhysicsError for a joint that neither turns, slides nor is fixed.
    """
    return [_joint(client.getJointInfo(body, k)) for k in range(client.getNumJoints(body))]


def _joint(info: tuple[Any, ...]) -> Joint:
    name = info[1].decode()
    if info[2] not in _JOINTS:
        raise PhysicsError(
            f"joint '{name}' is spherical or planar",
            hint="only revolute, continuous, prismatic and fixed joints are understood",
        )
    limited = info[8] <= info[9]
    return Joint(
        index=info[0],
        name=name,
        kind=_JOINTS[info[2]],
        link=info[12].decode(),
        parent=info[16],
        axis=info[13],
        lower=info[8] if limited else -math.inf,
        upper=info[9] if limited else math.inf,
        max_effort=info[10],
    )


def chosen_joints(joints: list[Joint], robot: Robot, where: str) -> list[Joint]:
    """The driven joints of `robot`, in its order, among all of a model.

    Raises SceneError naming `where`, the joint and what was expected, when scene
    and model do not fit each other.
    """
    movable = {joint.name: joint for joint in joints if joint.kind != "fixed"}
    for name in (*robot.joints, *robot.held):
        if name not in movable:
            key = "joints" if name in robot.joints else "held"
            raise SceneError(
                f"key 'robot.{key}': '{name}' is no movable joint of the model",
                where=where,
                hint=f"it has {', '.join(movable)}",
            )
    for name in movable:
        if (name in robot.joints) == (name in robot.held):
            raise SceneError(
                f"movable joint '{name}' must stand in robot.joints or in robot.held", where=where
            )
    chosen = [movable[name] for name in robot.joints]
    for k, joint in enumerate(chosen):
        _check_home(joint, robot.home[k], where)
        if not robot.max_effort and joint.max_effort <= 0.0:
            raise SceneError(
                f"joint '{joint.name}' has no largest effort in the model",
                where=where,
                hint="set robot.max_effort",
            )
    return chosen


def _check_home(joint: Joint, home: float, where: str) -> None:
    if joint.lower <= home <= joint.upper:
        return
    unit = "m" if joint.kind == "prismatic" else "rad"
    raise SceneError(
        f"key 'robot.home': {home:.6g} {unit} of '{joint.name}' lies outside its limits"
        f" {joint.lower:.6g} ... {joint.upper:.6g} {unit}",
        where=where,
    )


def tree_of(client: Any, body: int, joints: list[Joint], robot: Robot, where: str) -> KinematicTree:
    """The kinematic tree of a freshly loaded robot; leaves its joints at zero.

    PyBullet tells link frames in single precision only, but centre-of-mass
    frames in double, and where they lie in the link. So the joint frames are
    taken from the centre-of-mass frames of the robot at joint position zero.
    """
    for joint in joints:
        if joint.kind != "fixed":
            client.resetJointState(body, joint.index, 0.0, 0.0)
    frames = [_base_frame(client, body)]
    frames += [link_frame(client, body, joint.index) for joint in joints]
    base = client.getBodyInfo(body)[0].decode()
    links = [Link(name=base)]
    for joint, frame in zip(joints, frames[1:], strict=True):
        origin = pose(np.linalg.inv(frames[joint.parent + 1]) @ frame)
        turn = np.array([0.0, 0.0, 0.0, *client.getDynamicsInfo(body, joint.index)[4]])
        driven = joint.name in robot.joints
        links.append(
            Link(
                name=joint.link,
                joint=joint.name,
                parent=joint.parent + 1,
                kind=joint.kind,
                origin=tuple(float(x) for x in origin),
                axis=_unit(matrix(turn)[:3, :3] @ np.array(joint.axis)),
                coordinate=robot.joints.index(joint.name) if driven else -1,
                rest=robot.held.get(joint.name, 0.0),
            )
        )
    names = [link.name for link in links]
    if robot.tcp not in names:
        raise SceneError(
            f"key 'robot.tcp': the model has no link '{robot.tcp}'",
            where=where,
            hint=f"it has {', '.join(names)}",
        )
    return KinematicTree(
        links=tuple(links),
        joints=robot.joints,
        tip=robot.tcp,
        base=tuple(float(x) for x in pose(frames[0])),
    )


def _base_frame(client: Any, body: int) -> NDArray[np.float64]:
    position, orientation = client.getBasePositionAndOrientation(body)
    inertial = client.getDynamicsInfo(body, -1)[3:5]
    return _relative(position, orientation, *inertial)


def link_frame(client: Any, body: int, index: int) -> NDArray[np.float64]:
    """Link frame in the world in double precision, float64[4, 4]."""
    state = client.getLinkState(body, index, computeForwardKinematics=1)
    return _relative(*state[:4])


def _relative(
    position: tuple[float, ...],
    orientation: tuple[float, ...],
    inertial_position: tuple[float, ...],
    inertial_orientation: tuple[float, ...],
) -> NDArray[np.float64]:
    centre = matrix(np.array([*position, *orientation]))
    inertial = matrix(np.array([*inertial_position, *inertial_orientation]))
    frame: NDArray[np.float64] = centre @ np.linalg.inv(inertial)
    return frame


def inertias_of(client: Any, body: int, links: int) -> Inertias:
    """Inertial parameters of a body's links, of which there are `links`, base first."""
    told = [client.getDynamicsInfo(body, link) for link in range(-1, links - 1)]
    frames = [matrix(np.array([*info[3], *info[4]])) for info in told]
    axes = np.array([frame[:3, :3] for frame in frames])
    moments = np.array([info[2] for info in told])
    return Inertias(
        mass=np.array([info[0] for info in told]),
        centre=np.array([frame[:3, 3] for frame in frames]),
        inertia=np.einsum("lac,lc,lbc->lab", axes, moments, axes),
    )


def _unit(axis: NDArray[np.float64]) -> tuple[float, float, float]:
    length = float(np.linalg.norm(axis))
    x, y, z = (axis / length).tolist() if length > 0.0 else (0.0, 0.0, 1.0)
    return (x, y, z)


def visuals_of(client: Any, body: int, name: str) -> list[Visual]:
    """The visual shapes of a body, each with the collision shapes of its link.

    For a robot, `link` is the link's name and shapes lie in its frame; the
    links of an object are taken together, in the frame of its base.
    """
    robot = name == "robot"
    links = {-1: client.getBodyInfo(body)[0].decode()}
    links |= {joint.index: joint.link for joint in joints_of(client, body)}
    found = []
    base = np.linalg.inv(_base_frame(client, body))
    for shape in client.getVisualShapeData(body):
        index, kind, size, file, position, orientation, color = shape[1:8]
        local = np.array([*position, *orientation])
        if index >= 0 and not robot:
            local = pose(base @ link_frame(client, body, index) @ matrix(local))
        found.append(
            Visual(
                body=name,
                link=links[index] if robot else "",
                form=_FORMS[kind],
                size=tuple(size),
                file=file.decode(),
                pose=tuple(float(x) for x in local),
                color=color,
                spare=_collision_mesh(client, body, index),
            )
        )
    return found


def _collision_mesh(client: Any, body: int, index: int) -> str:
    """File of the first collision mesh of a link, empty without one."""
    for shape in client.getCollisionShapeData(body, index):
        if _FORMS.get(shape[2]) == "mesh":
            return str(shape[4].decode())
    return ""
