"""How fast a scene steps: bare PyBullet against the twin with everything it measures."""

import math
import statistics
import time
from collections.abc import Callable, Iterator

import msgspec

from twinstudio.flow.serve import Endpoint
from twinstudio.model.scene import Scene
from twinstudio.physics.stepper import Stepper
from twinstudio.physics.twin import PUBLISH_EVERY
from twinstudio.physics.world import World

_TURN = 500
_SWING = 0.01


class StepRates(msgspec.Struct, frozen=True, kw_only=True):
    """Steps per second of one scene, measured turn and turn about in one process.

    bare: nothing but stepSimulation, the robot held at home. driven: plain PyBullet
    with a new position command each step, which is what a twin must do at least.
    instrumented: the twin, which does the same, measures all it publishes, and
    publishes it.
    """

    bare: float
    driven: float
    instrumented: float


def step_rates(scene: Scene, steps: int = 20_000) -> StepRates:
    """Measure `scene` over `steps` steps of each kind; takes some 4 s for the demo.

    The three take turns of 500 steps, and the median turn counts, so that a machine
    with other work to do slows all of them alike.
    """
    with World(scene) as bare, World(scene) as driven, World(scene) as full:
        stepper = Stepper(full, "position")
        with Endpoint(role="twin", name="rates", layout=stepper.layout, rate=0.0) as endpoint:
            bare.driver("position")(scene.robot.home)
            turns = [_bare(bare), _driven(driven), _full(stepper, endpoint)]
            taken: list[list[float]] = [[], [], []]
            for _ in range(max(1, steps // _TURN) + 1):
                for times, advance in zip(taken, turns, strict=True):
                    begun = time.perf_counter()
                    advance(_TURN)
                    times.append(time.perf_counter() - begun)
    # The first turn warms up.
    rates = [_TURN / statistics.median(times[1:]) for times in taken]
    return StepRates(bare=rates[0], driven=rates[1], instrumented=rates[2])


def _commands(scene: Scene) -> Iterator[list[float]]:
    """A slow swing around home, without end."""
    rows = [
        [q + _SWING * math.sin(2.0 * math.pi * k / 4000) for q in scene.robot.home]
        for k in range(4000)
    ]
    while True:
        yield from rows


def _bare(world: World) -> Callable[[int], None]:
    step = world.stepper()

    def advance(count: int) -> None:
        for _ in range(count):
            step()

    return advance


def _driven(world: World) -> Callable[[int], None]:
    step, drive, commands = world.stepper(), world.driver("position"), _commands(world.scene)

    def advance(count: int) -> None:
        for _ in range(count):
            drive(next(commands))
            step()

    return advance


def _full(stepper: Stepper, endpoint: Endpoint) -> Callable[[int], None]:
    commands = _commands(stepper.world.scene)
    published = time.monotonic_ns()

    def advance(count: int) -> None:
        nonlocal published
        for k in range(count):
            stepper.advance(k, next(commands))
            now = time.monotonic_ns()
            if now - published >= PUBLISH_EVERY:
                published = now
                endpoint.publish(*stepper.take())

    return advance
