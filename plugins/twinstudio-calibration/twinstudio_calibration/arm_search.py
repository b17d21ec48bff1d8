"""From logs to a fitted arm: filters, strength of the prior, terms, gains; then intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.arm_fit import Fitting, begin
from twinstudio_calibration.arm_model import ArmModel, Source
from twinstudio_calibration.evidence import Evidence, Grid, gather_all
from twinstudio_calibration.logs import JointLog
from twinstudio_calibration.rigid_body import RigidBody

Floats = NDArray[np.float64]
TRAVELS = (1e-8, 5e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3)
CREEPS = (float("inf"), 3.0, 1.0, 0.3)
USUAL_CONTACT = terms.Contact(2e-4)
"""Before anything is chosen: 0.2 mrad of travel, no creep."""
MOTION_SHARES = (0.5, 0.8, 1.2)
"""Cutoffs of the smoother of positions that are tried, over that of the efforts' filter."""
PASSES = 2
GAIN_ROUNDS = 6
Say = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. cutoffs in Hz; longest_delay, s; gain: A/(N m), None to find it.

    balanced: joints that have a counterbalance.
    """

    source: Source
    fit_cutoff: float
    score_cutoff: float
    longest_delay: float
    balanced: frozenset[str] = frozenset()
    gain: tuple[float, ...] | None = None


def search(body: RigidBody, logs: Sequence[JointLog], wish: Wish, say: Say) -> Fitting:
    """The arm that explains `logs`, every choice by cross-validation inside them.

    The stamps of the logs must advance. say: is told how far it is.
    """
    fitting = _best_smoother(body, logs, wish, say)
    for k in range(PASSES):
        say(0.5 + 0.2 * k, f"choosing terms, pass {k + 1} of {PASSES}")
        if k == 0:
            grid = _grid(logs, wish, fitting.evidence.grid.motion_cutoff)
        else:
            grid = replace(grid, delays=_finer(grid.delays, fitting))
        fitting.adopt(gather_all(body, logs, wish.source, grid, fitting.inertial))
        fitting.choose_terms()
        fitting.refit(GAIN_ROUNDS)
        fitting.choose_strength()
        fitting.refit(GAIN_ROUNDS)
    say(0.9, "delays between those that were tried")
    delays = fitting.delays_between()
    grid = replace(fitting.evidence.grid, delays=tuple(sorted(set(delays))))
    evidence = gather_all(body, logs, wish.source, grid, fitting.inertial)
    fitting.adopt(evidence)
    fitting.choices = [
        replace(choice, delay=grid.delays.index(delay))
        for choice, delay in zip(fitting.choices, delays, strict=True)
    ]
    fitting.refit(GAIN_ROUNDS)
    return fitting


def model_of(fitting: Fitting, wish: Wish) -> ArmModel:
    """What the fit found, to predict with."""
    grid = fitting.evidence.grid
    return ArmModel(
        source=wish.source,
        inertial=fitting.inertial.copy(),
        gain=fitting.gain.copy(),
        own=tuple(fitting.own(j) for j in range(fitting.joints)),
        contact=tuple(grid.contacts[choice.contact] for choice in fitting.choices),
        delay=np.array([grid.delays[choice.delay] for choice in fitting.choices]),
        motion_cutoff=grid.motion_cutoff,
        score_cutoff=wish.score_cutoff,
    )


def _best_smoother(body: RigidBody, logs: Sequence[JointLog], wish: Wish, say: Say) -> Fitting:
    """A first fit with the smoother of positions that predicts held-out blocks best."""
    best: tuple[float, Fitting] | None = None
    weights: Floats | None = None
    for k, share in enumerate(MOTION_SHARES):
        cutoff = share * wish.fit_cutoff
        grid = Grid(cutoff, wish.fit_cutoff, (USUAL_CONTACT,), (0.0,), bool(wish.balanced))
        say(0.5 * k / len(MOTION_SHARES), f"smoother of {cutoff:.3g} Hz")
        fitting = _first(body, gather_all(body, logs, wish.source, grid, body.prior), wish)
        weights = fitting.weights.copy() if weights is None else weights
        same = [
            replace(s, weight=float(w))
            for s, w in zip(fitting.all_selected(), weights, strict=True)
        ]
        error = float(fitting.score(same).sum())
        if best is None or error < best[0]:
            best = (error, fitting)
    assert best is not None
    return best[1]


def _first(body: RigidBody, evidence: Evidence, wish: Wish) -> Fitting:
    gain = None if wish.gain is None else np.array(wish.gain)
    fitting = begin(body, evidence, wish.source, gain)
    usual = frozenset({terms.VISCOUS, terms.ARMATURE})
    fitting.choices = [
        replace(
            choice,
            extras=usual | ({terms.BALANCE} if joint in wish.balanced else set()),
        )
        for joint, choice in zip(body.joints, fitting.choices, strict=True)
    ]
    fitting.refit(3)
    fitting.choose_strength()
    fitting.refit(3)
    return fitting


def _grid(logs: Sequence[JointLog], wish: Wish, cutoff: float) -> Grid:
    """All contacts, and delays from a third of the longest ahead of the motion."""
    interval = max(log.interval for log in logs)
    step = max(interval / 4.0, wish.longest_delay / 10.0)
    steps = np.arange(-round(wish.longest_delay / 3.0 / step), round(wish.longest_delay / step) + 1)
    contacts = tuple(terms.Contact(t, c) for c in CREEPS for t in TRAVELS)
    delays = tuple((step * steps).tolist())
    return Grid(cutoff, wish.fit_cutoff, contacts, delays, bool(wish.balanced))


def _finer(delays: Sequence[float], fitting: Fitting) -> tuple[float, ...]:
    """Delays around those in use, a quarter of the step apart."""
    step = (delays[1] - delays[0]) / 4.0 if len(delays) > 1 else 0.0
    used = {delays[choice.delay] for choice in fitting.choices}
    found = {round(delay + k * step, 7) for delay in used for k in range(-3, 4)}
    return tuple(sorted(found))


def known_gain(values: Sequence[float], joints: int) -> tuple[float, ...] | None:
    """A/(N m) from drive gains in N m/A, one or one a joint; None where there are none."""
    if not values:
        return None
    return tuple(float(v) for v in 1.0 / np.broadcast_to(np.asarray(values), (joints,)))
