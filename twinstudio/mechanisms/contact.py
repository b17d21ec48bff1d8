"""Contacts: what friction does in one step, at rest as in motion.

Each solves mass v + F(v) = drive for the speed v at the end of the step, with all
that is linear in v gathered in `mass`: inertia over step, viscous friction. So F can at
most stop what moves, and a stiff contact needs no small step (backward Euler; the same
idea as Hayward & Armstrong, 2000, and as BAM's stop-torque budget). Bristles carry
efforts, each with a spring of constant stiffness: a level of friction that changes with
speed, load or heat can only take energy out of them.
"""

import math
from typing import Any

from twinstudio.mechanisms.compiled import compiled

RIGID = 0
MAXWELL = 1
LUGRE = 2
ROUNDS = 60
SHARP = 1e-13


@compiled
def rigid(mass: float, drive: float, low: float, high: float) -> float:
    """End speed against friction within [low, high]: at rest if that suffices."""
    if drive > high:
        return (drive - high) / mass
    if drive < low:
        return (drive - low) / mass
    return 0.0


@compiled
def spring_effort(held: float, gain: float, low: float, high: float) -> float:
    """Effort of a bristle that carried `held` and is stretched by `gain` more."""
    return min(max(held + gain, low), high)


@compiled
def maxwell(mass: float, drive: float, span: float, contact: Any) -> float:
    """End speed against Maxwell-slip elements, to rounding.

    span: step [s]. contact: `bristle` float64[n] efforts, `spring` stiffness of all their
    strength over the travel, `low` and `high` bounds of all together, `elements` n.
    A monotone, piecewise linear equation: Newton's method within a shrinking bracket.
    """
    count = contact.elements
    low, high = contact.low / count, contact.high / count
    least, most = (drive - contact.high) / mass, (drive - contact.low) / mass
    accuracy = SHARP * (abs(drive) + contact.high - contact.low)
    v: float = min(max(0.0, least), most)
    for _ in range(ROUNDS):
        rest, slope = mass * v - drive, mass
        for k in range(count):
            stretch = contact.spring / (k + 1) * span
            effort = contact.bristle[k] + stretch * v
            if effort > high:
                rest += high
            elif effort < low:
                rest += low
            else:
                rest += effort
                slope += stretch
        if abs(rest) <= accuracy:
            break
        if rest > 0.0:
            most = v
        else:
            least = v
        v -= rest / slope
        if not least < v < most:
            v = 0.5 * (least + most)
    return v


@compiled
def pulled(held: float, travel: float, contact: Any) -> float:
    """Effort of LuGre's bristle after `travel` [rad | m] from `held`, exactly.

    dz = w - s0 |w| z / g is linear in z, and only the way counts: over a step of
    constant speed z relaxes by exp(-s0 |x| / g) towards g sign(x) / s0. Stable for any
    step, where explicit Euler is not beyond 2 g / (s0 |w|).
    """
    if travel == 0.0:
        return held
    steady: float = contact.high if travel > 0.0 else contact.low
    if steady == 0.0:
        return 0.0
    return steady + (held - steady) * math.exp(-contact.spring * travel / steady)


@compiled
def lugre(mass: float, drive: float, span: float, contact: Any) -> float:
    """End speed against LuGre's bristles: spring, and damping by the bristle's own speed.

    Canudas de Wit, Olsson, Astrom & Lischinsky, IEEE Trans. Autom. Control 40, 1995.
    contact: as for `maxwell`; `bristle_damping` is s1 [N m s/rad | N s/m].
    """
    held, share = contact.bristle[0], _damping_share(span, contact)
    least = (drive - max(held, contact.high) - share * (contact.high - contact.low)) / mass
    most = (drive - min(held, contact.low) + share * (contact.high - contact.low)) / mass
    accuracy = SHARP * (abs(drive) + contact.high - contact.low)
    v: float = min(max(0.0, least), most)
    for _ in range(ROUNDS):
        effort = pulled(held, v * span, contact)
        rest = mass * v + effort + share * (effort - held) - drive
        if abs(rest) <= accuracy:
            break
        if rest > 0.0:
            most = v
        else:
            least = v
        steady = contact.high if v > 0.0 else contact.low
        if v == 0.0:
            steady = contact.high if rest < 0.0 else contact.low
        left = 1.0 - effort / steady if steady != 0.0 else 0.0
        v -= rest / (mass + (1.0 + share) * contact.spring * span * max(left, 0.0))
        if not least < v < most:
            v = 0.5 * (least + most)
    return v


@compiled
def _damping_share(span: float, contact: Any) -> float:
    """Damping of the bristle's speed, as a factor of the change of its effort in a step."""
    if contact.spring == 0.0:
        return 0.0
    return float(contact.bristle_damping / (contact.spring * span))


@compiled
def end_speed(kind: int, mass: float, drive: float, span: float, contact: Any) -> float:
    """End speed against the contact of `kind`; a contact without travel is rigid."""
    if kind == RIGID or contact.spring == 0.0:
        return rigid(mass, drive, contact.low, contact.high)
    if kind == MAXWELL:
        return maxwell(mass, drive, span, contact)
    return lugre(mass, drive, span, contact)


@compiled
def stretch(kind: int, travel: float, contact: Any) -> None:
    """Move the bristles on by `travel` [rad | m]."""
    if kind == LUGRE:
        contact.bristle[0] = pulled(contact.bristle[0], travel, contact)
        return
    count = contact.elements
    low, high = contact.low / count, contact.high / count
    for k in range(count):
        gain = contact.spring / (k + 1) * travel
        contact.bristle[k] = spring_effort(contact.bristle[k], gain, low, high)


@compiled
def stored(contact: Any) -> float:
    """Elastic energy in the bristles [J]."""
    energy = 0.0
    for k in range(contact.elements):
        if contact.spring > 0.0:
            energy += 0.5 * contact.bristle[k] ** 2 * (k + 1) / contact.spring
    return energy


CONTACT = [
    ("low", "f8"),
    ("high", "f8"),
    ("spring", "f8"),
    ("bristle_damping", "f8"),
    ("elements", "i8"),
    ("bristle", "f8", (8,)),
]
"""Fields of a contact."""
