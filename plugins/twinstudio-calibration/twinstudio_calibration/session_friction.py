"""Friction that drifts over a session, from repeats of the same commanded torques."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np

from twinstudio.plugin import api
from twinstudio_calibration import session_model as model
from twinstudio_calibration.drift import (
    LAWS,
    LEAST_RUNS,
    Law,
    SessionDrift,
    grouped,
    growth,
    read_runs,
    rms,
)
from twinstudio_calibration.logs import Floats, JointLog
from twinstudio_calibration.session_model import JointFit, Runs, SessionFit

TABLE, SCATTER = "joints of the session", "scatter of the fitted runs"
QUANTILE = 1.96
UNEVEN = 0.2
"""Share of a step by which samples may come early or late."""
METHOD = f"Laplace; a run counts as {model.READINGS:g} readings"


class Params(api.Params, frozen=True):
    """What is tried."""

    drift: Annotated[
        bool, api.about("Let friction drift by the law that predicts runs best; else constant")
    ] = True


class SessionFriction(api.Calibrator[Params]):
    """Inertia, friction and their drift from run to run, by free runs under the torque."""

    id = "twinstudio.session_friction"
    params = Params
    inputs = SessionDrift.inputs

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:  # noqa: ARG002 - all laws need the same
        """Whether torques were logged, at even times, and inputs repeated often enough."""
        found = list(SessionDrift().check(logs, scene, SessionDrift.params()))
        if any(finding.fatal for finding in found):
            return found
        for name, log in read_runs(logs, scene).items():
            steps = np.diff(log.time)
            if log.command_effort is None:
                text, hint = f"{name} has no command.effort", "record the commanded torques"
                found.append(api.Finding(text, fatal=True, hint=hint))
            elif np.abs(steps - log.interval).max() > UNEVEN * log.interval:
                text = f"{name} has uneven samples: torque between them is unknown"
                found.append(api.Finding(text, fatal=True, hint="record at the command's rate"))
            elif not np.isfinite(log.command_effort[:-1]).all():
                text, hint = f"{name} lacks commanded torques", "cut the log where they end"
                found.append(api.Finding(text, fatal=True, hint=hint))
        return sorted(found, key=lambda finding: not finding.fatal)

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Law of the drift, friction of every joint with intervals; friction now as a patch."""
        session = [
            runs for runs in runs_of(read_runs(logs, scene)) if len(runs.number) >= LEAST_RUNS
        ]
        law: Law = "none"
        kappa = 1.0
        if params.drift:
            law, kappa, errors = model.choose(session)
            told = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
            context.log(f"last fitted runs predicted from the first, over their scatter: {told}")
        context.progress(0.7, f"drift is {law}")
        fitted = model.fit_session(session, law, kappa)
        results: list[api.Result] = [table(session[0].joints, fitted), *scatter(session)]
        last = max(float(runs.number[-1]) for runs in session)
        grown = float(growth(law, kappa, np.array([last]))[0])
        for joint, one in zip(session[0].joints, fitted.joints, strict=True):
            results += scalars(joint, one, grown)
        if session[0].joints == scene.robot.joints:
            results.append(patch(fitted, grown, law))
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Free run on runs not fitted over the run-to-run spread of all, each input.

        They count on from the last fitted run, in the order given.
        """
        fitted = restored(solved)
        rows: list[tuple[float | int | str | None, ...]] = []
        for runs in runs_of(read_runs(logs, scene)):
            known = _scatter_of(solved, runs)
            if known is None:
                continue
            count, squares, mean = known
            later = Runs(
                runs.digest,
                runs.joints,
                count + runs.number,
                runs.step,
                runs.torque,
                runs.position,
                runs.pace,
            )
            sigma = _pooled(count, squares, mean, runs.position)
            naive = rms(mean - runs.position) / sigma
            rows.append((runs.digest, sigma, naive, rms(fitted.run(later) - runs.position) / sigma))
        columns = ("input", "spread", "mean of fitted runs over spread", "free run over spread")
        title = "free run on repeats not fitted"
        units = ("", "rad", "1", "1")
        return [api.Table(name=title, columns=columns, units=units, rows=tuple(rows))]


def runs_of(logs: dict[str, JointLog]) -> list[Runs]:
    """Runs of every input in the order of the logs."""
    found = []
    for repeats in grouped(logs):
        some = [log for log in logs.values() if log is not None and repeats.holds(log)]
        torque = some[0].command_effort
        assert torque is not None
        count, length = len(some), len(repeats.time)
        found.append(
            Runs(
                repeats.digest,
                repeats.joints,
                np.arange(count, dtype=np.float64),
                some[0].interval,
                torque[: length - 1],
                repeats.position,
                np.stack([_pace(log) for log in some]),
            )
        )
    return found


def table(joints: tuple[str, ...], fitted: SessionFit) -> api.Table:
    """The fit with all that `restored` needs."""
    rows: list[tuple[float | int | str | None, ...]] = [
        (joint, fitted.law, fitted.kappa, *map(float, one.theta))
        for joint, one in zip(joints, fitted.joints, strict=True)
    ]
    columns = ("joint", "law", "kappa", *(f"ln {n}" for n in model.NAMES[: model.POSITIVE]))
    columns += model.NAMES[model.POSITIVE :]
    units = ("", "", "", "", "", "", "1", "1", "N m", "N m", "N m")
    return api.Table(name=TABLE, columns=columns, units=units, rows=tuple(rows))


def restored(solved: api.Results) -> SessionFit:
    """The fit that `table` wrote; raises PluginError without one."""
    found = next((r for r in solved if isinstance(r, api.Table) and r.name == TABLE), None)
    if found is None:
        raise api.PluginError(f"the results hold no table '{TABLE}'")
    none = np.zeros((0, 0))
    told = np.ones(len(model.NAMES), dtype=bool)
    fits = tuple(JointFit(np.array(row[3:], dtype=np.float64), none, told) for row in found.rows)
    law = next(one for one in LAWS if one == found.rows[0][1])
    return SessionFit(law, float(found.rows[0][2] or 1.0), fits)


def scatter(session: Sequence[Runs]) -> Iterable[api.Result]:
    """Sums and mean curves of the fitted runs, for the spread that validation needs."""
    rows = []
    for runs in session:
        mean = runs.position.mean(axis=0)
        rows.append((runs.digest, len(runs.number), float(((runs.position - mean) ** 2).sum())))
        for k, joint in enumerate(runs.joints):
            x = tuple(float(i) * runs.step for i in range(len(mean)))
            y = tuple(map(float, mean[:, k]))
            yield api.Series(name=_title(joint, runs.digest), x=x, y=y, x_unit="s", y_unit="rad")
    columns, units = ("input", "runs", "sum of squares"), ("", "", "rad^2")
    yield api.Table(name=SCATTER, columns=columns, units=units, rows=tuple(rows))


def scalars(joint: str, one: JointFit, grown: float) -> Iterable[api.Scalar]:
    """Inertia and friction at the first run, and friction of the last over the first."""
    for k, (name, unit) in enumerate(
        (("inertia", "kg m^2"), ("viscous friction", "N m s/rad"), ("Coulomb friction", "N m"))
    ):
        half = QUANTILE * math.sqrt(one.covariance[k, k])
        note = f"first run; {METHOD}"
        yield _figure(f"{name} of {joint}", one.theta[k], half, unit, note, told=bool(one.told[k]))
    for k, name in ((3, "viscous friction"), (4, "Coulomb friction")):
        half = QUANTILE * math.sqrt(one.covariance[k, k]) * grown
        title, value = f"{name} of {joint}, last run over first", one.theta[k] * grown
        yield _figure(title, value, half, "1", METHOD, told=bool(one.told[k]))


def patch(fitted: SessionFit, grown: float, law: str) -> api.Patch:
    """Friction as it was in the last fitted run."""
    viscous, coulomb = (
        tuple(math.exp(one.theta[k] + one.theta[k + 2] * grown) for one in fitted.joints)
        for k in (1, 2)
    )
    changes = (
        api.Change(key="drive.friction.viscous", value=viscous),
        api.Change(key="drive.friction.coulomb", value=coulomb),
    )
    reason = f"friction at the end of the session; its drift over the runs is {law}"
    return api.Patch(name="friction of the session", changes=changes, reason=reason)


def _figure(
    name: str, logarithm: float, half: float, unit: str, note: str, *, told: bool
) -> api.Scalar:
    value = math.exp(float(logarithm))
    return api.Scalar(
        name=name,
        value=value,
        unit=unit,
        low=value * math.exp(-half) if told else -math.inf,
        high=value * math.exp(half) if told else math.inf,
        note=note if told else f"not identifiable from these runs; {note}",
    )


def _pace(log: JointLog) -> Floats:
    """Velocity at the start: as read, else of the first two samples."""
    if log.velocity is not None and np.isfinite(log.velocity[0]).all():
        return np.asarray(log.velocity[0])
    return np.asarray((log.position[1] - log.position[0]) / log.interval)


def _title(joint: str, digest: str) -> str:
    return f"mean of the fitted runs of {joint}, input {digest}"


def _scatter_of(solved: api.Results, runs: Runs) -> tuple[int, float, Floats] | None:
    """Number, sum of squares and mean of the fitted runs of an input; None if it was not fitted."""
    found = next(r for r in solved if isinstance(r, api.Table) and r.name == SCATTER)
    row = next((row for row in found.rows if row[0] == runs.digest), None)
    if row is None:
        return None
    curves = {r.name: r.y for r in solved if isinstance(r, api.Series)}
    mean = np.array([curves[_title(joint, runs.digest)] for joint in runs.joints]).T
    return int(row[1] or 0), float(row[2] or 0.0), mean[: runs.position.shape[1]]


def _pooled(count: int, squares: float, mean: Floats, position: Floats) -> float:
    """Standard deviation over all runs, fitted and held, rms over time and joints."""
    new, middle = len(position), position.mean(axis=0)
    about = float(((position - middle) ** 2).sum())
    apart = count * new / (count + new) * float(((middle - mean) ** 2).sum())
    return math.sqrt((squares + about + apart) / (count + new - 1) / mean.size)


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [SessionFriction]
