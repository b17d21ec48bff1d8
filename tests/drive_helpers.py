"""One joint under its drive: a plant that moves as an engine moves it, in a compiled loop."""

import numpy as np
from numba import njit

from twinstudio.mechanisms.drives import JointDrives
from twinstudio.mechanisms.kernel import advance

STEP = 1e-3


@njit
def _advance_plant(tables, q, v, load, target, inertia, step_ns, out):  # noqa: PLR0917
    common, joints, states, line = tables
    position, velocity = np.array([q]), np.array([v])
    wanted, bias = np.empty(1), np.empty(1)
    felt, effort = np.array([inertia]), np.empty(1)
    step = 1e-9 * step_ns
    for k in range(len(load)):
        bias[0], wanted[0] = load[k], target[k]
        moving = (position, velocity, wanted, bias, felt, effort)
        advance(common, joints, states, line, k * step_ns, moving)
        velocity[0] += step / inertia * (effort[0] - bias[0])
        position[0] += step * velocity[0]
        if len(out):
            out[k, 0], out[k, 1], out[k, 2] = position[0], velocity[0], effort[0]
            out[k, 3], out[k, 4] = states[0].rotor, states[0].rotor_speed
    return position[0], velocity[0]


class Joint:
    """One joint of `inertia` under `drive`, from rest at 0 or with the speed `v`."""

    def __init__(self, drive, inertia, *, step=STEP, seed=0, v=0.0):
        self.drives = JointDrives(drive, 1, step, np.random.default_rng(seed))
        self.inertia = inertia + float(self.drives.armature[0])
        self.step = step
        self.q, self.v = 0.0, v

    def run(self, load, target=None, *, keep=True):
        """Position, speed, effort, rotor, rotor speed after each step, float64[n, 5]."""
        load = np.asarray(load, dtype=float)
        target = np.zeros(len(load)) if target is None else np.asarray(target, dtype=float)
        out = np.empty((len(load) if keep else 0, 5))
        self.q, self.v = _advance_plant(
            self.drives.tables, self.q, self.v, load, target, self.inertia,
            round(self.step * 1e9), out,
        )  # fmt: skip
        return out

    @property
    def state(self):
        return self.drives.tables.states[0]
