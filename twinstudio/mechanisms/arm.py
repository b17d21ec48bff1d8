"""Drives and rigid body of a robot together: one compiled call a step of an engine.

The engine tells position and velocity, and is given the effort that moves its arm,
which has no armature, as the drives would move the real one. Of the cost of a call most
is the handling of its arguments; so there is one, and it is entered directly.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from twinstudio.mechanisms.armature import factor, inverse, sure_inertia, through_armature
from twinstudio.mechanisms.compiled import compiled
from twinstudio.mechanisms.contact import stretch
from twinstudio.mechanisms.drives import AHEAD, JointDrives
from twinstudio.mechanisms.encoders import sense
from twinstudio.mechanisms.friction import (
    gear_load,
    stribeck_load,
    stribeck_share,
    thinning,
    warming,
)
from twinstudio.mechanisms.kernel import advance
from twinstudio.mechanisms.rigid import Bodies, RigidBody, mass_and_bias
from twinstudio.model.drive import Drive
from twinstudio.model.errors import SceneError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TOLD = ("position", "velocity", "effort", "current", "temperature")
"""Rows of what is told of the joints."""
_SINGULAR = -2


@compiled
def drive_arm(
    bodies: Bodies,
    tables: tuple[Any, Any, Any],
    line: tuple[Ints, Floats, Ints],
    noise: Floats,
    arrays: tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats],
    when: tuple[int, int],
) -> int:
    """One step; returns the count of random numbers used, or an error below 0.

    when: stamp [ns] of the step's start, and the row of `noise` to use. arrays: state
    float64[2, n], target, armature, told float64[5, n], effort (which goes to the
    engine), and for work: two float64[n, n] and float64[4, n].
    """
    common, joints, states = tables
    state, target, armature, told, effort, mass, inverted, work = arrays
    position, velocity = state[0], state[1]
    bias, inertia, motor, through = work[0], work[1], work[2], work[3]
    for j in range(len(target)):
        motor[j] = states[j].motor
        told[3, j], told[4, j] = states[j].current, states[j].case
    sense(common, joints, states, (position, velocity, motor), told, noise[when[1]])
    mass_and_bias(bodies, position, velocity, mass, bias)
    for j in range(len(target)):
        mass[j, j] += armature[j]
    if not factor(mass):
        return _SINGULAR
    inverse(mass, inverted)
    sure_inertia(inverted, inertia)
    moving = (position, velocity, target, bias, inertia, through)
    drawn = advance(common, joints, states, line, when[0], moving)
    through_armature(mass, armature, through, bias, effort)
    return drawn


@compiled
def rub_along(common: Any, joints: Any, states: Any, motion: Floats, effort: Floats) -> None:
    """Add to `effort` float64[n] what the drives lose in an imposed motion.

    motion: position, velocity and acceleration float64[3, n]. Armature, friction with its
    bristles moved on by the motion, cables.
    """
    c = common[0]
    for j in range(len(effort)):
        p, s = joints[j], states[j]
        q, v = motion[0, j], motion[1, j]
        cable = p.cable_pull - p.cable_stiffness * (q - p.cable_rest)
        load = effort[j] - cable
        total = load + p.armature * motion[2, j]
        surplus = stribeck_share(v, p) * (p.breakaway - p.coulomb + stribeck_load(total, -load, p))
        surplus += gear_load(total, -load, p)
        level = p.coulomb * warming(s.case, p)
        s.high = max(level * (1.0 + p.asymmetry) + surplus, 0.0)
        s.low = -max(level * (1.0 - p.asymmetry) + surplus, 0.0)
        if s.spring > 0.0:
            stretch(c.contact, q - s.last, s)
            held = 0.0
            for k in range(s.elements):
                held += s.bristle[k]
            total += held
        elif v != 0.0:
            total += s.high if v > 0.0 else s.low
        total += (p.viscous * thinning(s.case, p) + p.quadratic * abs(v)) * v + p.offset
        s.last = q
        effort[j] = total


class ArmDrives(JointDrives):
    """The drives of `drive` on the robot of `body`, for an engine without armature.

    target: float64[joints] that is commanded, to be written to. told: what the sensors
    and the drives tell at the last stamp, one row a name of TOLD, float64[5, joints];
    effort is that of the motor over the step that ended there, current NaN without a
    drive gain, temperature that of the case. Raises SceneError as `JointDrives` does.
    """

    def __init__(
        self, drive: Drive, body: RigidBody, step: float, rng: np.random.Generator
    ) -> None:
        count = body.joints
        super().__init__(drive, count, step, rng)
        self.body = body
        self.target, self.told = np.zeros(count), np.zeros((len(TOLD), count))
        self.state = np.zeros((2, count))
        self._room = memoryview(self.state)  # type: ignore[arg-type]
        self._through = np.zeros(count)
        self._put = struct.Struct(f"{2 * count}d").pack_into
        work = (np.zeros((count, count)), np.zeros((count, count)), np.zeros((4, count)))
        arrays = (self.state, self.target, self.armature, self.told, self._through, *work)
        tables = (self._common, self._joints, self._states)
        self._fixed = (body.bodies, tables, self._line, self._noise, arrays)
        # The ideal drive shares among joints what `sure_inertia` has shared already.
        self._common["sharing"] = 1.0
        self._noisy = len(self._noise) > 1
        self._enter = _entry(*self._fixed, (0, 0))

    def step(self, stamp: int, position: Sequence[float], velocity: Sequence[float]) -> list[float]:
        """Effort [joints] for the engine over the step that begins at `stamp` [ns].

        `target` is the command whose hold begins there. Raises SceneError for a mass matrix
        that is not positive definite, and when commands pile up.
        """
        self._put(self._room, 0, *position, *velocity)
        used = self._take_noise() if self._noisy else 0
        drawn = self._enter(*self._fixed, (stamp, used))
        if drawn < 0:
            raise _failed(drawn)
        if drawn >= AHEAD:
            self._draw_late()
        found: list[float] = self._through.tolist()
        return found

    def place(self, position: Floats, velocity: Floats) -> None:
        """Go on from another position and velocity float64[joints]; joints stay as warm."""
        warmth = self._states[["winding", "case"]].copy()
        self.reset(position)
        for field in ("winding", "case"):
            self._states[field] = warmth[field]
        self._states["rotor_speed"] = velocity
        self.target[:] = position

    def along(
        self, position: Sequence[float], velocity: Sequence[float], acceleration: Sequence[float]
    ) -> list[float]:
        """Effort [joints] of the motors in a motion that is imposed, moment after moment.

        Inverse dynamics of arm and rotors, with friction and cables. Bristles move on
        from the last call; heat, play and elasticity of gears are left out.
        """
        motion = np.array([position, velocity, acceleration])
        effort = self.body.inverse_dynamics(*motion)
        rub_along(self._common, self._joints, self._states, motion, effort)
        found: list[float] = effort.tolist()
        return found

    def current_for(self, effort: Sequence[float]) -> Floats:
        """Current float64[joints] of motors that give `effort`, A; NaN without a drive gain."""
        gain = self._joints["drive_gain"]
        unknown = np.full(len(gain), np.nan)
        found: Floats = np.divide(effort, gain, out=unknown, where=gain > 0.0)
        return found

    def _take_noise(self) -> int:
        if self._used == len(self._noise):
            self._noise_rng.standard_normal(out=self._noise)
            self._used = 0
        self._used += 1
        return self._used - 1


def _entry(*arguments: Any) -> Any:
    """The compiled code of `drive_arm` for arguments of these types, without looking at them.

    Recognising a table's type takes numba longer than a step of the drives.
    """
    signature = tuple(typeof(argument) for argument in arguments)
    drive_arm.compile(signature)  # type: ignore[attr-defined]
    return drive_arm.overloads[signature].entry_point  # type: ignore[attr-defined]


def _failed(code: int) -> SceneError:
    if code == _SINGULAR:
        return SceneError(
            "the robot's mass matrix is not positive definite",
            hint="give its links mass and inertia, or its joints 'drive.motor.armature'",
        )
    return SceneError(
        "commands pile up before the drives: stamps advance slower than steps",
        hint="reset the drives when the clock is set back",
    )
