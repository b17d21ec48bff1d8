"""Friction, damping, armature, payload and delay of a whole arm from one fast motion.

Equation error first: effort is linear in all but the delay. Then refinement by
simulated trajectories: the arm is run under the logged efforts, in short segments, and
what it does there, free of noise, is the instrument for the next estimate, so that noise
in the derivatives biases nothing (Janot, Vandanjon, Gautier, IEEE TCST 2014).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from twinstudio.mechanisms import armature as factors
from twinstudio.mechanisms.compiled import compiled
from twinstudio.mechanisms.rigid import Bodies, mass_and_bias, newton_euler_log
from twinstudio_calibration.rigid_body import RigidBody

Floats = NDArray[np.float64]
PAYLOAD = 4
"""Mass and first moments."""
ROUNDS = 3


class Log(NamedTuple):
    """Even samples `step` s apart; position and effort float64[n, joints], SI."""

    step: float
    position: Floats
    effort: Floats


class Setting(NamedTuple):
    """How a log is cut and filtered.

    cutoff: Hz, of all filters. segment: s, of a simulated piece. still: speed, rad/s or
    m/s, below which friction says nothing of its level.
    """

    cutoff: float = 25.0
    segment: float = 0.4
    still: float = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """What was found; deviation: standard deviations in the order of `vector`."""

    friction: Floats
    damping: Floats
    armature: Floats
    mass: float
    moment: Floats
    delay: float
    deviation: Floats

    @property
    def vector(self) -> Floats:
        """Armature, damping, friction of each joint, payload, delay."""
        own = (self.armature, self.damping, self.friction)
        return np.concatenate([*own, [self.mass], self.moment, [self.delay]])


def bodies_of(body: RigidBody) -> Bodies:
    """The scene's robot for compiled loops, parameters as in its model."""
    model = body.model
    count = model.njoints - 1
    where = {int(v): j for j, v in enumerate(body.order)}
    parts: dict[str, list[Floats]] = {"turn": [], "offset": [], "moment": [], "inertia": []}
    mass, slides = [], []
    frames = [np.eye(3)]
    for i in range(1, count + 1):
        joint = model.joints[i]
        data = joint.createData()
        joint.calc(data, np.zeros(model.nq), np.zeros(model.nv))
        subspace = np.asarray(data.S).ravel()
        slides.append(int(np.linalg.norm(subspace[:3]) > 0.5))
        axis = subspace[:3] if slides[-1] else subspace[3:]
        along = _along(axis)
        placement = model.jointPlacements[i]
        above = frames[model.parents[i]].T
        frames.append(along)
        parts["turn"].append(above @ placement.rotation @ along)
        parts["offset"].append(above @ placement.translation)
        ten = np.asarray(model.inertias[i].toDynamicParameters())
        mass.append(float(ten[0]))
        parts["moment"].append(along.T @ ten[1:4])
        xx, xy, yy, xz, yz, zz = ten[4:]
        full = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        parts["inertia"].append(along.T @ full @ along)
    return Bodies(
        parent=np.array([model.parents[i] - 1 for i in range(1, count + 1)], dtype=np.int64),
        coordinate=np.array([where[model.idx_vs[i]] for i in range(1, count + 1)], dtype=np.int64),
        slides=np.array(slides, dtype=np.int64),
        turn=np.stack(parts["turn"]),
        offset=np.stack(parts["offset"]),
        mass=np.array(mass),
        moment=np.stack(parts["moment"]),
        inertia=np.stack(parts["inertia"]),
        gravity=np.asarray(model.gravity.linear),
    )


def with_payload(bodies: Bodies, mass: float, moment: Floats) -> Bodies:
    """`bodies` with a point mass [kg], its first moment [kg m] in the last body's frame."""
    masses, moments, inertias = bodies.mass.copy(), bodies.moment.copy(), bodies.inertia.copy()
    masses[-1] += mass
    moments[-1] += moment
    if mass > 0.0:
        centre = moment / mass
        inertias[-1] += mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return bodies._replace(mass=masses, moment=moments, inertia=inertias)


def fit_arm(bodies: Bodies, log: Log, setting: Setting | None = None) -> Arm:
    """All parameters of an arm whose own inertias are known, from position and effort."""
    setting = setting or Setting()
    smooth = _Smooth(log, setting)
    q, v, a = smooth.motion()
    arm = _estimate(bodies, smooth, (q, v, a), (q, v, a), None)
    for _ in range(ROUNDS):
        simulated = simulate(bodies, log, arm, setting, (q, v))
        arm = _estimate(bodies, smooth, (q, v, a), simulated, arm)
    return arm


