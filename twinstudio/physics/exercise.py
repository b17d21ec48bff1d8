"""A gentle motion about home, to try a scene with."""

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.scene import Scene
from twinstudio.physics.world import World

Floats = NDArray[np.float64]
RATE = 1000.0
"""Commands a second."""
BASE = 0.2
HARMONICS = 3
_SHARE = 0.8
_MOST = {False: 0.3, True: 0.1}
"""rad, or m for a joint that slides: the largest way from home."""


def exercise(scene: Scene, world: World, seconds: float) -> Floats:
    """Commanded positions float64[n, joints] at RATE, beginning at home.

    A Fourier series of three harmonics of 0.2 Hz, another one
    for each joint, fades in over a second and keeps within the limits, near home.
    """
    count = round(seconds * RATE) + 1
    home = np.asarray(scene.robot.home)
    time = np.arange(count)[:, None] / RATE
    most = np.array([_MOST[name in world.prismatic] for name in world.joints])
    low = np.maximum(world.limits[:, 0], home - most)
    high = np.minimum(world.limits[:, 1], home + most)
    centre, reach = 0.5 * (low + high), 0.5 * _SHARE * (high - low)
    turn = np.arange(len(home))
    swing = sum(
        np.sin(2.0 * np.pi * BASE * k * time + (k + 1) * turn) / k for k in range(1, HARMONICS + 1)
    )
    peak = sum(1.0 / k for k in range(1, HARMONICS + 1))
    fade = np.clip(time, 0.0, 1.0)
    smooth = fade**3 * (10.0 + fade * (6.0 * fade - 15.0))
    moved: Floats = home + smooth * (centre - home + reach * swing / peak)
    return moved
