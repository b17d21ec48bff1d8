"""Forward kinematics of a tree of rigid links, in numpy.

The window, the gap and the reports need link and tool poses for twin and cell
alike, at display rate and for whole logs at once; none of them may step a
simulator for it.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import LayoutError

Matrices = NDArray[np.float64]
JointKind = Literal["fixed", "revolute", "prismatic"]


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One link and the joint that carries it.

    parent: index of the parent link in the tree, -1 for the base.
    origin: joint frame in the parent's link frame, position [m] and unit
        quaternion x, y, z, w.
    axis: unit vector of the joint in its own frame.
    coordinate: index into the joint vector, or -1 when the joint is held at
        `rest` [rad or m].
    """

    name: str
    joint: str = ""
    parent: int = -1
    kind: JointKind = "fixed"
    origin: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    coordinate: int = -1
    rest: float = 0.0


class KinematicTree(msgspec.Struct, frozen=True, kw_only=True):
    """Links in an order in which every parent stands before its children.

    base: pose of link 0 in the world, position [m] and quaternion x, y, z, w.
    tip: name of the tool link whose pose is ``tcp.pose``.
    """

    links: tuple[Link, ...]
    joints: tuple[str, ...]
    tip: str
    base: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)

    def index(self, link: str) -> int:
        """Index of the link called `link`; raises LayoutError listing them."""
        for k, candidate in enumerate(self.links):
            if candidate.name == link:
                return k
        names = ", ".join(candidate.name for candidate in self.links)
        raise LayoutError(f"no link '{link}'", hint=f"there are {names}")


@dataclass(frozen=True, slots=True)
class _Step:
    parent: int
    kind: JointKind
    origin: Matrices
    axis: NDArray[np.float64]
    coordinate: int
    rest: float


class Kinematics:
    """Forward kinematics of one tree, prepared once."""

    def __init__(self, tree: KinematicTree) -> None:
        self.tree = tree
        self.tip = tree.index(tree.tip)
        self._base = matrix(np.asarray(tree.base))
        self._steps = [_prepared(link) for link in tree.links]

    def links(self, q: NDArray[np.float64]) -> Matrices:
        """Poses of all links in the world.

        q: float64[..., joints], rad or m. Returns float64[..., links, 4, 4].
        Raises LayoutError when q has another width than the tree has joints.
        """
        return self._forward(q, range(len(self._steps)))

    def tool(self, q: NDArray[np.float64]) -> Matrices:
        """Pose of the tool link, float64[..., 4, 4], for q float64[..., joints]."""
        chain, k = [], self.tip
        while k >= 0:
            chain.append(k)
            k = self._steps[k].parent
        return self._forward(q, chain[::-1])[..., self.tip, :, :]

    def _forward(self, q: NDArray[np.float64], order: "list[int] | range") -> Matrices:
        if q.shape[-1:] != (len(self.tree.joints),):
            raise LayoutError(
                f"the robot has {len(self.tree.joints)} joints, got an array {list(q.shape)}"
            )
        poses = np.zeros((*q.shape[:-1], len(self._steps), 4, 4))
        for k in order:
            step = self._steps[k]
            parent = self._base if step.parent < 0 else poses[..., step.parent, :, :]
            poses[..., k, :, :] = parent @ step.origin @ _motion(step, q)
        return poses


def matrix(pose: NDArray[np.float64]) -> Matrices:
    """Homogeneous matrices float64[..., 4, 4] of poses float64[..., 7] (x y z qx qy qz qw)."""
    x, y, z, w = (pose[..., k] for k in range(3, 7))
    out = np.zeros((*pose.shape[:-1], 4, 4))
    out[..., 0, 0] = 1 - 2 * (y * y + z * z)
    out[..., 0, 1] = 2 * (x * y - z * w)
    out[..., 0, 2] = 2 * (x * z + y * w)
    out[..., 1, 0] = 2 * (x * y + z * w)
    out[..., 1, 1] = 1 - 2 * (x * x + z * z)
    out[..., 1, 2] = 2 * (y * z - x * w)
    out[..., 2, 0] = 2 * (x * z - y * w)
    out[..., 2, 1] = 2 * (y * z + x * w)
    out[..., 2, 2] = 1 - 2 * (x * x + y * y)
    out[..., :3, 3] = pose[..., :3]
    out[..., 3, 3] = 1.0
    return out


