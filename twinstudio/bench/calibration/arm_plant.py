"""An arm of known truth: recursive Newton-Euler in plain numpy, friction, noise, logs.

It shares no code with the fitters. The arm has seven eRob80-50 drives, whose Coulomb and
viscous friction and armature are those of BAM's parameter file (model M1: Kc 4.097 N m,
Kv 1.298 N m s/rad, armature 0.3369 kg m^2), and links made up for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Block
from twinstudio.model.scene import Scene, load_scene
from twinstudio.model.signals import Layout, joint_signals

Floats = NDArray[np.float64]
COULOMB, VISCOUS, ARMATURE = 4.097, 1.298, 0.3369
GRAVITY = 9.81
MASSES = (5.0, 4.5, 3.5, 3.0, 2.5, 1.8, 0.9)
LENGTHS = (0.333, 0.2, 0.316, 0.25, 0.384, 0.1, 0.107)
"""kg, and m along z of each link's frame to the next joint."""
ROLLS = (0.0, -np.pi / 2, np.pi / 2, np.pi / 2, -np.pi / 2, np.pi / 2, np.pi / 2)
"""rad about x, of each joint's frame in the one before."""
CURRENT_NOISE, ENCODER = 0.2, 2.0 * np.pi / 2**19
"""N m standard deviation; rad a step."""
JOINTS = tuple(f"joint{k + 1}" for k in range(len(MASSES)))


@dataclass(frozen=True)
class Arm:
    """mass: float64[7]; centre: float64[7, 3]; inertia: float64[7, 3, 3] about the centre.

    delay: of the effort behind the motion, s. Coulomb, viscous: float64[7].
    """

    mass: Floats
    centre: Floats
    inertia: Floats
    delay: float = 0.0
    coulomb: Floats = field(default_factory=lambda: np.full(len(MASSES), COULOMB))
    viscous: Floats = field(default_factory=lambda: np.full(len(MASSES), VISCOUS))
    armature: Floats = field(default_factory=lambda: np.full(len(MASSES), ARMATURE))

    def carrying(self, mass: float, centre: Floats) -> "Arm":
        """The arm with a ball of 5 cm radius of gyration fixed to its last link."""
        total = self.mass[-1] + mass
        middle = (self.mass[-1] * self.centre[-1] + mass * centre) / total
        inertia = self.inertia.copy()
        inertia[-1] += mass * 0.05**2 * np.eye(3)
        for kilograms, at in ((self.mass[-1], self.centre[-1]), (mass, centre)):
            d = at - middle
            inertia[-1] += kilograms * (d @ d * np.eye(3) - np.outer(d, d))
        masses, centres = self.mass.copy(), self.centre.copy()
        masses[-1], centres[-1] = total, middle
        return Arm(masses, centres, inertia, self.delay)


def nominal() -> Arm:
    """The arm as its URDF has it: rods with their centres a third along."""
    mass = np.array(MASSES)
    centre = np.stack([np.array([0.02, -0.03, length / 3]) for length in LENGTHS])
    rods = [m * max(length, 0.1) ** 2 / 12 for m, length in zip(MASSES, LENGTHS, strict=True)]
    inertia = np.stack([np.diag([1.1, 1.0, 0.4]) * value for value in rods])
    return Arm(mass, centre, inertia)


def true_arm(rng: np.random.Generator, delay: float = 0.0) -> Arm:
    """An arm that differs from its URDF: masses by 10 %, centres by 1 cm, inertias by 15 %."""
    arm, n = nominal(), len(MASSES)
    return Arm(
        arm.mass * np.exp(0.1 * rng.normal(size=n)),
        arm.centre + 0.01 * rng.normal(size=(n, 3)),
        arm.inertia * np.exp(0.15 * rng.normal(size=n))[:, None, None],
        delay,
    )


def motion(rng: np.random.Generator, seconds: float, rate: float) -> tuple[Floats, ...]:
    """Time, and position, velocity, acceleration [n, 7] of a Fourier series of five harmonics."""
    time = np.arange(round(seconds * rate)) / rate
    base, n = 2.0 * np.pi / min(seconds, 10.0), len(MASSES)
    position, velocity, acceleration = (np.zeros((len(time), n)) for _ in range(3))
    for harmonic in range(1, 6):
        w = base * harmonic
        a, b = rng.normal(size=(2, n)) * 0.55 / harmonic**0.8
        sine, cosine = np.sin(w * time)[:, None], np.cos(w * time)[:, None]
        position += a * sine + b * cosine
        velocity += w * (a * cosine - b * sine)
        acceleration -= w**2 * (a * sine + b * cosine)
    return time, position, velocity, acceleration


