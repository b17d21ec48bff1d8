"""From the description of drives to the kernel's tables."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.contact import LUGRE, MAXWELL, RIGID
from twinstudio.mechanisms.layout import COMMON, JOINT
from twinstudio.mechanisms.thermal import Network, transition
from twinstudio.model.drive import (
    Cable,
    CommandPath,
    Controller,
    Drive,
    Encoders,
    Friction,
    Mechanism,
    Thermal,
    per_joint,
)
from twinstudio.model.errors import SceneError

Floats = NDArray[np.float64]
KINDS = {"rigid": RIGID, "maxwell": MAXWELL, "lugre": LUGRE}
FAR = np.inf


def _without(section: str, **absent: Any) -> Callable[[Drive], Drive]:
    def change(drive: Drive) -> Drive:
        part = msgspec.structs.replace(getattr(drive, section), **absent)
        return msgspec.structs.replace(drive, **{section: part})

    return change


def _unset(section: str, empty: msgspec.Struct) -> Callable[[Drive], Drive]:
    return lambda drive: msgspec.structs.replace(drive, **{section: empty})


_SWITCH: dict[Mechanism, Callable[[Drive], Drive]] = {
    "command": _unset("command", CommandPath()),
    "controller": _unset("controller", Controller()),
    "saturation": _without("motor", max_current=(), max_effort=(), max_speed=(), max_power=()),
    "armature": _without("motor", armature=()),
    "backlash": _without("transmission", backlash=()),
    "compliance": _without("transmission", stiffness=(), damping=()),
    "ripple": _without("transmission", ripple=(), ripple_order=(), ripple_phase=()),
    "kinematic_error": _without("transmission", error=(), error_order=(), error_phase=()),
    "friction": _unset("friction", Friction()),
    "thermal": _unset("thermal", Thermal()),
    "cable": _unset("cable", Cable()),
    "sensors": _unset("encoders", Encoders()),
}
"""Expansion and payload are the physics side's."""


def in_effect(drive: Drive) -> Drive:
    """`drive` without the mechanisms that are switched off.

    Raises SceneError where play or elasticity are left without the rotor that they move.
    """
    for mechanism in drive.off:
        if mechanism in _SWITCH:
            drive = _SWITCH[mechanism](drive)
    gear = drive.transmission
    if (any(gear.backlash) or any(gear.stiffness)) and not all(drive.motor.armature or (0.0,)):
        raise SceneError(
            "backlash and elastic gears need a rotor to move, and 'drive.motor.armature' is "
            "absent, zero or switched off; give it, or switch off 'backlash' and 'compliance'"
        )
    return drive


def is_empty(drive: Drive) -> bool:
    """Whether nothing of `drive` changes the effort of a joint."""
    bare = _without("motor", drive_gain=())(_SWITCH["sensors"](drive))
    if not drive.thermal.resistance:
        bare = _SWITCH["thermal"](bare)
    return msgspec.structs.replace(bare, off=()) == Drive()


def common_row(drive: Drive, joints: int, step: float) -> Any:
    """Table of one row, dtype `COMMON`."""
    table = np.zeros(1, dtype=COMMON)
    row = table[0]
    row["step"], row["step_ns"] = step, round(step * 1e9)
    row["hold"] = round(drive.command.hold * 1e9)
    row["contact"] = KINDS[drive.friction.contact]
    row["feedforward"] = drive.controller.feedforward
    row["velocity_feedforward"] = drive.controller.velocity_feedforward
    row["controlled"] = bool(drive.controller.stiffness)
    row["sharing"] = joints
    row["heated"] = bool(drive.thermal.resistance)
    row["ambient"], row["copper"] = drive.thermal.ambient, drive.thermal.copper
    row["magnet"] = drive.thermal.magnet
    row["secondary"] = drive.encoders.secondary
    return table


