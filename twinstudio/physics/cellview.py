"""What a twin reads of a cell: which columns are its joints and its commands."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.errors import LayoutError
from twinstudio.model.scene import TwinMode
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.physics.drives import has_drives
from twinstudio.physics.world import CommandKind, World

# In order of preference: a position says most about what the cell was to do.
COMMANDS: tuple[CommandKind, ...] = ("position", "velocity", "effort")


@dataclass(frozen=True, slots=True)
class CellView:
    """Columns of a cell's layout, one a driven joint, in the world's order.

    command: of the signal ``command.<kind>``; None where the cell has none.
    driven: whether the scene's drives move the twin, which follow positions alone.
    """

    position: list[int] | None
    velocity: list[int] | None
    command: list[int] | None
    kind: CommandKind | None
    driven: bool = False

    def must_serve(self, mode: TwinMode) -> None:
        """Raise LayoutError if a twin in `mode` needs more than the cell has."""
        if mode != "following" and self.kind is None:
            raise LayoutError(
                f"a twin in mode '{mode}' needs command.position, command.velocity or"
                " command.effort of the cell, which has none",
                hint="use mode 'following'",
            )
        if mode != "following" and self.driven and self.kind != "position":
            raise LayoutError(
                f"the drives of the scene follow command.position, and the cell has"
                f" command.{self.kind} instead",
                hint="use mode 'following', or a scene without [drive]",
            )
        if mode != "commanded" and self.position is None:
            raise LayoutError(f"a twin in mode '{mode}' needs joint.position of the cell")


def cell_view(layout: Layout, world: World) -> CellView:
    """How to read a cell with `layout` for the joints of `world`.

    Raises LayoutError naming the joint when a signal lacks one, or has another
    unit for it (a joint that turns here and slides there).
    """
    kind = next((kind for kind in COMMANDS if f"command.{kind}" in layout), None)
    return CellView(
        position=_columns(layout, "joint.position", world),
        velocity=_columns(layout, "joint.velocity", world),
        command=_columns(layout, f"command.{kind}", world) if kind else None,
        kind=kind,
        driven=has_drives(world.scene.drive),
    )


def _columns(layout: Layout, name: str, world: World) -> list[int] | None:
    if name not in layout:
        return None
    (expected,) = joint_signals(world.joints, world.prismatic, kinds=(name,))
    found = []
    for joint, unit in zip(expected.labels, expected.units, strict=True):
        column = layout.column(name, joint)
        if layout.units[column] != unit:
            raise LayoutError(
                f"{name} of '{joint}' is in {layout.units[column]} in the cell, in {unit} here"
            )
        found.append(column)
    return found


ABSURD = 1e6
"""No joint is ever at, nor is told to go to, this many rad, m, rad/s, m/s, N m or N."""


def held(values: NDArray[np.float64], before: Sequence[float]) -> tuple[NDArray[np.float64], int]:
    """`values` float64[n, joints] with each NaN replaced by the last reading above it.

    So is what no robot can mean (infinite, or beyond `ABSURD`): it would wreck the world.
    before: readings that hold until the first. Also returns how many were replaced.
    """
    missing = ~(np.abs(values) < ABSURD)
    count = int(missing.sum())
    if not count:
        return values, 0
    whole = np.vstack([np.asarray(before, dtype=np.float64), values])
    rows = np.where(~(np.abs(whole) < ABSURD), 0, np.arange(len(whole))[:, None])
    newest = np.maximum.accumulate(rows, axis=0)
    return np.take_along_axis(whole, newest, axis=0)[1:], count
