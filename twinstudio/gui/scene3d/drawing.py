"""What the renderer draws: one merged mesh, and per frame one table of transforms."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from twinstudio.gui.scene3d import meshes
from twinstudio.gui.scene3d.camera import Camera
from twinstudio.gui.scene3d.palette import AXES, CELL, LIGHT, TWIN, ErrorScale, Look
from twinstudio.model.errors import LayoutError
from twinstudio.model.geometry import ROBOT, Mesh, SceneGeometry
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.rotations import matrix

Floats = NDArray[np.float64]

VERTEX = np.dtype([("position", "<f4", 3), ("part", "<f4"), ("normal", "<f4", 3)])
FEWEST = 300
LIT, FLAT = 1.0, 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive indices of the merged mesh."""

    first: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What moves as one and has one colour.

    node: index of the link in the tree, -1 for an object.
    triangles: float32[m, 3, 3], m, in the link frame.
    centre, radius: bounding sphere in the link frame [m].
    corners: of the bounding box in the link frame, float64[8, 3], m; none of a
    part without triangles.
    """

    body: str
    link: str
    node: int
    color: tuple[float, float, float, float]
    triangles: NDArray[np.float32]
    centre: Floats
    radius: float
    corners: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A scene's geometry in the form the graphics card takes it.

    parts: robot parts first, then objects; a part's index is its row in the
    table of transforms. After them come three rows each for the axes of base
    and tool.
    """

    kinematics: Kinematics
    objects: dict[str, Floats]
    parts: tuple[Part, ...]
    vertices: NDArray[np.void]
    indices: NDArray[np.uint32]
    robot: Span
    things: Span
    base_axes: Span
    tool_axes: Span

    @property
    def robot_parts(self) -> tuple[Part, ...]:
        """The parts that belong to the robot."""
        return tuple(part for part in self.parts if part.node >= 0)

    @property
    def rows(self) -> int:
        """Rows of the table of transforms for one robot, axes included."""
        return len(self.parts) + 6


@dataclass(frozen=True, slots=True, eq=False)
class RenderState:
    """Everything that may differ from one frame to the next.

    width, height: of the picture, device pixels. twin, cell: joint positions
    float64[joints], or None when there are none. objects: poses float64[7] of
    objects that moved. errors: link -> 0..1; None when nothing is known.
    """

    width: int
    height: int
    camera: Camera = field(default_factory=Camera)
    look: Look = LIGHT
    twin: Floats | None = None
    cell: Floats | None = None
    objects: dict[str, Floats] = field(default_factory=dict)
    errors: dict[str, float] | None = None
    ghost_visible: bool = True
    frames_visible: bool = True

    @property
    def aspect(self) -> float:
        """Width over height."""
        return self.width / max(self.height, 1)

    @property
    def ghost(self) -> Floats | None:
        """Joint positions of the cell if it is to be drawn."""
        return self.cell if self.ghost_visible else None


def prepare(geometry: SceneGeometry, budget: int) -> Drawing:
    """Merge and thin `geometry` to about `budget` triangles.

    Raises LayoutError when a mesh is malformed or belongs to an unknown link or
    an object without a pose.
    """
    kinematics = Kinematics(geometry.tree)
    groups: dict[tuple[str, str, tuple[float, float, float, float]], list[Mesh]] = {}
    for mesh in sorted(geometry.meshes, key=lambda mesh: mesh.body != ROBOT):
        groups.setdefault((mesh.body, mesh.link, mesh.color), []).append(mesh)
    raw = [_merged(group) for group in groups.values()]
    shares = _shares(raw, budget)
    builder = _Builder()
    parts = []
    for (key, (vertices, faces)), share in zip(zip(groups, raw, strict=True), shares, strict=True):
        thin = meshes.thinned(vertices, faces, share)
        triangles = builder.add(*meshes.shaded(*thin))
        parts.append(_part(key, geometry, triangles))
        if parts[-1].node >= 0:
            builder.mark("robot")
    builder.mark("things")
    _add_axes(builder, kinematics, parts)
    return Drawing(
        kinematics,
        {name: np.asarray(pose, dtype=np.float64) for name, pose in geometry.objects.items()},
        tuple(parts),
        np.concatenate(builder.vertices),
        np.concatenate(builder.indices),
        **builder.spans(),
    )


