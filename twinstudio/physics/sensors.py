"""Sensors of an emulated cell: counts, noise, bias and offset."""

import numpy as np
from numpy.typing import NDArray

from twinstudio.physics.cellfile import SensorTruth, per_joint

Floats = NDArray[np.float64]


class Sensors:
    """Measures n samples at a time; every kind of noise has its own generator.

    So a sensor's noise does not depend on which other sensors there are.
    """

    def __init__(self, truth: SensorTruth, joints: int, rng: np.random.Generator) -> None:
        self._rng = dict(zip(_KINDS, rng.spawn(len(_KINDS)), strict=True))
        self._joints = joints
        self._sigma = {kind: per_joint(getattr(truth, kind), joints) for kind in _JOINT_KINDS}
        self._temperature, self._pose = truth.temperature, truth.pose
        self._offset = per_joint(truth.offset, joints)
        self._bias = per_joint(truth.effort_bias, joints)
        count = per_joint(truth.resolution, joints)
        self._count = np.where(count > 0.0, count, 1.0)
        self._counted = count > 0.0
        self._all_counted = bool(self._counted.all())

    def noise(self, kind: str, n: int) -> Floats:
        """White noise float64[n, joints] of a joint signal, e.g. ``velocity``."""
        result: Floats = self._rng[kind].normal(size=(n, self._joints)) * self._sigma[kind]
        return result

    def encoder(self, q: Floats, noise: Floats) -> Floats:
        """What an encoder reads at joint positions q float64[..., joints]."""
        read: Floats = q + self._offset + noise
        counted: Floats = np.rint(read / self._count) * self._count
        return counted if self._all_counted else np.where(self._counted, counted, read)

    def effort(self, effort: Floats) -> Floats:
        """Measured efforts float64[n, joints]."""
        return effort + self._bias + self.noise("effort", len(effort))

    def current(self, current: Floats) -> Floats:
        """Measured currents float64[n, joints]."""
        return current + self.noise("current", len(current))

    def temperature(self, temperature: Floats) -> Floats:
        """Measured temperatures float64[n, ...], degC."""
        drawn = self._rng["temperature"].normal(size=temperature.shape)
        return temperature + self._temperature * drawn

    def poses(self, poses: Floats) -> Floats:
        """Measured poses float64[n, things, 7]: position with noise, qw >= 0."""
        measured = poses.copy()
        measured[..., :3] += self._pose * self._rng["pose"].normal(size=measured[..., :3].shape)
        measured[..., 3:] *= np.where(measured[..., 6:] < 0.0, -1.0, 1.0)
        return measured


_JOINT_KINDS = ("position", "velocity", "effort", "current")
_KINDS = (*_JOINT_KINDS, "temperature", "pose")
