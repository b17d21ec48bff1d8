"""The arm as rigid bodies: regressors of inverse dynamics from the scene's model.

Inertial parameters stand ten a joint, in the order of Pinocchio: mass, first moments
x, y, z, and the inertia xx, xy, yy, xz, yz, zz about the joint's frame. The effort of
the joints is linear in them (Atkeson, An, Hollerbach, IJRR 1986).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from twinstudio.plugin import api

Floats = NDArray[np.float64]
PER_LINK = 10
PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Rows and columns of the inertia in the order above."""
FULL = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""The matrix from xx, xy, xz, yy, yz, zz."""
LARGEST_GYRATION = 0.5
"""A link whose radius of gyration [m] exceeds this and twice its length is no such link."""


@dataclass(frozen=True, slots=True, eq=False)
class RigidBody:
    """The scene's robot with all joints but the driven ones locked.

    joints: driven joints in the scene's order. links: the link that each of them moves.
    prior: float64[10 joints], parameters of the scene's model, links welded to the named
    ones included. welded: the share of `prior` that those others have. scale: float64
    [10 joints], how far off a model made in earnest may be. absurd: links whose masses
    or inertias cannot be, with the reason. lower, upper: position limits, rad or m.
    """

    joints: tuple[str, ...]
    links: tuple[str, ...]
    prior: Floats
    welded: Floats
    scale: Floats
    lengths: Floats
    along: Floats
    absurd: dict[str, str]
    lower: Floats
    upper: Floats
    revolute: tuple[bool, ...]
    model: Any
    order: NDArray[np.int64]

    def regressor(self, position: Floats, velocity: Floats, acceleration: Floats) -> Floats:
        """Effort over inertial parameters, float64[n, joints, 10 joints]; SI."""
        data = self.model.createData()
        n, joints = position.shape
        result = np.empty((n, joints, PER_LINK * joints))
        columns = (PER_LINK * self.order[:, None] + np.arange(PER_LINK)).ravel()
        q, v, a = (np.zeros((n, joints)) for _ in range(3))
        q[:, self.order], v[:, self.order] = position, velocity
        a[:, self.order] = acceleration
        for k in range(n):
            full = pin.computeJointTorqueRegressor(self.model, data, q[k], v[k], a[k])
            full = np.reshape(full, (joints, -1))
            result[k] = full[self.order][:, columns]
        return result

    def levers(self, position: Floats) -> Floats:
        """Effort of gravity on each joint from 1 kg m along its own link, float64[n, joints].

        Along is towards the next joint, or the centre of mass where there is none.
        """
        still = np.zeros_like(position)
        gravity = self.regressor(position, still, still)
        found = np.empty_like(position)
        for j in range(len(self.joints)):
            own = slice(PER_LINK * j + 1, PER_LINK * j + 4)
            found[:, j] = gravity[:, j, own] @ self.along[j]
        return found

    def tool(self, frame: str) -> tuple[Floats, Floats]:
        """Rotation and position of the link `frame` in the last joint's frame."""
        if not self.model.existFrame(frame):
            raise api.PluginError(f"the model has no link '{frame}'")
        found = self.model.frames[self.model.getFrameId(frame)].placement
        return np.array(found.rotation), np.array(found.translation)


def rigid_body(scene: api.Scene) -> RigidBody:
    """The robot of `scene`, its patched links included.

    Raises PluginError for a model that Pinocchio cannot read, and for a joint of the
    scene that is not in it or is neither revolute nor prismatic.
    """
    path = scene.path(scene.robot.model)
    try:
        whole = pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError) as error:
        raise api.PluginError(f"{path} cannot be read: {error}") from error
    _check_joints(whole, scene)
    bodies = _bodies(path)
    _apply_links(whole, scene, bodies)
    model = _locked(whole, scene)
    model.gravity.linear = _gravity(scene)
    order = np.array([model.idx_vs[model.getJointId(name)] for name in scene.robot.joints])
    ids = [model.getJointId(name) for name in scene.robot.joints]
    links = tuple(_link_of(whole, name) for name in scene.robot.joints)
    prior = np.concatenate([model.inertias[k].toDynamicParameters() for k in ids])
    own = np.concatenate([bodies[name] for name in links])
    return RigidBody(
        joints=scene.robot.joints,
        links=links,
        prior=prior,
        welded=prior - own,
        scale=np.concatenate([_scale(model, k) for k in ids]),
        along=np.stack([_along(model, k) for k in ids]),
        lengths=np.array([_length(model, k) for k in ids]),
        absurd=_absurd(own.reshape(-1, PER_LINK), links, model, ids),
        lower=model.lowerPositionLimit[order],
        upper=model.upperPositionLimit[order],
        revolute=tuple("P" not in model.joints[k].shortname()[10:] for k in ids),
        model=model,
        order=order,
    )


