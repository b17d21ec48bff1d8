"""Drives of an emulated cell: command delay, controller, friction and heat.

Plain numpy, one value a joint; the twin shares none of it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from twinstudio.physics.cellfile import (
    CommandTruth,
    ControllerTruth,
    FrictionTruth,
    MotorTruth,
    ThermalTruth,
    per_joint,
)
from twinstudio.physics.program import Setpoints

Floats = NDArray[np.float64]
REFERENCE = 25.0  # degC, at which friction and resistance are given
COPPER = 0.00393  # 1/K, temperature coefficient of resistance of copper
JITTER_TIME = 0.02  # s, correlation time of the command jitter
SPREAD = 6.0  # standard deviations beyond which no delay is drawn
BRISTLE_DAMPING = 1e-3  # s, damping over stiffness of the elastic contact


class Friction:
    """Elastic presliding, then Coulomb, Stribeck and viscous friction.

    The contact is an elastic-perfectly plastic spring (Jenkins' element, the
    building block of Maxwell-slip models): it follows the joint and slips where
    it would carry more than the sliding friction at that speed. So it holds a
    joint at rest without creep, and gives back no more than it has stored.
    """

    def __init__(self, truth: FrictionTruth, joints: int, *, step: float) -> None:
        coulomb = per_joint(truth.coulomb, joints)
        self._breakaway = per_joint(truth.breakaway or truth.coulomb, joints)
        self._travel = per_joint(truth.presliding, joints)
        bias = per_joint(truth.asymmetry, joints)
        self._cold = (coulomb, self._breakaway - coulomb, per_joint(truth.viscous, joints))
        self._sides = np.array([-(1.0 - bias), 1.0 + bias])
        self._slowness = 1.0 / per_joint(truth.stribeck, joints)
        self._softening = per_joint(truth.temperature, joints)
        self._step = step
        self._held = np.zeros(joints)
        self.snag(np.zeros(joints))
        self.set_temperature(np.full(joints, REFERENCE))

    def snag(self, extra: Floats) -> None:
        """Further sliding friction float64[joints], of something stuck; 0 to free it."""
        self.extra = extra
        self.stiffness = (self._breakaway + extra) / self._travel

    def set_temperature(self, case: Floats) -> None:
        """Friction falls exponentially with case temperature float64[joints], degC."""
        scale = np.exp(-self._softening * (case - REFERENCE))
        self._coulomb, self._surplus, self._viscous = (part * scale for part in self._cold)

    def effort(self, v: Floats) -> Floats:
        """Friction against the motion float64[joints], N m or N; advances a step.

        v: joint velocities float64[joints] at the start of the step.
        """
        ratio = v * self._slowness
        sliding = self._coulomb + self._surplus * np.exp(-ratio * ratio) + self.extra
        low, high = self._sides * sliding
        pull = self.stiffness * v
        self._held = np.minimum(np.maximum(self._held + self._step * pull, low), high)
        damped = self._held + BRISTLE_DAMPING * pull
        result: Floats = np.minimum(np.maximum(damped, low), high) + self._viscous * v
        return result

    def stored(self) -> Floats:
        """Energy in the elastic contacts float64[joints], J."""
        energy: Floats = 0.5 * self._held**2 / np.maximum(self.stiffness, np.finfo(float).tiny)
        return energy


class Controller:
    """Position and velocity feedback on top of the arm's own model."""

    def __init__(
        self, truth: ControllerTruth, motor: MotorTruth, joints: int, *, step: float
    ) -> None:
        self.stiffness = per_joint(truth.stiffness, joints)
        self.damping = per_joint(truth.damping, joints)
        self.limit = per_joint(motor.max_effort, joints)
        self._feedforward, self._follow = truth.feedforward, truth.velocity_feedforward
        self._rate = 0.0 if truth.integral_time is None else step / truth.integral_time
        self._integral = np.zeros(joints)

    def effort(self, q: Floats, v: Floats, wanted: tuple[Floats, Floats], model: Floats) -> Floats:
        """Motor effort float64[joints], within the drive's limits.

        q, v: measured. wanted: position and velocity. model: feed-forward effort.
        """
        error = self.stiffness * (wanted[0] - q)
        lag = self._follow * wanted[1] - v
        demand = self._feedforward * model + error + self.damping * lag + self._integral
        given: Floats = np.minimum(np.maximum(demand, -self.limit), self.limit)
        if self._rate:
            # A saturated drive does not wind up.
            self._integral = self._integral + self._rate * error * (given == demand)
        return given


