"""The twin's world: one PyBullet client with the robot and objects of a scene.

Facts of PyBullet 3.2.7 that this module takes care of:

* Joint motors and linear and angular damping are on by default; they are off here.
* Inertias are computed from collision shapes unless asked otherwise; here those
  of the model file count.
* Joint frames are told relative to the parent's *inertial* frame, and link
  frames only in single precision; see `World.tree`.
* Inverse dynamics works on a model that is cached at its first use, and refuses
  heavy links for rounding errors; see `InverseDynamics`.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.geometry import ROBOT, SceneGeometry
from twinstudio.model.inertias import Inertias
from twinstudio.model.kinematics import KinematicTree
from twinstudio.model.rotations import matrix, pose, quaternion_of_rpy
from twinstudio.model.scene import Box, Cylinder, Object, Placement, Scene
from twinstudio.physics.bodies import (
    Visual,
    chosen_joints,
    inertias_of,
    joints_of,
    tree_of,
    visuals_of,
)
from twinstudio.physics.client import Client
from twinstudio.physics.inertials import changes_inertials, with_inertials
from twinstudio.physics.models import engine_copy, model_kind, xml_problem
from twinstudio.physics.quiet import end_line, without_words
from twinstudio.physics.shapes import TRIANGLES, drawable

with without_words():
    import pybullet

CommandKind = Literal["position", "velocity", "effort"]
Pose = tuple[float, ...]
Floats = NDArray[np.float64]
_RAY_EPSILON = 1e-9


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """What a ray met first: `body` (``robot`` or an object), `link`, `position` [m]."""

    body: str
    link: str
    position: tuple[float, float, float]


class World:
    """One scene in one PyBullet client of its own, at its home position.

    joints: names of the driven joints, in signal order.
    indices: their PyBullet joint indices. robot: PyBullet body.
    movable: names of the objects that can move, in scene order.
    prismatic: names of those driven joints that slide.
    limits: float64[joints, 2], rad or m; infinite where the model sets none.
    max_effort: largest effort of each drive, N m or N.
    dofs: place of each driven joint among all movable ones; rest: position at
        which each movable joint is held, 0 for the driven ones.
    notes: what `geometry` could not draw as the model asks.

    Raises SceneError when scene and model do not fit, PhysicsError when PyBullet
    cannot load a model.
    """

    def __init__(self, scene: Scene, *, shapes: bool = True) -> None:
        """`shapes`: False leaves out what only touching and seeing need."""
        self.scene = scene
        self._flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        if not shapes:
            self._flags |= pybullet.URDF_IGNORE_VISUAL_SHAPES
            self._flags |= pybullet.URDF_IGNORE_COLLISION_SHAPES
        self.notes: tuple[str, ...] = ()
        self.client: Any = Client()
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        settings = self.scene.simulation
        self.client.setGravity(*settings.gravity)
        self.client.setPhysicsEngineParameter(
            fixedTimeStep=settings.step, numSolverIterations=settings.solver_iterations
        )
        self._where = f"{self.scene.folder}/scene.toml"
        self.robot = self._load_robot()
        self._all_joints = joints_of(self.client, self.robot)
        self._choose_joints()
        self._tree = tree_of(
            self.client, self.robot, self._all_joints, self.scene.robot, self._where
        )
        self.objects = {thing.name: self._load_object(thing) for thing in self.scene.objects}
        self.movable = tuple(
            thing.name for thing in self.scene.objects if self._moves(self.objects[thing.name])
        )
        for body in (self.robot, *self.objects.values()):
            for link in range(-1, self.client.getNumJoints(body)):
                self.client.changeDynamics(body, link, linearDamping=0.0, angularDamping=0.0)
        self.release()
        self.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the PyBullet client; the world is of no use afterwards."""
        self.client.close()

    def tree(self) -> KinematicTree:
        """Links and joints of the robot, for `twinstudio.model.kinematics`."""
        return self._tree

    def inertias(self) -> Inertias:
        """Inertial parameters of the robot's links as PyBullet has them, in the tree's order."""
        return inertias_of(self.client, self.robot, len(self._tree.links))

    def visuals(self) -> list[Visual]:
        """Everything that can be drawn, as PyBullet loaded it."""
        found = visuals_of(self.client, self.robot, ROBOT)
        for name, body in self.objects.items():
            found += visuals_of(self.client, body, name)
        return found

    def geometry(self, triangles: int = TRIANGLES) -> SceneGeometry:
        """Tree, triangles (at most about `triangles`) and object poses, for drawing.

        Raises PhysicsError naming a mesh file that neither as visual nor as
        collision shape can be read.
        """
        drawing = drawable(self.visuals(), triangles)
        self.notes = drawing.notes
        return SceneGeometry(
            tree=self._tree,
            meshes=drawing.meshes,
            objects={name: self.object_pose(name) for name in self.objects},
        )

    # ------------------------------------------------------------ state

    def reset(
        self, position: Sequence[float] | None = None, velocity: Sequence[float] | None = None
    ) -> None:
        """Put the robot at `position` and `velocity`, or everything at its start.

        position, velocity: one value a driven joint, rad or m and rad/s or m/s.
        Without a position, objects return to their places as well.
        """
        robot = self.scene.robot
        if position is None:
            for thing in self.scene.objects:
                self._place(self.objects[thing.name], thing.at)
                self.client.resetBaseVelocity(self.objects[thing.name], [0.0] * 3, [0.0] * 3)
        self.set_joints(
            robot.home if position is None else position, velocity or [0.0] * len(self.joints)
        )
        for joint in self._held:
            self.client.resetJointState(self.robot, joint.index, robot.held[joint.name], 0.0)

    def set_joints(self, position: Sequence[float], velocity: Sequence[float]) -> None:
        """Set the driven joints alone, without a step."""
        set_state, robot = self.client.resetJointState, self.robot
        for index, q, qd in zip(self.indices, position, velocity, strict=True):
            set_state(robot, index, q, qd)

    def joint_state(self) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and motor effort of the driven joints, each float64[joints]."""
        states = self.client.getJointStates(self.robot, self.indices)
        q, qd, _, effort = zip(*states, strict=True)
        return np.array(q), np.array(qd), np.array(effort)

    def object_pose(self, name: str) -> Pose:
        """Pose of an object's base link, x y z qx qy qz qw."""
        position, orientation = self.object_reader(name)()
        return (*position, *orientation)

    def object_reader(self, name: str) -> Callable[[], tuple[Pose, Pose]]:
        """A function that reads position and quaternion of an object's base link, fast."""
        body = self.objects[name]
        read: Callable[[], tuple[Pose, Pose]] = partial(
            pybullet.getBasePositionAndOrientation, body, physicsClientId=self.client.id
        )
        offset = self._offset(body)
        if offset is None:
            return read
        back = np.linalg.inv(offset)

        def link() -> tuple[Pose, Pose]:
            (x, y, z), (qx, qy, qz, qw) = read()
            told = tuple(pose(matrix(np.array([x, y, z, qx, qy, qz, qw])) @ back).tolist())
            return told[:3], told[3:]

        return link

    # ------------------------------------------------------------ drives

    def release(self) -> None:
        """Switch the motors of the driven joints off; held joints stay held."""
        count = len(self.indices)
        self.client.setJointMotorControlArray(
            self.robot,
            self.indices,
            pybullet.VELOCITY_CONTROL,
            targetVelocities=[0.0] * count,
            forces=[0.0] * count,
        )
        for joint in self._held:
            self.client.setJointMotorControl2(
                self.robot,
                joint.index,
                pybullet.POSITION_CONTROL,
                targetPosition=self.scene.robot.held[joint.name],
                force=joint.max_effort,
            )

    def driver(self, kind: CommandKind) -> Callable[[Sequence[float]], None]:
        """A function that gives the drives a target of `kind`, SI, one value a joint.

        Position and velocity targets stay in force until the next call; an
        effort acts for one step.
        """
        control, robot, indices = pybullet.setJointMotorControlArray, self.robot, self.indices
        client, forces, count = self.client.id, self.max_effort, len(self.indices)
        position_gains = [self.scene.twin.position_gain] * count
        velocity_gains = [self.scene.twin.velocity_gain] * count
        if kind == "position":
            still, mode = [0.0] * count, pybullet.POSITION_CONTROL
            # This is called every step, and by position it is a third faster.
            return lambda target: control(
                robot, indices, mode, target, still, forces, position_gains, velocity_gains, client
            )
        bound = partial(control, robot, indices, physicsClientId=client)
        if kind == "velocity":
            bound = partial(bound, pybullet.VELOCITY_CONTROL, forces=forces)
            return lambda target: bound(targetVelocities=target, velocityGains=velocity_gains)
        return lambda target: bound(pybullet.TORQUE_CONTROL, forces=target)

    def reader(self) -> Callable[[], tuple[tuple[Any, ...], ...]]:
        """A function that reads the driven joints as PyBullet tells them, fast.

        It returns a tuple a joint: position, velocity, reaction force, motor effort.
        """
        return partial(
            pybullet.getJointStates,
            self.robot,
            self.indices,
            physicsClientId=self.client.id,
        )

    def stepper(self) -> Callable[[], None]:
        """A function that does what `step` does, fast."""
        return partial(pybullet.stepSimulation, self.client.id)

    def step(self) -> None:
        """Advance by one step of the scene."""
        self.client.stepSimulation()

    def ray(self, start: Sequence[float], end: Sequence[float]) -> Hit | None:
        """What the straight line from `start` to `end` [m] meets first, if anything."""
        if math.dist(start, end) < _RAY_EPSILON:
            raise PhysicsError("a ray needs two different points")
        body, link, _, position, _ = self.client.rayTest(start, end)[0]
        if body < 0:
            return None
        if body == self.robot:
            return Hit(body=ROBOT, link=self._tree.links[link + 1].name, position=position)
        name = next(name for name, other in self.objects.items() if other == body)
        return Hit(body=name, link="", position=position)

    # ------------------------------------------------------------ loading

    def _load_robot(self) -> int:
        robot = self.scene.robot
        bodies = self._load(robot.model, robot.base, fixed=True, change=self._inertials())
        for body in bodies:
            names = {joint.name for joint in joints_of(self.client, body)}
            if names.issuperset(robot.joints):
                return body
        known = [joint for body in bodies for joint in joints_of(self.client, body)]
        names = {joint.name for joint in known}
        unknown = next((name for name in robot.joints if name not in names), robot.joints[0])
        movable = ", ".join(joint.name for joint in known if joint.kind != "fixed")
        raise SceneError(
            f"key 'robot.joints': the model has no joint '{unknown}'",
            where=self._where,
            hint=f"it has {movable or 'no movable joint'}",
        )

    def _load_object(self, thing: Object) -> int:
        if thing.model:
            bodies = self._load(thing.model, thing.at, fixed=thing.fixed)
            if len(bodies) != 1:
                raise PhysicsError(
                    f"object '{thing.name}' has {len(bodies)} bodies",
                    where=thing.model,
                    hint="give each body an object of its own",
                )
            return bodies[0]
        body = self._create(thing)
        self.client.changeDynamics(body, -1, lateralFriction=thing.friction)
        return body

    def _create(self, thing: Object) -> int:
        shape, client = thing.shape, self.client
        if isinstance(shape, Box):
            kind, sizes = pybullet.GEOM_BOX, {"halfExtents": [edge / 2 for edge in shape.size]}
            seen = sizes
        elif isinstance(shape, Cylinder):
            kind = pybullet.GEOM_CYLINDER
            sizes = {"radius": shape.radius, "height": shape.length}  # type: ignore[dict-item]
            seen = {"radius": shape.radius, "length": shape.length}  # type: ignore[dict-item]
        else:
            assert shape is not None
            kind, sizes = pybullet.GEOM_SPHERE, {"radius": shape.radius}  # type: ignore[dict-item]
            seen = sizes
        return int(
            client.createMultiBody(
                0.0 if thing.fixed else thing.mass,
                client.createCollisionShape(kind, **sizes),
                client.createVisualShape(kind, rgbaColor=thing.color, **seen),
                thing.at.position,
                quaternion_of_rpy(thing.at.rpy),
            )
        )

    def _inertials(self) -> Callable[[str], str] | None:
        """What puts the scene's inertial parameters into the robot's model, if it has any."""
        scene = self.scene
        if not scene.links and not changes_inertials(scene):
            return None
        if model_kind(scene.path(scene.robot.model)) != "urdf":
            raise SceneError(
                "'links' and 'payload' can be set for a robot in URDF only",
                where=self._where,
                hint=f"convert {scene.robot.model}, or put the values into it",
            )
        return partial(with_inertials, scene=scene)

    def _load(
        self,
        reference: str,
        at: Placement,
        *,
        fixed: bool,
        change: Callable[[str], str] | None = None,
    ) -> tuple[int, ...]:
        kind, client = model_kind(self.scene.path(reference)), self.client
        with engine_copy(self.scene, reference, change) as copy:
            try:
                if kind == "urdf":
                    place = (at.position, quaternion_of_rpy(at.rpy))
                    kept = {"useFixedBase": fixed, "flags": self._flags}
                    return (client.loadURDF(str(copy), *place, **kept),)
                load = client.loadSDF if kind == "sdf" else client.loadMJCF
                bodies = tuple(load(str(copy)))
            except pybullet.error as error:
                end_line()
                wrong = xml_problem(copy.read_text(encoding="utf-8"))
                raise PhysicsError(
                    f"PyBullet cannot load this model: {wrong or error}",
                    where=str(self.scene.path(reference)),
                    hint="" if wrong else "what PyBullet printed just before tells more",
                ) from error
        for body in bodies:
            self._place(body, at)
            if fixed:
                self._pin(body)
        return bodies

    def _pin(self, body: int) -> None:
        """Hold a base still that its model leaves free."""
        if not self._moves(body):
            return
        place, turn = self.client.getBasePositionAndOrientation(body)
        zero = [0.0, 0.0, 0.0]
        self.client.createConstraint(
            body, -1, -1, -1, pybullet.JOINT_FIXED, zero, zero, place, [0, 0, 0, 1], turn
        )

    def _place(self, body: int, at: Placement) -> None:
        offset = self._offset(body)
        where = np.array([*at.position, *quaternion_of_rpy(at.rpy)])
        if offset is not None:
            where = pose(matrix(where) @ offset)
        self.client.resetBasePositionAndOrientation(body, where[:3].tolist(), where[3:].tolist())

    def _offset(self, body: int) -> Floats | None:
        """Inertial frame of the base in its link frame, 4 x 4; None for the identity."""
        position, orientation = self.client.getDynamicsInfo(body, -1)[3:5]
        if not any(position) and not any(orientation[:3]):
            return None
        return matrix(np.array([*position, *orientation]))

    def _moves(self, body: int) -> bool:
        return bool(self.client.getDynamicsInfo(body, -1)[0] > 0.0)

    def _choose_joints(self) -> None:
        robot, joints = self.scene.robot, self._all_joints
        chosen = chosen_joints(joints, robot, self._where)
        movable = [joint for joint in joints if joint.kind != "fixed"]
        self.joints = robot.joints
        self.indices = [joint.index for joint in chosen]
        self.prismatic = tuple(joint.name for joint in chosen if joint.kind == "prismatic")
        self.limits = np.array([[joint.lower, joint.upper] for joint in chosen])
        self.max_effort = list(robot.max_effort) or [joint.max_effort for joint in chosen]
        self.dofs = [movable.index(joint) for joint in chosen]
        self.rest = [robot.held.get(joint.name, 0.0) for joint in movable]
        self._held = [joint for joint in movable if joint.name in robot.held]