class _Smooth:
    """One filter for motion and effort alike, and what of it is kept."""

    def __init__(self, log: Log, setting: Setting) -> None:
        self.log, self.setting = log, setting
        self.sections = signal.butter(4, 2.0 * setting.cutoff * log.step, output="sos")
        self.stride = max(1, int(1.0 / (6.0 * setting.cutoff * log.step)))
        edge = int(3.0 / setting.cutoff / log.step)
        self.keep = slice(edge, -edge, self.stride)

    def motion(self) -> tuple[Floats, Floats, Floats]:
        """Position, speed and acceleration, float64[n, joints] each."""
        q = self.of(self.log.position)
        v = np.gradient(q, self.log.step, axis=0, edge_order=2)
        return q, v, np.gradient(v, self.log.step, axis=0, edge_order=2)

    def of(self, values: Floats) -> Floats:
        """`values` [n, ...] filtered, no phase."""
        return np.asarray(signal.sosfiltfilt(self.sections, values, axis=0))

    def sliding(self, velocity: Floats) -> Floats:
        """1.0 where a joint has slid one way for as long as the filter remembers, else 0."""
        moving = np.abs(velocity) > self.setting.still
        reach = int(1.2 / self.setting.cutoff / self.log.step)
        box = np.ones((2 * reach + 1, 1))
        near = signal.fftconvolve(~moving, box, mode="same", axes=0)
        return np.asarray((near < 0.5)[self.keep], dtype=np.float64)


def _estimate(
    bodies: Bodies,
    smooth: _Smooth,
    measured: tuple[Floats, Floats, Floats],
    instrument: tuple[Floats, Floats, Floats],
    before: Arm | None,
) -> Arm:
    """Least squares of measured columns, projected on those of the instrument."""
    log, keep = smooth.log, smooth.keep
    _, v, _ = measured
    joints = v.shape[1]
    weight = smooth.sliding(v)
    columns, known = _columns(bodies, smooth, measured, before)
    known_delay = 0.0 if before is None else before.delay
    effort = smooth.of(shifted(log, known_delay))
    late = -np.gradient(effort, log.step, axis=0)[keep]
    target = effort[keep] - known
    phi = _stack(columns, late, weight)
    z = phi
    if instrument is not measured:
        other, _ = _columns(bodies, smooth, instrument, before)
        z = _stack(other, late, weight)
    y = (target * weight).T.ravel()
    # Every joint counts by how well it is told.
    scale = np.ones(joints)
    for _ in range(2):
        w = np.repeat(1.0 / scale, len(weight))
        theta = np.linalg.solve(z.T @ (w[:, None] ** 2 * phi), z.T @ (w**2 * y))
        residual = (y - phi @ theta).reshape(joints, -1)
        scale = np.sqrt((residual**2).sum(axis=1) / np.maximum(weight.sum(axis=0), 1.0))
        scale = np.maximum(scale, 1e-12)
    square = z.T @ (w[:, None] ** 2 * z)
    deviation = np.sqrt(np.diag(np.linalg.inv(square)))
    own = theta[: 3 * joints].reshape(3, joints)
    return Arm(
        friction=own[2],
        damping=own[1],
        armature=own[0],
        mass=float(theta[3 * joints]),
        moment=np.asarray(theta[3 * joints + 1 : 3 * joints + PAYLOAD], dtype=np.float64),
        delay=known_delay - float(theta[-1]),
        deviation=deviation,
    )


