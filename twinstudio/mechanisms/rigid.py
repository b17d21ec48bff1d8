"""Rigid-body dynamics of a robot, compiled: mass matrix, bias and inverse dynamics.

Links that do not move against each other are one body, so the cost grows with the
driven joints alone. Recursive Newton-Euler algorithm (Luh, Walker & Paul, J. Dyn.
Sys. Meas. Control 102, 1980) and composite rigid-body algorithm (Walker & Orin,
ibid. 104, 1982), both in body frames whose z is the joint's axis; notation as in
Featherstone, Rigid Body Dynamics Algorithms, 2008, chapters 5 and 6.

`RigidBody` serves numpy; inside compiled loops call `newton_euler` or `mass_and_bias`
with its `bodies`. Nothing is cached between calls, so other
inertias are another `RigidBody` and nothing else.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinstudio.mechanisms.compiled import compiled
from twinstudio.model.errors import LayoutError
from twinstudio.model.inertias import Inertias
from twinstudio.model.kinematics import KinematicTree
from twinstudio.model.rotations import matrix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Vector = tuple[float, float, float]


class Bodies(NamedTuple):
    """Moving bodies, parents before children, as compiled code reads them.

    parent: body that carries each, -1 for the ground. coordinate: its joint.
    slides: 1 where the joint is prismatic. turn, offset: joint frame, with z along
    the axis, in the parent's, float64[n, 3, 3] and [n, 3]. mass [kg], moment: mass
    times centre of mass [kg m], float64[n, 3]; inertia about the frame's origin,
    float64[n, 3, 3]. gravity: float64[3] in the ground's frame, m/s^2.
    """

    parent: Ints
    coordinate: Ints
    slides: Ints
    turn: Floats
    offset: Floats
    mass: Floats
    moment: Floats
    inertia: Floats
    gravity: Floats


class RigidBody:
    """Dynamics of the driven joints of one robot; what is held, is rigid.

    Raises LayoutError when inertias and tree have different numbers of links.
    """

    def __init__(
        self, tree: KinematicTree, inertias: Inertias, gravity: tuple[float, float, float]
    ) -> None:
        """`gravity`: in the world, m/s^2; the tree knows how its base is turned."""
        if len(inertias.mass) != len(tree.links):
            raise LayoutError(
                f"inertias of {len(inertias.mass)} links for a tree of {len(tree.links)}"
            )
        self.joints = len(tree.joints)
        self.bodies = _bodies(tree, inertias, gravity)

    def mass_matrix(self, q: Floats) -> Floats:
        """Joint-space inertia float64[..., joints, joints] at q float64[..., joints]."""
        rows = self._rows(q)
        found: Floats = mass_matrices(self.bodies, rows)
        return found.reshape(*np.shape(q), self.joints)

    def bias(self, q: Floats, qd: Floats) -> Floats:
        """Effort of gravity, Coriolis and centrifugal forces, float64[..., joints]."""
        return self.inverse_dynamics(q, qd, np.zeros_like(qd))

    def inverse_dynamics(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Effort float64[..., joints] that a motion takes, N m or N, all arrays alike."""
        rows = [self._rows(part) for part in (q, qd, qdd)]
        found: Floats = newton_euler_log(self.bodies, *rows)
        return found.reshape(np.shape(q))

    def _rows(self, values: Floats) -> Floats:
        if np.shape(values)[-1:] != (self.joints,):
            raise LayoutError(f"expected {self.joints} joints, got an array {list(values.shape)}")
        return np.ascontiguousarray(values, dtype=np.float64).reshape(-1, self.joints)


