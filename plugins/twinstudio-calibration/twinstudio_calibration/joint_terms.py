"""What a joint's effort depends on beside the rigid bodies, as columns of a regression."""

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COULOMB, VISCOUS, OFFSET, ARMATURE = "coulomb", "viscous", "offset", "armature"
LOAD, QUADRATIC = "load", "quadratic"


SLACK = 1.0
"""Steps of the encoder: a reading at rest may change between two neighbours."""


class Contact(NamedTuple):
    """travel: rad or m before it slides. creep: s in which its load at rest falls to 1/e."""

    travel: float
    creep: float = float("inf")


NONE = Contact(0.0)
Key = tuple[str, Contact]
BALANCE = "balance"
"""A counterbalance: what gravity does to the joint's own link, without its inertia."""
ALWAYS = (COULOMB, OFFSET)
EXTRAS = (VISCOUS, ARMATURE, LOAD, QUADRATIC)
"""Terms that cross-validation must ask for, in the order in which they are tried."""
FRICTION = (COULOMB, OFFSET, VISCOUS, ARMATURE)
"""What hides a joint's drive gain where gravity does not load it."""
ALL = (*ALWAYS, *EXTRAS, BALANCE)
SIGNED = frozenset((OFFSET, QUADRATIC, BALANCE))
"""Terms that may have either sign; a negative one of the others would be no friction."""


@numba.njit(cache=True)
def contact(position: Floats, travel: float, kept: float) -> Floats:
    """State of an elastic contact, -1 to 1, along `position`, float64[n].

    It takes up motion like a spring over `travel` (rad or m) and slides beyond: one
    Maxwell-slip element (Al-Bender, Lampaert, Swevers, IEEE TAC 2005). It starts unloaded,
    and creeps: a sample later only the share `kept` of its load is left.
    """
    state = np.zeros(len(position))
    for k in range(1, len(position)):
        moved = kept * state[k - 1] + (position[k] - position[k - 1]) / travel
        state[k] = min(1.0, max(-1.0, moved))
    return state


@numba.njit(cache=True)
def followed(position: Floats, slack: float) -> Floats:
    """`position` as it drags something along within +- `slack`: the play operator."""
    result = np.empty(len(position))
    at = position[0]
    for k in range(len(position)):
        at = min(max(at, position[k] - slack), position[k] + slack)
        result[k] = at
    return result


def columns(
    position: Floats,
    velocity: Floats,
    acceleration: Floats,
    load: Floats,
    lever: Floats,
    resolution: float,
    contacts: Sequence[Contact],
    interval: float,
) -> dict[Key, Floats]:
    """Every term that could matter for one joint, by name and contact; float64[n] each.

    resolution: motion below it is taken for none, so that a joint at rest stays at rest.
    lever: effort of gravity on a kg 1 m along the joint's own link.
    load: what the rigid bodies ask of the joint, N m or N. Terms without contact have the
    contact `NONE`. interval: between samples, s.
    """
    found: dict[Key, Floats] = {
        (VISCOUS, NONE): velocity,
        (OFFSET, NONE): np.ones_like(position),
        (ARMATURE, NONE): acceleration,
        (QUADRATIC, NONE): velocity * np.abs(velocity),
    }
    found[BALANCE, NONE] = lever
    moved = followed(np.ascontiguousarray(position), SLACK * resolution)
    for one in contacts:
        state = contact(moved, one.travel, float(np.exp(-interval / one.creep)))
        found[COULOMB, one] = state
        found[LOAD, one] = np.abs(load) * state
    return found


def is_of_contact(name: str) -> bool:
    """Whether a term depends on the travel of the contact."""
    return name in {COULOMB, LOAD}