def poses(drawing: Drawing, joints: Floats | None, objects: dict[str, Floats]) -> Floats:
    """Transform of every part, float64[parts, 4, 4]; all zero where it is not known."""
    out = np.zeros((len(drawing.parts), 4, 4))
    links = None if joints is None else drawing.kinematics.links(joints)
    for row, part in enumerate(drawing.parts):
        if part.node >= 0:
            if links is not None:
                out[row] = links[part.node]
            continue
        pose = objects.get(part.body, drawing.objects[part.body])
        if np.isfinite(pose).all():
            out[row] = matrix(pose)
    return out


def table(drawing: Drawing, state: RenderState, scale: ErrorScale) -> NDArray[np.float32]:
    """Rows for the shader: float32[2 * rows, 4, 4], first twin and objects, then the ghost.

    The first three lines of a row are the transform, the fourth is red, green,
    blue and whether it is lit.
    """
    count = len(drawing.parts)
    out = np.zeros((2 * drawing.rows, 4, 4), dtype=np.float32)
    out[:count, :3] = poses(drawing, state.twin, state.objects)[:, :3]
    for row, part in enumerate(drawing.parts):
        out[row, 3] = (*_color(part, state.errors, scale), LIT)
    leader = state.twin if state.twin is not None else state.ghost
    if leader is not None:
        links = drawing.kinematics.links(leader)
        out[count : count + 3, :3] = links[0][:3]
        out[count + 3 : count + 6, :3] = links[drawing.kinematics.tip][:3]
        out[count : count + 6, 3, :3] = AXES * 2
        out[count : count + 6, 3, 3] = FLAT
    if state.ghost is not None:
        out[drawing.rows :][:count, :3] = poses(drawing, state.ghost, {})[:, :3]
        out[drawing.rows :, 3] = (*CELL, LIT)
    return out


def corners(drawing: Drawing, state: RenderState) -> Floats:
    """Box corners of what is worth seeing, float64[n, 3], m: the robot, and what moves.

    Fixed furniture does not count, nor does anything far larger than the robot.
    """
    home = np.zeros(len(drawing.kinematics.tree.joints))
    shown = [q for q in (state.twin, state.ghost) if q is not None]
    boxes = [
        (part, pose)
        for q in shown or [home]
        for part, pose in zip(drawing.parts, poses(drawing, q, state.objects), strict=True)
        if len(part.triangles) and pose[3, 3] == 1.0
    ]
    robot = [_placed(part, pose) for part, pose in boxes if part.node >= 0]
    size = np.ptp(np.concatenate(robot), axis=0).max() if robot else np.inf
    things = [
        _placed(part, pose)
        for part, pose in boxes
        if part.node < 0 and part.body in state.objects and part.radius <= 0.5 * size
    ]
    found = robot + things
    return np.concatenate(found) if found else np.empty((0, 3))