def _bodies(tree: KinematicTree, inertias: Inertias, gravity: tuple[float, float, float]) -> Bodies:
    """Merge the links of `tree` into bodies that move."""
    moving = [k for k, link in enumerate(tree.links) if link.coordinate >= 0]
    number = {link: body for body, link in enumerate(moving)}
    count = len(moving)
    carrier, frame = _frames(tree, number)
    parent, turn, offset = np.full(count, -1), np.zeros((count, 3, 3)), np.zeros((count, 3))
    mass, moment, inertia = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3, 3))
    for k, link in enumerate(tree.links):
        body = carrier[k]
        if k in number:
            above = link.parent
            joint = matrix(np.asarray(link.origin)) @ _along(link.axis)
            placed = joint if above < 0 else frame[above] @ joint
            parent[body] = -1 if above < 0 else carrier[above]
            turn[body], offset[body] = placed[:3, :3], placed[:3, 3]
        if body >= 0:
            centre = frame[k][:3, :3] @ inertias.centre[k] + frame[k][:3, 3]
            turned = frame[k][:3, :3] @ inertias.inertia[k] @ frame[k][:3, :3].T
            lever = centre @ centre * np.eye(3) - np.outer(centre, centre)
            mass[body] += inertias.mass[k]
            moment[body] += inertias.mass[k] * centre
            inertia[body] += turned + inertias.mass[k] * lever
    ground = matrix(np.asarray(tree.base))[:3, :3].T @ np.asarray(gravity, dtype=np.float64)
    links = [tree.links[k] for k in moving]
    return Bodies(
        parent=parent.astype(np.int64),
        coordinate=np.array([link.coordinate for link in links], dtype=np.int64),
        slides=np.array([link.kind == "prismatic" for link in links], dtype=np.int64),
        turn=turn,
        offset=offset,
        mass=mass,
        moment=moment,
        inertia=inertia,
        gravity=ground,
    )


def _frames(tree: KinematicTree, number: dict[int, int]) -> tuple[list[int], list[Floats]]:
    """The body that carries each link, -1 for the ground, and the link's frame in it."""
    carrier: list[int] = []
    frames: list[Floats] = []
    for k, link in enumerate(tree.links):
        if k in number:
            carrier.append(number[k])
            frames.append(_along(link.axis).T)
        elif link.parent < 0:
            carrier.append(-1)
            frames.append(np.eye(4))
        else:
            held = matrix(np.asarray(link.origin)) @ _held(link.kind, link.axis, link.rest)
            carrier.append(carrier[link.parent])
            frames.append(frames[link.parent] @ held)
    return carrier, frames


def _held(kind: str, axis: tuple[float, float, float], rest: float) -> Floats:
    """Transform of a joint that is held at `rest`, float64[4, 4]."""
    moved = np.eye(4)
    if kind == "prismatic":
        moved[:3, 3] = rest * np.asarray(axis)
    elif kind == "revolute":
        half = 0.5 * rest
        moved = matrix(np.array([0.0, 0.0, 0.0, *(np.sin(half) * np.asarray(axis)), np.cos(half)]))
    return moved


