"""What a scene looks like: triangles in link frames, ready to send and draw."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import LayoutError
from twinstudio.model.kinematics import KinematicTree

ROBOT = "robot"
MAX_TRIANGLES = 2_000_000


class Mesh(msgspec.Struct, frozen=True, kw_only=True):
    """Triangles that move with one link of one body.

    body: ``robot`` or the name of a scene object.
    link: link name for the robot, empty for an object.
    color: red, green, blue, alpha in 0..1.
    vertices: float32 little-endian [n, 3], m, in the link frame.
    faces: uint32 little-endian [m, 3], counter-clockwise seen from outside.
    """

    body: str
    link: str
    color: tuple[float, float, float, float]
    vertices: bytes
    faces: bytes

    @staticmethod
    def of(
        body: str,
        link: str,
        color: tuple[float, float, float, float],
        vertices: NDArray[np.floating],
        faces: NDArray[np.integer],
    ) -> "Mesh":
        """A mesh from arrays [n, 3] and [m, 3]."""
        if len(faces) > MAX_TRIANGLES:
            raise LayoutError(f"mesh of {body}/{link} has {len(faces)} triangles; too many to draw")
        return Mesh(
            body=body,
            link=link,
            color=color,
            vertices=np.ascontiguousarray(vertices, dtype="<f4").tobytes(),
            faces=np.ascontiguousarray(faces, dtype="<u4").tobytes(),
        )

    def vertex_array(self) -> NDArray[np.float32]:
        """float32[n, 3], m."""
        return np.frombuffer(self.vertices, dtype="<f4").reshape(-1, 3)

    def face_array(self) -> NDArray[np.uint32]:
        """uint32[m, 3]."""
        return np.frombuffer(self.faces, dtype="<u4").reshape(-1, 3)


class SceneGeometry(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a view needs: the robot's tree and all triangles.

    objects: pose of every object at rest, x y z qx qy qz qw; moving ones are
        also published as ``object.<name>.pose``.
    """

    tree: KinematicTree
    meshes: tuple[Mesh, ...]
    objects: dict[str, tuple[float, ...]] = {}
