"""Commanded joints as logs: written apart from the fitters, plain numpy, small steps."""

import numpy as np

RATE = 1000.0


def swept(rng: np.random.Generator, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and a velocity command with reversals and content up to some hertz."""
    time = np.arange(round(seconds * RATE)) / RATE
    omega = 2.0 * np.pi * np.array([0.3, 0.9, 2.1, 4.0]) * rng.uniform(0.9, 1.1, 4)
    size = np.array([0.4, 0.3, 0.15, 0.08])
    return time, np.sin(time[:, None] * omega + rng.uniform(0.0, 2.0 * np.pi, 4)) @ size


def late_drive(
    rng: np.random.Generator, delay: float, *, seconds: float = 10.0, noise: float = 2e-3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, velocity command, and the measured velocity of a drive of 8 Hz, damping 0.8.

    It follows the command `delay` s later; steps of 0.1 ms; white noise in rad/s.
    """
    time, command = swept(rng, seconds)
    fine = np.arange(0.0, seconds - 1.0 / RATE, 1e-4)
    late = np.interp(fine - delay, time, command)
    omega, damping = 2.0 * np.pi * 8.0, 0.8
    v, a = late[0], 0.0
    response = np.empty(len(fine))
    for k, wanted in enumerate(late):
        response[k] = v
        a += 1e-4 * (omega**2 * (wanted - v) - 2.0 * damping * omega * a)
        v += 1e-4 * a
    measured = response[:: round(1e4 / RATE)]
    n = len(measured)
    return time[:n], command[:n], measured + rng.normal(0.0, noise, n)


LOOP = {
    "mass": 0.8,
    "coulomb": 3.0,
    "viscous": 1.5,
    "stiffness": 4000.0,
    "damping": 120.0,
    "delay": 0.0034,
}
"""A servo axis, SI at the joint."""


def servo(
    rng: np.random.Generator, *, seconds: float = 10.0, limit: float = 1e9, count: float = 1e-5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times, position command, position in counts and effort of the servo `LOOP`.

    Coulomb friction stops the joint at most; the controller runs at `RATE` and holds.
    """
    time, rate = swept(rng, seconds)
    command = np.cumsum(rate) / RATE
    q, v, effort = command[0], 0.0, 0.0
    positions, efforts = np.empty(len(time)), np.empty(len(time))
    step = 1e-4
    for k, now in enumerate(time):
        late = np.interp(now - LOOP["delay"], time, command)
        effort = LOOP["stiffness"] * (late - q) - LOOP["damping"] * v
        effort = min(max(effort, -limit), limit)
        positions[k], efforts[k] = q, effort
        for _ in range(round(1.0 / (RATE * step))):
            free = v + step / LOOP["mass"] * (effort - LOOP["viscous"] * v)
            stop = step / LOOP["mass"] * LOOP["coulomb"]
            v = np.sign(free) * max(abs(free) - stop, 0.0)
            q += step * v
    noisy = positions + rng.normal(0.0, 0.5 * count, len(time))
    return time, command, np.round(noisy / count) * count, efforts + rng.normal(0, 0.05, len(time))
