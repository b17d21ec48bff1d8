"""Laws of friction, for single numbers in the kernel and for whole logs in a fit.

Every `law` is anything with the attributes of `Law`: this tuple, or a row of the
kernel's table. All efforts are those against the motion [N m | N].
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.compiled import compiled

Floats = NDArray[np.float64]
Values = Any
"""A float, or float64[n]."""

REFERENCE = 25.0
"""degC, at which friction and resistance are given."""


class Law(NamedTuple):
    """Parameters of sliding friction, by the names and units of `drive.friction`.

    Without a Stribeck effect breakaway equals coulomb.
    """

    coulomb: Values = 0.0
    viscous: Values = 0.0
    quadratic: Values = 0.0
    breakaway: Values = 0.0
    stribeck: Values = 1.0
    stribeck_exponent: Values = 2.0
    asymmetry: Values = 0.0
    offset: Values = 0.0
    load_motor: Values = 0.0
    load_external: Values = 0.0
    stribeck_load_motor: Values = 0.0
    stribeck_load_external: Values = 0.0


@compiled
def stribeck_share(velocity: Values, law: Any) -> Values:
    """Share of the Stribeck effect that is left at `velocity`: exp(-|w/ws|^a), 1 at rest.

    Stribeck's curve as Bo & Pavelescu, Wear 82 (1982), write it.
    """
    return np.exp(-((np.abs(velocity) / law.stribeck) ** law.stribeck_exponent))


@compiled
def gear_load(motor: Values, external: Values, law: Any) -> Values:
    """Friction from what presses the teeth: |Km tau_motor - Ke tau_external| (BAM M4 to M6).

    external: effort of the surroundings on the joint; a joint that holds a weight has
    external = -motor, and both terms add up.
    """
    return np.abs(law.load_motor * motor - law.load_external * external)


@compiled
def stribeck_load(motor: Values, external: Values, law: Any) -> Values:
    """Load term within the Stribeck effect: |Kms tau_motor - Kes tau_external| (BAM M6)."""
    return np.abs(law.stribeck_load_motor * motor - law.stribeck_load_external * external)


@compiled
def sliding(velocity: Values, law: Any, motor: Values = 0.0, external: Values = 0.0) -> Values:
    """Sliding friction of a steady motion, signed as `velocity`; at rest the offset alone.

    sign w (Fc (1 + asymmetry sign w) + |Km tm - Ke te| + exp(-|w/ws|^a) (Fs - Fc + |Kms tm -
    Kes te|)) + Fv w + Fq |w| w + offset. Rhoban, "Better actuator models" (BAM),
    M1 to M6; asymmetry, offset and quadratic term beside it.
    """
    way = np.sign(velocity)
    surplus = law.breakaway - law.coulomb + stribeck_load(motor, external, law)
    level = law.coulomb * (1.0 + law.asymmetry * way) + gear_load(motor, external, law)
    level = level + stribeck_share(velocity, law) * surplus
    lubricated = (law.viscous + law.quadratic * np.abs(velocity)) * velocity
    return way * level + lubricated + law.offset


@compiled
def warming(case: Values, law: Any) -> Values:
    """Factor of Coulomb friction at `case` temperature [degC]: 1 + b (T - 25 degC), at least 0."""
    return np.maximum(1.0 + law.temperature * (case - REFERENCE), 0.0)


@compiled
def thinning(case: Values, law: Any) -> Values:
    """Factor of viscous friction at `case` temperature [degC]: exp(-(T - 25 degC) / TV).

    The lubricant's loss of viscosity (Bittencourt et al., IROS 2010); thinness is 1/TV [1/K].
    """
    return np.exp(-(case - REFERENCE) * law.thinness)


@compiled
def presliding(position: Floats, travel: float) -> Floats:
    """State in [-1, 1] of an elastic contact along a log of `position` float64[n].

    It follows the joint and slips at +-1, after `travel` [rad | m] (Jenkins' element, of
    which Maxwell-slip and Prandtl-Ishlinskii models are made). It starts relaxed. Times
    the level of friction it is the friction of a hysteretic spring.
    """
    state = np.empty(len(position))
    state[0] = 0.0
    for k in range(1, len(position)):
        moved = state[k - 1] + (position[k] - position[k - 1]) / travel
        state[k] = min(max(moved, -1.0), 1.0)
    return state


@compiled
def maxwell_slip(position: Floats, travel: float, elements: int) -> Floats:
    """As `presliding`, of `elements` equally strong springs that slip one after another.

    Element i slips at i/n of `travel` (generalized Maxwell slip: Al-Bender, Lampaert &
    Swevers, IEEE Trans. Autom. Control 50, 2005). One element is `presliding`.
    """
    total = np.zeros(len(position))
    for k in range(elements):
        total += presliding(position, travel * (k + 1) / elements)
    return total / elements