class CommandLine:
    """The way from a command's stamp to the drive that follows it.

    The delay varies slowly (a first-order Gauss-Markov process) and continuously;
    the drive interpolates between samples. What was sent later never arrives
    earlier.
    """

    def __init__(
        self, truth: CommandTruth, home: Floats, rng: np.random.Generator, *, step: float
    ) -> None:
        self._truth = truth
        self._rng = rng
        self._step = step
        self._decay = math.exp(-step / JITTER_TIME)
        self._depth = math.ceil((truth.latency + SPREAD * truth.jitter) / step) + 2
        still = np.zeros_like(home)
        self._past = np.tile(np.stack([home, still, still]), (self._depth, 1, 1))
        self._deviation = float(rng.normal())
        self._newest = -math.inf
        self._count = 0

    def pass_on(self, sent: Setpoints) -> Setpoints:
        """What the drives see while the set-points `sent` are being sent."""
        fresh = np.stack([sent.position, sent.velocity, sent.acceleration], axis=1)
        line = np.concatenate([self._past, fresh])
        count = len(fresh)
        age = self._delays(count) / self._step
        now = np.arange(self._count, self._count + count, dtype=np.float64)
        seen = np.maximum.accumulate(np.concatenate(([self._newest], now - age)))[1:]
        self._newest, self._count = float(seen[-1]), self._count + count
        place = np.maximum(seen - (now[0] - self._depth), 0.0)
        k = np.minimum(place.astype(np.int64), len(line) - 2)
        part = (place - k)[:, None, None]
        mixed = line[k] * (1.0 - part) + line[k + 1] * part
        self._past = line[-self._depth :]
        return Setpoints(mixed[:, 0], mixed[:, 1], mixed[:, 2])

    def _delays(self, count: int) -> Floats:
        """Delays [s] of the next `count` steps."""
        if not self._truth.jitter:
            return np.full(count, self._truth.latency)
        drive = math.sqrt(1.0 - self._decay**2) * self._rng.normal(size=count)
        deviations = np.empty(count)
        for k in range(count):
            self._deviation = self._decay * self._deviation + drive[k]
            deviations[k] = self._deviation
        deviations = np.clip(deviations, -SPREAD, SPREAD)
        return np.maximum(self._truth.latency + self._truth.jitter * deviations, 0.0)


class Heat:
    """Two-node thermal network of each joint, solved exactly for constant losses.

    C_w dT_w/dt = P_w - (T_w - T_c) / R_wc;
    C_c dT_c/dt = P_c + (T_w - T_c) / R_wc - (T_c - T_a) / R_ca.
    """

    def __init__(self, truth: ThermalTruth, joints: int, *, span: float) -> None:
        self.ambient = truth.ambient
        start = per_joint(truth.start or (truth.ambient,), joints)
        self.nodes = np.stack([start, start], axis=1)
        self.extra = np.zeros(joints)
        self._resistance = per_joint(truth.resistance, joints)
        capacity = np.stack(
            [per_joint(truth.winding_capacity, joints), per_joint(truth.case_capacity, joints)],
            axis=1,
        )
        inner = 1.0 / per_joint(truth.winding_to_case, joints)
        outer = 1.0 / per_joint(truth.case_to_ambient, joints)
        flow = np.array([[-inner, inner], [inner, -inner - outer]]).transpose(2, 0, 1)
        self._transition, self._gain = _held(flow / capacity[:, :, None], capacity, span)

    @property
    def winding(self) -> Floats:
        """Winding temperatures float64[joints], degC."""
        return self.nodes[:, 0]

    @property
    def case(self) -> Floats:
        """Case temperatures float64[joints], degC."""
        return self.nodes[:, 1]

    def advance(self, squared_current: Floats, friction_power: Floats) -> None:
        """One span with mean `squared_current` [A^2] and `friction_power` [W], [joints]."""
        resistance = self._resistance * (1.0 + COPPER * (self.winding - REFERENCE))
        power = np.stack([resistance * squared_current + self.extra, friction_power], axis=1)
        above = self.nodes - self.ambient
        change = np.einsum("jab,jb->ja", self._transition, above)
        self.nodes = self.ambient + change + np.einsum("jab,jb->ja", self._gain, power)


def _held(flow: Floats, capacity: Floats, span: float) -> tuple[Floats, Floats]:
    """Transition and input matrices float64[joints, 2, 2] for inputs held over `span` [s].

    exp(A t) by eigenvalues: those of a passive network are real and apart.
    """
    values, vectors = np.linalg.eig(flow)
    grown = np.einsum("jab,jb,jbc->jac", vectors, np.exp(values * span), np.linalg.inv(vectors))
    gain = np.linalg.solve(flow, grown - np.eye(2)) / capacity[:, None, :]
    return grown, gain
