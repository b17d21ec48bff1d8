"""Joints with published friction, as logs: written apart from the fitters, plain numpy.

The motion is given, a sum of sines with reversals at many speeds; the effort follows
from the law. Position is read in counts, effort with white noise.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

RATE = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a logger would have: position in counts times their size, effort with noise."""

    position: np.ndarray
    effort: np.ndarray


@dataclass(frozen=True, slots=True)
class Motion:
    """A sum of sines: fastest speed, length in s."""

    fastest: float
    seconds: float = 20.0

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, speed, acceleration at `RATE`."""
        time = np.arange(round(self.seconds * RATE)) / RATE
        omega = 2.0 * np.pi * np.array([0.15, 0.35, 0.8]) * rng.uniform(0.85, 1.15, 3)
        share = np.array([0.5, 0.3, 0.2]) * rng.uniform(0.9, 1.1, 3)
        angle = time[:, None] * omega + rng.uniform(0.0, 2.0 * np.pi, 3)
        speed = np.cos(angle) @ share
        scale = self.fastest / np.abs(speed).max()
        return (
            scale * np.sin(angle) @ (share / omega),
            scale * speed,
            -scale * np.sin(angle) @ (share * omega),
        )


# Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca, RA-L 2019: Franka Emika Panda.
PANDA_A = (0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489)
PANDA_ALPHA = (5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336)
PANDA_S = (0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526)


def panda(joint: int) -> Callable[[np.ndarray], np.ndarray]:
    """Friction of one joint over its speed, N m."""
    a, alpha, s = PANDA_A[joint], PANDA_ALPHA[joint], PANDA_S[joint]
    rest = a / (1.0 + np.exp(-alpha * s))
    return lambda w: np.asarray(a / (1.0 + np.exp(-alpha * (w + s))) - rest)


def three_mass(w: np.ndarray) -> np.ndarray:
    """Wernholt and Gunnarsson 2006: motor side of an industrial arm's axis, N m."""
    fv, fc, fcs = 0.00986346744839, 0.74302635727901, 3.98628540790595
    alpha, beta = 3.24015074090438, 0.79943497008153
    return np.asarray(fv * w + (fc + fcs / np.cosh(alpha * w)) * np.tanh(beta * w))


# Rhoban BAM, parameters of the erob80-50 drive.
BAM_M1 = {"armature": 0.3369, "Kc": 4.097, "Kv": 1.298}
BAM_M6 = {
    "armature": 0.3617,
    "Kc": 3.259,
    "Kcs": 0.3204,
    "Km": 0.03566,
    "Ke": 0.000843,
    "Kms": 0.003771,
    "Kes": 0.04144,
    "ws": 2.830,
    "alpha": 1.786,
    "Kv": 1.403,
}


def bam_effort(
    law: dict[str, float], w: np.ndarray, inertial: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Motor effort of a sliding joint: inertia, weight, friction that depends on the load.

    weight: effort that holds the weight, so the external torque is its negative.
    """
    get = law.get
    effort = inertial + weight
    for _ in range(60):
        load = np.abs(get("Km", 0.0) * effort + get("Ke", 0.0) * weight)
        share = np.exp(-(np.abs(w / get("ws", 1.0)) ** get("alpha", 1.0)))
        extra = get("Kcs", 0.0) + np.abs(get("Kms", 0.0) * effort + get("Kes", 0.0) * weight)
        level = law["Kc"] + load + share * extra
        effort = inertial + weight + np.sign(w) * level + law["Kv"] * w
    return np.asarray(effort)


def read(
    rng: np.random.Generator, position: np.ndarray, effort: np.ndarray, noise: float, count: float
) -> Reading:
    """Encoder of `count` rad with half a count of noise, effort with `noise` N m."""
    noisy = position + rng.normal(0.0, 0.5 * count, len(position))
    return Reading(np.round(noisy / count) * count, effort + rng.normal(0.0, noise, len(effort)))
