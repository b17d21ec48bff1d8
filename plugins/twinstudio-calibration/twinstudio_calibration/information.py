"""What a motion would tell of an arm's parameters, before it is made.

Effort is linear in the parameters: those of the links as in `rigid_body`, and armature,
Coulomb, viscous and constant friction of each joint. With noise of the effort and a
prior spread of each parameter, its posterior variance says how much of the doubt a
motion leaves: 1 nothing learned, 0 all that motion can tell. Some doubt no motion
removes, since effort depends on sums of parameters (base parameters) alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration.fourier import Limits, Motion
from twinstudio_calibration.rigid_body import PAIRS, PER_LINK, RigidBody

Floats = NDArray[np.float64]
LINK = ("mass", "mass x", "mass y", "mass z", *(f"inertia {'xyz'[i]}{'xyz'[k]}" for i, k in PAIRS))
JOINT = ("armature", "coulomb", "viscous", "offset")
SLOW = 0.01
"""rad/s within which Coulomb friction changes its sign."""
FRICTION = 0.1
"""Spread of friction and offset: this share of the joint's largest effort."""
SEEN = 0.5
"""Endless motion leaves less of the doubt about what can be seen at all."""
ENDLESS = 1e8
"""So many times the random motion."""
READINGS = 10.0
"""Independent readings a second: what an arm's model lacks lasts for about 0.1 s."""
POSES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Motion to information. spread: prior of each parameter. noise: of efforts, N m.

    names: of the parameters. least: posterior over prior spread that endless motion
    leaves. base: float64[parameters, r], the combinations that effort depends on.
    """

    body: RigidBody
    names: tuple[str, ...]
    spread: Floats
    noise: Floats
    least: Floats
    base: Floats

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which parameters motion tells, the prior of the others given."""
        return np.asarray(self.least < SEEN)

    def doubt(self, motion: Motion) -> Floats:
        """Share that is left of the doubt that motion can remove, float64[parameters].

        Of standard deviations; `READINGS` a second count, however many samples there are.
        """
        rows = _rows(self.body, motion, self.noise) * self.spread
        count = READINGS * float(np.ptp(motion.time)) / len(motion.time)
        left = np.maximum(_left(count * rows.T @ rows) ** 2 - self.least**2, 0.0)
        return np.asarray(np.sqrt(left / np.maximum(1.0 - self.least**2, 1e-12)).clip(max=1.0))

    def condition(self, motion: Motion) -> float:
        """Condition number of the base regressor, parameters in units of their spread."""
        rows = _rows(self.body, motion, self.noise) * self.spread
        values = np.linalg.svd(rows @ self.base, compute_uv=False)
        return float(values[0] / max(values[-1], 1e-300))


def sight(
    body: RigidBody, limits: Limits, effort: Floats, noise: Floats, rng: np.random.Generator
) -> Sight:
    """What can be told of `body` at all, from random poses, speeds and accelerations.

    effort: largest of each joint, N m or N. noise: of one reading, the same unit.
    """
    joints = len(body.joints)
    names = [f"{part} of {link}" for link in body.links for part in LINK]
    names += [f"{part} of {joint}" for part in JOINT for joint in body.joints]
    armature = np.array([body.scale[PER_LINK * (k + 1) - 1] for k in range(joints)])
    friction = FRICTION * effort
    spread = np.concatenate(
        [body.scale, armature, friction, friction / np.maximum(limits.speed, 1e-9), friction]
    )
    uniform = rng.uniform(-1.0, 1.0, (3, POSES, joints))
    middle, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    random = Motion(
        np.arange(float(POSES)),
        middle + half * uniform[0],
        limits.speed * uniform[1],
        limits.acceleration * uniform[2],
    )
    rows = _rows(body, random, noise) * spread
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    base = vectors[values > 1e-8 * values[0]].T
    least = _left(ENDLESS * rows.T @ rows)
    return Sight(body, tuple(names), spread, noise, least, base)


def _rows(body: RigidBody, motion: Motion, noise: Floats) -> Floats:
    """Regressor over all parameters in units of the noise, float64[n joints, parameters]."""
    q, w, a = motion.position, motion.velocity, motion.acceleration
    n, joints = q.shape
    links = body.regressor(q, w, a)
    own = np.zeros((n, joints, len(JOINT) * joints))
    for place, values in enumerate((a, np.tanh(w / SLOW), w, np.ones_like(q))):
        each = np.arange(joints)
        own[:, each, place * joints + each] = values
    whole = np.concatenate([links, own], axis=2) / noise[:, None]
    return np.asarray(whole.reshape(n * joints, -1))


def _left(information: Floats) -> Floats:
    """Posterior over prior standard deviation, parameters in units of their prior's."""
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(information + np.eye(len(information))))))
