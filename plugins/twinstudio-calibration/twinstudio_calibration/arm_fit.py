"""Chooses terms by cross-validation in blocks of time, and fits the arm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.arm_model import Source
from twinstudio_calibration.bodies import minimise, plausible, slope_and_curvature
from twinstudio_calibration.evidence import Evidence
from twinstudio_calibration.regression import (
    Candidates,
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
WORTH = 0.01
"""Share of a joint's error that a richer choice must save at least."""
STRENGTHS = tuple(10.0 ** np.arange(3.5, -0.1, -0.5))
"""Of the prior on inertias, to choose from; 1 takes the model's masses for +-100 %."""
OFFSET_SHARE = 0.1
"""A constant effort is thought to be this share of a joint's root mean square effort."""
GAIN_DEVIATION = 0.5
"""Of the logarithm of a drive gain that the scene does not give."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is in use for one joint: indices into the grid, and extra terms."""

    contact: int = 0
    delay: int = 0
    extras: frozenset[str] = frozenset()

    def names(self) -> tuple[str, ...]:
        """All terms in use, in the order of the parameters."""
        return tuple(name for name in terms.ALL if name in self.extras or name in terms.ALWAYS)


Errors = Callable[[Choice], Floats]
"""Cross-validated error of each fold, of a choice for one joint."""


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
    strength: float = 10.0
    start_bodies: Floats = field(default_factory=lambda: np.ones(0))
    start_gain: Floats = field(default_factory=lambda: np.ones(0))

    @property
    def folds(self) -> list[Index]:
        """Blocks of time that are held out together."""
        return folds_of(self.evidence.blocks, FOLDS)

    @property
    def joints(self) -> int:
        """How many there are."""
        return len(self.body.joints)

    @property
    def width(self) -> int:
        """Places of one joint's terms."""
        return len(terms.ALL)

    @property
    def inertial(self) -> Floats:
        """Of all links, float64[10 joints]."""
        return self.parameters[: len(self.body.prior)]

    def place(self, joint: int, name: str) -> int:
        """Index of a term of a joint among the parameters."""
        return len(self.body.prior) + joint * self.width + terms.ALL.index(name)

    def own(self, joint: int) -> dict[str, float]:
        """Values of the terms in use."""
        names = self.choices[joint].names()
        return {name: float(self.parameters[self.place(joint, name)]) for name in names}

    def selected(self, joint: int, choice: Choice) -> Selected:
        """The joint's Gram matrix over the common parameters, as `choice` has it."""
        evidence, gain = self.evidence, self.gain[joint]
        felt = evidence.links[joint]
        contact = evidence.grid.contacts[choice.contact]
        names = choice.names()
        keys = [(name, contact if terms.is_of_contact(name) else terms.NONE) for name in names]
        columns = np.concatenate(
            [np.arange(len(felt)), [len(felt) + evidence.keys.index(key) for key in keys]]
        )
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
        """Of all parameters: real bodies like the model's, and a little on all else.

        The divergence of the bodies is taken as the parabola that touches it here.
        """
        size = len(self.start_bodies)
        precision, pull = self.weak()
        slope, curvature = slope_and_curvature(self.inertial, self.start_bodies)
        precision[:size, :size] += self.strength * curvature
        pull[:size] += self.strength * (curvature @ self.inertial - slope)
        return Prior(precision, pull)

    def weak(self) -> tuple[Floats, Floats]:
        """Precision and pull on the joints' terms and on the gains."""
        n = self.joints
        precision = np.zeros(len(self.parameters))
        pull = np.zeros(len(self.parameters))
        precision[: len(self.start_bodies)] = 1e-12
        for j, source in enumerate(self.evidence.grams):
            power = source.yy[:, 0].sum() / source.count.sum() / self.start_gain[j] ** 2
            for name in terms.ALL:
                precision[self.place(j, name)] = 1.0 if name == terms.LOAD else 1.0 / power
            place = self.place(j, terms.OFFSET)
            precision[place] = self.strength / (power * OFFSET_SHARE**2)
        precision[-n:] = self.strength * GAIN_DEVIATION**-2
        pull[-n:] = np.log(self.start_gain / self.gain) * precision[-n:]
        return np.diag(precision), pull

    def solved(self, a: Floats, b: Floats, start: Floats) -> Floats:
        """The fit to X'X and X'y, from `start`."""
        precision, pull = self.weak()
        positive = np.zeros(len(start), dtype=bool)
        for j in range(self.joints):
            positive[[self.place(j, name) for name in terms.ALL if name not in terms.SIGNED]] = True
        return minimise(a + precision, b + pull, self.start_bodies, self.strength, start, positive)

    def all_selected(self) -> list[Selected]:
        """The Gram matrices of all joints as they are chosen."""
        return [self.selected(j, choice) for j, choice in enumerate(self.choices)]

    def refit(self, rounds: int = 2) -> None:
        """Fit parameters and gains, and weigh each joint by 1 / deviation of its residual."""
        for _ in range(rounds):
            joints = self.all_selected()
            a, b = normal(joints, slice(None), len(self.parameters))
            solved = self.solved(a, b, self.parameters)
            for j, joint in enumerate(joints):
                self.weights[j] = np.sqrt(
                    joint.count.sum() / max(squares(joint, solved, slice(None)), 1e-30)
                )
            n = self.joints
            if self.source == "current" and not self.known_gain:
                self.gain = self.gain * np.exp(np.clip(solved[-n:], -1.0, 1.0))
                solved[-n:] = 0.0
            self.parameters = solved

    def score(self, joints: Sequence[Selected]) -> Floats:
        """Cross-validated error of each fold and joint."""
        prior = self.prior()
        return cross_validated(
            joints, lambda a, b: solve(a, b, prior), len(self.parameters), self.folds
        )

    def choose_strength(self) -> Floats:
        """The prior's strength with the smallest error; returns all errors."""
        joints = self.all_selected()
        errors: dict[float, float] = {}
        latest: dict[float, Floats] = {}

        def fit(a: Floats, b: Floats) -> Floats:
            key = float(a[0, 0])  # which fold it is: neighbours in strength start from each other
            latest[key] = self.solved(a, b, latest.get(key, self.parameters))
            return latest[key]

        for strength in STRENGTHS:
            self.strength = strength
            found = cross_validated(joints, fit, len(self.parameters), self.folds)
            errors[strength] = found.sum(axis=1).mean()
        self.strength = min(errors, key=lambda strength: errors[strength])
        return np.array(list(errors.values()))

    def choose_terms(self) -> None:
        """Contact, delay and extra terms of each joint, one joint after the other.

        Travel and delay are chosen together, for each looks much like the other. All
        joints share a delay but for those that gain by leaving it.
        """
        errors = [self._errors(j) for j in range(self.joints)]
        tables = [self._tabulated(j, told) for j, told in enumerate(errors)]
        common = int(np.argmin(sum(table.min(axis=0) for table in tables)))
        self.choices = [
            self._chosen(j, table, common, told)
            for j, (table, told) in enumerate(zip(tables, errors, strict=True))
        ]

    def _chosen(self, joint: int, table: Floats, common: int, errors: Errors) -> Choice:
        """Contact, delay and extra terms of one joint; `common`: the delay of all."""
        grid = self.evidence.grid
        best = int(np.argmin(table[:, common]))
        choice = replace(self.choices[joint], contact=best, delay=common)
        free = np.unravel_index(int(np.argmin(table)), table.shape)
        alone = replace(choice, contact=int(free[0]), delay=int(free[1]))
        choice = _better(choice, [alone], errors, self.joints)
        contacts = [replace(choice, contact=k) for k in range(len(grid.contacts))]
        choice = _better(choice, contacts, errors, self.joints)
        for name in terms.EXTRAS:
            choice = replace(choice, extras=choice.extras - {name})
            having = replace(choice, extras=choice.extras | {name})
            choice = _better(choice, [having], errors, self.joints)
        return choice

    def _tabulated(self, joint: int, errors: Errors) -> Floats:
        """Cross-validated error over contacts (those that creep: infinite) and delays."""
        grid = self.evidence.grid
        table = np.full((len(grid.contacts), len(grid.delays)), np.inf)
        for c, contact in enumerate(grid.contacts):
            if np.isfinite(contact.creep):
                continue
            for d in range(len(grid.delays)):
                option = replace(self.choices[joint], contact=c, delay=d)
                table[c, d] = errors(option).sum()
        return table

    def delays_between(self) -> list[float]:
        """The delay of each joint where a parabola through its neighbours' errors is least, s."""
        found = []
        delays = self.evidence.grid.delays
        for j, choice in enumerate(self.choices):
            k = choice.delay
            if not 0 < k < len(delays) - 1:
                found.append(delays[k])
                continue
            errors = self._errors(j)
            near = [replace(choice, delay=k + side) for side in (-1, 0, 1)]
            values = [float(errors(option).sum()) for option in near]
            fit = np.polyfit(np.array(delays[k - 1 : k + 2]) - delays[k], values, 2)
            step = -fit[1] / (2.0 * fit[0]) if fit[0] > 0.0 else 0.0
            found.append(
                delays[k]
                + float(np.clip(step, delays[k - 1] - delays[k], delays[k + 1] - delays[k]))
            )
        return found

    def adopt(self, evidence: Evidence) -> None:
        """Go on with other evidence, which has all contacts in use, and delays near them."""
        old, new = self.evidence.grid, evidence.grid
        delays = np.array(new.delays)
        self.choices = [
            replace(
                choice,
                contact=new.contacts.index(old.contacts[choice.contact]),
                delay=int(np.argmin(np.abs(delays - old.delays[choice.delay]))),
            )
            for choice in self.choices
        ]
        self.evidence = evidence

    def _errors(self, joint: int) -> Errors:
        """The cross-validated error of each fold as a function of one joint's choice."""
        prior, evidence = self.prior(), self.evidence
        felt = evidence.links[joint]
        others = [self.selected(k, c) for k, c in enumerate(self.choices) if k != joint]
        gain = float(self.gain[joint])
        candidates = Candidates(
            others,
            evidence.grams[joint],
            (felt, np.full(len(felt), gain)),
            float(self.weights[joint]),
            prior,
            self.folds,
        )

        def errors(choice: Choice) -> Floats:
            names = choice.names()
            contact = evidence.grid.contacts[choice.contact]
            keys = [(name, contact if terms.is_of_contact(name) else terms.NONE) for name in names]
            index = np.array([evidence.keys.index(key) for key in keys])
            at = [self.place(joint, name) for name in names]
            positive = np.array([name not in terms.SIGNED for name in names])
            return candidates.errors(index, np.diag(prior.precision)[at], choice.delay, positive)

        return errors

    def identifiable(self, spread: Floats) -> NDArray[np.bool_]:
        """Whether the data tell each parameter at least twice as well as the prior does."""
        precision, size = self.prior().precision, len(self.start_bodies)
        prior = 1.0 / np.diag(precision)
        prior[:size] = np.diag(np.linalg.inv(precision[:size, :size]))
        result: NDArray[np.bool_] = np.diag(spread) < 0.25 * prior
        return result

    def spread(self) -> Floats:
        """Covariance of all parameters."""
        return covariance(self.all_selected(), self.parameters, self.prior())


