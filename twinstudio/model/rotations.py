"""Rotations and poses: matrices, quaternions in ROS order x, y, z, w, roll-pitch-yaw."""

import numpy as np
from numpy.typing import NDArray

Matrices = NDArray[np.float64]
_GIMBAL = 1e-12


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
    """Poses float64[..., 7] of homogeneous matrices float64[..., 4, 4], qw >= 0."""
    return np.concatenate([matrices[..., :3, 3], quaternion(matrices[..., :3, :3])], axis=-1)


def quaternion(rotations: Matrices) -> NDArray[np.float64]:
    """Unit quaternions float64[..., 4], x y z w with w >= 0, of float64[..., 3, 3].

    4 q q^T is linear in the rotation matrix; its column with the largest diagonal
    entry is q, but for its length (Shepperd, J. Guidance and Control 1(3), 1978).
    """
    flat = rotations.reshape(-1, 9)
    outer = (flat @ _OUTER).reshape(-1, 4, 4) + np.eye(4)
    best = np.argmax(outer[:, range(4), range(4)], axis=1)
    found: NDArray[np.float64] = outer[np.arange(len(outer)), best]
    found = found / np.sqrt((found * found).sum(axis=1, keepdims=True))
    return np.where(found[:, 3:] < 0.0, -found, found).reshape(*rotations.shape[:-2], 4)


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


def rpy_of(rotation: Matrices) -> NDArray[np.float64]:
    """URDF roll-pitch-yaw float64[3] [rad] of a rotation float64[3, 3].

    With the pitch at +-90 deg, where roll and yaw turn about one axis, roll is zero.
    """
    pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[2, 1], rotation[2, 2]))
    if np.hypot(rotation[2, 1], rotation[2, 2]) > _GIMBAL:
        roll = np.arctan2(rotation[2, 1], rotation[2, 2])
        yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    else:
        roll, yaw = 0.0, np.arctan2(-rotation[0, 1], rotation[1, 1])
    return np.array([roll, pitch, yaw])


def _outer() -> NDArray[np.float64]:
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
