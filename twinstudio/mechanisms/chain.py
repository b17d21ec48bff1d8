"""A chain of inertias with springs between them: the linear model of an elastic axis."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def resonances(
    inertias: ArrayLike, stiffnesses: ArrayLike, dampings: ArrayLike
) -> tuple[Floats, Floats]:
    """Frequencies [Hz] and damping ratios of the vibrations of a free chain, ascending.

    inertias: [n] from motor to arm [kg m^2 | kg]; stiffnesses [N m/rad | N/m] and
    dampings [N m s/rad | N s/m]: [n - 1] between them.
    """
    return _modes(*_chain(inertias, stiffnesses, dampings))


def antiresonances(
    inertias: ArrayLike, stiffnesses: ArrayLike, dampings: ArrayLike
) -> tuple[Floats, Floats]:
    """As `resonances`, with the motor held: where the motor's effort does not move it."""
    mass, spring, damper = _chain(inertias, stiffnesses, dampings)
    return _modes(mass[1:, 1:], spring[1:, 1:], damper[1:, 1:])


def _chain(
    inertias: ArrayLike, stiffnesses: ArrayLike, dampings: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    mass = np.diag(np.asarray(inertias, dtype=np.float64))
    ends = np.diff(np.eye(len(mass)), axis=0)
    spring = ends.T @ np.diag(np.asarray(stiffnesses, dtype=np.float64)) @ ends
    return mass, spring, ends.T @ np.diag(np.asarray(dampings, dtype=np.float64)) @ ends


def _modes(mass: Floats, spring: Floats, damper: Floats) -> tuple[Floats, Floats]:
    n = len(mass)
    motion = np.zeros((2 * n, 2 * n))
    motion[:n, n:] = np.eye(n)
    motion[n:, :n], motion[n:, n:] = -np.linalg.solve(mass, spring), -np.linalg.solve(mass, damper)
    poles = np.linalg.eigvals(motion)
    poles = poles[poles.imag > 1e-6 * np.abs(poles).max()]
    poles = poles[np.argsort(np.abs(poles))]
    return np.abs(poles) / math.tau, -poles.real / np.abs(poles)
