"""Defects of a log that make it unfit, found before any solver runs; one line each."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration.logs import Floats, JointLog

DEGREES = 180.0 / np.pi
TURNS = 4.0
"""No joint of an arm is this many turns from its zero; in degrees, nearly every one is."""
LONGEST_GAP = 10.0
"""A pause longer than so many sample intervals is a jump of the clock."""
OUTLIER = 100.0
"""A reading so many times the 99th percentile is garbage."""
PLATEAU = 0.02
"""A share of samples at the very extreme that a free signal never reaches."""
AGREE = 0.9
"""Least correlation at which velocity and derivative of position are the same motion."""
FEW = 50
"""Samples below which nothing can be told from a log."""


def defects(
    log: JointLog,
    *,
    needs: Sequence[str] = (),
    least_seconds: float = 1.0,
    least_range: float = 0.01,
    revolute: Sequence[bool] = (),
) -> list[api.Finding]:
    """What is wrong with `log`, worst first; an empty list if nothing is.

    needs: fields of `JointLog` that must have readings of every joint.
    least_range: rad or m that every joint must move; 0 for a fitter that needs no motion.
    revolute: whether each joint turns; all do if empty.
    """
    if len(log) < FEW or log.duration < least_seconds:
        return [too_short(log, least_seconds)]
    turning = np.array(revolute, dtype=bool) if len(revolute) else np.ones(len(log.joints), bool)
    found = [
        *clock(log),
        *missing(log, needs),
        *garbage(log),
        *units(log, turning),
        *order(log),
        *saturation(log),
        *standing(log, least_range),
    ]
    return sorted(found, key=lambda finding: not finding.fatal)


def too_short(log: JointLog, least_seconds: float) -> api.Finding:
    """The finding for a log that is over before anything can be told."""
    return api.Finding(
        f"the log is too short: {len(log)} samples in {log.duration:.3g} s",
        fatal=True,
        hint=f"record at least {max(least_seconds, 1.0):.3g} s and {FEW} samples",
    )


def clock(log: JointLog) -> list[api.Finding]:
    """Stamps that go back or repeat, and pauses."""
    step = np.diff(log.time)
    back, repeated = int((step < 0).sum()), int((step == 0).sum())
    usual = float(np.median(step[step > 0])) if (step > 0).any() else 0.0
    jumps = step > LONGEST_GAP * usual
    found = []
    if back or repeated:
        fatal = back + repeated > 0.05 * len(log)
        hint = "record with the robot's own stamps; these samples are left out"
        text = f"the clock goes back {back} times and stands still {repeated} times"
        found.append(api.Finding(text, fatal=fatal, hint=hint))
    if jumps.any():
        text = (
            f"the clock jumps {int(jumps.sum())} times by more than {LONGEST_GAP:g} intervals,"
            f" at most {step.max():.3g} s, first at {log.time[:-1][jumps][0]:.3f} s"
        )
        hint = "record without pauses, or cut the log there; it is treated as pieces"
        found.append(api.Finding(text, hint=hint))
    return found


def missing(log: JointLog, needs: Sequence[str]) -> list[api.Finding]:
    """Signals that are needed and absent, empty, or constant."""
    found = []
    for field in needs:
        values: Floats | None = getattr(log, field)
        if values is None:
            text = f"the log has no {_words(field)}"
            hint = f"record {_words(field)} of every joint, or name its columns in a mapping file"
            found.append(api.Finding(text, fatal=True, hint=hint))
            continue
        dead = [_dead(column) for column in values.T]
        if any(dead):
            which = _names(log, np.array(dead))
            text = f"{_words(field)} of {which} has no readings, or one and the same"
            hint = "check the sensor, or the columns in the mapping file"
            found.append(api.Finding(text, fatal=True, hint=hint))
    return found


def garbage(log: JointLog) -> list[api.Finding]:
    """Rows without a reading, or with numbers out of all proportion."""
    bad = np.zeros(len(log), dtype=bool)
    for values in _present(log).values():
        bad |= ~np.isfinite(values).all(axis=1)
        with np.errstate(over="ignore"):
            bad |= _outliers(values).any(axis=1)
    count = int(bad.sum())
    if not count:
        return []
    share = count / len(log)
    text = f"{count} rows ({share:.1%}) hold garbage or no reading, first at row {_first(bad)}"
    hint = "import the log again with the right format and mapping, or cut these rows out"
    fatal = share > 0.05 or bool(_outliers(log.position).any())
    return [api.Finding(text, fatal=fatal, hint=hint)]


def units(log: JointLog, turning: NDArray[np.bool_]) -> list[api.Finding]:
    """Degrees for radians, motor side for joint side."""
    with np.errstate(invalid="ignore"):
        far = turning & (np.nanmax(np.abs(log.position), axis=0) > TURNS * 2.0 * np.pi)
    found = []
    if far.any():
        largest = float(np.nanmax(np.abs(log.position[:, far])))
        text = f"position of {_names(log, far)} reaches {largest:.4g} rad: no joint turns so far"
        hint = (
            "it seems to be in degrees or counted at the motor; give unit or gear ratio on import"
        )
        found.append(api.Finding(text, fatal=True, hint=hint))
    ratio = velocity_ratio(log)
    with np.errstate(invalid="ignore"):
        wrong = np.isfinite(ratio) & ((ratio > 1.5) | (ratio < 1 / 1.5))
    if wrong.any():
        text = (
            f"velocity of {_names(log, wrong)} is {_list(ratio[wrong])} times the derivative"
            " of position"
        )
        hint = f"{_suspect(float(np.median(ratio[wrong])))}; give its unit on import"
        found.append(api.Finding(text, fatal=True, hint=hint))
    return found


def order(log: JointLog) -> list[api.Finding]:
    """Velocities that belong to another joint's position."""
    table = _velocity_correlation(log)
    if table is None:
        return []
    best = table.argmax(axis=0)
    own = np.diag(table)
    swapped = (table.max(axis=0) > AGREE) & (own < 0.5) & (best != np.arange(len(best)))
    found = []
    if swapped.any():
        pairs = ", ".join(
            f"{log.joints[k]} (moves as {log.joints[best[k]]})" for k in np.flatnonzero(swapped)
        )
        text = f"wrong joint order: velocity and position disagree for {pairs}"
        hint = "name the columns in the order of the log in a mapping file"
        found.append(api.Finding(text, fatal=True, hint=hint))
    inverted = np.diag(table) < -AGREE
    if inverted.any():
        text = f"velocity of {_names(log, inverted)} has the opposite sign of its position"
        hint = "give the sign of the columns on import"
        found.append(api.Finding(text, fatal=True, hint=hint))
    return found


