"""Between motor and link: play, elasticity, ripple and kinematic error.

Where a joint has play or an elastic gear, its rotor moves by itself. Rotor and link
are then solved together over a part of a step: the spring by the trapezoidal rule, which
neither adds nor takes energy, or by backward Euler where it is too stiff for the step;
friction by backward Euler.
"""

from typing import Any

import numpy as np

from twinstudio.mechanisms.compiled import compiled

FLANK = 1e6
"""Stiffness of flanks without elasticity, in reduced inertias over squared time step."""


@compiled
def dead_zone(twist: Any, half: Any) -> Any:
    """What is left of `twist` outside a play of +-`half`."""
    return twist - np.minimum(np.maximum(twist, -half), half)


@compiled
def wave(position: Any, amplitude: Any, order: Any, phase: Any) -> Any:
    """Torque ripple, or kinematic error: amplitude sin(order q + phase)."""
    return amplitude * np.sin(order * position + phase)


@compiled
def play(motor: Any, half: float, start: float) -> Any:
    """Link float64[n] behind a play of +-`half`, with friction but no inertia, along `motor`.

    The play operator of hysteresis models.
    """
    link = np.empty(len(motor))
    last = start
    for k in range(len(motor)):
        last = min(max(last, motor[k] - half), motor[k] + half)
        link[k] = last
    return link


@compiled
def coupling(gear: Any, twist: float, rel: float, side: float) -> tuple[float, float]:
    """Effort of the gear as t0 + g rel', with rel' the relative speed at the part's end.

    twist, rel: at its start. side: of the play that touches, +-1; 0 for a gear without play.
    """
    theta = gear.theta
    middle = twist + theta * gear.span * (1.0 - theta) * rel - side * gear.half
    fixed = gear.stiffness * middle + gear.damping * (1.0 - theta) * rel
    return fixed, theta * (gear.stiffness * theta * gear.span + gear.damping)


@compiled
def touching(gear: Any, twist: float, rel: float) -> float:
    """Side of the play, +-1, that would be passed without contact; 0 for none."""
    ahead = twist + gear.theta * gear.span * rel
    if ahead > gear.half:
        return 1.0
    if ahead < -gear.half:
        return -1.0
    return 0.0


@compiled
def seen_by_rotor(
    fixed: float, slope: float, link_speed: float, load: float, mobility: float
) -> tuple[float, float]:
    """Effort of the gear as t1 + g1 w', with the link's answer put in.

    mobility: time over link inertia. load: effort that the link needs to stay at its speed.
    """
    shared = 1.0 / (1.0 + mobility * slope)
    free = link_speed - mobility * load
    return (fixed - slope * free) * shared, slope * shared
