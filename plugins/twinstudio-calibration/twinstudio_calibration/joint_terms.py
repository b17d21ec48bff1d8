"""What a joint's effort depends on beside the rigid bodies, as columns of a regression."""

from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COULOMB, VISCOUS, OFFSET, ARMATURE = "coulomb", "viscous", "offset", "armature"
ASYMMETRY, LOAD, QUADRATIC, SPRING = "asymmetry", "load", "quadratic", "spring"
ALWAYS = (COULOMB, VISCOUS, OFFSET, ARMATURE)
EXTRAS = (LOAD, ASYMMETRY, QUADRATIC, SPRING)
"""Terms that cross-validation must ask for, in the order in which they are tried."""


@numba.njit(cache=True)
def contact(position: Floats, travel: float) -> Floats:
    """State of an elastic contact, -1 to 1, along `position`, float64[n].

    It takes up motion like a spring over `travel` (rad or m) and slides beyond: one
    Maxwell-slip element (Al-Bender, Lampaert, Swevers, IEEE TAC 2005). It starts unloaded.
    """
    state = np.zeros(len(position))
    for k in range(1, len(position)):
        moved = state[k - 1] + (position[k] - position[k - 1]) / travel
        state[k] = min(1.0, max(-1.0, moved))
    return state


def columns(
    position: Floats,
    velocity: Floats,
    acceleration: Floats,
    load: Floats,
    travels: Sequence[float],
) -> dict[tuple[str, float], Floats]:
    """Every term that could matter for one joint, by name and travel; float64[n] each.

    load: what the rigid bodies ask of the joint, N m or N. Terms without contact have travel 0.
    """
    found: dict[tuple[str, float], Floats] = {
        (VISCOUS, 0.0): velocity,
        (OFFSET, 0.0): np.ones_like(position),
        (ARMATURE, 0.0): acceleration,
        (QUADRATIC, 0.0): velocity * np.abs(velocity),
        (SPRING, 0.0): position,
    }
    for travel in travels:
        state = contact(np.ascontiguousarray(position), travel)
        found[COULOMB, travel] = state
        found[ASYMMETRY, travel] = np.abs(state)
        found[LOAD, travel] = np.abs(load) * state
    return found


def is_of_contact(name: str) -> bool:
    """Whether a term depends on the travel of the contact."""
    return name in {COULOMB, ASYMMETRY, LOAD}