def _weight(joint: Selected, parameters: Floats) -> float:
    """1 / standard deviation of the joint's residual."""
    return float(np.sqrt(joint.count.sum() / max(squares(joint, parameters, slice(None)), 1e-30)))


def _better(
    usual: Choice,
    options: Sequence[Choice],
    errors: Errors,
    joints: int,
) -> Choice:
    """The best of `options` if it is better than by chance.

    Its error must be lower by more than one standard error over the folds, and by
    `WORTH` of the error that each of the `joints` has on average.
    """
    best = min(options, key=lambda option: errors(option).sum())
    before = errors(usual)
    gained = before - errors(best)
    sure = gained.mean() > gained.std(ddof=1) / np.sqrt(len(gained))
    return best if sure and gained.sum() > WORTH * before.sum() / joints else usual


def begin(body: RigidBody, evidence: Evidence, source: Source, gain: Floats | None) -> Fitting:
    """A fit that starts from the model's masses, least delay in size and smallest travel."""
    n = len(body.joints)
    size = len(body.prior) + n * len(terms.ALL) + n
    parameters = np.zeros(size)
    bodies = plausible(body.prior, body.lengths, [link in body.absurd for link in body.links])
    parameters[: len(body.prior)] = bodies
    delay = int(np.argmin(np.abs(evidence.grid.delays)))
    start = np.ones(n) if gain is None else gain
    if source == "current" and gain is None:
        start = _first_gain(body, evidence)
    return Fitting(
        body,
        evidence,
        source,
        [Choice(0, delay)] * n,
        np.ones(n),
        start,
        parameters,
        known_gain=gain is not None,
        start_bodies=bodies,
        start_gain=start.copy(),
    )


