"""What a joint's effort depends on beside the rigid bodies, as columns of a regression."""

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from twinstudio_calibration.motion import Motion

Floats = NDArray[np.float64]
COULOMB, VISCOUS, OFFSET, ARMATURE = "coulomb", "viscous", "offset", "armature"
LOAD, QUADRATIC = "load", "quadratic"


class Contact(NamedTuple):
    """travel: rad or m before it slides. creep: s in which its load at rest falls to 1/e."""

    travel: float
    creep: float = float("inf")


class JointMotion(NamedTuple):
    """What the terms of one joint are made of, float64[n] each, SI.

    load: what the rigid bodies ask of the joint. lever: effort of gravity on a kg 1 m
    along the joint's own link. path: position without its noise at rest. resolution: a
    step of the encoder, rad or m. interval: between samples, s.
    """

    position: Floats
    velocity: Floats
    acceleration: Floats
    load: Floats
    lever: Floats
    path: Floats
    resolution: float
    interval: float


NONE = Contact(0.0)
Key = tuple[str, Contact]
FINE_STEP = 2.5e-4
"""s; contacts are followed in steps no longer than about this."""
RIGID = 1e-7
"""rad or m; a contact of less travel is rigid."""
UNSEEN, SLACK = 3.0, 1.0
"""An elastic contact that slides within `UNSEEN` steps of the encoder follows what a play of
+- `SLACK` steps drags along: a reading at rest changes between two neighbours."""
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


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def contact(position: Floats, travel: float, kept: float) -> Floats:
    """State of an elastic contact, -1 to 1, along `position`, float64[n].

    It takes up motion like a spring over `travel` (rad or m) and slides beyond: one
    Maxwell-slip element (Al-Bender, Lampaert, Swevers, IEEE TAC 2005). It starts unloaded
    but for what the first step does, so that a log may begin in motion, and creeps: a
    sample later only the share `kept` of its load is left.
    """
    state = np.zeros(len(position))
    state[0] = min(1.0, max(-1.0, (position[1] - position[0]) / travel))
    for k in range(1, len(position)):
        moved = kept * state[k - 1] + (position[k] - position[k - 1]) / travel
        state[k] = min(1.0, max(-1.0, moved))
    return state


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def followed(position: Floats, slack: float) -> Floats:
    """`position` as it drags something along within +- `slack`: the play operator."""
    result = np.empty(len(position))
    at = position[0]
    for k in range(len(position)):
        at = min(max(at, position[k] - slack), position[k] + slack)
        result[k] = at
    return result


def refined(path: Floats, times: int) -> Floats:
    """`path` with `times` steps in place of each: a reversal falls between samples."""
    if times == 1:
        return np.ascontiguousarray(path)
    samples = np.arange(len(path), dtype=np.float64)
    spline = CubicSpline(samples, path)
    result: Floats = spline(np.arange(times * (len(path) - 1) + 1) / times)
    return result


def joint_motion(motion: Motion, joint: int, coarse: Floats, efforts: Floats) -> JointMotion:
    """One joint of `motion`; efforts: float64[m, 2], load and lever at the times `coarse`."""
    load, lever = (np.interp(motion.time, coarse, column) for column in efforts.T)
    return JointMotion(
        position=motion.position[:, joint],
        velocity=motion.velocity[:, joint],
        acceleration=motion.acceleration[:, joint],
        load=load,
        lever=lever,
        path=motion.path[:, joint],
        resolution=float(motion.resolution[joint]),
        interval=motion.interval,
    )


def columns(joint: JointMotion, contacts: Sequence[Contact]) -> dict[Key, Floats]:
    """Every term that could matter for a joint, by name and contact; float64[n] each.

    Terms without contact have the contact `NONE`.
    """
    found: dict[Key, Floats] = {
        (VISCOUS, NONE): joint.velocity,
        (OFFSET, NONE): np.ones_like(joint.position),
        (ARMATURE, NONE): joint.acceleration,
        (QUADRATIC, NONE): joint.velocity * np.abs(joint.velocity),
        (BALANCE, NONE): joint.lever,
    }
    fine = max(1, round(joint.interval / FINE_STEP))
    moved = refined(joint.path, fine)
    dragged = followed(refined(joint.position, fine), SLACK * joint.resolution)
    for one in contacts:
        kept = float(np.exp(-joint.interval / fine / one.creep))
        unseen = RIGID < one.travel <= UNSEEN * joint.resolution
        state = contact(dragged if unseen else moved, one.travel, kept)[::fine]
        found[COULOMB, one] = state
        found[LOAD, one] = np.abs(joint.load) * state
    return found


def is_of_contact(name: str) -> bool:
    """Whether a term depends on the travel of the contact."""
    return name in {COULOMB, LOAD}
