"""Which link is under the mouse: a ray against the triangles that are drawn."""

import numpy as np
from numpy.typing import NDArray

from twinstudio.gui.scene3d.drawing import Drawing, Part, RenderState, poses

Floats = NDArray[np.float64]


def pick(drawing: Drawing, state: RenderState, x: float, y: float) -> tuple[str, str] | None:
    """Body and link nearest along the line of sight through ndc (x, y), or None.

    Twin, objects and ghost are all tried; twin and ghost are both ``robot``.
    """
    origin, direction = state.camera.ray(x, y, state.aspect)
    best, found = np.inf, None
    for joints in (state.twin, state.ghost):
        for part, pose in zip(drawing.parts, poses(drawing, joints, state.objects), strict=True):
            distance = _distance(part, pose, origin, direction)
            if distance < best:
                best, found = distance, (part.body, part.link)
    return found


def _distance(part: Part, pose: Floats, origin: Floats, direction: Floats) -> float:
    """Distance [m] to the part along the ray; infinite when it is missed or not shown."""
    if pose[3, 3] != 1.0 or not len(part.triangles):
        return np.inf
    turn = pose[:3, :3].T
    start, along = turn @ (origin - pose[:3, 3]), turn @ direction
    middle = part.centre - start
    nearest = middle - (middle @ along) * along
    if nearest @ nearest > part.radius**2:
        return np.inf
    return first_hit(part.triangles.astype(np.float64), start, along)


def first_hit(triangles: Floats, origin: Floats, direction: Floats) -> float:
    """Distance to the first of triangles [m, 3, 3] that the ray meets, or infinity.

    Moeller and Trumbore, J. Graphics Tools 2(1), 1997; both sides count.
    """
    a = triangles[:, 0]
    ab, ac = triangles[:, 1] - a, triangles[:, 2] - a
    p = np.cross(direction, ac)
    volume = np.einsum("ij,ij->i", ab, p)
    usable = np.abs(volume) > 1e-15
    inverse = 1.0 / np.where(usable, volume, 1.0)
    s = origin - a
    u = np.einsum("ij,ij->i", s, p) * inverse
    q = np.cross(s, ab)
    v = q @ direction * inverse
    t = np.einsum("ij,ij->i", ac, q) * inverse
    hit = usable & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
    return float(t[hit].min()) if hit.any() else np.inf
