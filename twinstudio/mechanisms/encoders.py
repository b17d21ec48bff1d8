"""What encoders and effort sensors tell of a joint."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.compiled import compiled
from twinstudio.mechanisms.transmission import wave

Floats = NDArray[np.float64]


@compiled
def quantised(value: Any, resolution: Any) -> Any:
    """`value` in whole counts of `resolution`."""
    return np.rint(value / resolution) * resolution


@compiled
def rotor_at(position: float, joint: Any) -> float:
    """Where the motor of a joint without play or elasticity is, in rad or m at the joint.

    position = motor + e sin(order motor + phase), solved by three rounds of insertion: the
    error's slope is far below one.
    """
    motor = position
    if joint.error != 0.0:
        for _ in range(3):
            motor = position - wave(motor, joint.error, joint.error_order, joint.error_phase)
    return motor


@compiled
def sense(
    common: Any, joints: Any, states: Any, truth: tuple[Floats, Floats, Floats], told: Floats,
    noise: Floats,
) -> None:  # fmt: skip
    """Position, velocity and effort as measured, from their `truth`, into `told` float64[3, n].

    noise: float64[3, n] of a standard normal distribution.
    """
    c = common[0]
    position, velocity, effort = truth
    for j in range(len(position)):
        p, s = joints[j], states[j]
        q, v = position[j], velocity[j]
        if not c.secondary:
            if p.geared:
                q, v = s.rotor + s.early * s.rotor_speed, s.rotor_speed
            else:
                q = rotor_at(q, p)
        q += p.bias + p.noise * noise[0, j]
        if p.resolution > 0.0:
            q = quantised(q, p.resolution)
        told[0, j] = q
        told[1, j] = v + p.velocity_noise * noise[1, j]
        told[2, j] = effort[j] + p.effort_noise * noise[2, j]
