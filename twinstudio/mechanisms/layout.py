"""The tables that the kernel reads and writes: one row a joint, every field a mechanism's."""

import numpy as np

from twinstudio.mechanisms.contact import CONTACT


def _floats(names: str) -> list[tuple[str, str]]:
    return [(name, "f8") for name in names.split()]


def _whole(names: str) -> list[tuple[str, str]]:
    return [(name, "i8") for name in names.split()]


COMMON = np.dtype(
    [
        *_floats("step feedforward velocity_feedforward ambient copper magnet sharing"),
        *_whole("step_ns hold start sent drawn interval"),
        *_whole("contact controlled heated secondary"),
    ],
    align=True,
)
"""Of the whole drive. start: stamp of the first step, from which the drive's clock ticks.
sent: commands so far; interval: between the last two [ns], 0 for single moves. drawn: random
numbers used. sharing: joints among which an ideal drive's gain is shared."""

JOINT = np.dtype(
    [
        *_whole("latency geared rubs elements"),
        *_floats("stiffness damping integral_rate current_rate"),
        *_floats("armature drive_gain max_drive max_speed max_power"),
        *_floats("half gear_stiffness gear_damping"),
        *_floats("ripple ripple_order ripple_phase error error_order error_phase"),
        *_floats("coulomb viscous quadratic breakaway stribeck stribeck_exponent"),
        *_floats("asymmetry offset spring bristle_damping temperature thinness"),
        *_floats("load_motor load_external stribeck_load_motor stribeck_load_external"),
        *_floats("resistance cable_stiffness cable_rest cable_pull"),
        *_floats("resolution bias noise velocity_noise effort_noise"),
        ("heat_change", "f8", (4,)),
        ("heat_gain", "f8", (4,)),
    ],
    align=True,
)
"""Parameters: `Drive` in the kernel's form. What is absent is zero, or an infinite limit."""

STATE = np.dtype(
    [
        *_whole("taken sent"),
        *_floats("reference slope wanted wanted_speed integral drive motor model"),
        *_floats("rotor rotor_speed last ahead winding case current loss"),
        *_floats("grip strength span early stiffness damping half theta through"),
        *CONTACT,
    ],
    align=True,
)
"""What a joint remembers. last: its position at the step before; ahead: how far the
bristles went then. grip: how the motor's effort falls with its speed; strength: factor of
the drive gain. span to theta: the gear over a part of the step; through: its effort; early:
how long before the step's stamp the rotor's state is valid [s]."""
