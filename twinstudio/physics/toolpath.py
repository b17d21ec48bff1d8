"""Tool poses for many joint positions at once, as fast as numpy gives them.

`twinstudio.model.kinematics.Kinematics` says the same for every link; this is for
the stepping loop, which has 10 us for everything beside the physics.
"""

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.kinematics import KinematicTree, Link, matrix

Floats = NDArray[np.float64]


class ToolPath:
    """The chain from the world to the tool link of one tree.

    Each joint's transform is linear in 1, sin q and cos q (or 1 and q, for one that
    slides): the fixed transforms around it are multiplied in once, here.
    """

    def __init__(self, tree: KinematicTree) -> None:
        chain, k = [], tree.index(tree.tip)
        while k >= 0:
            chain.append(tree.links[k])
            k = tree.links[k].parent
        constant = matrix(np.asarray(tree.base))
        self._joints: list[tuple[int, bool, Floats]] = []
        for link in reversed(chain):
            parts = constant @ _parts(link)
            if link.coordinate >= 0 and link.kind != "fixed":
                turns = link.kind == "revolute"
                self._joints.append((link.coordinate, turns, parts.reshape(3, 16)))
                constant = np.eye(4)
            else:
                constant = np.tensordot(_basis(np.array([link.rest]), link.kind)[0], parts, 1)
        self._last = constant

    def poses(self, q: Floats) -> Floats:
        """Poses float64[n, 7], x y z qx qy qz qw with qw >= 0, for q float64[n, joints]."""
        frames = np.broadcast_to(np.eye(4), (len(q), 4, 4))
        for coordinate, turns, parts in self._joints:
            basis = _basis(q[:, coordinate], "revolute" if turns else "prismatic")
            frames = frames @ (basis @ parts).reshape(-1, 4, 4)
        frames = frames @ self._last
        return np.hstack([frames[:, :3, 3], quaternions(frames[:, :3, :3])])


def _basis(q: Floats, kind: str) -> Floats:
    """What a joint's transform is linear in, float64[n, 3]."""
    one = np.ones_like(q)
    if kind == "revolute":
        return np.stack([one, np.sin(q), np.cos(q)], axis=1)
    return np.stack([one, q, np.zeros_like(q)], axis=1)


def _parts(link: Link) -> Floats:
    """Coefficients of `_basis` for a link's transform in its parent, float64[3, 4, 4].

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


def _outer() -> Floats:
    """Turns the nine entries of a rotation into those of 4 q q^T - I, float64[9, 16]."""
    entries = {
        (0, 0): ((0, 1), (4, -1), (8, -1)), (1, 1): ((0, -1), (4, 1), (8, -1)),
        (2, 2): ((0, -1), (4, -1), (8, 1)), (3, 3): ((0, 1), (4, 1), (8, 1)),
        (0, 1): ((1, 1), (3, 1)), (0, 2): ((2, 1), (6, 1)), (1, 2): ((5, 1), (7, 1)),
        (0, 3): ((7, 1), (5, -1)), (1, 3): ((2, 1), (6, -1)), (2, 3): ((3, 1), (1, -1)),
    }  # fmt: skip
    linear = np.zeros((9, 4, 4))
    for (row, column), terms in entries.items():
        for entry, sign in terms:
            linear[entry, row, column] = linear[entry, column, row] = sign
    return linear.reshape(9, 16)


_OUTER = _outer()


def quaternions(rotations: Floats) -> Floats:
    """Unit quaternions float64[n, 4], x y z w with w >= 0, of float64[n, 3, 3].

    4 q q^T is linear in the rotation matrix; its column with the largest diagonal
    entry is q, but for its length (Shepperd, J. Guidance and Control 1(3), 1978).
    """
    outer = (rotations.reshape(-1, 9) @ _OUTER).reshape(-1, 4, 4) + np.eye(4)
    best = np.argmax(outer[:, range(4), range(4)], axis=1)
    found: Floats = outer[np.arange(len(outer)), best]
    found = found / np.sqrt((found * found).sum(axis=1, keepdims=True))
    return np.where(found[:, 3:] < 0.0, -found, found)
