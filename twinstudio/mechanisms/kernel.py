"""One step of all joints' drives, compiled as one function.

Order: command path -> controller -> saturation -> ripple -> gear -> friction -> heat.
A step is cut into parts where controller or gear need it; the link is then foreseen from
its inertia and the model's effort, both held, and the mean effort goes out.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.command import send, take_over
from twinstudio.mechanisms.compiled import compiled
from twinstudio.mechanisms.contact import end_speed, stretch
from twinstudio.mechanisms.friction import (
    REFERENCE,
    gear_load,
    stribeck_load,
    stribeck_share,
    thinning,
    warming,
)
from twinstudio.mechanisms.thermal import advance_heat, resistance_at
from twinstudio.mechanisms.transmission import FLANK, coupling, seen_by_rotor, touching, wave

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_PARTS = 16
FINE = 0.5
"""Largest product of a part and a rate of controller or gear."""
SMOOTH = 1.5
"""The same, up to which the trapezoidal rule is used."""
IDEAL_GAIN = 0.1
"""Share of the position error that an ideal drive corrects in a step: PyBullet's own."""


@compiled
def advance(
    common: Any,
    joints: Any,
    states: Any,
    line: tuple[Ints, Floats, Ints],
    now: int,
    moving: tuple[Floats, Floats, Floats, Floats, Floats, Floats],
) -> int:
    """One step from `now` [ns]; the efforts that reach the joints go into the last of `moving`.

    line: stamps, values and late arrivals of commands. moving: position, velocity, target,
    bias, inertia, effort. Returns the count of random numbers used, or -1 when commands pile up
    because stamps move slower than steps.
    """
    c = common[0]
    stamps, values, late = line
    position, velocity, target, bias, inertia, effort = moving
    if c.sent == 0:
        c.start = now
    before = c.sent
    send(c, stamps, values, late[c.drawn], now, target)
    c.drawn += c.sent - before
    for j in range(len(effort)):
        p, s = joints[j], states[j]
        if c.sent - s.taken >= len(stamps):
            return -1
        s.wanted, s.wanted_speed = take_over(c, p, s, stamps, values, (j, now))
        cable = p.cable_pull - p.cable_stiffness * (position[j] - p.cable_rest)
        load, s.model = bias[j] - cable, bias[j]
        if p.geared:
            through = _geared(c, p, s, (position[j], velocity[j], load, inertia[j]))
        else:
            through = _direct(c, p, s, (position[j], velocity[j], load, inertia[j]))
        effort[j] = through + cable
        if c.heated:
            s.current = s.drive / p.drive_gain
            ohms = resistance_at(s.winding, p.resistance, c.copper)
            advance_heat(p, s, c.ambient, ohms * s.current * s.current, s.loss)
        elif p.drive_gain > 0.0:
            s.current = s.drive / p.drive_gain
    return int(c.drawn)


@compiled
def _direct(c: Any, p: Any, s: Any, link: tuple[float, float, float, float]) -> float:
    """Mean effort over a step of a joint whose motor moves with its link."""
    position, velocity, load, inertia = link
    stretch_on(c, s, position - s.last - s.ahead)
    s.last, s.ahead, s.loss = position, 0.0, 0.0
    parts = _parts(p, c.step, inertia)
    span = c.step / parts
    mass = inertia / span
    q, v, total = position, velocity, 0.0
    for _ in range(parts):
        motor = motor_effort(c, p, s, span, (q, v, load, inertia))
        if p.rubs:
            after = rub(c, p, s, span, (mass, mass * v + motor - load, v, load))
            friction = motor - load - mass * (after - v)
            s.loss += friction * after / parts
        else:
            friction = 0.0
            after = v + span / inertia * (motor - load)
        total += motor - friction
        v = after
        q += span * v
    s.ahead = q - position if p.rubs else 0.0
    return total / parts


@compiled
def _geared(c: Any, p: Any, s: Any, link: tuple[float, float, float, float]) -> float:
    """Mean effort over a step of the gear between a rotor of its own and the link.

    An engine that moves a joint by its new speed holds speeds of half a step ago; rotor and
    link are solved at those instants, or the spring would be damped by the step.
    """
    position, velocity, load, inertia = link
    parts = _prepare_gear(c, p, s, inertia)
    span, theta = s.span, s.theta
    s.loss = 0.0
    place, v, total = position - 0.5 * c.step * velocity, velocity, 0.0
    mobility = span / inertia
    for _ in range(parts):
        w = s.rotor_speed
        bend = 1.0 + p.error * p.error_order * math.cos(p.error_order * s.rotor + p.error_phase)
        twist = s.rotor + wave(s.rotor, p.error, p.error_order, p.error_phase) - place
        seen = s.rotor + 0.5 * c.step * w
        motor = motor_effort(c, p, s, span, (seen, w, s.through, p.armature))
        rel = bend * w - v
        side = touching(s, twist, rel) if s.half > 0.0 else 1.0
        through, after = 0.0, w
        for attempt in range(2):
            fixed = slope = 0.0
            if side != 0.0:
                fixed, slope = coupling(s, twist, rel, side)
                fixed, slope = seen_by_rotor(fixed, slope, v, load, mobility)
            mass = p.armature / span + bend * bend * slope
            drive = p.armature / span * w + motor - bend * fixed
            after = rub(c, p, s, span, (mass, drive, w, load))
            through = fixed + slope * bend * after
            if side == 0.0 or s.half == 0.0 or side * through >= 0.0 or attempt == 1:
                break
            side = 0.0
        if side == 0.0:
            through = 0.0
        moved = v + mobility * (through - load)
        s.rotor += span * ((1.0 - theta) * w + theta * after)
        place += span * ((1.0 - theta) * v + theta * moved)
        friction = motor - bend * through - p.armature / span * (after - w)
        s.loss += friction * after / parts
        s.rotor_speed, v = after, moved
        s.through = through
        total += through
    return total / parts