def pose(matrices: Matrices) -> NDArray[np.float64]:
    """Poses float64[..., 7] of homogeneous matrices float64[..., 4, 4], qw >= 0.

    The quaternion is the eigenvector of the largest eigenvalue of the symmetric
    matrix K of Bar-Itzhack, J. Guidance 23(6), 2000: no branch, no singularity.
    """
    r = matrices[..., :3, :3]
    k = np.zeros((*r.shape[:-2], 4, 4))
    k[..., 0, 0] = r[..., 0, 0] - r[..., 1, 1] - r[..., 2, 2]
    k[..., 1, 1] = r[..., 1, 1] - r[..., 0, 0] - r[..., 2, 2]
    k[..., 2, 2] = r[..., 2, 2] - r[..., 0, 0] - r[..., 1, 1]
    k[..., 3, 3] = r[..., 0, 0] + r[..., 1, 1] + r[..., 2, 2]
    k[..., 1, 0] = r[..., 0, 1] + r[..., 1, 0]
    k[..., 2, 0] = r[..., 0, 2] + r[..., 2, 0]
    k[..., 2, 1] = r[..., 1, 2] + r[..., 2, 1]
    k[..., 3, 0] = r[..., 2, 1] - r[..., 1, 2]
    k[..., 3, 1] = r[..., 0, 2] - r[..., 2, 0]
    k[..., 3, 2] = r[..., 1, 0] - r[..., 0, 1]
    quaternion = np.linalg.eigh(k)[1][..., :, 3]
    quaternion = quaternion * np.where(quaternion[..., 3:] < 0.0, -1.0, 1.0)
    return np.concatenate([matrices[..., :3, 3], quaternion], axis=-1)


def quaternion_of_rpy(rpy: tuple[float, float, float]) -> tuple[float, float, float, float]:
    """Quaternion x, y, z, w of URDF roll-pitch-yaw [rad] (fixed axes X, Y, Z)."""
    cr, cp, cy = np.cos(np.asarray(rpy) / 2.0)
    sr, sp, sy = np.sin(np.asarray(rpy) / 2.0)
    return (
        float(sr * cp * cy - cr * sp * sy),
        float(cr * sp * cy + sr * cp * sy),
        float(cr * cp * sy - sr * sp * cy),
        float(cr * cp * cy + sr * sp * sy),
    )


def _prepared(link: Link) -> _Step:
    return _Step(
        link.parent,
        link.kind,
        matrix(np.asarray(link.origin)),
        np.asarray(link.axis, dtype=np.float64),
        link.coordinate,
        link.rest,
    )


def _motion(step: _Step, q: NDArray[np.float64]) -> Matrices:
    """Transform of the joint at q (or at its rest value), float64[..., 4, 4]."""
    value = q[..., step.coordinate] if step.coordinate >= 0 else np.asarray(step.rest)
    out = np.zeros((*value.shape, 4, 4))
    out[..., range(4), range(4)] = 1.0
    if step.kind == "prismatic":
        out[..., :3, 3] = value[..., None] * step.axis
    elif step.kind == "revolute":
        out[..., :3, :3] = _rotation(step.axis, value)
    return out


def _rotation(axis: NDArray[np.float64], angle: NDArray[np.float64]) -> Matrices:
    """Rodrigues' formula: rotation by `angle` [rad] about the unit vector `axis`."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    rotation: Matrices = np.eye(3) + sine * cross + (1.0 - cosine) * (cross @ cross)
    return rotation