def _along(axis: tuple[float, float, float]) -> Floats:
    """A rotation float64[4, 4] whose third column is the unit vector `axis`."""
    z = np.asarray(axis)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x = x / np.linalg.norm(x)
    turn = np.eye(4)
    turn[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return turn


@compiled
def _cross(a: Vector, b: Vector) -> Vector:
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@compiled
def _up(turn: Floats, v: Vector) -> Vector:
    """`v` in the parent's axes."""
    return (
        turn[0, 0] * v[0] + turn[0, 1] * v[1] + turn[0, 2] * v[2],
        turn[1, 0] * v[0] + turn[1, 1] * v[1] + turn[1, 2] * v[2],
        turn[2, 0] * v[0] + turn[2, 1] * v[1] + turn[2, 2] * v[2],
    )


@compiled
def _down(turn: Floats, v: Vector) -> Vector:
    """`v`, of the parent's axes, in the body's own."""
    return (
        turn[0, 0] * v[0] + turn[1, 0] * v[1] + turn[2, 0] * v[2],
        turn[0, 1] * v[0] + turn[1, 1] * v[1] + turn[2, 1] * v[2],
        turn[0, 2] * v[0] + turn[1, 2] * v[1] + turn[2, 2] * v[2],
    )


@compiled
def _added(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@compiled
def place(bodies: Bodies, q: Floats, turn: Floats, offset: Floats) -> None:
    """Frame of each body in its parent's at q float64[joints], into turn and offset."""
    for i in range(len(bodies.mass)):
        value = q[bodies.coordinate[i]]
        fixed = bodies.turn[i]
        if bodies.slides[i]:
            for r in range(3):
                for c in range(3):
                    turn[i, r, c] = fixed[r, c]
                offset[i, r] = bodies.offset[i, r] + fixed[r, 2] * value
        else:
            s, c = np.sin(value), np.cos(value)
            for r in range(3):
                turn[i, r, 0] = c * fixed[r, 0] + s * fixed[r, 1]
                turn[i, r, 1] = c * fixed[r, 1] - s * fixed[r, 0]
                turn[i, r, 2] = fixed[r, 2]
                offset[i, r] = bodies.offset[i, r]


@compiled
def _carried(
    slides: int, turn: Floats, p: Vector, above: tuple[Vector, Vector, Vector], qd: float
) -> tuple[Vector, Vector, Vector]:
    """Angular velocity and accelerations of a body whose joint does not accelerate, own axes.

    above: angular velocity, angular acceleration and acceleration of the parent.
    """
    spin, rate, pull = above
    w = _down(turn, spin)
    inward = _cross(spin, _cross(spin, p))
    a = _down(turn, _added(pull, _added(_cross(rate, p), inward)))
    alpha = _down(turn, rate)
    if slides:
        return w, alpha, (a[0] + 2.0 * w[1] * qd, a[1] - 2.0 * w[0] * qd, a[2])
    return (w[0], w[1], w[2] + qd), (alpha[0] + w[1] * qd, alpha[1] - w[0] * qd, alpha[2]), a


@compiled
def _wrench(bodies: Bodies, i: int, w: Vector, alpha: Vector, a: Vector) -> tuple[Vector, Vector]:
    """Force and moment about the frame's origin that move body i, own axes."""
    moment, inertia = bodies.moment[i], bodies.inertia[i]
    m = bodies.mass[i]
    s = (moment[0], moment[1], moment[2])
    lifted = _added(_cross(alpha, s), _cross(w, _cross(w, s)))
    force = (m * a[0] + lifted[0], m * a[1] + lifted[1], m * a[2] + lifted[2])
    turned = _added(_up(inertia, alpha), _cross(w, _up(inertia, w)))
    return force, _added(turned, _cross(s, a))


@compiled
def _newton_euler_placed(
    bodies: Bodies, turn: Floats, offset: Floats, qd: Floats, qdd: Floats, effort: Floats
) -> None:
    """`newton_euler` for bodies that are placed already."""
    n = len(bodies.mass)
    motion = np.empty((n, 9))
    load = np.empty((n, 6))
    g = bodies.gravity
    for i in range(n):
        k, parent = bodies.coordinate[i], bodies.parent[i]
        spin, rate, pull = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (-g[0], -g[1], -g[2])
        if parent >= 0:
            m = motion[parent]
            spin, rate, pull = (m[0], m[1], m[2]), (m[3], m[4], m[5]), (m[6], m[7], m[8])
        p = (offset[i, 0], offset[i, 1], offset[i, 2])
        w, alpha, a = _carried(bodies.slides[i], turn[i], p, (spin, rate, pull), qd[k])
        if bodies.slides[i]:
            a = (a[0], a[1], a[2] + qdd[k])
        else:
            alpha = (alpha[0], alpha[1], alpha[2] + qdd[k])
        force, torque = _wrench(bodies, i, w, alpha, a)
        for c in range(3):
            motion[i, c], motion[i, 3 + c], motion[i, 6 + c] = w[c], alpha[c], a[c]
            load[i, c], load[i, 3 + c] = force[c], torque[c]
    for i in range(n - 1, -1, -1):
        effort[bodies.coordinate[i]] = load[i, 2] if bodies.slides[i] else load[i, 5]
        parent = bodies.parent[i]
        if parent >= 0:
            force = _up(turn[i], (load[i, 0], load[i, 1], load[i, 2]))
            torque = _up(turn[i], (load[i, 3], load[i, 4], load[i, 5]))
            torque = _added(torque, _cross((offset[i, 0], offset[i, 1], offset[i, 2]), force))
            for c in range(3):
                load[parent, c] += force[c]
                load[parent, 3 + c] += torque[c]


@compiled
def _compose(
    bodies: Bodies, turn: Floats, offset: Floats, mass: Floats, moment: Floats, inertia: Floats
) -> None:
    """Inertia of each body with all it carries, into mass, moment and inertia."""
    n = len(bodies.mass)
    mass[:], moment[:], inertia[:] = bodies.mass, bodies.moment, bodies.inertia
    half = np.empty((3, 3))
    for i in range(n - 1, -1, -1):
        parent = bodies.parent[i]
        if parent < 0:
            continue
        t, p = turn[i], offset[i]
        s = _up(t, (moment[i, 0], moment[i, 1], moment[i, 2]))
        m = mass[i]
        for r in range(3):
            for c in range(3):
                half[r, c] = (
                    t[r, 0] * inertia[i, 0, c]
                    + t[r, 1] * inertia[i, 1, c]
                    + t[r, 2] * inertia[i, 2, c]
                )
        # Steiner: I' = R I R' + m (p.p 1 - p p') + 2 s.p 1 - s p' - p s'.
        trace = m * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) + 2.0 * (
            s[0] * p[0] + s[1] * p[1] + s[2] * p[2]
        )
        for r in range(3):
            for c in range(3):
                turned = half[r, 0] * t[c, 0] + half[r, 1] * t[c, 1] + half[r, 2] * t[c, 2]
                turned -= m * p[r] * p[c] + s[r] * p[c] + p[r] * s[c]
                inertia[parent, r, c] += turned + (trace if r == c else 0.0)
            moment[parent, r] += s[r] + m * p[r]
        mass[parent] += m


@compiled
def _mass_matrix_placed(bodies: Bodies, turn: Floats, offset: Floats, out: Floats) -> None:
    """`mass_matrix` for bodies that are placed already."""
    n = len(bodies.mass)
    mass, moment, inertia = np.empty(n), np.empty((n, 3)), np.empty((n, 3, 3))
    _compose(bodies, turn, offset, mass, moment, inertia)
    out[:] = 0.0
    for i in range(n):
        k = bodies.coordinate[i]
        if bodies.slides[i]:
            force = (0.0, 0.0, mass[i])
            torque = (moment[i, 1], -moment[i, 0], 0.0)
        else:
            force = (-moment[i, 1], moment[i, 0], 0.0)
            torque = (inertia[i, 0, 2], inertia[i, 1, 2], inertia[i, 2, 2])
        j = i
        while j >= 0:
            other = bodies.coordinate[j]
            out[k, other] = out[other, k] = force[2] if bodies.slides[j] else torque[2]
            force, torque = _up(turn[j], force), _up(turn[j], torque)
            arm = (offset[j, 0], offset[j, 1], offset[j, 2])
            torque = _added(torque, _cross(arm, force))
            j = bodies.parent[j]


@compiled
def newton_euler(bodies: Bodies, q: Floats, qd: Floats, qdd: Floats, effort: Floats) -> None:
    """Effort of a motion, each float64[joints], into `effort`; for compiled loops."""
    n = len(bodies.mass)
    turn, offset = np.empty((n, 3, 3)), np.empty((n, 3))
    place(bodies, q, turn, offset)
    _newton_euler_placed(bodies, turn, offset, qd, qdd, effort)


@compiled
def mass_matrix(bodies: Bodies, q: Floats, out: Floats) -> None:
    """Joint-space inertia at q float64[joints] into `out` float64[joints, joints]."""
    n = len(bodies.mass)
    turn, offset = np.empty((n, 3, 3)), np.empty((n, 3))
    place(bodies, q, turn, offset)
    _mass_matrix_placed(bodies, turn, offset, out)


@compiled
def mass_and_bias(bodies: Bodies, q: Floats, qd: Floats, mass: Floats, bias: Floats) -> None:
    """Mass matrix and bias at once, into `mass` and `bias`; for compiled loops."""
    n = len(bodies.mass)
    turn, offset = np.empty((n, 3, 3)), np.empty((n, 3))
    place(bodies, q, turn, offset)
    _newton_euler_placed(bodies, turn, offset, qd, np.zeros(len(qd)), bias)
    _mass_matrix_placed(bodies, turn, offset, mass)


@compiled
def newton_euler_log(bodies: Bodies, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """Effort of a whole log, each float64[n, joints]."""
    effort = np.empty_like(q)
    for k in range(len(q)):
        newton_euler(bodies, q[k], qd[k], qdd[k], effort[k])
    return effort


@compiled
def mass_matrices(bodies: Bodies, q: Floats) -> Floats:
    """Joint-space inertia float64[n, joints, joints] at q float64[n, joints]."""
    out = np.empty((q.shape[0], q.shape[1], q.shape[1]))
    for k in range(len(q)):
        mass_matrix(bodies, q[k], out[k])
    return out