def joint_rows(drive: Drive, joints: int, step: float) -> Any:
    """Table of one row a joint, dtype `JOINT`."""
    table = np.zeros(joints, dtype=JOINT)

    def fill(part: Any, *keys: str, absent: float = 0.0, **renamed: str) -> None:
        for field, key in {**{key: key for key in keys}, **renamed}.items():
            table[field] = per_joint(getattr(part, key), joints, absent)

    table["latency"] = np.rint(per_joint(drive.command.latency, joints) * 1e9)
    fill(drive.controller, "stiffness", "damping")
    table["integral_rate"] = _over(table["stiffness"], drive.controller.integral_time, joints)
    table["current_rate"] = _over(np.ones(joints), drive.controller.current_lag, joints)
    fill(drive.motor, "armature", "drive_gain")
    fill(drive.motor, "max_speed", "max_power", absent=FAR)
    table["max_drive"] = _largest_effort(drive, joints)
    _fill_gear(drive, table, fill)
    _fill_friction(drive, table, fill)
    fill(drive.cable, cable_stiffness="stiffness", cable_rest="rest", cable_pull="pull")
    senses = ("resolution", "noise", "velocity_noise", "effort_noise")
    fill(drive.encoders, *senses, bias="offset")
    if drive.thermal.resistance:
        _fill_heat(drive, table, step)
    return table


def _over(numerator: Floats, times: tuple[float, ...], joints: int) -> Floats:
    """`numerator` a second of `times`; a time of 0 is none."""
    given = per_joint(times, joints)
    result: Floats = np.divide(numerator, given, out=np.zeros(joints), where=given > 0.0)
    return result


def _largest_effort(drive: Drive, joints: int) -> Floats:
    motor = drive.motor
    by_current = np.full(joints, FAR)
    if motor.max_current:
        by_current = per_joint(motor.max_current, joints) * per_joint(motor.drive_gain, joints)
    largest: Floats = np.minimum(by_current, per_joint(motor.max_effort, joints, FAR))
    return largest


def _fill_gear(drive: Drive, table: Any, fill: Callable[..., None]) -> None:
    gear = drive.transmission
    fill(gear, gear_stiffness="stiffness", gear_damping="damping", half="backlash")
    table["half"] *= 0.5
    table["geared"] = (table["half"] > 0.0) | (table["gear_stiffness"] > 0.0)
    fill(gear, "ripple", "ripple_order", "ripple_phase", "error", "error_order", "error_phase")


def _fill_friction(drive: Drive, table: Any, fill: Callable[..., None]) -> None:
    friction = drive.friction
    fill(friction, "coulomb", "viscous", "quadratic", "asymmetry", "offset", "bristle_damping")
    fill(friction, "load_motor", "load_external")
    fill(friction, "stribeck_load_motor", "stribeck_load_external", "temperature")
    fill(friction, "stribeck", absent=1.0)
    fill(friction, "stribeck_exponent", absent=2.0)
    joints = len(table)
    table["breakaway"] = table["coulomb"]
    if friction.breakaway:
        table["breakaway"] = per_joint(friction.breakaway, joints)
    table["thinness"] = _over(np.ones(joints), friction.viscous_temperature, joints)
    table["spring"] = _over(table["breakaway"], friction.presliding, joints)
    table["elements"] = 1 if friction.contact == "lugre" else friction.elements
    plain = msgspec.structs.replace(friction, contact="maxwell", elements=1)
    table["rubs"] = plain != Friction()


def _fill_heat(drive: Drive, table: Any, step: float) -> None:
    heat, joints = drive.thermal, len(table)
    table["resistance"] = per_joint(heat.resistance, joints)
    parts = [
        per_joint(values, joints)
        for values in (
            heat.winding_capacity,
            heat.case_capacity,
            heat.winding_to_case,
            heat.case_to_ambient,
        )
    ]
    for j in range(joints):
        change, gain = transition(Network(*(float(part[j]) for part in parts)), step)
        table["heat_change"][j], table["heat_gain"][j] = change.ravel(), gain.ravel()
