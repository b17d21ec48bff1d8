"""Triangles made ready to draw: welded, thinned, with normals that keep creases."""

import fast_simplification  # type: ignore[import-untyped,unused-ignore]
import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float32]
Faces = NDArray[np.int64]

CREASE = np.radians(35.0)
_SAME = 1e-5
_AT_ONCE = 25_000
_KEY_BITS = 20


def weld(vertices: Points, faces: Faces, cell: float = _SAME) -> tuple[Points, Faces]:
    """Vertices in one cube of edge `cell` [m] become their mean; collapsed faces go.

    With the default only coincident vertices meet; a larger cell thins the mesh
    (vertex clustering of Rossignac and Borrel, 1993).
    """
    if len(faces) == 0:
        return np.empty((0, 3), np.float32), np.empty((0, 3), np.int64)
    low = vertices.min(axis=0)
    extent = float((vertices.max(axis=0) - low).max())
    cell = max(cell, extent / (2**_KEY_BITS - 1))
    grid = ((vertices - low) / np.float32(cell)).astype(np.int64)
    keys = (grid[:, 0] << (2 * _KEY_BITS + 1)) | (grid[:, 1] << _KEY_BITS) | grid[:, 2]
    unique, inverse = np.unique(keys, return_inverse=True)
    count = np.bincount(inverse, minlength=len(unique))
    means = [np.bincount(inverse, vertices[:, k], len(unique)) / count for k in range(3)]
    corners = inverse[faces]
    a, b, c = corners.T
    whole = (a != b) & (b != c) & (c != a)
    return np.stack(means, axis=1).astype(np.float32), corners[whole]


def thinned(vertices: Points, faces: Faces, most: int) -> tuple[Points, Faces]:
    """The mesh with about `most` faces, edges collapsed where that changes the shape least.

    Quadric error metric of Garland and Heckbert, SIGGRAPH 1997. The library
    keeps the interpreter lock, so a mesh that would take long goes through a
    coarse clustering first.
    """
    vertices, faces = weld(vertices, faces)
    if len(faces) <= most:
        return vertices, faces
    if len(faces) > max(_AT_ONCE, most):
        vertices, faces = _clustered(vertices, faces, max(_AT_ONCE, most))
    if len(faces) <= most:
        return vertices, faces
    points, corners = fast_simplification.simplify(
        vertices, faces.astype(np.int32), target_count=most
    )
    return points.astype(np.float32), corners.astype(np.int64)


def _clustered(vertices: Points, faces: Faces, most: int) -> tuple[Points, Faces]:
    """At most `most` faces, by welding in ever larger cells."""
    area = float(np.linalg.norm(face_normals(vertices, faces), axis=1).sum()) / 2.0
    cell = 0.8 * float(np.sqrt(area / most))
    while True:
        fewer = weld(vertices, faces, cell)
        if len(fewer[1]) <= most:
            return fewer
        cell *= 1.12


def face_normals(vertices: Points, faces: Faces) -> NDArray[np.float32]:
    """Normals float32[m, 3], as long as twice the face's area."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def shaded(
    vertices: Points, faces: Faces, crease: float = CREASE
) -> tuple[Points, Points, NDArray[np.uint32]]:
    """Vertices, unit normals and faces; smooth where faces meet at less than `crease` [rad].

    Faces around a vertex share a normal (the mean, weighted by area) as long as
    one gets from one to the other across edges that are no creases.
    """
    if len(faces) == 0:
        nothing = np.empty((0, 3), np.float32)
        return nothing, nothing, np.empty((0, 3), np.uint32)
    normals = face_normals(vertices, faces)
    group = _groups(3 * len(faces), *_smooth_pairs(faces, normals, crease))
    roots, corner = np.unique(group, return_inverse=True)
    spread = np.repeat(normals, 3, axis=0)
    total = np.stack([np.bincount(corner, spread[:, k], len(roots)) for k in range(3)], axis=1)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    unit = np.where(length > 0.0, total / np.where(length > 0.0, length, 1.0), (0.0, 0.0, 1.0))
    return (
        vertices[faces.reshape(-1)[roots]],
        unit.astype(np.float32),
        corner.reshape(-1, 3).astype(np.uint32),
    )


def _smooth_pairs(
    faces: Faces, normals: NDArray[np.float32], crease: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of corners (3 * face + k) that share a normal because no crease parts them."""
    start, end = faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1)
    here = np.arange(len(start))
    there = here - here % 3 + (here % 3 + 1) % 3
    swap = start > end
    low, high = np.where(swap, there, here), np.where(swap, here, there)
    keys = np.minimum(start, end) * (int(faces.max()) + 1) + np.maximum(start, end)
    order = np.argsort(keys, kind="stable")
    twins = keys[order[:-1]] == keys[order[1:]]
    one, two = order[:-1][twins], order[1:][twins]
    unit = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    flat = np.einsum("ij,ij->i", unit[one // 3], unit[two // 3]) > np.cos(crease)
    one, two = one[flat], two[flat]
    return np.concatenate([low[one], high[one]]), np.concatenate([low[two], high[two]])


def _groups(count: int, one: NDArray[np.int64], two: NDArray[np.int64]) -> NDArray[np.int64]:
    """Smallest member of each node's connected component, for edges one[i]-two[i]."""
    label = np.arange(count)
    while True:
        smaller = np.minimum(label[one], label[two])
        new = label.copy()
        np.minimum.at(new, label[one], smaller)
        np.minimum.at(new, label[two], smaller)
        new = new[new]
        if np.array_equal(new, label):
            return label
        label = new


def arrow(axis: int, length: float, radius: float, sides: int = 10) -> tuple[Points, Faces]:
    """A closed arrow from the origin along x, y or z (0, 1, 2): shaft and head, m."""
    profile = np.array(
        [
            (0.0, 0.0),
            (radius, 0.0),
            (radius, 0.8 * length),
            (2.4 * radius, 0.8 * length),
            (0.0, length),
        ]
    )
    angle = np.arange(sides) * (2.0 * np.pi / sides)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [np.column_stack([r * ring, np.full(sides, z)]) for r, z in profile]
    points = np.concatenate(rings)[:, np.roll((0, 1, 2), axis - 2)]
    quads = []
    for k in range(len(profile) - 1):
        for i in range(sides):
            a, b = k * sides + i, k * sides + (i + 1) % sides
            quads += [(a, b, b + sides), (a, b + sides, a + sides)]
    return weld(points.astype(np.float32), np.array(quads))
