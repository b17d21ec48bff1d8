"""Inertial parameters of all links of a robot, beside its kinematic tree."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Inertias:
    """Inertial parameters of every link of a `KinematicTree`, in its order.

    mass: float64[links], kg. centre: of mass in the link's frame, float64[links, 3], m.
    inertia: about the centre in axes of the link's frame, float64[links, 3, 3], kg m^2.
    """

    mass: Floats
    centre: Floats
    inertia: Floats
