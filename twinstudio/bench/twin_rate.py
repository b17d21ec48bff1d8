"""Step rate of the twin with all its instruments, as a share of bare PyBullet's."""

from twinstudio.bench.row import Row
from twinstudio.model.scene import load_scene
from twinstudio.physics.rates import step_rates


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - a fixed number of steps
    """Both take turns on the demo scene in one process; the goal is held against both.

    A robot in motion costs the solver more than one held still, instruments or not:
    the first row compares equal motion, the second an instrumented robot in motion
    with a bare one at rest.
    """
    rates = step_rates(load_scene("panda_cell"))
    moving = rates.instrumented / rates.driven
    still = rates.instrumented / rates.bare
    return [
        Row("twin.step_rate", moving, "of bare PyBullet, same motion", ">= 0.8", moving >= 0.8),
        Row("twin.step_rate_still", still, "of bare PyBullet, held still", ">= 0.8", still >= 0.8),
    ]
