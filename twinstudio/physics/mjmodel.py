"""The body of an emulated cell: rigid links and loose parts in MuJoCo.

The only importer of mujoco. Friction, motors and sensors are our own and live
elsewhere; here a joint is frictionless and carries its armature. The robot
touches nothing: meshes are stripped and robot links have no collision shape.
Loose objects rest on fixed ones.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import PhysicsError
from twinstudio.model.rotations import quaternion_of_rpy
from twinstudio.model.scene import Box, Cylinder, Object, Placement, Scene, Sphere
from twinstudio.physics.cellfile import CellTruth, LinkTruth, PayloadTruth, per_joint

Floats = NDArray[np.float64]
TOOL = "twinstudio tool"
STRIPPED = {
    "link": ("visual", "collision", "contact"),
    "joint": ("mimic", "dynamics", "safety_controller", "calibration"),
}
LIGHTEST = 1e-6


class Plant:
    """Robot and loose objects, one step at a time; state is that of the last step's start.

    q, v: joint positions and velocities in scene order, copies, rad or m.
    loose: names of the objects that can move. prismatic: joints that move along.
    """

    def __init__(self, scene: Scene, truth: CellTruth, *, step: float) -> None:
        mujoco.set_mju_user_warning(_counted)
        spec = _robot(scene, truth.links)
        _shift(spec, truth.mount.base)
        _add_tool(spec, scene.robot.tcp, truth.mount.tool, truth.payload)
        self.loose = _add_objects(spec, scene.objects)
        self.model = _compiled(spec, scene, step)
        self.data = mujoco.MjData(self.model)
        self.joints = scene.robot.joints
        joints = [_joint(self.model, name, scene) for name in self.joints]
        self._qpos = _run([int(self.model.jnt_qposadr[k]) for k in joints])
        self._dofs = _run([int(self.model.jnt_dofadr[k]) for k in joints])
        self.prismatic = tuple(
            name
            for name, k in zip(self.joints, joints, strict=True)
            if self.model.jnt_type[k] == mujoco.mjtJoint.mjJNT_SLIDE
        )
        self.armature = per_joint(truth.motor.armature, len(joints))
        self.model.dof_armature[self._dofs] = self.armature
        self._tool = self.model.body(TOOL).id
        self._bodies = np.array([self.model.body(name).id for name in (TOOL, *self.loose)])
        self._bind()
        self.payload = truth.payload
        self.reset(np.asarray(scene.robot.home))

    def _bind(self) -> None:
        """Views of MuJoCo's own arrays, fetched once: attribute access is slow."""
        data = self.data
        self._all_q, self._all_v = data.qpos, data.qvel
        self._applied, self._acceleration = data.qfrc_applied, data.qacc
        self._position, self._quaternion = data.xpos, data.xquat

    def reset(self, q: Floats) -> None:
        """Everything at its place, the robot at rest at `q` [joints]."""
        mujoco.mj_resetData(self.model, self.data)
        self._all_q[self._qpos] = q
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))
        mujoco.mj_forward(self.model, self.data)

    @property
    def q(self) -> Floats:
        """Joint positions float64[joints], rad or m."""
        return np.array(self._all_q[self._qpos])

    @property
    def v(self) -> Floats:
        """Joint velocities float64[joints], rad/s or m/s."""
        return np.array(self._all_v[self._dofs])

    @property
    def acceleration(self) -> Floats:
        """Joint accelerations during the last step, float64[joints]."""
        return np.array(self._acceleration[self._dofs])

    def step(self, effort: Floats) -> None:
        """One step under `effort` float64[joints], N m or N, held constant."""
        self._applied[self._dofs] = effort
        mujoco.mj_step(self.model, self.data)

    def poses(self, out: Floats) -> None:
        """Tool and loose objects at the start of the last step.

        out: float64[1 + loose, 7], filled with x y z qw qx qy qz (MuJoCo's order).
        """
        out[:, :3] = self._position[self._bodies]
        out[:, 3:] = self._quaternion[self._bodies]

    def energy(self) -> float:
        """Kinetic energy of all joints with their armature [J]; for tests."""
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, full)
        return 0.5 * float(self._all_v @ full @ self._all_v)

    def least_inertia(self) -> Floats:
        """Inertia of each joint with all others free, at this pose, float64[joints]."""
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, full)
        inverse: Floats = np.diagonal(np.linalg.inv(full))[self._dofs]
        return 1.0 / inverse

    def carry(self, payload: PayloadTruth) -> None:
        """Change what hangs at the tool, at once."""
        body = self._tool
        self.model.body_mass[body], self.model.body_inertia[body] = _mass(payload)
        self.model.body_ipos[body] = payload.centre
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))
        self.payload = payload

    def healthy(self) -> bool:
        """Whether the state is finite and MuJoCo has nothing to warn of."""
        bad = (
            mujoco.mjtWarning.mjWARN_BADQPOS,
            mujoco.mjtWarning.mjWARN_BADQVEL,
            mujoco.mjtWarning.mjWARN_BADQACC,
        )
        warned = any(self.data.warning[kind].number for kind in bad)
        return not warned and bool(np.isfinite(self._all_v).all())