def _color(
    part: Part, errors: dict[str, float] | None, scale: ErrorScale
) -> tuple[float, float, float]:
    """Objects keep their own colour; the robot shows its error, or plain twin blue."""
    if part.node < 0:
        return part.color[:3]
    error = errors.get(part.link, np.nan) if errors else np.nan
    base = TWIN if np.isnan(error) else scale.color(error)
    red, green, blue = part.color[:3]
    # Dark rubber stays darker than white covers: the shape is easier to read.
    shade = 0.72 + 0.28 * (0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return base[0] * shade, base[1] * shade, base[2] * shade


class _Builder:
    """Collects vertices and indices, and remembers where each kind ends."""

    def __init__(self) -> None:
        self.vertices: list[NDArray[np.void]] = [np.empty(0, VERTEX)]
        self.indices: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        self._rows = self._corners = self._total = 0
        self._ends: dict[str, int] = {}

    def add(
        self, points: meshes.Points, normals: meshes.Points, faces: NDArray[np.uint32]
    ) -> NDArray[np.float32]:
        """Append a mesh as the next row; returns its triangles float32[m, 3, 3]."""
        vertices = np.empty(len(points), VERTEX)
        vertices["position"], vertices["normal"], vertices["part"] = points, normals, self._rows
        self.vertices.append(vertices)
        self.indices.append(faces.reshape(-1) + np.uint32(self._corners))
        self._rows += 1
        self._corners += len(points)
        self._total += faces.size
        return points[faces]

    def mark(self, name: str) -> None:
        """Everything added since the mark before is `name`."""
        self._ends[name] = self._total

    def spans(self) -> dict[str, Span]:
        """Index ranges of the four kinds, in their order."""
        out, start = {}, 0
        for name in ("robot", "things", "base_axes", "tool_axes"):
            end = self._ends.get(name, start)
            out[name] = Span(start, end - start)
            start = end
        return out


def _merged(group: list[Mesh]) -> tuple[meshes.Points, meshes.Faces]:
    """One mesh of several; raises LayoutError for broken ones."""
    points, faces, offset = [], [], 0
    for mesh in group:
        v, f = mesh.vertex_array(), mesh.face_array().astype(np.int64)
        where = f"mesh of {mesh.body}/{mesh.link}"
        if not np.isfinite(v).all():
            raise LayoutError("a vertex is not finite", where=where)
        if f.size and f.max() >= len(v):
            raise LayoutError(f"face names vertex {f.max()} of {len(v)}", where=where)
        points.append(v)
        faces.append(f + offset)
        offset += len(v)
    return np.concatenate(points), np.concatenate(faces)


def _shares(raw: list[tuple[meshes.Points, meshes.Faces]], budget: int) -> list[int]:
    """Triangles each mesh may keep: in proportion to its area; what one does not need goes on."""
    areas = [float(np.linalg.norm(meshes.face_normals(*mesh), axis=1).sum()) for mesh in raw]
    out = [FEWEST] * len(raw)
    area = sum(areas)
    dense = sorted(range(len(raw)), key=lambda k: len(raw[k][1]) / max(areas[k], 1e-12))
    for k in dense:
        out[k] = max(FEWEST, int(budget * areas[k] / max(area, 1e-12)))
        budget -= min(out[k], len(raw[k][1]))
        area -= areas[k]
    return out


def _part(
    key: tuple[str, str, tuple[float, float, float, float]],
    geometry: SceneGeometry,
    triangles: NDArray[np.float32],
) -> Part:
    body, link, color = key
    node = geometry.tree.index(link) if body == ROBOT else -1
    if node < 0 and body not in geometry.objects:
        known = ", ".join(geometry.objects) or "none"
        raise LayoutError(f"no pose for the mesh of object '{body}'", hint=f"there are {known}")
    points = triangles.reshape(-1, 3).astype(np.float64)
    centre, radius, box = np.zeros(3), 0.0, np.empty((0, 3))
    if len(points):
        box = np.array(list(product(*zip(points.min(axis=0), points.max(axis=0), strict=True))))
        centre = (points.min(axis=0) + points.max(axis=0)) / 2.0
        radius = float(np.linalg.norm(points - centre, axis=1).max())
    return Part(body, link, node, color, triangles, centre, radius, box)


def _add_axes(builder: _Builder, kinematics: Kinematics, parts: list[Part]) -> None:
    """Arrows for base and tool, sized to the robot."""
    links = kinematics.links(np.zeros(len(kinematics.tree.joints)))
    boxes = [_placed(part, links[part.node]) for part in parts if part.node >= 0 and part.radius]
    extent = np.ptp(np.concatenate([links[:, :3, 3], *boxes]), axis=0).max()
    length = float(np.clip(0.13 * extent, 0.06, 0.6))
    for name, size in (("base_axes", length), ("tool_axes", 0.7 * length)):
        for axis in range(3):
            builder.add(*meshes.shaded(*meshes.arrow(axis, size, 0.03 * size)))
        builder.mark(name)


def _placed(part: Part, pose: Floats) -> Floats:
    placed: Floats = part.corners @ pose[:3, :3].T + pose[:3, 3]
    return placed