def _first_gain(body: RigidBody, evidence: Evidence) -> Floats:
    """Current over the model's effort, least squares for each joint beside its friction.

    Joints whose current does not follow the model's effort get the geometric mean of
    the others.
    """
    gains, sure = np.ones(len(body.joints)), np.zeros(len(body.joints), dtype=bool)
    for j, (felt, source) in enumerate(zip(evidence.links, evidence.grams, strict=True)):
        own = [
            len(felt) + k
            for k, (name, contact) in enumerate(evidence.keys)
            if name in terms.ALWAYS and contact in (terms.NONE, evidence.grid.contacts[0])
        ]
        turn = np.zeros((source.xx.shape[1], 1 + len(own)))
        turn[: len(felt), 0] = body.prior[felt]
        turn[own, np.arange(1, 1 + len(own))] = 1.0
        a, b = turn.T @ source.xx.sum(axis=0) @ turn, turn.T @ source.xy.sum(axis=0)[:, 0]
        inverse = np.linalg.pinv(a, hermitian=True)
        found = inverse @ b
        left = float(source.yy[:, 0].sum() - b @ found) / source.count.sum()
        gains[j] = max(found[0], 1e-9)
        explained = found[0] ** 2 / inverse[0, 0]
        sure[j] = found[0] > 0.0 and explained > left * source.count.sum()
    usual = float(np.exp(np.log(gains[sure]).mean())) if sure.any() else 1.0
    return np.where(sure, gains, usual)
