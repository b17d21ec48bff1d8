"""The drives of all joints of a robot: state, parameters, and one compiled step."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.command import draw, line_length
from twinstudio.mechanisms.encoders import rotor_at, sense
from twinstudio.mechanisms.kernel import advance
from twinstudio.mechanisms.layout import STATE
from twinstudio.mechanisms.tables import common_row, in_effect, is_empty, joint_rows
from twinstudio.model.drive import Drive, check_drive, per_joint
from twinstudio.model.errors import SceneError

Floats = NDArray[np.float64]
LONG_AGO = 2**62
AHEAD = 4096
"""Random numbers drawn at a time."""


class Tables(NamedTuple):
    """What `kernel.advance` works on, for loops over many steps that are compiled themselves.

    In such a loop the random delays of commands repeat after some thousand commands.
    """

    common: Any
    joints: Any
    states: Any
    line: Any


class JointDrives:
    """Every mechanism of `drive` for a robot's joints, step by step.

    armature: reflected inertia float64[joints] that the physics has to add to the mass
    matrix; zero where play or elasticity gives the rotor a motion of its own, which is
    solved here. empty: nothing to do, plain PyBullet serves. Raises SceneError when a list
    does not fit the joints, or mechanisms lack what they need.
    """

    def __init__(self, drive: Drive, joints: int, step: float, rng: np.random.Generator) -> None:
        """`step` [s]; `rng` draws jitter and noise, each from a stream of its own."""
        check_drive(drive, joints, "drive")
        self.drive = in_effect(drive)
        self.empty = is_empty(self.drive)
        self._step_ns = round(step * 1e9)
        if self._step_ns < 1:
            raise SceneError(f"a step of {step} s is too short: at least 1 ns")
        self._common = common_row(self.drive, joints, step)
        self._joints = joint_rows(self.drive, joints, step)
        self._states = np.zeros(joints, dtype=STATE)
        self._effort, self._told = np.zeros(joints), np.zeros((3, joints))
        self._late_rng, self._noise_rng = rng.spawn(2)
        self._prepare_line(joints, step)
        self._prepare_noise(joints)
        geared = self._joints["geared"] > 0
        self.armature: Floats = np.where(geared, 0.0, self._joints["armature"])
        self.reset(np.zeros(joints))

    def _prepare_line(self, joints: int, step: float) -> None:
        path = self.drive.command
        latency = per_joint(path.latency, joints)
        self._shortest = float(latency.min())
        room = line_length(path, float(latency.max()), step)
        self._line = (
            np.zeros((room, 2), dtype=np.int64),
            np.zeros((room, joints)),
            np.zeros(AHEAD, dtype=np.int64),
        )
        self._jitters = path.jitter > 0.0 and path.jitter_kind != "fixed"

    def _prepare_noise(self, joints: int) -> None:
        encoders = self.drive.encoders
        noisy = any(encoders.noise + encoders.velocity_noise + encoders.effort_noise)
        self._noise = np.zeros((AHEAD if noisy else 1, 3, joints))
        self._used = AHEAD if noisy else 0

    def reset(self, position: Floats) -> None:
        """Everything at rest at `position` float64[joints], no command sent, heat at its start."""
        heat, states = self.drive.thermal, self._states
        states[...] = 0
        for field in ("reference", "wanted", "last"):
            states[field] = position
        states["rotor"] = [
            rotor_at(float(q), row) for q, row in zip(position, self._joints, strict=True)
        ]
        start = per_joint(heat.start, len(states), heat.ambient)
        states["winding"], states["case"] = start, start
        states["current"] = np.where(self._joints["drive_gain"] > 0.0, 0.0, np.nan)
        states["sent"] = -LONG_AGO
        states["elements"] = self._joints["elements"]
        states["spring"] = self._joints["spring"]
        states["bristle_damping"] = self._joints["bristle_damping"]
        self._common["sent"] = self._common["interval"] = 0
        self._draw_late()

    def _draw_late(self) -> None:
        self._common["drawn"] = 0
        if self._jitters:
            late = draw(self.drive.command, self._shortest, AHEAD, self._late_rng)
            self._line[2][:] = late

    def effort(
        self,
        stamp: int,
        position: Floats,
        velocity: Floats,
        target: Floats,
        bias: Floats,
        inertia: Floats,
    ) -> Floats:
        """Effort float64[joints] that reaches the joints over the step that begins at `stamp`.

        stamp: [ns]; a target that changes is a new command, whose hold begins there.
        position, velocity, target: float64[joints], rad or m; bias: the model's effort
        h(q, qd) for this motion; inertia: what each joint's effort accelerates at least: a
        diagonal never larger than M, with `armature` in M. The result is overwritten by
        the next call. Raises SceneError when commands pile up since stamps advance slower
        than steps.
        """
        moving = (position, velocity, target, bias, inertia, self._effort)
        drawn = advance(self._common, self._joints, self._states, self._line, stamp, moving)
        if drawn < 0:
            raise SceneError(
                "commands pile up before the drives: stamps advance slower than steps; "
                "reset the drives when the clock is set back"
            )
        if drawn >= AHEAD:
            self._draw_late()
        return self._effort

    def measured(
        self, position: Floats, velocity: Floats, effort: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """What the sensors tell of these true values, float64[joints] each.

        The results are overwritten by the next call.
        """
        if self._used == len(self._noise) > 1:
            self._noise_rng.standard_normal(out=self._noise)
            self._used = 0
        truth = (position, velocity, effort)
        noise = self._noise[self._used]
        sense(self._common, self._joints, self._states, truth, self._told, noise)
        self._used += len(self._noise) > 1
        return self._told[0], self._told[1], self._told[2]

    @property
    def tables(self) -> Tables:
        """Parameters and state as the kernel has them; not copies."""
        return Tables(self._common, self._joints, self._states, self._line)

    @property
    def temperatures(self) -> Floats:
        """Winding and case of each joint, float64[joints, 2], degC."""
        return np.stack([self._states["winding"], self._states["case"]], axis=1)

    @property
    def current(self) -> Floats:
        """Motor current float64[joints], A; NaN where no drive gain is given."""
        return self._states["current"].copy()
