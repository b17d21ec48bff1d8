"""Forward kinematics of a tree of rigid links, in numpy.

The window, the gap and the reports need link and tool poses for twin and cell
alike, at display rate and for whole logs at once; none of them may step a
simulator for it.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import LayoutError
from twinstudio.model.rotations import Matrices, matrix, pose

Floats = NDArray[np.float64]
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


class Kinematics:
    """Forward kinematics of one tree, prepared once.

    Each joint's transform is linear in 1, sin q and cos q (or in 1 and q, for one
    that slides), so the fixed transforms around it are multiplied in beforehand.
    """

    def __init__(self, tree: KinematicTree) -> None:
        self.tree = tree
        self.tip = tree.index(tree.tip)
        self._base = matrix(np.asarray(tree.base))
        self._parts = [_parts(link) for link in tree.links]
        self._chain, self._last = self._condensed()

    def links(self, q: Floats) -> Matrices:
        """Poses of all links in the world.

        q: float64[..., joints], rad or m. Returns float64[..., links, 4, 4].
        Raises LayoutError when q has another width than the tree has joints.
        """
        self._must_fit(q)
        poses = np.empty((*q.shape[:-1], len(self.tree.links), 4, 4))
        for k, link in enumerate(self.tree.links):
            parent = self._base if link.parent < 0 else poses[..., link.parent, :, :]
            value = q[..., link.coordinate] if link.coordinate >= 0 else np.array(link.rest)
            poses[..., k, :, :] = parent @ _moved(self._parts[k], value, link.kind)
        return poses

    def tool(self, q: Floats) -> Matrices:
        """Pose of the tool link, float64[..., 4, 4], for q float64[..., joints]."""
        self._must_fit(q)
        frames: Matrices = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
        for coordinate, kind, parts in self._chain:
            frames = frames @ _moved(parts, q[..., coordinate], kind)
        tool: Matrices = frames @ self._last
        return tool

    def tool_poses(self, q: Floats) -> Floats:
        """Pose of the tool link, float64[..., 7] x y z qx qy qz qw, for float64[..., joints]."""
        return pose(self.tool(q))

    def _condensed(self) -> "tuple[list[tuple[int, JointKind, Floats]], Matrices]":
        """Moving joints from base to tool with all fixed transforms before each, and the rest."""
        chain: list[tuple[int, JointKind, Floats]] = []
        fixed = self._base
        for k in self._towards_tool():
            link = self.tree.links[k]
            if link.coordinate >= 0 and link.kind != "fixed":
                chain.append((link.coordinate, link.kind, fixed @ self._parts[k]))
                fixed = np.eye(4)
            else:
                fixed = fixed @ _moved(self._parts[k], np.array(link.rest), link.kind)
        return chain, fixed

    def _towards_tool(self) -> Iterable[int]:
        order, k = [], self.tip
        while k >= 0:
            order.append(k)
            k = self.tree.links[k].parent
        return reversed(order)

    def _must_fit(self, q: Floats) -> None:
        if q.shape[-1:] != (len(self.tree.joints),):
            raise LayoutError(
                f"the robot has {len(self.tree.joints)} joints, got an array {list(q.shape)}"
            )


def _parts(link: Link) -> Floats:
    """Coefficients of 1, sin q (or q) and cos q in a link's transform, float64[3, 4, 4].

    Rodrigues: I + sin q K + (1 - cos q) K K, with K the cross-product matrix.
    """
    x, y, z = link.axis
    parts = np.zeros((3, 4, 4))
    parts[0] = np.eye(4)
    if link.kind == "revolute":
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        parts[0, :3, :3] += cross @ cross
        parts[1, :3, :3] = cross
        parts[2, :3, :3] = -cross @ cross
    elif link.kind == "prismatic":
        parts[1, :3, 3] = link.axis
    placed: Floats = matrix(np.asarray(link.origin)) @ parts
    return placed


def _moved(parts: Floats, q: Floats, kind: JointKind) -> Matrices:
    """The transform at joint values `q`, float64[..., 4, 4]."""
    if kind == "revolute":
        basis = np.stack([np.ones_like(q), np.sin(q), np.cos(q)], axis=-1)
    else:
        basis = np.stack([np.ones_like(q), q, np.zeros_like(q)], axis=-1)
    moved: Matrices = (basis @ parts.reshape(3, 16)).reshape(*q.shape, 4, 4)
    return moved
