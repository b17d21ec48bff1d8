"""Chooses terms by cross-validation in blocks of time, and fits the arm."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.arm_model import Source
from twinstudio_calibration.evidence import Evidence, Grid
from twinstudio_calibration.regression import (
    Prior,
    Selected,
    covariance,
    cross_validated,
    folds_of,
    normal,
    solve,
    squares,
)
from twinstudio_calibration.rigid_body import RigidBody

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
FOLDS = 5
STRENGTHS = tuple(10.0 ** np.arange(-4.0, 3.1, 0.5))
"""Of the prior on inertias, to choose from; 1 takes the model's masses for +-100 %."""
WEAK = 1e-4
"""Strength of the prior on all that the model says nothing of."""
GAIN_DEVIATION = 0.5
"""Of the logarithm of a drive gain that the scene does not give."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is in use for one joint: indices into the grid, and extra terms."""

    travel: int = 0
    delay: int = 0
    extras: frozenset[str] = frozenset()

    def names(self) -> tuple[str, ...]:
        """All terms in use, in the order of the parameters."""
        return (*terms.ALWAYS, *(name for name in terms.EXTRAS if name in self.extras))


@dataclass(slots=True, eq=False)
class Fitting:
    """A fit in the making.

    Parameters: inertial, then the terms of each joint (all that may be chosen have a
    place), then the logarithms of the gains as changes to `gain`.
    """

    body: RigidBody
    evidence: Evidence
    source: Source
    choices: list[Choice]
    weights: Floats
    gain: Floats
    parameters: Floats
    known_gain: bool = False
    strength: float = 1e-2
    start_gain: Floats = field(default_factory=lambda: np.ones(0))

    @property
    def joints(self) -> int:
        return len(self.body.joints)

    @property
    def width(self) -> int:
        """Places of one joint's terms."""
        return len(terms.ALWAYS) + len(terms.EXTRAS)

    @property
    def inertial(self) -> Floats:
        return self.parameters[: len(self.body.prior)]

    def place(self, joint: int, name: str) -> int:
        """Index of a term of a joint among the parameters."""
        order = (*terms.ALWAYS, *terms.EXTRAS)
        return len(self.body.prior) + joint * self.width + order.index(name)

    def own(self, joint: int) -> dict[str, float]:
        """Values of the terms in use."""
        names = self.choices[joint].names()
        return {name: float(self.parameters[self.place(joint, name)]) for name in names}

    def selected(self, joint: int, choice: Choice) -> Selected:
        """The joint's Gram matrix over the common parameters, as `choice` has it."""
        evidence, gain = self.evidence, self.gain[joint]
        felt = evidence.links[joint]
        travel = evidence.grid.travels[choice.travel]
        names = choice.names()
        keys = [(name, travel if terms.is_of_contact(name) else 0.0) for name in names]
        columns = np.concatenate([np.arange(len(felt)), [len(felt) + evidence.keys.index(key) for key in keys]])
        place = np.concatenate([felt, [self.place(joint, name) for name in names]]).astype(np.int64)
        source = evidence.grams[joint]
        xx = gain**2 * source.xx[:, columns[:, None], columns]
        xy = gain * source.xy[:, columns, choice.delay]
        yy = source.yy[:, choice.delay]
        if self.source == "current" and not self.known_gain:
            xx, xy = self._with_gain(xx, xy, self.parameters[place])
            place = np.append(place, len(self.parameters) - self.joints + joint)
        return Selected(xx, xy, yy, source.count, place, float(self.weights[joint]))

    @staticmethod
    def _with_gain(xx: Floats, xy: Floats, parameters: Floats) -> tuple[Floats, Floats]:
        """A column more: how the prediction grows with the logarithm of the gain."""
        size = len(parameters)
        turn = np.hstack([np.eye(size), parameters[:, None]])
        return turn.T @ xx @ turn, xy @ turn

    def prior(self) -> Prior:
        """Of all parameters; the strength of those that it does not shrink is undone."""
        body, n = self.body, self.joints
        mean = np.concatenate([body.prior, np.zeros(n * self.width + n)])
        deviation = np.full(len(mean), 1.0)
        deviation[: len(body.prior)] = body.scale
        undo = np.sqrt(self.strength / WEAK)
        power = np.array([g.yy[:, 0].sum() / g.count.sum() for g in self.evidence.grams])
        for j in range(n):
            size = np.sqrt(power[j]) / self.gain[j]
            for name in (*terms.ALWAYS, *terms.EXTRAS):
                deviation[self.place(j, name)] = undo * size * (10.0 if name != terms.LOAD else 1.0 / size)
        mean[-n:] = np.log(self.start_gain / self.gain)
        deviation[-n:] = GAIN_DEVIATION * np.sqrt(self.strength)
        return Prior(mean, deviation)

    def all_selected(self) -> list[Selected]:
        return [self.selected(j, choice) for j, choice in enumerate(self.choices)]

    def refit(self, rounds: int = 2) -> None:
        """Fit parameters and gains, and weigh each joint by 1 / deviation of its residual."""
        for _ in range(rounds):
            joints, prior = self.all_selected(), self.prior()
            a, b = normal(joints, slice(None), len(prior.mean))
            solved = solve(a, b, prior, self.strength)
            for j, joint in enumerate(joints):
                self.weights[j] = np.sqrt(joint.count.sum() / max(squares(joint, solved, slice(None)), 1e-30))
            n = self.joints
            if self.source == "current" and not self.known_gain:
                self.gain = self.gain * np.exp(np.clip(solved[-n:], -1.0, 1.0))
                solved[-n:] = 0.0
            self.parameters = solved

    def score(self, joints: Sequence[Selected]) -> Floats:
        """Cross-validated error of each fold and joint."""
        return cross_validated(joints, self.prior(), self.strength, folds_of(self.evidence.blocks, FOLDS))

    def choose_strength(self) -> Floats:
        """The prior's strength with the smallest error; returns all errors."""
        joints, before = self.all_selected(), self.strength
        errors = []
        for strength in STRENGTHS:
            self.strength = strength
            errors.append(self.score(joints).sum(axis=1).mean())
        self.strength = STRENGTHS[int(np.argmin(errors))] if np.isfinite(errors).all() else before
        return np.array(errors)

    def choose_terms(self) -> None:
        """Travel, delay and extra terms of each joint, one after the other."""
        joints = self.all_selected()
        for j in range(self.joints):
            self._choose_among(j, joints, [replace(self.choices[j], travel=k) for k in range(len(self.evidence.grid.travels))])
            self._choose_among(j, joints, [replace(self.choices[j], delay=k) for k in range(len(self.evidence.grid.delays))])
            for name in terms.EXTRAS:
                self._try_extra(j, joints, name)

    def _choose_among(self, joint: int, joints: list[Selected], options: Sequence[Choice]) -> None:
        errors = []
        for option in options:
            joints[joint] = self.selected(joint, option)
            errors.append(self.score(joints).sum(axis=1).mean())
        self.choices[joint] = options[int(np.argmin(errors))]
        joints[joint] = self.selected(joint, self.choices[joint])

    def _try_extra(self, joint: int, joints: list[Selected], name: str) -> None:
        """Keep a term if the error falls by more than one standard error over the folds."""
        without = replace(self.choices[joint], extras=self.choices[joint].extras - {name})
        errors = []
        for option in (without, replace(without, extras=without.extras | {name})):
            joints[joint] = self.selected(joint, option)
            errors.append(self.score(joints).sum(axis=1))
        gained = errors[0] - errors[1]
        worth = gained.mean() > gained.std(ddof=1) / np.sqrt(len(gained))
        self.choices[joint] = replace(without, extras=without.extras | ({name} if worth else set()))
        joints[joint] = self.selected(joint, self.choices[joint])

    def spread(self) -> Floats:
        """Covariance of all parameters."""
        return covariance(self.all_selected(), self.parameters, self.prior(), self.strength)