class InverseModel:
    """What the drive's controller knows of the arm: no payload, no friction.

    Recursive Newton-Euler by MuJoCo, plus the armature.
    """

    def __init__(self, scene: Scene, truth: CellTruth) -> None:
        self.model = _compiled(_robot(scene, truth.links), scene, 1e-3)
        self.data = mujoco.MjData(self.model)
        joints = [_joint(self.model, name, scene) for name in scene.robot.joints]
        self._qpos = _run([int(self.model.jnt_qposadr[k]) for k in joints])
        self._dofs = _run([int(self.model.jnt_dofadr[k]) for k in joints])
        self._armature = per_joint(truth.motor.armature, len(joints))
        self._result = np.zeros(self.model.nv)
        data = self.data
        self._q, self._v, self._a = data.qpos, data.qvel, data.qacc

    def effort(self, q: Floats, v: Floats, a: Floats) -> Floats:
        """Joint efforts float64[joints] for position, velocity and acceleration."""
        self._q[self._qpos], self._v[self._dofs], self._a[self._dofs] = q, v, a
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_comVel(self.model, self.data)
        mujoco.mj_rne(self.model, self.data, 1, self._result)
        total: Floats = self._result[self._dofs] + self._armature * a
        return total


def _counted(_text: str) -> None:
    """MuJoCo would write its warnings to a file where it stands; `healthy` reads their counts."""


def _run(addresses: list[int]) -> Any:
    """A slice when the addresses follow each other, which is faster; else themselves."""
    first = addresses[0]
    if addresses == list(range(first, first + len(addresses))):
        return slice(first, first + len(addresses))
    return np.array(addresses)


def _joint(model: Any, name: str, scene: Scene) -> int:
    found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
    if found < 0:
        names = ", ".join(model.joint(k).name for k in range(model.njnt)) or "none"
        raise PhysicsError(
            f"the model has no movable joint '{name}'",
            where=scene.robot.model,
            hint=f"it has {names}",
        )
    return int(found)


def _robot(scene: Scene, links: Mapping[str, LinkTruth]) -> Any:
    """The robot's URDF as a specification: meshes gone, held joints fixed, base placed."""
    path = scene.path(scene.robot.model)
    try:
        spec = mujoco.MjSpec.from_string(_cleaned(path.read_bytes()))
    except (ET.ParseError, ValueError, OSError) as error:
        raise PhysicsError(f"no robot model that can be read: {error}", where=str(path)) from error
    _hold(spec, scene.robot.joints, scene.robot.held, str(path))
    root = spec.worldbody.first_body()
    root.pos, root.quat = _pose(scene.robot.base)
    _keep_awake(root)
    for name, link in links.items():
        _reweigh(_body(spec, name, str(path)), link)
    for body in spec.bodies[1:]:
        if body.mass <= 0.0:
            # Massless frames carry placeholder inertias in many files.
            body.inertia, body.fullinertia = (0.0, 0.0, 0.0), [np.nan] * 6
    return spec


def _cleaned(text: bytes) -> str:
    """URDF `text` without all that the emulated cell has its own truth for."""
    root = ET.fromstring(text)  # noqa: S314 - a local model file, no network entity
    if root.tag != "robot":
        raise ValueError(f"expected a URDF with <robot>, got <{root.tag}>")
    for tag, unwanted in STRIPPED.items():
        for element in root.findall(tag):
            for child in [c for c in element if c.tag in unwanted]:
                element.remove(child)
    for element in root.findall("mujoco"):
        root.remove(element)
    settings = ET.SubElement(root, "mujoco")
    ET.SubElement(settings, "compiler", fusestatic="false")
    return ET.tostring(root, encoding="unicode")


