"""An arm of seven joints of MuJoCo's own making: its parameters from one motion of 20 s."""

import time
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pinocchio
from numpy.typing import NDArray

from twinstudio.bench.row import Row

Floats = NDArray[np.float64]
STEP, SECONDS = 1e-3, 20.0
POSITION_NOISE, EFFORT_NOISE = 1e-5, 0.02
"""White, rad and N m."""
AXES = ("0 0 1", "0 1 0", "0 0 1", "0 -1 0", "0 0 1", "0 1 0", "0 0 1")
HEIGHTS = (0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.107)
MASSES = (3.0, 3.0, 2.5, 2.5, 2.0, 1.2, 0.6)
ARMATURE = np.array([0.6, 0.6, 0.45, 0.45, 0.2, 0.15, 0.1])
DAMPING = np.array([1.2, 1.0, 0.8, 0.8, 0.4, 0.3, 0.2])
FRICTION = np.array([2.0, 2.0, 1.5, 1.5, 0.8, 0.6, 0.4])
PAYLOAD, CENTRE, DELAY = 1.3, np.array([0.02, -0.01, 0.06]), 0.0023
PUBLISHED = "mujoco.sysid: 0.2 %, friction 0.05 %, 22-50 s"


@dataclass(frozen=True, slots=True, eq=False)
class ArmLog:
    """Position and commanded effort with noise, float64[n, 7]."""

    position: Floats
    effort: Floats


def rows() -> list[Row]:
    """Errors and time of one fit; the second of two, so that nothing is compiled in it."""
    fitter = import_module("twinstudio_calibration.arm_trajectory")
    model = pinocchio.buildModelFromXML(urdf())
    bodies = fitter.bodies_of(SimpleNamespace(model=model, order=np.arange(7)))
    logged = recorded(np.random.default_rng(0))
    log = fitter.Log(STEP, logged.position, logged.effort)
    fitter.fit_arm(bodies, log)
    begun = time.perf_counter()
    found = fitter.fit_arm(bodies, log)
    taken = time.perf_counter() - begun
    truth = np.concatenate([ARMATURE, DAMPING, FRICTION, [PAYLOAD], PAYLOAD * CENTRE, [DELAY]])
    error = 100.0 * np.abs(found.vector / truth - 1.0)
    middle, friction = float(np.median(error)), float(np.median(error[14:21]))
    late = abs(found.delay - DELAY) * 1e3
    count = len(truth)
    return [
        Row("arm.median", middle, f"% of {count} parameters", f"<= 0.2 ({PUBLISHED})",
            middle <= 0.2),
        Row("arm.friction", friction, "% median of 7", f"<= 0.05 ({PUBLISHED})", friction <= 0.05),
        Row("arm.delay", late, "ms", "<= 0.5", late <= 0.5),
        Row("arm.time", taken, "s for 20 s at 1 kHz", "<= 3", taken <= 3.0),
    ]  # fmt: skip


def urdf() -> str:
    """The arm without payload, friction or rotors."""
    links = ['<link name="base"/>']
    for k, (axis, height, mass) in enumerate(zip(AXES, HEIGHTS, MASSES, strict=True)):
        centre = f"{0.01 * (-1) ** k} 0.02 {0.05 if k % 2 else 0.12}"
        xx, yy, zz = (mass * radius for radius in (0.012, 0.011, 0.006))
        links.append(
            f'<link name="l{k}"><inertial><origin xyz="{centre}"/><mass value="{mass}"/>'
            f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="revolute"><parent link="{f"l{k - 1}" if k else "base"}"/>'
            f'<child link="l{k}"/><origin xyz="{0.05 if k == 3 else 0} 0 {height}"/>'
            f'<axis xyz="{axis}"/><limit lower="-6" upper="6" effort="100" velocity="10"/></joint>'
        )
    return f'<robot name="arm">{"".join(links)}</robot>'


def recorded(rng: np.random.Generator) -> ArmLog:
    """A Fourier motion under computed torque, whose efforts act `DELAY` late."""
    model = _loaded()
    data: Any = mujoco.MjData(model)
    reference, speed, acceleration = _motion(rng)
    count = len(reference)
    data.qpos[:], data.qvel[:] = reference[0], speed[0]
    stiffness = np.array([400.0, 400.0, 300.0, 300.0, 100.0, 60.0, 30.0])
    position, effort = np.empty((count, 7)), np.empty((count, 7))
    whole, part = int(DELAY / STEP), DELAY / STEP - int(DELAY / STEP)
    for k in range(count):
        position[k] = data.qpos
        mujoco.mj_forward(model, data)
        feedback = stiffness * (reference[k] - data.qpos + 0.1 * (speed[k] - data.qvel))
        forward = ARMATURE * acceleration[k] + FRICTION * np.tanh(speed[k] / 0.05)
        effort[k] = feedback + data.qfrc_bias + forward
        near, far = effort[max(k - whole, 0)], effort[max(k - whole - 1, 0)]
        data.qfrc_applied[:] = (1.0 - part) * near + part * far
        mujoco.mj_step(model, data)
    shape = position.shape
    return ArmLog(
        position + rng.normal(0.0, POSITION_NOISE, shape),
        effort + rng.normal(0.0, EFFORT_NOISE, shape),
    )


def _loaded() -> Any:
    """MuJoCo's model with rotors, friction and a point mass at the last link."""
    model: Any = mujoco.MjModel.from_xml_string(urdf())
    model.opt.timestep = STEP
    model.dof_armature[:], model.dof_damping[:] = ARMATURE, DAMPING
    model.dof_frictionloss[:] = FRICTION
    last = model.nbody - 1
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[last])
    axes = turn.reshape(3, 3)
    mass, centre = float(model.body_mass[last]), model.body_ipos[last].copy()
    inertia = axes @ np.diag(model.body_inertia[last]) @ axes.T
    inertia = inertia + _at(mass, centre) + _at(PAYLOAD, CENTRE)
    whole = mass + PAYLOAD
    middle = (mass * centre + PAYLOAD * CENTRE) / whole
    moments, vectors = np.linalg.eigh(inertia - _at(whole, middle))
    vectors[:, 0] *= np.sign(np.linalg.det(vectors))
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, vectors.ravel())
    model.body_mass[last], model.body_ipos[last] = whole, middle
    model.body_inertia[last], model.body_iquat[last] = moments, quaternion
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _at(mass: float, centre: Floats) -> Floats:
    """Inertia of a point mass about the origin."""
    return np.asarray(mass * (centre @ centre * np.eye(3) - np.outer(centre, centre)))


def _motion(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Five harmonics of 0.1 Hz on every joint, and their derivatives."""
    time_ = np.arange(round(SECONDS / STEP))[:, None, None] * STEP
    omega = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    size = rng.uniform(-1.0, 1.0, (7, 5)) * 0.5 / np.sqrt(np.arange(1, 6))
    angle = omega * time_ + rng.uniform(0.0, 2.0 * np.pi, (7, 5))
    rest = np.array([0.0, -0.3, 0.0, -1.2, 0.0, 1.0, 0.0])
    return (
        (size * np.sin(angle)).sum(axis=2) + rest,
        (size * omega * np.cos(angle)).sum(axis=2),
        (-size * omega**2 * np.sin(angle)).sum(axis=2),
    )
