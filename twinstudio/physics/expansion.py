"""Links that grow with the temperature of their joint, and what that does to the tool.

Every length within a link grows alike, so frames keep their orientation and the tool
moves by the sum, over the links towards it, of the grown part of the way to the next
joint: R_link p_next alpha (T - 25 degC). Linear expansion is exact here; the
temperature of a whole link is taken to be that of its joint's case.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.kinematics import Kinematics
from twinstudio.physics.world import World

Floats = NDArray[np.float64]
REFERENCE = 25.0
"""degC, at which links are as long as the model says."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A link that grows: its number, its joint's coordinate, and the grown way [m/K] in it."""

    link: int
    coordinate: int
    way: Floats


class Expansion:
    """What grows in a robot, and how far that moves its tool."""

    def __init__(self, kinematics: Kinematics, parts: list[_Part]) -> None:
        self._kinematics, self._parts = kinematics, parts

    def shift(self, position: Floats, case: Floats) -> Floats:
        """Move of the tool in the world, float64[n, 3] m.

        position: float64[n, joints], rad or m. case: temperatures float64[n, joints], degC.
        """
        turns = self._kinematics.links(position)[..., :3, :3]
        moved = np.zeros((len(position), 3))
        for part in self._parts:
            above = case[:, part.coordinate, None] - REFERENCE
            moved += above * (turns[:, part.link] @ part.way)
        return moved


def expansion_of(world: World) -> Expansion | None:
    """The expansion of the scene's links towards the tool; None where nothing grows."""
    scene, tree = world.scene, world.tree()
    if "expansion" in scene.drive.off:
        return None
    parts, child = [], tree.index(tree.tip)
    while child > 0:
        link = tree.links[child].parent
        change = scene.links.get(tree.links[link].name)
        coordinate = _coordinate(world, link)
        if change is not None and change.expansion and coordinate >= 0:
            way = change.expansion * np.array(tree.links[child].origin[:3])
            parts.append(_Part(link, coordinate, way))
        child = link
    return Expansion(Kinematics(tree), parts) if parts else None


def _coordinate(world: World, link: int) -> int:
    """The driven joint that carries `link`, -1 for the base's."""
    links = world.tree().links
    while link >= 0 and links[link].coordinate < 0:
        link = links[link].parent
    return links[link].coordinate if link >= 0 else -1
