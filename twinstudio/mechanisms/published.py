"""Friction laws of the literature whose parameters are published in a shape of their own.

They serve to compare with, and to read published sets; `friction.sliding` is the drives'.
"""

from typing import Any

import numpy as np

Values = Any
"""A float, or float64[n]."""


def sigmoid(velocity: Values, height: Values, slope: Values, shift: Values) -> Values:
    """A/(1 + exp(-a (w + s))) - A/(1 + exp(-a s)) [N m], zero at rest.

    height A [N m], slope a [s/rad], shift s [rad/s]. Gaz, Cognetti, Oliva, Robuffo
    Giordano & De Luca, IEEE Robotics and Automation Letters 4, 2019 (Franka Emika Panda).
    """
    at_rest = height / (1.0 + np.exp(-slope * shift))
    return height / (1.0 + np.exp(-slope * (velocity + shift))) - at_rest


def smooth_stribeck(
    velocity: Values, viscous: float, coulomb: float, surplus: float, slopes: tuple[float, float]
) -> Values:
    """Fv w + (Fc + Fcs / cosh(a w)) tanh(b w) [N m], with slopes a and b [s/rad].

    Wernholt & Gunnarsson, IFAC SYSID 2006 (one axis of an industrial arm).
    """
    fade, rise = slopes
    level = coulomb + surplus / np.cosh(fade * velocity)
    return viscous * velocity + level * np.tanh(rise * velocity)


def lugre_steady(velocity: Values, levels: tuple[float, float], stribeck: float) -> Values:
    """Level g(w) = Fc + (Fs - Fc) exp(-(w/ws)^2) of LuGre's contact, for levels Fc and Fs.

    Canudas de Wit, Olsson, Astrom & Lischinsky, IEEE Trans. Autom. Control 40, 1995.
    """
    coulomb, breakaway = levels
    return coulomb + (breakaway - coulomb) * np.exp(-((velocity / stribeck) ** 2))