def efforts(arm: Arm, q: Floats, dq: Floats, ddq: Floats) -> Floats:
    """Inverse dynamics of every sample, float64[n, 7], friction and armature included.

    Newton-Euler outwards and inwards in link frames (Featherstone, Rigid Body Dynamics
    Algorithms, 2008, chapter 5); all samples at once.
    """
    n, joints = q.shape
    turns, omega, alpha, accelerations = [], [], [], []
    w, dw = np.zeros((n, 3)), np.zeros((n, 3))
    a = np.tile([0.0, 0.0, GRAVITY], (n, 1))
    for k in range(joints):
        turn = _turn(k, q[:, k])
        shift = np.array([0.0, 0.0, 0.0 if k == 0 else LENGTHS[k - 1]])
        a = a + np.cross(dw, shift) + np.cross(w, np.cross(w, shift))
        w, dw, a = (np.einsum("nji,nj->ni", turn, x) for x in (w, dw, a))
        spin = np.zeros((n, 3))
        spin[:, 2] = dq[:, k]
        dw = dw + np.cross(w, spin)
        dw[:, 2] += ddq[:, k]
        w = w + spin
        turns.append(turn)
        omega.append(w)
        alpha.append(dw)
        accelerations.append(a)
    force, moment = np.zeros((n, 3)), np.zeros((n, 3))
    result = np.empty((n, joints))
    for k in reversed(range(joints)):
        c, inertia, w, dw = arm.centre[k], arm.inertia[k], omega[k], alpha[k]
        at_centre = accelerations[k] + np.cross(dw, c) + np.cross(w, np.cross(w, c))
        own = arm.mass[k] * at_centre
        if k + 1 < joints:
            force = np.einsum("nij,nj->ni", turns[k + 1], force)
            moment = np.einsum("nij,nj->ni", turns[k + 1], moment)
            moment = moment + np.cross(np.array([0.0, 0.0, LENGTHS[k]]), force)
        force = force + own
        moment = moment + np.cross(c, own) + dw @ inertia + np.cross(w, w @ inertia)
        result[:, k] = moment[:, 2]
    friction = arm.coulomb * np.sign(dq) + arm.viscous * dq
    return result + friction + arm.armature * ddq


def _turn(k: int, angle: Floats) -> Floats:
    """Rotation of joint frame k in the one before, float64[n, 3, 3]."""
    cosine, sine = np.cos(ROLLS[k]), np.sin(ROLLS[k])
    roll = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
    turn = np.zeros((len(angle), 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
    turn[:, 1, 0] = np.sin(angle)
    turn[:, 0, 1] = -turn[:, 1, 0]
    turn[:, 2, 2] = 1.0
    return roll @ turn


def log_of(
    arm: Arm, rng: np.random.Generator, *, seconds: float = 20.0, rate: float = 250.0
) -> Block:
    """A log with encoder steps and white noise on the efforts."""
    time, q, dq, ddq = motion(rng, seconds, rate)
    true = efforts(arm, q, dq, ddq)
    late = np.stack([np.interp(time - arm.delay, time, column) for column in true.T], axis=1)
    values = np.hstack(
        [np.round(q / ENCODER) * ENCODER, late + rng.normal(0.0, CURRENT_NOISE, late.shape)]
    )
    layout = Layout(joint_signals(JOINTS, kinds=("joint.position", "joint.effort")))
    return Block(layout, np.rint(time * 1e9).astype(np.int64), values)


def scene_in(folder: Path) -> Scene:
    """The arm's URDF and scene, written into `folder`."""
    (folder / "arm.urdf").write_text(urdf(nominal()))
    names = ", ".join(f'"{joint}"' for joint in JOINTS)
    (folder / "scene.toml").write_text(
        f'name = "Arm of known truth"\n[robot]\nmodel = "arm.urdf"\njoints = [{names}]\n'
        f'tcp = "flange"\nhome = [{", ".join(["0.0"] * len(JOINTS))}]\n'
    )
    return load_scene(folder)


def urdf(arm: Arm, missing: Sequence[str] = ()) -> str:
    """The arm as URDF; links named in `missing` have no inertial."""
    parts = ['<robot name="truth">', '<link name="base"/>']
    for k, joint in enumerate(JOINTS):
        name = f"link{k + 1}"
        c, i = arm.centre[k], arm.inertia[k]
        inertial = (
            f'<inertial><origin xyz="{c[0]} {c[1]} {c[2]}"/><mass value="{arm.mass[k]}"/>'
            f'<inertia ixx="{i[0, 0]}" ixy="0" ixz="0" iyy="{i[1, 1]}" iyz="0" izz="{i[2, 2]}"/>'
            "</inertial>"
        )
        parts.append(f'<link name="{name}">{"" if name in missing else inertial}</link>')
        parent = "base" if k == 0 else f"link{k}"
        z = 0.0 if k == 0 else LENGTHS[k - 1]
        parts.append(
            f'<joint name="{joint}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{name}"/><origin xyz="0 0 {z}" rpy="{ROLLS[k]} 0 0"/>'
            '<axis xyz="0 0 1"/><limit lower="-6.3" upper="6.3" effort="300" velocity="5"/></joint>'
        )
    parts.append('<link name="flange"/><joint name="tool" type="fixed"><parent link="link7"/>')
    parts.append(f'<child link="flange"/><origin xyz="0 0 {LENGTHS[-1]}"/></joint></robot>')
    return "\n".join(parts)
