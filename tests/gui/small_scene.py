"""A two-joint arm of boxes and one loose cube: the least scene that moves."""

import numpy as np

from twinstudio.model.geometry import Mesh, SceneGeometry
from twinstudio.model.kinematics import KinematicTree, Link

CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
# Quads of a cube, counter-clockwise seen from outside.
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
FACES = np.array([t for a, b, c, d in QUADS for t in ((a, b, c), (a, c, d))])
WHITE = (1.0, 1.0, 1.0, 1.0)
RED = (0.8, 0.1, 0.1, 1.0)


def box(body, link, size, middle, color=WHITE):
    return Mesh.of(body, link, color, CORNERS * size + middle, FACES)


def arm_tree() -> KinematicTree:
    """Base at the origin; both joints turn about y; the tool is 1 m up at rest."""
    return KinematicTree(
        links=(
            Link(name="base"),
            Link(name="lower", joint="j1", parent=0, kind="revolute", axis=(0, 1, 0), coordinate=0),
            Link(
                name="upper",
                joint="j2",
                parent=1,
                kind="revolute",
                origin=(0, 0, 0.5, 0, 0, 0, 1),
                axis=(0, 1, 0),
                coordinate=1,
            ),
            Link(name="tool", parent=2, origin=(0, 0, 0.5, 0, 0, 0, 1)),
        ),
        joints=("j1", "j2"),
        tip="tool",
    )


def arm() -> SceneGeometry:
    """Links of 0.12 m x 0.12 m, a cube of 0.1 m beside them."""
    slim = np.array((0.12, 0.12, 0.46))
    return SceneGeometry(
        tree=arm_tree(),
        meshes=(
            box("robot", "lower", slim, (0, 0, 0.25)),
            box("robot", "upper", slim, (0, 0, 0.25)),
            box("cube", "", 0.1, (0, 0, 0), RED),
        ),
        objects={"cube": (0.0, 0.5, 0.05, 0.0, 0.0, 0.0, 1.0)},
    )


def slider() -> SceneGeometry:
    """Another robot: one prismatic axis."""
    tree = KinematicTree(
        links=(
            Link(name="rail"),
            Link(name="cart", joint="x", parent=0, kind="prismatic", axis=(1, 0, 0), coordinate=0),
        ),
        joints=("x",),
        tip="cart",
    )
    return SceneGeometry(tree=tree, meshes=(box("robot", "cart", 0.3, (0, 0, 0.2)),))