def begin(body: RigidBody, evidence: Evidence, source: Source, gain: Floats | None) -> Fitting:
    """A fit that starts from the model's masses, least delay in size and smallest travel."""
    n = len(body.joints)
    size = len(body.prior) + n * (len(terms.ALWAYS) + len(terms.EXTRAS)) + n
    parameters = np.zeros(size)
    parameters[: len(body.prior)] = body.prior
    delay = int(np.argmin(np.abs(evidence.grid.delays)))
    start = np.ones(n) if gain is None else gain
    if source == "current" and gain is None:
        start = _first_gain(body, evidence)
    return Fitting(
        body, evidence, source, [Choice(0, delay)] * n, np.ones(n), start, parameters,
        known_gain=gain is not None, start_gain=start.copy(),
    )


def _first_gain(body: RigidBody, evidence: Evidence) -> Floats:
    """Current over the model's effort, least squares for each joint."""
    gains = []
    for felt, source in zip(evidence.links, evidence.grams, strict=True):
        prior = body.prior[felt]
        part = slice(0, len(felt))
        energy = prior @ source.xx[:, part, part].sum(axis=0) @ prior
        gains.append(source.xy[:, part, 0].sum(axis=0) @ prior / energy)
    return np.maximum(np.array(gains), 1e-3)
