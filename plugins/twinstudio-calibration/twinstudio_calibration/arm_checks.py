"""Whether logs can identify an arm: excitation, and efforts that fit the model at all."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration.arm_model import Source, even, target_of
from twinstudio_calibration.logs import JointLog
from twinstudio_calibration.motion import low_pass, motion_of
from twinstudio_calibration.rigid_body import RigidBody

Floats = NDArray[np.float64]
SAMPLES = 400
CUTOFF = 5.0
DEPENDENT = 1e-4
"""Singular values below this share of the largest count for nothing."""
WORST = 1e3
"""Condition of the base parameters, columns of equal length, above which little is sure."""
FOLLOWS = 0.5
"""Share of a joint's effort that the model must explain before it is judged by it."""
CLOSE = 4.0
"""Efforts so many times those of the model may still be that joint's."""
GEAR = 10.0
"""Efforts so many times off are counted at the other side of a gear."""


def model_findings(body: RigidBody) -> list[api.Finding]:
    """Links whose inertial parameters no body has."""
    hint = "mend the model's inertial tags; until then mass and centre alone are the prior"
    return [api.Finding(text, hint=hint) for text in body.absurd.values()]


def limit_findings(body: RigidBody, log: JointLog) -> list[api.Finding]:
    """Positions that the model's joints do not reach."""
    slack = 0.1 * np.maximum(body.upper - body.lower, 0.1)
    low, high = np.nanmin(log.position, axis=0), np.nanmax(log.position, axis=0)
    beyond = (body.upper > body.lower) & ((low < body.lower - slack) | (high > body.upper + slack))
    if not beyond.any():
        return []
    which = ", ".join(np.array(body.joints)[beyond])
    hint = "check the order of the joints, their zeros and their unit"
    text = f"position of {which} leaves the limits of the model"
    return [api.Finding(text, fatal=bool(beyond.sum() > 1), hint=hint)]


def excitation(body: RigidBody, logs: Sequence[JointLog]) -> list[api.Finding]:
    """Rank and condition of the base parameters' regressor, for the logs together."""
    regressor = np.concatenate([_sampled(body, log)[0] for log in logs])
    n = len(body.joints)
    rng = np.random.default_rng(0)
    anywhere = body.regressor(*rng.uniform(-2.0, 2.0, size=(3, 200, n)))
    whole, _ = _rank_and_condition(anywhere, body.scale)
    rank, condition = _rank_and_condition(regressor, body.scale)
    text = f"{rank} of {whole} base parameters are excited, condition {condition:.3g}"
    hint = "move all joints at once, over their range and at several speeds"
    if rank < n:
        return [api.Finding(f"not exciting: {text}", fatal=True, hint=hint)]
    poor = rank < 0.8 * whole or condition > WORST
    said = f"{'little exciting: ' if poor else ''}{text}"
    return [api.Finding(said, hint=hint if poor else "")]


def _rank_and_condition(regressor: Floats, scale: Floats) -> tuple[int, float]:
    """Of the base parameters: independent columns, and how unequally they are excited."""
    table = regressor.reshape(-1, regressor.shape[2]) * scale
    norms = np.linalg.norm(table, axis=0)
    felt = norms > DEPENDENT * norms.max()
    values = np.linalg.svd(table[:, felt] / norms[felt], compute_uv=False)
    rank = int((values > DEPENDENT * values[0]).sum())
    return rank, float(values[0] / values[rank - 1])


def effort_findings(body: RigidBody, log: JointLog, source: Source) -> list[api.Finding]:
    """Efforts that belong to another joint, have the wrong sign, or are behind the gear."""
    regressor, measured, speed = _sampled(body, log, source)
    model = regressor @ body.prior
    share = np.zeros((len(body.joints), len(body.joints)))
    for (i, wanted), (j, told) in product(enumerate(model.T), enumerate(measured.T)):
        explained, factor = _explained(wanted, told, speed[:, j])
        share[i, j] = explained if 1.0 / CLOSE < factor < CLOSE else 0.0
    own = np.diag(share)
    found = []
    hint = "name the columns in the order of the log in a mapping file"
    for i, j in combinations(range(len(own)), 2):
        crossed = share[i, j], share[j, i]
        if min(crossed) > FOLLOWS and sum(crossed) > own[i] + own[j] + FOLLOWS:
            pair = f"{body.joints[i]} and {body.joints[j]}"
            text = f"wrong joint order: {pair} have each other's {source}"
            found.append(api.Finding(text, fatal=True, hint=hint))
    if source == "effort":
        found += _scales(body, model, measured, speed)
    return found


def _scales(body: RigidBody, model: Floats, measured: Floats, speed: Floats) -> list[api.Finding]:
    found = []
    for k, joint in enumerate(body.joints):
        share, factor = _explained(model[:, k], measured[:, k], speed[:, k])
        if share < FOLLOWS or 1.0 / GEAR < factor < GEAR:
            continue
        text = f"effort of {joint} is {factor:.3g} times what the model's masses need"
        hint = "it seems to be counted at the motor, or in another unit; give its factor on import"
        if factor < 0.0:
            if factor < -1.0 / GEAR:
                hint = "give its sign on import"
            else:
                continue
        found.append(api.Finding(text, fatal=True, hint=hint))
    return found


def _explained(model: Floats, measured: Floats, speed: Floats) -> tuple[float, float]:
    """Share of the effort that is proportional to the model beside friction, and the factor."""
    friction = np.stack([np.ones_like(speed), np.sign(speed), speed], axis=1)
    left = measured - friction @ np.linalg.lstsq(friction, measured, rcond=None)[0]
    shape = model - friction @ np.linalg.lstsq(friction, model, rcond=None)[0]
    total, energy = float(left @ left), float(shape @ shape)
    if total <= 0.0 or energy <= 1e-9:
        return 0.0, 0.0
    factor = float(shape @ left) / energy
    return factor**2 * energy / total, factor


def _sampled(
    body: RigidBody, log: JointLog, source: Source | None = None
) -> tuple[Floats, Floats, Floats]:
    """Regressor, measured efforts (empty without a source) and speeds at some instants."""
    motion = motion_of(log, CUTOFF)
    stride = max(1, len(motion.time) // SAMPLES)
    coarse = motion.every(stride)
    regressor = body.regressor(coarse.position, coarse.velocity, coarse.acceleration)
    measured = np.empty((0, 0))
    if source is not None:
        measured = low_pass(even(log, target_of(log, source)), motion.interval, CUTOFF)[::stride]
    return regressor, measured, coarse.velocity