@compiled
def _prepare_gear(c: Any, p: Any, s: Any, inertia: float) -> int:
    """Set the gear's numbers for this step; returns into how many parts it is cut."""
    reduced = 1.0 / (1.0 / p.armature + 1.0 / inertia)
    rate = math.sqrt(p.gear_stiffness / reduced)
    parts = max(_parts(p, c.step, p.armature), _count(rate * c.step))
    s.span = c.step / parts
    s.half, s.damping = p.half, p.gear_damping
    s.stiffness = p.gear_stiffness
    if s.stiffness == 0.0:
        s.stiffness = FLANK * reduced / (s.span * s.span)
    s.theta = 0.5 if math.sqrt(s.stiffness / reduced) * s.span < SMOOTH else 1.0
    return parts


@compiled
def _count(product: float) -> int:
    return int(min(max(math.ceil(product / FINE), 1.0), float(MOST_PARTS)))


@compiled
def _parts(p: Any, step: float, inertia: float) -> int:
    """Parts into which a step is cut for the controller of a motor that moves `inertia`."""
    damped = p.damping * step / inertia
    stiff = math.sqrt(p.stiffness / inertia) * step
    return _count(max(damped, stiff))


@compiled
def motor_effort(
    c: Any, p: Any, s: Any, span: float, shaft: tuple[float, float, float, float]
) -> float:
    """Effort of the motor over a part of a step, ripple included.

    shaft: position and speed of the motor, load and inertia against which it works.
    """
    position, speed, load, inertia = shaft
    seen = position + p.bias
    if not p.geared:
        seen -= wave(position, p.error, p.error_order, p.error_phase)
    error = s.wanted - seen
    if c.controlled:
        demand = c.feedforward * s.model + p.stiffness * error + s.integral
        demand += p.damping * (c.velocity_feedforward * s.wanted_speed - speed)
    else:
        pace = inertia / (c.step * c.sharing)
        demand = load + pace * (IDEAL_GAIN * error / c.step - speed)
    allowed = _saturated(p, demand, speed, load, inertia / span)
    if allowed == demand:
        s.integral += p.integral_rate * span * error
    if p.current_rate > 0.0:
        s.drive += (1.0 - math.exp(-p.current_rate * span)) * (allowed - s.drive)
    else:
        s.drive = allowed
    s.motor = s.drive * (1.0 + c.magnet * (s.winding - REFERENCE))
    s.motor += wave(position, p.ripple, p.ripple_order, p.ripple_phase)
    return float(s.motor)


@compiled
def _saturated(p: Any, demand: float, speed: float, load: float, mass: float) -> float:
    """`demand` within the limits of current, effort, power and speed.

    Power and speed bound what drives the motion on, not what brakes it.
    """
    high, low = p.max_drive, -p.max_drive
    if p.max_power < math.inf and speed != 0.0:
        bound = p.max_power / abs(speed)
        if speed > 0.0:
            high = min(high, bound)
        else:
            low = max(low, -bound)
    if p.max_speed < math.inf:
        high = min(high, max(load + mass * (p.max_speed - speed), 0.0))
        low = max(low, min(load - mass * (p.max_speed + speed), 0.0))
    return float(min(max(demand, low), high))


@compiled
def rub(c: Any, p: Any, s: Any, span: float, shaft: tuple[float, float, float, float]) -> float:
    """Speed after a part of a step against friction, whose bristles move on.

    shaft: inertia over the part with whatever else grows with the speed; effort that could
    bring it to rest within the part; speed; effort of the link's surroundings.
    """
    mass, drive, speed, load = shaft
    share = stribeck_share(speed, p)
    surplus = share * (p.breakaway - p.coulomb + stribeck_load(s.motor, -load, p))
    surplus += gear_load(s.motor, -load, p)
    level = p.coulomb * warming(s.case, p)
    s.high = max(level * (1.0 + p.asymmetry) + surplus, 0.0)
    s.low = -max(level * (1.0 - p.asymmetry) + surplus, 0.0)
    mass += p.viscous * thinning(s.case, p) + p.quadratic * abs(speed)
    after = end_speed(c.contact, mass, drive - p.offset, span, s)
    if s.spring > 0.0:
        stretch(c.contact, span * after, s)
    return after


@compiled
def stretch_on(c: Any, s: Any, travel: float) -> None:
    """Move bristles by what the joint travelled otherwise than foreseen."""
    if s.spring > 0.0 and travel != 0.0:
        stretch(c.contact, travel, s)