def _columns(
    bodies: Bodies, smooth: _Smooth, motion: tuple[Floats, Floats, Floats], before: Arm | None
) -> tuple[Floats, Floats]:
    """Columns [m, joints, 3 + payload] and the known effort [m, joints], filtered."""
    keep = smooth.keep
    fine = max(1, smooth.stride // 2)
    q, v, a = (np.ascontiguousarray(x[::fine]) for x in motion)
    known = newton_euler_log(bodies, q, v, a)
    empty = bodies._replace(
        mass=np.zeros_like(bodies.mass),
        moment=np.zeros_like(bodies.moment),
        inertia=np.zeros_like(bodies.inertia),
    )
    parts = [a, v, np.sign(v)]
    mass, moment = (0.0, np.zeros(3)) if before is None else (before.mass, before.moment)
    centre = moment / mass if mass > 1e-6 else np.zeros(3)
    for k in range(PAYLOAD):
        one = empty._replace(mass=empty.mass.copy(), moment=empty.moment.copy())
        if k == 0:
            one.mass[-1] = 1.0
        else:
            one.moment[-1, k - 1] = 1.0
        parts.append(newton_euler_log(one, q, v, a))
    if before is not None and mass > 0.0:
        spin = mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        turned = empty._replace(inertia=empty.inertia.copy())
        turned.inertia[-1] = spin
        known = known + newton_euler_log(turned, q, v, a)
    every = np.concatenate([np.stack(parts, axis=2), known[:, :, None]], axis=2)
    sections = signal.butter(4, 2.0 * smooth.setting.cutoff * smooth.log.step * fine, output="sos")
    filtered = signal.sosfiltfilt(sections, every, axis=0)
    rows = np.arange(len(motion[0]))[keep]
    at = rows / fine
    low = np.minimum(at.astype(int), len(filtered) - 2)
    share = (at - low)[:, None, None]
    found = (1.0 - share) * filtered[low] + share * filtered[low + 1]
    return found[:, :, :-1], found[:, :, -1]


def _stack(columns: Floats, late: Floats, weight: Floats) -> Floats:
    """One row a joint and sample, one column a parameter; joints do not share their own."""
    m, joints, _ = columns.shape
    table = np.zeros((joints, m, 3 * joints + PAYLOAD + 1))
    for j in range(joints):
        w = weight[:, j]
        for k in range(3):
            table[j, :, k * joints + j] = w * columns[:, j, k]
        table[j, :, 3 * joints : 3 * joints + PAYLOAD] = w[:, None] * columns[:, j, 3:]
        table[j, :, -1] = w * late[:, j]
    return table.reshape(joints * m, -1)


def simulate(
    bodies: Bodies, log: Log, arm: Arm, setting: Setting, state: tuple[Floats, Floats]
) -> tuple[Floats, Floats, Floats]:
    """Position, speed, acceleration of the arm under the logged efforts, in segments.

    Each segment begins in the smoothed state. float64[n, joints] each.
    """
    loaded = with_payload(bodies, max(arm.mass, 0.0), arm.moment if arm.mass > 0.0 else np.zeros(3))
    effort = shifted(log, arm.delay)
    length = max(2, round(setting.segment / log.step))
    return _run(
        loaded,
        (
            np.maximum(arm.armature, 1e-6),
            np.maximum(arm.damping, 0.0),
            np.maximum(arm.friction, 0.0),
        ),
        effort,
        state,
        (log.step, length),
    )


def shifted(log: Log, delay: float) -> Floats:
    """The logged efforts as they act `delay` s later, float64[n, joints]."""
    time = np.arange(len(log.effort), dtype=np.float64)
    late = time - delay / log.step
    return np.stack([np.interp(late, time, column) for column in log.effort.T], axis=1)


@compiled
def _run(
    bodies: Bodies,
    own: tuple[Floats, Floats, Floats],
    effort: Floats,
    state: tuple[Floats, Floats],
    cut: tuple[float, int],
) -> tuple[Floats, Floats, Floats]:
    armature, damping, friction = own
    step, length = cut
    n, joints = effort.shape
    position, velocity = np.empty((n, joints)), np.empty((n, joints))
    acceleration = np.empty((n, joints))
    q, v = state[0][0].copy(), state[1][0].copy()
    mass, bias, push = np.empty((joints, joints)), np.empty(joints), np.empty(joints)
    for k in range(n):
        if k % length == 0:
            q[:], v[:] = state[0][k], state[1][k]
        mass_and_bias(bodies, q, v, mass, bias)
        for j in range(joints):
            mass[j, j] += armature[j] + step * damping[j]
            drag = friction[j] * np.tanh(v[j] / 0.005)
            push[j] = effort[k, j] - bias[j] - damping[j] * v[j] - drag
        factors.factor(mass)
        factors.solve(mass, push)
        position[k], velocity[k], acceleration[k] = q, v, push
        for j in range(joints):
            v[j] += step * push[j]
            q[j] += step * v[j]
    return position, velocity, acceleration


def _along(axis: Floats) -> Floats:
    """A rotation whose third column is the unit vector `axis`; none for z itself."""
    if axis[2] > 1.0 - 1e-12:
        return np.eye(3)
    other = np.cross(np.eye(3)[int(np.argmin(np.abs(axis)))], axis)
    other /= np.linalg.norm(other)
    return np.column_stack([other, np.cross(axis, other), axis])