def _hold(spec: Any, driven: Sequence[str], held: Mapping[str, float], where: str) -> None:
    """Fix every joint that is not driven where the scene holds it."""
    for name in held:
        if spec.joint(name) is None:
            raise PhysicsError(f"the model has no joint '{name}' to hold", where=where)
    for joint in list(spec.joints):
        if joint.name in driven:
            continue
        if joint.name not in held:
            raise PhysicsError(
                f"movable joint '{joint.name}' must stand in robot.joints or in robot.held",
                where=where,
            )
        value, body = held[joint.name], joint.parent
        axis = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
        if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            body.pos = np.asarray(body.pos) + _turned(body.quat, axis * value)
        else:
            turn = np.concatenate(([np.cos(value / 2)], np.sin(value / 2) * axis))
            result = np.zeros(4)
            mujoco.mju_mulQuat(result, body.quat, turn)
            body.quat = result
        spec.delete(joint)


def _keep_awake(body: Any) -> None:
    """Loose parts may sleep, which saves their steps; a robot that dwells is still driven."""
    if body.joints:
        body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
        return
    for child in body.bodies:
        _keep_awake(child)


def _turned(quaternion: Sequence[float], vector: Floats) -> Floats:
    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, vector, np.asarray(quaternion))
    return result


def _body(spec: Any, name: str, where: str) -> Any:
    body = spec.body(name)
    if body is None:
        names = ", ".join(b.name for b in spec.bodies[1:])
        raise PhysicsError(f"the model has no link '{name}'", where=where, hint=f"it has {names}")
    return body


def _reweigh(body: Any, link: LinkTruth) -> None:
    body.mass *= link.mass_scale
    if link.inertia:
        body.inertia, body.fullinertia = link.inertia, [np.nan] * 6
    else:
        body.inertia = np.asarray(body.inertia) * link.mass_scale
        body.fullinertia = np.asarray(body.fullinertia) * link.mass_scale


def _pose(at: Placement) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Position and quaternion in MuJoCo's order, w first."""
    x, y, z, w = quaternion_of_rpy(at.rpy)
    return at.position, (w, x, y, z)


def _shift(spec: Any, by: Sequence[float]) -> None:
    root = spec.worldbody.first_body()
    root.pos = np.asarray(root.pos) + np.asarray(by)


def _mass(payload: PayloadTruth) -> tuple[float, Floats]:
    """Mass and inertia of a payload: a ball of steel's density, at least a mote."""
    mass = max(payload.mass, LIGHTEST)
    radius = (mass / 7850.0 / (4.0 / 3.0 * np.pi)) ** (1.0 / 3.0)
    return mass, np.full(3, 0.4 * mass * radius**2)


def _add_tool(spec: Any, tcp: str, offset: Sequence[float], payload: PayloadTruth) -> None:
    """The true tool point, and the payload that hangs there."""
    mass, inertia = _mass(payload)
    _body(spec, tcp, "robot.tcp").add_body(
        name=TOOL, pos=offset, mass=mass, inertia=inertia, ipos=payload.centre,
        explicitinertial=True,
    )  # fmt: skip


def _add_objects(spec: Any, objects: Sequence[Object]) -> tuple[str, ...]:
    """Primitive objects, fixed or loose; returns the names of the loose ones."""
    loose = []
    for thing in objects:
        movable = thing.mass > 0.0 and not thing.fixed
        if thing.shape is None:
            if movable:
                raise PhysicsError(
                    f"object '{thing.name}' is loose and has a model file",
                    hint="in an emulated cell a loose object is a box, a sphere or a cylinder",
                )
            continue
        position, quaternion = _pose(thing.at)
        body = spec.worldbody.add_body(name=thing.name, pos=position, quat=quaternion)
        kind, size = _shape(thing.shape)
        mass = thing.mass if movable else 1.0
        body.add_geom(type=kind, size=size, mass=mass, friction=[thing.friction, 0.005, 1e-4])
        if movable:
            body.add_freejoint()
            loose.append(thing.name)
    return tuple(loose)


def _shape(shape: Box | Sphere | Cylinder) -> tuple[Any, list[float]]:
    if isinstance(shape, Box):
        return mujoco.mjtGeom.mjGEOM_BOX, [edge / 2.0 for edge in shape.size]
    if isinstance(shape, Sphere):
        return mujoco.mjtGeom.mjGEOM_SPHERE, [shape.radius, 0.0, 0.0]
    return mujoco.mjtGeom.mjGEOM_CYLINDER, [shape.radius, shape.length / 2.0, 0.0]


def _compiled(spec: Any, scene: Scene, step: float) -> Any:
    spec.option.timestep = step
    spec.option.gravity = scene.simulation.gravity
    spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    try:
        return spec.compile()
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise PhysicsError(f"cannot be compiled: {reason}", where=scene.robot.model) from error
