"""The camera: an orbit around a target, as pure mathematics.

World: z up, metres. Normalised device coordinates ("ndc"): x to the right and
y up, -1..1 over the picture. Matrices are column-vector style, float64[4, 4].
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEAREST, FARTHEST = 0.02, 2000.0
_STEEPEST = np.pi / 2
_CENTRINGS = 3


@dataclass(frozen=True, slots=True)
class Camera:
    """Where one looks from.

    target: the point looked at [m]. distance: from eye to target [m].
    yaw: of the eye about +z, from +x [rad]. pitch: of the eye over the
    horizontal [rad], -pi/2..pi/2. fov: vertical opening angle [rad].
    """

    target: tuple[float, float, float] = (0.0, 0.0, 0.4)
    distance: float = 2.5
    yaw: float = np.radians(40.0)
    pitch: float = np.radians(22.0)
    fov: float = np.radians(38.0)

    @property
    def near(self) -> float:
        """Distance of the near plane [m]."""
        return 0.02 * self.distance

    @property
    def far(self) -> float:
        """Distance of the far plane [m]."""
        return 60.0 * self.distance

    def axes(self) -> Floats:
        """Right, up and backward unit vectors of the camera in the world, float64[3, 3] rows."""
        cy, sy = np.cos(self.yaw), np.sin(self.yaw)
        cp, sp = np.cos(self.pitch), np.sin(self.pitch)
        right = (-sy, cy, 0.0)
        up = (-sp * cy, -sp * sy, cp)
        back = (cp * cy, cp * sy, sp)
        return np.array([right, up, back])

    def eye(self) -> Floats:
        """Position of the eye, float64[3], m."""
        position: Floats = np.asarray(self.target) + self.distance * self.axes()[2]
        return position

    def view(self) -> Floats:
        """World to camera, float64[4, 4]."""
        out = np.eye(4)
        out[:3, :3] = self.axes()
        out[:3, 3] = -out[:3, :3] @ self.eye()
        return out

    def projection(self, aspect: float) -> Floats:
        """Camera to clip coordinates, OpenGL's perspective matrix, float64[4, 4].

        aspect: width over height of the picture.
        """
        f = 1.0 / np.tan(self.fov / 2.0)
        near, far = self.near, self.far
        out = np.zeros((4, 4))
        out[0, 0] = f / aspect
        out[1, 1] = f
        out[2, 2] = (far + near) / (near - far)
        out[2, 3] = 2.0 * far * near / (near - far)
        out[3, 2] = -1.0
        return out

    def project(self, points: Floats, aspect: float) -> Floats:
        """Where points [..., 3] appear: float64[..., 3], ndc x, y and depth [m].

        Points at or behind the eye (depth <= 0) have NaN for x and y.
        """
        local = (points - self.eye()) @ self.axes().T
        depth = -local[..., 2]
        scale = np.where(depth > 0.0, depth, np.nan) * np.tan(self.fov / 2.0)
        return np.stack([local[..., 0] / (scale * aspect), local[..., 1] / scale, depth], axis=-1)

    def ray(self, x: float, y: float, aspect: float) -> tuple[Floats, Floats]:
        """Origin [m] and unit direction of the line of sight through ndc (x, y)."""
        half = np.tan(self.fov / 2.0)
        right, up, back = self.axes()
        direction = x * half * aspect * right + y * half * up - back
        return self.eye(), direction / np.linalg.norm(direction)

    def orbit(self, yaw: float, pitch: float) -> "Camera":
        """Turned about the target by `yaw` and `pitch` [rad]; stops at straight up and down."""
        steep = float(np.clip(self.pitch + pitch, -_STEEPEST, _STEEPEST))
        turned = float((self.yaw + yaw + np.pi) % (2.0 * np.pi) - np.pi)
        return replace(self, yaw=turned, pitch=steep)

    def pan(self, x: float, y: float, aspect: float) -> "Camera":
        """Moved so that the target appears shifted by ndc (x, y)."""
        half = self.distance * np.tan(self.fov / 2.0)
        right, up, _ = self.axes()
        return self._aimed(np.asarray(self.target) - half * (x * aspect * right + y * up))

    def zoom(self, factor: float, x: float, y: float, aspect: float) -> "Camera":
        """Distance times `factor`; what lies in the target's plane at ndc (x, y) stays there."""
        distance = float(np.clip(self.distance * factor, NEAREST, FARTHEST))
        shrink = 1.0 - distance / self.distance
        moved = self.pan(-x * shrink, -y * shrink, aspect)
        return replace(moved, distance=distance)

    def fit(self, corners: Floats, aspect: float, margin: float = 1.12) -> "Camera":
        """The same direction, so near that all `corners` float64[n, 3] are just in sight."""
        if len(corners) == 0:
            return self
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2.0
        seen = self._backed(middle, corners, aspect, margin)
        for _ in range(_CENTRINGS):
            # What is near looks larger: the middle of the box is not that of the picture.
            places = seen.project(corners, aspect)[:, :2]
            x, y = (places.min(axis=0) + places.max(axis=0)) / 2.0
            target = np.asarray(seen.pan(-float(x), -float(y), aspect).target)
            seen = self._backed(target, corners, aspect, margin)
        return seen

    def _backed(self, centre: Floats, corners: Floats, aspect: float, margin: float) -> "Camera":
        """Aimed at `centre`, from as far as it takes to see all `corners`."""
        local = (corners - centre) @ self.axes().T
        half = np.tan(self.fov / 2.0)
        reach = np.maximum(np.abs(local[:, 0]) / (half * aspect), np.abs(local[:, 1]) / half)
        # No corner may come up to the eye, not even one straight ahead.
        away = local[:, 2] + np.maximum(margin * reach, NEAREST)
        distance = float(np.clip(away.max(), NEAREST, FARTHEST))
        return replace(self._aimed(centre), distance=distance)

    def towards(self, yaw: float, pitch: float) -> "Camera":
        """The same target seen from the direction `yaw`, `pitch` [rad]."""
        return replace(self, yaw=yaw, pitch=pitch)

    def _aimed(self, target: Floats) -> "Camera":
        x, y, z = (float(value) for value in target)
        return replace(self, target=(x, y, z))
