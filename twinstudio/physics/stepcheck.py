"""Which results of a scene depend on its step and on its solver.

The same commands run through the scene as it is and through finer settings; what
changes between them is an error of the integration, not a property of the robot.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from twinstudio.mechanisms.rigid import RigidBody
from twinstudio.model.inertias import Inertias
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.scene import Scene
from twinstudio.physics.exercise import RATE, exercise
from twinstudio.physics.stepper import Stepper
from twinstudio.physics.world import World

Floats = NDArray[np.float64]
WINDOW = 0.02
"""s: results are means over as much, so that one step more or less does not matter."""
_TOLERANCE = 1e-7
"""PyBullet's own residual at which its solver stops."""
_FLOOR = 0.1
"""A joint that hardly moves is measured by this share of the one that moves most."""
_NOTHING = {"m": 1e-4, "rad": 1e-4, "N m": 1e-3, "N": 1e-2, "J": 1e-3}
"""Changes below this do not matter, however little a result varies."""

_GAINS = (
    "gains of PyBullet's motors count per step; at another step they are turned into those"
    " of the same continuous controller"
)


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one run. step: s. residual: at which the solver stops before its time."""

    name: str
    step: float
    iterations: int
    residual: float = _TOLERANCE


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """How far a result of the scene is from that of a variant.

    where: the joint or object that moved most. change: RMS of the difference, `unit`.
    share: that over the RMS by which the result varies in the scene.
    """

    quantity: str
    variant: str
    where: str
    change: float
    unit: str
    share: float
    moves: bool


class StepCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a check over `seconds`; a share beyond `bound` counts as moved."""

    scene: str
    seconds: float
    bound: float
    variants: tuple[Variant, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    verdict: str


class _Result(msgspec.Struct, frozen=True):
    """One result of a run in windows: float64[windows, columns], SI."""

    quantity: str
    unit: str
    names: tuple[str, ...]
    values: Floats


def step_check(
    scene: Scene, *, seconds: float = 5.0, bound: float = 0.01, commands: Floats | None = None
) -> StepCheck:
    """Run `scene` as it is, with half the step, and with a finer solver, and compare.

    commands: positions float64[n, joints] at RATE, from home on, for `seconds`; without
    any, a gentle motion about home. Raises what `World` raises.
    """
    quiet, notes = _without_noise(scene)
    if commands is None:
        with World(quiet, shapes=False) as world:
            commands = exercise(quiet, world, seconds)
    settings = quiet.simulation
    own = Variant(name="scene", step=settings.step, iterations=settings.solver_iterations)
    variants = (
        structs.replace(own, name="half the step", step=own.step / 2.0),
        structs.replace(own, name="4 x the iterations", iterations=min(4 * own.iterations, 1000)),
        structs.replace(own, name="half the residual", residual=own.residual / 2.0),
    )
    base = _run(quiet, own, commands)
    changes = [
        change
        for variant in variants
        for change in _changes(base, _run(quiet, variant, commands), variant.name, bound)
    ]
    return StepCheck(
        scene=scene.name,
        seconds=seconds,
        bound=bound,
        variants=(own, *variants),
        changes=tuple(changes),
        notes=notes,
        verdict=_verdict(changes, bound),
    )


def _without_noise(scene: Scene) -> tuple[Scene, tuple[str, ...]]:
    """The scene without what is drawn anew at each step, and a note if there was any."""
    notes = [_GAINS]
    drive = scene.drive
    if drive.encoders != type(drive.encoders)() or drive.command.jitter:
        notes.append("sensors and the jitter of commands are left out")
        command = structs.replace(drive.command, jitter=0.0)
        drive = structs.replace(drive, off=(*drive.off, "sensors"), command=command)
    return structs.replace(scene, drive=drive), tuple(notes)


def _with(scene: Scene, variant: Variant) -> Scene:
    """`scene` at the settings of `variant`; its motors stay the same continuous controller.

    A step takes the share `velocity_gain` off the speed error, and adds `position_gain`
    times the position error over the step to the speed that is wanted.
    """
    share = variant.step / scene.simulation.step
    settings = structs.replace(
        scene.simulation, step=variant.step, solver_iterations=variant.iterations
    )
    twin = structs.replace(
        scene.twin,
        position_gain=scene.twin.position_gain * share,
        velocity_gain=1.0 - (1.0 - scene.twin.velocity_gain) ** share,
    )
    return structs.replace(scene, simulation=settings, twin=twin)


def _run(scene: Scene, variant: Variant, commands: Floats) -> list[_Result]:
    """All results of one run, in windows."""
    fitted = _with(scene, variant)
    with World(fitted) as world:
        world.client.setPhysicsEngineParameter(solverResidualThreshold=variant.residual)
        stepper = Stepper(world, "position", objects_every=1)
        per_window = max(1, round(WINDOW / variant.step))
        windows = math.floor((len(commands) - 1) / RATE / (per_window * variant.step))
        gathered = _Gathered(world)
        rows = commands.tolist()
        for k in range(windows * per_window):
            # Half a step keeps an instant that falls on a command from rounding below it.
            command = rows[int((k + 0.5) * variant.step * RATE)]
            stepper.advance(round(k * variant.step * 1e9), command)
            gathered.look(last=(k + 1) % per_window == 0)
        _, values = stepper.take()
        means = values.reshape(windows, per_window, -1).mean(axis=1)
        instants = values[per_window - 1 :: per_window]
        return [
            *_of_joints(world, stepper, means),
            *_of_poses(world, stepper, means),
            *gathered.results(_robot_energy(world, stepper, instants), per_window),
        ]


def _of_joints(world: World, stepper: Stepper, means: Floats) -> Iterator[_Result]:
    for quantity, turning, sliding in (("position", "rad", "m"), ("effort", "N m", "N")):
        columns = means[:, stepper.layout.span(f"joint.{quantity}")]
        for unit, slides in ((turning, False), (sliding, True)):
            chosen = [k for k, j in enumerate(world.joints) if (j in world.prismatic) == slides]
            if chosen:
                names = tuple(world.joints[k] for k in chosen)
                yield _Result(f"joint {quantity}", unit, names, columns[:, chosen])


def _of_poses(world: World, stepper: Stepper, means: Floats) -> Iterator[_Result]:
    tool = means[:, stepper.layout.span("tcp.pose")][:, :3]
    yield _Result("tool position", "m", ("x", "y", "z"), tool)
    for name in world.movable:
        place = means[:, stepper.layout.span(f"object.{name}.pose")][:, :3]
        yield _Result("object position", "m", (f"{name} x", f"{name} y", f"{name} z"), place)


class _Gathered:
    """What is read between steps: forces of contacts, and energy of the objects."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._force = 0.0
        self._forces: list[float] = []
        self._energies: list[float] = []
        self._bodies = [world.objects[name] for name in world.movable]
        client = world.client
        self._dynamics = [client.getDynamicsInfo(body, -1)[:3] for body in self._bodies]

    def look(self, *, last: bool) -> None:
        """Read after a step; `last` of its window."""
        self._force += sum(contact[9] for contact in self._world.client.getContactPoints())
        if last:
            self._forces.append(self._force)
            self._energies.append(sum(map(self._energy, range(len(self._bodies)))))
            self._force = 0.0

    def results(self, robot: Floats, per_window: int) -> Iterator[_Result]:
        """Contacts and energy; robot: its own energy at the end of each window [J]."""
        if any(self._forces):
            force = np.array(self._forces)[:, None] / per_window
            yield _Result("contact force, sum", "N", ("all contacts",), force)
        energy = robot + np.array(self._energies)
        yield _Result("energy", "J", ("robot and objects",), energy[:, None])

    def _energy(self, index: int) -> float:
        client, (mass, _, moments) = self._world.client, self._dynamics[index]
        place, turn = client.getBasePositionAndOrientation(self._bodies[index])
        velocity, spin = client.getBaseVelocity(self._bodies[index])
        axes = np.array(client.getMatrixFromQuaternion(turn)).reshape(3, 3)
        own = axes.T @ np.array(spin)
        gravity = np.array(self._world.scene.simulation.gravity)
        moving = mass * np.dot(velocity, velocity) + np.dot(moments, own**2)
        return float(0.5 * moving - mass * gravity @ np.array(place))


def _robot_energy(world: World, stepper: Stepper, rows: Floats) -> Floats:
    """Kinetic and potential energy of the robot, float64[rows], J."""
    q = rows[:, stepper.layout.span("joint.position")]
    qd = rows[:, stepper.layout.span("joint.velocity")]
    inertias: Inertias = world.inertias()
    gravity = world.scene.simulation.gravity
    mass = RigidBody(world.tree(), inertias, gravity).mass_matrix(q)
    frames = Kinematics(world.tree()).links(q)
    centres = np.einsum("nlab,lb->nla", frames[..., :3, :3], inertias.centre) + frames[..., :3, 3]
    weight = np.einsum("l,nla,a->n", inertias.mass, centres, np.asarray(gravity))
    energy: Floats = 0.5 * np.einsum("na,nab,nb->n", qd, mass, qd) - weight
    return energy


def _changes(
    base: Sequence[_Result], other: Sequence[_Result], variant: str, bound: float
) -> Iterator[Change]:
    found = {(result.quantity, result.names): result for result in other}
    for result in base:
        twin = found.get((result.quantity, result.names))
        # A contact that only one of both runs has is a change from nothing.
        values = np.zeros_like(result.values) if twin is None else twin.values
        yield _change(result, values, variant, bound)


def _change(result: _Result, values: Floats, variant: str, bound: float) -> Change:
    change = np.sqrt(np.mean((values - result.values) ** 2, axis=0))
    varied = np.std(result.values, axis=0)
    scale = np.maximum(varied, max(_FLOOR * float(varied.max()), _NOTHING[result.unit]))
    worst = int(np.argmax(change / scale))
    share = float(change[worst] / scale[worst])
    return Change(
        quantity=result.quantity,
        variant=variant,
        where=result.names[worst],
        change=float(change[worst]),
        unit=result.unit,
        share=share,
        moves=share > bound and float(change[worst]) > _NOTHING[result.unit],
    )


def _verdict(changes: Sequence[Change], bound: float) -> str:
    moved = [change for change in changes if change.moves]
    if not moved:
        return (
            f"no result moves by more than {bound:.3g} of its variation:"
            " the step and the solver are fine enough for this motion"
        )
    parts = []
    for variant in dict.fromkeys(change.variant for change in moved):
        named = sorted((c for c in moved if c.variant == variant), key=lambda c: -c.share)
        told = ", ".join(f"{c.quantity} by {c.share:.1%} ({c.where})" for c in named[:3])
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        parts.append(f"{variant} moves {told}{more}")
    only_iterations = all("iterations" in change.variant for change in moved)
    remedy = "simulation.solver_iterations higher" if only_iterations else "simulation.step smaller"
    return f"{'; '.join(parts)}: do not trust these results that far, or make {remedy}"
