"""Heat of a joint: two nodes, winding and case, solved exactly for losses held over a step.

Cw dTw/dt = Pw - (Tw - Tc) / Rwc
Cc dTc/dt = Pc + (Tw - Tc) / Rwc - (Tc - Ta) / Rca

The usual lumped model of a motor (for instance the Open Source Leg's).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.compiled import compiled
from twinstudio.mechanisms.friction import REFERENCE

Floats = NDArray[np.float64]


class Network(NamedTuple):
    """Heat capacities [J/K] and thermal resistances [K/W] of one joint."""

    winding_capacity: float
    case_capacity: float
    winding_to_case: float
    case_to_ambient: float


@compiled
def flow(network: Network) -> Floats:
    """Matrix A float64[2, 2] of dT/dt = A (T - Ta) + P / C [1/s]."""
    inner, outer = 1.0 / network.winding_to_case, 1.0 / network.case_to_ambient
    winding, case = network.winding_capacity, network.case_capacity
    return np.array([[-inner / winding, inner / winding], [inner / case, -(inner + outer) / case]])


@compiled
def rates(network: Network) -> tuple[float, float]:
    """Eigenvalues of the network [1/s], both negative, the fast one first."""
    a = flow(network)
    middle = 0.5 * (a[0, 0] + a[1, 1])
    spread = math.sqrt(0.25 * (a[0, 0] - a[1, 1]) ** 2 + a[0, 1] * a[1, 0])
    fast = middle - spread
    return fast, (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) / fast


def time_constants(network: Network) -> tuple[float, float]:
    """Time constants of the network [s], the short one first."""
    fast, slow = rates(network)
    return -1.0 / fast, -1.0 / slow


@compiled
def transition(network: Network, span: float) -> tuple[Floats, Floats]:
    """Matrices F, G float64[2, 2]: T - Ta after `span` [s] is F (T - Ta) + G P for held P [W].

    exp(A t) by Sylvester's formula: the eigenvalues of a passive network are real and
    apart. G = A^-1 (F - 1) / C.
    """
    a, unit = flow(network), np.eye(2)
    fast, slow = rates(network)
    gone = (math.expm1(fast * span) * (a - slow * unit)) / (fast - slow)
    gone += (math.expm1(slow * span) * (a - fast * unit)) / (slow - fast)
    determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    inverse = np.array([[a[1, 1], -a[0, 1]], [-a[1, 0], a[0, 0]]]) / determinant
    gain = np.empty((2, 2))
    for i in range(2):
        for k in range(2):
            gain[i, k] = inverse[i, 0] * gone[0, k] + inverse[i, 1] * gone[1, k]
    gain[:, 0] /= network.winding_capacity
    gain[:, 1] /= network.case_capacity
    return unit + gone, gain


@compiled
def resistance_at(winding: float, cold: float, copper: float) -> float:
    """Resistance [ohm] of a winding at `winding` [degC], `cold` at 25 degC."""
    return cold * (1.0 + copper * (winding - REFERENCE))


@compiled
def heat_up(
    time: Floats, losses: Floats, network: Network, ambient: float, start: Floats
) -> Floats:
    """Temperatures float64[n, 2] (winding, case) [degC] along a log.

    losses: float64[n, 2] [W] of winding and case, each held until the next of `time` [s].
    """
    nodes = np.empty((len(time), 2))
    nodes[0] = start
    span, change, gain = -1.0, np.eye(2), np.eye(2)
    for k in range(1, len(time)):
        if time[k] - time[k - 1] != span:
            span = time[k] - time[k - 1]
            change, gain = transition(network, span)
        for i in range(2):
            warm = change[i, 0] * (nodes[k - 1, 0] - ambient)
            warm += change[i, 1] * (nodes[k - 1, 1] - ambient)
            warm += gain[i, 0] * losses[k - 1, 0] + gain[i, 1] * losses[k - 1, 1]
            nodes[k, i] = ambient + warm
    return nodes


@compiled
def advance_heat(joint: Any, state: Any, ambient: float, winding: float, case: float) -> None:
    """One step of the kernel with losses `winding` and `case` [W]."""
    inner, outer = state.winding - ambient, state.case - ambient
    change, gain = joint.heat_change, joint.heat_gain
    for i in range(2):
        warm = change[2 * i] * inner + change[2 * i + 1] * outer
        warm += gain[2 * i] * winding + gain[2 * i + 1] * case
        if i == 0:
            state.winding = ambient + warm
        else:
            state.case = ambient + warm


def steady(
    network: Network, current: float, cold: float, copper: float, ambient: float
) -> tuple[float, float]:
    """Temperatures [degC] of winding and case at which a constant `current` [A] ends.

    cold: resistance at 25 degC [ohm]. Infinite where copper's growing resistance runs away.
    """
    to_ambient = network.winding_to_case + network.case_to_ambient
    power_cold = resistance_at(ambient, cold, copper) * current**2
    growth = cold * copper * current**2 * to_ambient
    if growth >= 1.0:
        return math.inf, math.inf
    power = power_cold / (1.0 - growth)
    return ambient + to_ambient * power, ambient + network.case_to_ambient * power
