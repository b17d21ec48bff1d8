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
"""Largest product of a part of a step and a natural frequency of controller or gear."""
SMOOTH = 1.0
"""Product of a step and the gear's natural frequency, above which it is solved in one part
and by backward Euler, with the link moved as the engine will move it."""
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
    send(c, stamps, values, late[c.drawn % len(late)], now, target)
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
        drive = (mass + s.grip) * v + motor - load
        if p.rubs:
            after = rub(c, p, s, span, (mass + s.grip, drive, v, load))
            stretch_on(c, s, span * after)
        else:
            after = drive / (mass + s.grip)
        motor = settle(s, motor, after - v)
        through = load + mass * (after - v)
        s.loss += (motor - through) * after / parts
        total += through
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
    place, v, total = position - s.early * velocity, velocity, 0.0
    s.loss = 0.0
    for _ in range(parts):
        w = s.rotor_speed
        bend = 1.0 + p.error * p.error_order * math.cos(p.error_order * s.rotor + p.error_phase)
        twist = s.rotor + wave(s.rotor, p.error, p.error_order, p.error_phase) - place
        seen = s.rotor + s.early * w
        motor = motor_effort(c, p, s, s.span, (seen, w, s.through, p.armature))
        after = _engaged(c, p, s, (motor, bend, twist, v, load, inertia))
        moved = v + s.span / inertia * (s.through - load)
        s.rotor += s.span * ((1.0 - s.theta) * w + s.theta * after)
        place += s.span * ((1.0 - s.theta) * v + s.theta * moved)
        motor = settle(s, motor, after - w)
        rubbed = motor - bend * s.through - p.armature / s.span * (after - w)
        s.loss += rubbed * after / parts
        s.rotor_speed, v = after, moved
        total += s.through
    return total / parts


@compiled
def _engaged(
    c: Any, p: Any, s: Any, ends: tuple[float, float, float, float, float, float]
) -> float:
    """Speed of the rotor after a part; the effort of the gear goes into the state.

    ends: the motor's effort, turns of the rotor a turn of the link's side of it (1 without
    kinematic error), twist; speed, load and inertia of the link.
    """
    motor, bend, twist, v, load, inertia = ends
    w, mobility = s.rotor_speed, s.span / inertia
    rel = bend * w - v
    side = touching(s, twist, rel) if s.half > 0.0 else 1.0
    fixed = slope = 0.0
    if side != 0.0:
        fixed, slope = coupling(s, twist, rel, side)
        fixed, slope = seen_by_rotor(fixed, slope, v, load, mobility)
    after = _turned(c, p, s, (motor, bend, fixed, slope, load))
    s.through = fixed + slope * bend * after
    if s.half > 0.0 and side * s.through < 0.0:
        # Flanks do not pull: they part within this part of the step.
        s.through = 0.0
        after = _turned(c, p, s, (motor, bend, 0.0, 0.0, load))
    stretch_on(c, s, s.span * after)
    return after


@compiled
def _turned(c: Any, p: Any, s: Any, shaft: tuple[float, float, float, float, float]) -> float:
    """Speed of the rotor against a gear that carries fixed + slope bend w, and friction."""
    motor, bend, fixed, slope, load = shaft
    mass = p.armature / s.span + s.grip
    drive = mass * s.rotor_speed + motor - bend * fixed
    return rub(c, p, s, s.span, (mass + bend * bend * slope, drive, s.rotor_speed, load))


@compiled
def _prepare_gear(c: Any, p: Any, s: Any, inertia: float) -> int:
    """Set the gear's numbers for this step; returns into how many parts it is cut."""
    reduced = 1.0 / (1.0 / p.armature + 1.0 / inertia)
    rate = math.sqrt(p.gear_stiffness / reduced)
    s.half, s.damping, s.stiffness = p.half, p.gear_damping, p.gear_stiffness
    if 0.0 < rate * c.step < SMOOTH and p.gear_damping * c.step / reduced < SMOOTH:
        parts = max(_parts(p, c.step, p.armature), _count(rate * c.step))
        s.span, s.theta, s.early = c.step / parts, 0.5, 0.5 * c.step
        return parts
    s.span, s.theta, s.early = c.step, 1.0, 0.0
    if s.stiffness == 0.0:
        s.stiffness = FLANK * reduced / (s.span * s.span)
    return 1


@compiled
def _count(product: float) -> int:
    return int(min(max(math.ceil(product / FINE), 1.0), float(MOST_PARTS)))


@compiled
def _parts(p: Any, step: float, inertia: float) -> int:
    """Parts into which a step is cut for the controller of a motor that moves `inertia`."""
    return _count(math.sqrt(p.stiffness / inertia) * step)


@compiled
def motor_effort(
    c: Any, p: Any, s: Any, span: float, shaft: tuple[float, float, float, float]
) -> float:
    """Effort of the motor at the start of a part of a step, ripple included.

    shaft: position and speed of the motor, load and inertia against which it works. By how
    much the effort falls with the speed within the part goes into the state as `grip`, so
    that a controller's damping is stable for any step.
    """
    position, speed, load, inertia = shaft
    seen = position + p.bias
    if not p.geared:
        seen -= wave(position, p.error, p.error_order, p.error_phase)
    error = s.wanted - seen
    if c.controlled:
        demand = c.feedforward * s.model + p.stiffness * error + s.integral
        demand += p.damping * (c.velocity_feedforward * s.wanted_speed - speed)
        fall = p.damping + p.stiffness * span * (s.theta == 1.0)
    else:
        fall = inertia / (c.step * c.sharing)
        demand = load + fall * (IDEAL_GAIN * error / c.step - speed)
    allowed = _saturated(p, demand, speed, load, inertia / span)
    if allowed == demand:
        s.integral += p.integral_rate * span * error
    else:
        fall = 0.0
    quick = 1.0
    if p.current_rate > 0.0:
        quick = 1.0 - math.exp(-p.current_rate * span)
    s.drive += quick * (allowed - s.drive)
    s.strength = 1.0 + c.magnet * (s.winding - REFERENCE)
    s.grip = fall * quick * s.strength
    s.motor = s.drive * s.strength + wave(position, p.ripple, p.ripple_order, p.ripple_phase)
    return float(s.motor)


@compiled
def settle(s: Any, motor: float, gained: float) -> float:
    """Effort of the motor at the end of a part in which its speed `gained` so much."""
    change = s.grip * gained
    s.motor = motor - change
    s.drive -= change / s.strength
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
    """Speed after a part of a step against friction.

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
    return end_speed(c.contact, mass, drive - p.offset, span, s)


@compiled
def stretch_on(c: Any, s: Any, travel: float) -> None:
    """Move the bristles, if there are any, by `travel` [rad | m]."""
    if s.spring > 0.0 and travel != 0.0:
        stretch(c.contact, travel, s)
