"""The twin of a recorded cell, offline: as fast as it goes and always the same."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Block, Stamps, Values
from twinstudio.model.errors import PhysicsError
from twinstudio.model.scene import Scene, TwinMode
from twinstudio.physics.cellview import CellView, cell_view, held
from twinstudio.physics.inverse import InverseDynamics
from twinstudio.physics.stepper import Stepper
from twinstudio.physics.world import World

Progress = Callable[[float], None]
MOST_STEPS = 500_000_000
"""Beyond this a rollout would take most of a day."""
_CHUNK = 2000
_SPAN = 25e-3
_SLOPE = "the central difference over 50 ms"


def slope(stamps: Stamps, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time derivative of values float64[n, joints] at stamps int64[n] ns.

    A difference over 25 ms to either side, one-sided at the ends: neighbouring
    samples would mostly show the jitter of the stamps. It lowers a sine of 2 Hz
    by 2 %.
    """
    rows = np.arange(len(stamps))
    reach = max(1, round(_SPAN / (float(np.median(np.diff(stamps))) * 1e-9)))
    before, after = np.maximum(rows - reach, 0), np.minimum(rows + reach, len(stamps) - 1)
    seconds = (stamps[after] - stamps[before]) / 1e9
    return (values[after] - values[before]) / seconds[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """The twin's samples beside a recorded cell, stamped by the cell's clock.

    block: commanded and resynchronised, one row a step of the scene from the
        cell's first stamp on; following, one row at each stamp of the cell.
    resynchronised: how often the twin was set to the cell.
    notes: what a reader of the figures must know.
    """

    block: Block
    mode: TwinMode
    notes: tuple[str, ...]
    resynchronised: int = 0


def rollout(
    scene: Scene,
    cell: Block,
    *,
    mode: TwinMode | None = None,
    on_progress: Progress | None = None,
    seed: int = 0,
) -> Rollout:
    """Run the twin of `scene` under the commands, or along the motion, of `cell`.

    mode: None takes *commanded* if the cell has commands, else *following*.
    on_progress: is told the finished share, 0 to 1, every now and then.
    seed: of all that drives and sensors of the scene draw; the same gives the same.
    Raises LayoutError when the cell lacks what the mode needs, PhysicsError for
    stamps that do not go forward.
    """
    if len(cell) < 2 or bool(np.any(np.diff(cell.stamps) <= 0)):
        raise PhysicsError("a twin needs two or more cell samples with rising stamps")
    with World(scene) as world:
        view = cell_view(cell.layout, world)
        chosen: TwinMode = mode or ("commanded" if view.kind else "following")
        view.must_serve(chosen)
        run = _Run(world, view, cell, on_progress or _nobody, seed)
        return run.following() if chosen == "following" else run.commanded(chosen)


def _nobody(_: float) -> None:
    """Progress that nobody watches."""


class _Run:
    def __init__(
        self, world: World, view: CellView, cell: Block, progress: Progress, seed: int
    ) -> None:
        self.world, self.view, self.cell, self.progress = world, view, cell, progress
        self.seed = seed
        self.notes: list[str] = []
        self.stepper = Stepper(world, view.kind, seed=seed)
        home = list(world.scene.robot.home)
        self.position = self._readings(view.position, home, "joint.position")
        start = home if self.position is None else self.position[0].tolist()
        still = start if view.kind == "position" else [0.0] * len(home)
        self.command = self._readings(view.command, still, f"command.{view.kind}")
        velocity = self._readings(view.velocity, [0.0] * len(home), "joint.velocity")
        self.velocity = velocity

    def commanded(self, mode: TwinMode) -> Rollout:
        stamps = self._steps()
        row_at = (np.searchsorted(self.cell.stamps, stamps, side="right") - 1).tolist()
        assert self.command is not None
        # One list a cell row: a command that holds is the same object, see Stepper.
        commands = self.command.tolist()
        self._start()
        resync = mode == "resynchronised"
        taken, count, last = [], 0, -1
        for k, stamp in enumerate(stamps.tolist()):
            row = row_at[k]
            if resync and row != last and k:
                count += self._resynchronise(row)
            last = row
            self.stepper.advance(stamp, commands[row])
            if len(self.stepper) == _CHUNK:
                taken.append(self.stepper.take())
                self.progress(k / len(stamps))
        taken.append(self.stepper.take())
        if resync:
            self.notes.append(f"the twin was set to the cell {count} times")
        return self._done(mode, taken, count)

    def following(self) -> Rollout:
        assert self.position is not None
        velocity = self.velocity
        if velocity is None:
            velocity = slope(self.cell.stamps, self.position)
            self.notes.append(f"joint.velocity of the twin is {_SLOPE} of the cell's position")
        acceleration = slope(self.cell.stamps, velocity).tolist()
        drives = ", with armature, friction and cables" if self.view.driven else ""
        self.notes.append(
            f"joint.effort of the twin is inverse dynamics of the cell's motion{drives};"
            f" acceleration is {_SLOPE} of velocity"
        )
        positions, velocities = self.position.tolist(), velocity.tolist()
        commands = self.command.tolist() if self.command is not None else None
        taken = []
        # A row may stand for many steps here: objects are read at each.
        self.stepper = Stepper(self.world, self.view.kind, objects_every=1, seed=self.seed)
        with InverseDynamics(self.world.scene) as inverse:
            for k, stamp in enumerate(self.cell.stamps.tolist()):
                state = (positions[k], velocities[k])
                effort = inverse.effort(*state, acceleration[k])
                self.stepper.impose(stamp, state, effort, commands[k] if commands else None)
                self._let_objects_move(k)
                if len(self.stepper) == _CHUNK:
                    taken.append(self.stepper.take())
                    self.progress(k / len(self.cell))
        taken.append(self.stepper.take())
        return self._done("following", taken, 0)

    def _steps(self) -> Stamps:
        """Uniform instants that cover the cell's stamps, int64[n] ns."""
        first, last = int(self.cell.stamps[0]), int(self.cell.stamps[-1])
        step = self.world.scene.simulation.step * 1e9
        count = int(np.ceil((last - first) / step)) + 1
        if count > MOST_STEPS:
            pause = int(np.diff(self.cell.stamps).max()) / 1e9
            raise PhysicsError(
                f"the log's stamps span {(last - first) / 1e9:.3g} s, with a pause of"
                f" {pause:.3g} s: a twin would need {count:.2g} steps",
                hint="cut the log into parts without long pauses",
            )
        steps: Stamps = first + np.rint(np.arange(count) * step).astype(np.int64)
        return steps

    def _start(self) -> None:
        if self.position is None:
            self.notes.append("the cell has no joint.position; the twin starts at home")
            return
        velocity = None if self.velocity is None else self.velocity[0].tolist()
        self.world.reset(self.position[0].tolist(), velocity)
        self.stepper.moved()

    def _resynchronise(self, row: int) -> int:
        """Set the twin to the cell if a joint is too far off; returns 1 if it was."""
        assert self.position is not None
        measured = self.position[row]
        position = self.world.joint_state()[0]
        if np.abs(position - measured).max() <= self.world.scene.twin.resync_above:
            return 0
        velocity = [0.0] * len(measured) if self.velocity is None else self.velocity[row].tolist()
        self.world.set_joints(measured.tolist(), velocity)
        self.stepper.moved()
        return 1

    def _let_objects_move(self, row: int) -> None:
        """Step on to the next cell stamp, but for the step that `impose` made."""
        if not self.world.movable or row + 1 == len(self.cell):
            return
        pause = (self.cell.stamps[row + 1] - self.cell.stamps[row]) / 1e9
        for _ in range(round(pause / self.world.scene.simulation.step) - 1):
            self.world.step()

    def _readings(
        self, columns: list[int] | None, before: list[float], name: str
    ) -> NDArray[np.float64] | None:
        if columns is None:
            return None
        values, missing = held(self.cell.values[:, columns], before)
        if missing:
            self.notes.append(f"{missing} readings of {name} are missing; the last one held")
        return values

    def _done(self, mode: TwinMode, taken: list[tuple[Stamps, Values]], count: int) -> Rollout:
        self.progress(1.0)
        stamps = np.concatenate([part[0] for part in taken])
        values = np.vstack([part[1] for part in taken])
        block = Block(self.stepper.layout, stamps, values)
        return Rollout(block, mode, tuple(self.notes), count)
