"""Drawable triangles of links and objects, simplified to a budget.

Software OpenGL draws about 60,000 triangles at 30 frames a second, robot models
bring 100,000 to 200,000; `drawable` reduces them by quadric edge collapse, in
proportion, and leaves small meshes alone.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import fast_simplification  # type: ignore[import-untyped]
import numpy as np
import trimesh
from numpy.typing import NDArray

from twinstudio.model.errors import PhysicsError
from twinstudio.model.geometry import Mesh
from twinstudio.model.rotations import matrix

Form = Literal["box", "sphere", "cylinder", "capsule", "plane", "mesh"]
Color = tuple[float, float, float, float]
TRIANGLES = 55_000
_UNTOUCHED = 400
_IMAGES = {".png", ".jpg", ".jpeg", ".tga", ".bmp", ".tif", ".tiff"}
_PLANE = 10.0


@dataclass(frozen=True, slots=True)
class Visual:
    """One shape to draw.

    size: what PyBullet tells: edges of a box [m]; radius of a sphere; length and
        radius of a cylinder or capsule; scale of a mesh.
    pose: in the frame of `link`, x y z qx qy qz qw.
    file, spare: mesh file, and the collision mesh to draw if it cannot be read.
    """

    body: str
    link: str
    form: Form
    size: tuple[float, ...]
    pose: tuple[float, ...]
    color: Color
    file: str = ""
    spare: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]
    color: Color


@dataclass(frozen=True, slots=True)
class Drawing:
    """Coloured meshes, and a note for each that stands in for another."""

    meshes: tuple[Mesh, ...]
    notes: tuple[str, ...]


def drawable(visuals: list[Visual], triangles: int = TRIANGLES) -> Drawing:
    """Coloured meshes of all `visuals`, at most about `triangles` together.

    A mesh file with materials of its own keeps their colours. Raises PhysicsError
    naming a mesh that cannot be read and has no collision mesh to stand in.
    """
    cache: dict[str, list[_Part]] = {}
    notes: list[str] = []
    parts = [(visual, part) for visual in visuals for part in _parts(visual, cache, notes)]
    ratio = _ratio([len(part.faces) for _, part in parts], triangles)
    pieces: dict[tuple[str, str, Color], list[_Part]] = {}
    for visual, part in parts:
        key = (visual.body, visual.link, part.color)
        pieces.setdefault(key, []).append(_placed(visual, part, ratio))
    return Drawing(tuple(_mesh(*key, found) for key, found in pieces.items()), tuple(notes))


def _ratio(counts: list[int], budget: int) -> float:
    """Share of triangles that large meshes may keep so that all fit the budget."""
    small = sum(n for n in counts if n <= _UNTOUCHED)
    large = sum(n for n in counts if n > _UNTOUCHED)
    if small + large <= budget or not large:
        return 1.0
    return max(0.02, (budget - small) / large)


def _placed(visual: Visual, part: _Part, ratio: float) -> _Part:
    """The part reduced to `ratio` of its triangles, in the frame of its link."""
    vertices, faces = part.vertices, part.faces
    if ratio < 1.0 and len(faces) > _UNTOUCHED:
        vertices, faces = fast_simplification.simplify(
            vertices.astype(np.float32), faces.astype(np.int32), target_reduction=1.0 - ratio
        )
    frame = matrix(np.asarray(visual.pose) / _norms(visual.pose))
    return _Part(vertices @ frame[:3, :3].T + frame[:3, 3], faces, part.color)


def _mesh(body: str, link: str, color: Color, parts: list[_Part]) -> Mesh:
    """All that one link has of one colour: the fewer meshes, the faster they draw."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    faces = [part.faces + start for part, start in zip(parts, starts[:-1], strict=True)]
    vertices = np.vstack([part.vertices for part in parts])
    return Mesh.of(body, link, color, vertices, np.vstack(faces))


def _norms(pose: tuple[float, ...]) -> NDArray[np.float64]:
    """Divisor that leaves the position alone and makes the quaternion a unit one."""
    length = float(np.linalg.norm(pose[3:]))
    return np.array([1.0, 1.0, 1.0, length, length, length, length])


def _parts(visual: Visual, cache: dict[str, list[_Part]], notes: list[str]) -> list[_Part]:
    if visual.form != "mesh":
        return [_part(_primitive(visual), visual.color)]
    if visual.file not in cache:
        cache[visual.file] = _read(visual, notes)
    scale = np.asarray(visual.size)
    return [
        replace(part, vertices=part.vertices * scale, color=_either(part.color, visual.color))
        for part in cache[visual.file]
    ]


def _read(visual: Visual, notes: list[str]) -> list[_Part]:
    """The parts of a visual's mesh file, or else of its collision mesh."""
    try:
        return _load(visual.file)
    except Exception as error:  # a reader of foreign files may raise anything
        if visual.spare and visual.spare != visual.file:
            notes.append(f"{visual.file} cannot be read ({error}); its collision mesh is drawn")
            return _read(replace(visual, file=visual.spare), notes)
        raise PhysicsError(f"mesh cannot be read: {error}", where=visual.file) from error


class _WithoutImages(trimesh.resolvers.FilePathResolver):  # type: ignore[misc]
    """Finds what a mesh refers to, but textures, which take long and are not drawn."""

    def get(self, name: str) -> Any:
        if Path(name).suffix.lower() in _IMAGES:
            raise FileNotFoundError(name)
        return super().get(name)


def _load(file: str) -> list[_Part]:
    resolver = _WithoutImages(file)
    scene = trimesh.load_scene(Path(file), process=False, resolver=resolver)
    parts = [
        _part(geometry, _material(geometry))
        for geometry in scene.dump()
        if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces)
    ]
    if not parts:
        raise PhysicsError("there are no triangles in it")
    return parts


# Says that a mesh file names no colour.
_NO_COLOR: Color = (-1.0, -1.0, -1.0, -1.0)


def _part(mesh: Any, color: Color) -> _Part:
    """Vertices at one place made one, which simplification and shading need."""
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    grain = 1e-6 * max(float(np.ptp(vertices, axis=0).max()), 1e-9)
    _, first, inverse = np.unique(
        np.round(vertices / grain).astype(np.int64), axis=0, return_index=True, return_inverse=True
    )
    joined = inverse.reshape(-1)[faces]
    kept = (joined[:, 0] != joined[:, 1]) & (joined[:, 1] != joined[:, 2])
    kept &= joined[:, 0] != joined[:, 2]
    return _Part(vertices[first], joined[kept], color)


def _either(own: Color, given: Color) -> Color:
    return given if own == _NO_COLOR else own


def _material(mesh: Any) -> Color:
    material = getattr(mesh.visual, "material", None)
    color = getattr(material, "main_color", None)
    if color is None:
        return _NO_COLOR
    red, green, blue, alpha = (float(c) / 255.0 for c in color)
    return (red, green, blue, alpha)


def _primitive(visual: Visual) -> Any:
    """The mesh of a primitive in its own frame; PyBullet's conventions for sizes."""
    size = visual.size
    if visual.form == "box":
        return trimesh.creation.box(extents=size)
    if visual.form == "sphere":
        return trimesh.creation.icosphere(subdivisions=2, radius=size[0])
    if visual.form == "cylinder":
        return trimesh.creation.cylinder(radius=size[1], height=size[0], sections=32)
    if visual.form == "capsule":
        return trimesh.creation.capsule(radius=size[1], height=size[0], count=[16, 16])
    return trimesh.creation.box(extents=(_PLANE, _PLANE, 1e-3))