def pseudo_inertia(parameters: Floats) -> Floats:
    """The 4 x 4 pseudo-inertia of ten parameters; positive definite for a real body.

    [[trace(I)/2 1 - I, m c], [m c', m]] (Wensing, Kim, Slotine, RA-L 2018).
    """
    inertia = np.zeros((3, 3))
    for value, (row, column) in zip(parameters[4:], PAIRS, strict=True):
        inertia[row, column] = inertia[column, row] = value
    result = np.empty((4, 4))
    result[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    result[:3, 3] = result[3, :3] = parameters[1:4]
    result[3, 3] = parameters[0]
    return result


def parameters_of(pseudo: Floats) -> Floats:
    """Ten parameters of a 4 x 4 pseudo-inertia; the inverse of `pseudo_inertia`."""
    second = pseudo[:3, :3]
    inertia = np.trace(second) * np.eye(3) - second
    moments = [inertia[row, column] for row, column in PAIRS]
    return np.concatenate([[pseudo[3, 3]], pseudo[:3, 3], moments])


def centre_and_inertia(parameters: Floats) -> tuple[float, Floats, Floats]:
    """Mass, centre float64[3], and inertia xx, xy, xz, yy, yz, zz about the centre."""
    mass, centre = float(parameters[0]), parameters[1:4] / parameters[0]
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about_frame = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    inertia = about_frame - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return mass, centre, inertia[np.triu_indices(3)]


def _check_joints(model: Any, scene: api.Scene) -> None:
    for name in (*scene.robot.joints, *scene.robot.held):
        if not model.existJointName(name):
            known = ", ".join(list(model.names)[1:])
            raise api.PluginError(f"the model has no joint '{name}'", hint=f"it has {known}")
        joint = model.joints[model.getJointId(name)]
        if joint.nv != 1 or joint.nq != 1:
            raise api.PluginError(
                f"joint '{name}' is {joint.shortname()}",
                hint="revolute joints with limits, and prismatic ones, can be calibrated",
            )


def _locked(model: Any, scene: api.Scene) -> Any:
    """The model with every joint locked that is not driven."""
    position = pin.neutral(model)
    for name, value in scene.robot.held.items():
        position[model.idx_qs[model.getJointId(name)]] = value
    driven = set(scene.robot.joints)
    locked = [k for k in range(1, model.njoints) if model.names[k] not in driven]
    return pin.buildReducedModel(model, locked, position)


def _apply_links(model: Any, scene: api.Scene, bodies: dict[str, Floats]) -> None:
    """Put the links that a scene or its patches change into `bodies` and the joints' inertias."""
    for name, link in scene.links.items():
        if name not in bodies:
            raise api.PluginError(f"the model has no link '{name}'")
        old = bodies[name]
        mass = old[0] if link.mass is None else link.mass
        centre, inertia = np.zeros(3), np.zeros(6)
        if old[0] > 0.0:
            _, centre, inertia = centre_and_inertia(old)
        centre = centre if link.centre is None else np.array(link.centre)
        inertia = np.array(link.inertia) if link.inertia else inertia
        new = np.asarray(_inertia(mass, centre, inertia).toDynamicParameters())
        frame = model.frames[model.getBodyId(name)]
        change = _moved(frame.placement, new) - _moved(frame.placement, old)
        joint = frame.parentJoint
        total = model.inertias[joint].toDynamicParameters() + change
        model.inertias[joint] = pin.Inertia.FromDynamicParameters(total)
        bodies[name] = new


def _bodies(path: Path) -> dict[str, Floats]:
    """Ten parameters of every link of a URDF, in the link's frame; zeros without inertia."""
    found = {}
    for link in ET.parse(path).getroot().iter("link"):  # noqa: S314 - the user's own
        inertial = link.find("inertial")
        found[link.attrib["name"]] = np.zeros(PER_LINK)
        if inertial is None:
            continue
        origin, mass, moments = (inertial.find(tag) for tag in ("origin", "mass", "inertia"))
        at = {} if origin is None else origin.attrib
        centre = np.array(at.get("xyz", "0 0 0").split(), dtype=float)
        rotation = pin.rpy.rpyToMatrix(*map(float, at.get("rpy", "0 0 0").split()))
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        told = {} if moments is None else moments.attrib
        inertia = np.array([float(told.get(key, 0.0)) for key in keys])
        turned = rotation @ inertia[FULL] @ rotation.T
        kilograms = 0.0 if mass is None else float(mass.attrib.get("value", 0.0))
        body = _inertia(kilograms, centre, turned[np.triu_indices(3)])
        found[link.attrib["name"]] = np.asarray(body.toDynamicParameters())
    return found


def _inertia(mass: float, centre: Floats, inertia: Floats) -> Any:
    """`inertia` about the centre: xx, xy, xz, yy, yz, zz."""
    return pin.Inertia(mass, centre, inertia[FULL])


def _moved(placement: Any, parameters: Floats) -> Floats:
    """Parameters in the parent's frame of a body that stands at `placement` in it."""
    if not parameters.any():
        return parameters
    return moved(parameters, np.asarray(placement.rotation), np.asarray(placement.translation))


def moved(parameters: Floats, rotation: Floats, translation: Floats) -> Floats:
    """Ten parameters in another frame, in which the first stands turned and shifted."""
    at = np.eye(4)
    at[:3, :3], at[:3, 3] = rotation, translation
    return parameters_of(at @ pseudo_inertia(parameters) @ at.T)


def _gravity(scene: api.Scene) -> Floats:
    """Gravity in the frame of the robot's base."""
    rotation = pin.rpy.rpyToMatrix(*scene.robot.base.rpy)
    result: Floats = rotation.T @ np.array(scene.simulation.gravity)
    return result


def _link_of(model: Any, joint: str) -> str:
    """The link right behind `joint`, whose frame is the joint's."""
    frame = model.getFrameId(joint)
    for candidate in model.frames:
        if candidate.type == pin.FrameType.BODY and candidate.parentFrame == frame:
            return str(candidate.name)
    raise api.PluginError(f"the model has no link behind joint '{joint}'")


def _scale(model: Any, joint: int) -> Floats:
    """How far the parameters of a body may be off: mass, mass times length, times length^2."""
    mass = max(float(model.inertias[joint].mass), 0.1)
    length = _length(model, joint)
    inertia = max(mass * length**2, float(np.trace(model.inertias[joint].inertia)))
    return np.repeat([mass, mass * length, inertia], [1, 3, 6])


def _along(model: Any, joint: int) -> Floats:
    """Unit vector from a joint towards the next, or towards the centre of mass."""
    children = [k for k in range(1, model.njoints) if model.parents[k] == joint]
    spans = [np.asarray(model.jointPlacements[k].translation) for k in children]
    longest = max([*spans, 1e-6 * np.asarray(model.inertias[joint].lever)], key=np.linalg.norm)
    size = float(np.linalg.norm(longest))
    return longest / size if size > 0.0 else np.zeros(3)


def _length(model: Any, joint: int) -> float:
    """How far a body reaches: to the next joint, or twice its centre of mass; at least 0.1 m."""
    children = [k for k in range(1, model.njoints) if model.parents[k] == joint]
    spans = [float(np.linalg.norm(model.jointPlacements[k].translation)) for k in children]
    lever = float(np.linalg.norm(model.inertias[joint].lever))
    return max([*spans, lever, 0.1])


def _absurd(own: Floats, links: Sequence[str], model: Any, ids: Sequence[int]) -> dict[str, str]:
    """Links whose inertial parameters no body of that size can have, with the reason."""
    found = {}
    for name, parameters, joint in zip(links, own, ids, strict=True):
        if not np.isfinite(parameters).all() or parameters[0] <= 1e-6:
            found[name] = f"{name} has no mass"
            continue
        _, _, inertia = centre_and_inertia(parameters)
        moments = np.linalg.eigvalsh(inertia[FULL])
        gyration = float(np.sqrt(max(moments.max(), 0.0) / parameters[0]))
        if np.abs(moments).max() < 1e-12 * parameters[0]:
            found[name] = f"{name} has no inertia"
        elif moments[0] < -1e-9 * moments[2] or moments[2] > (1 + 1e-6) * (moments[0] + moments[1]):
            found[name] = f"the inertia of {name} is of no body"
        elif gyration > max(LARGEST_GYRATION, 2.0 * _length(model, joint)):
            found[name] = f"the inertia of {name} needs a radius of {gyration:.2g} m"
    return found