def saturation(log: JointLog) -> list[api.Finding]:
    """Efforts or currents that stay at their largest value."""
    found = []
    for field in ("effort", "current"):
        values: Floats | None = getattr(log, field)
        if values is None:
            continue
        share = np.array([_plateau(column) for column in values.T])
        flat = share > PLATEAU
        if flat.any():
            text = (
                f"{_words(field)} of {_names(log, flat)} is saturated in"
                f" {share[flat].max():.1%} of the samples"
            )
            hint = "move slower or lighter: a clipped signal says nothing of the load"
            found.append(api.Finding(text, fatal=bool(share.max() > 0.1), hint=hint))
    return found


def standing(log: JointLog, least: float) -> list[api.Finding]:
    """Joints that hardly move."""
    with np.errstate(invalid="ignore"):
        moved = np.nanmax(log.position, axis=0) - np.nanmin(log.position, axis=0)
    still = moved < least
    if not still.any():
        return []
    text = f"not exciting: {_names(log, still)} moves less than {least:g} rad (m)"
    everything = bool(still.all())
    hint = "move every joint over its range, slowly and fast; what needs motion has no interval"
    return [api.Finding(text, fatal=everything, hint=hint)]


def velocity_ratio(log: JointLog) -> Floats:
    """Velocity over derivative of position of each joint, NaN where it cannot be told.

    Least squares over the samples; where both move alike (correlation above `AGREE`).
    """
    ratio = np.full(len(log.joints), np.nan)
    if log.velocity is None:
        return ratio
    for k in range(len(log.joints)):
        derived, told = _speeds(log, k, k)
        energy = float(derived @ derived)
        if energy > 0.0 and _correlation(derived, told) > AGREE:
            ratio[k] = float(derived @ told) / energy
    return ratio


def _velocity_correlation(log: JointLog) -> Floats | None:
    """Correlation of the derivative of position i with velocity j, [joints, joints]."""
    if log.velocity is None:
        return None
    n = len(log.joints)
    table = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            table[i, j] = _correlation(*_speeds(log, i, j))
    return table


def _speeds(log: JointLog, i: int, j: int) -> tuple[Floats, Floats]:
    """Derivative of position i over windows of about 20 ms, and mean velocity j in them."""
    assert log.velocity is not None
    usable = np.isfinite(log.position[:, i]) & np.isfinite(log.velocity[:, j])
    time, position = log.time[usable], log.position[usable, i]
    told = log.velocity[usable, j]
    width = max(2, round(0.02 / max(log.interval, 1e-6)))
    step = time[width:] - time[:-width]
    good = (step > 0.0) & (step < 2.0 * width * log.interval)
    total = np.concatenate([[0.0], np.cumsum(told)])
    mean = (total[width + 1 :] - total[: -width - 1]) / (width + 1)
    return (position[width:] - position[:-width])[good] / step[good], mean[good]


def _correlation(a: Floats, b: Floats) -> float:
    if len(a) < FEW:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0.0 else 0.0


def _plateau(column: Floats) -> float:
    """Share of samples at the very largest or smallest reading."""
    values = column[np.isfinite(column)]
    if not len(values):
        return 0.0
    top, bottom = values.max(), values.min()
    slack = 1e-4 * (top - bottom)
    if slack == 0.0:
        return 0.0
    return max(float(np.mean(values >= top - slack)), float(np.mean(values <= bottom + slack)))


def _outliers(values: Floats) -> NDArray[np.bool_]:
    """Readings out of all proportion to the rest of their column."""
    size = np.abs(values)
    with np.errstate(invalid="ignore"):
        usual = np.nanquantile(size, 0.99, axis=0)
        result: NDArray[np.bool_] = size > OUTLIER * np.maximum(usual, 1e-3)
    return result


def _present(log: JointLog) -> dict[str, Floats]:
    fields = ("position", "velocity", "effort", "current")
    values = {field: getattr(log, field) for field in fields}
    return {k: v for k, v in values.items() if v is not None and np.isfinite(v).any(axis=0).all()}


def _dead(column: Floats) -> bool:
    values = column[np.isfinite(column)]
    return len(values) < FEW or bool(np.ptp(values) == 0.0)


def _suspect(ratio: float) -> str:
    if abs(ratio / DEGREES - 1.0) < 0.1:
        return "it seems to be in degrees a second"
    if abs(ratio * DEGREES - 1.0) < 0.1:
        return "position seems to be in degrees"
    return "one of the two seems to be counted at the motor"


def _names(log: JointLog, which: NDArray[np.bool_]) -> str:
    return ", ".join(np.array(log.joints)[which])


def _list(values: Floats) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _words(field: str) -> str:
    return field.replace("_", " ")


def _first(rows: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(rows)[0])
