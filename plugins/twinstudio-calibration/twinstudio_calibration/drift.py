"""Drift over a session: the same commands, run after run, and a robot that warms up.

A statistical model, no simulation: it predicts where a repeat of a known input will
run, from how many repeats came before, and nothing else of that repeat::

    q(t, k) = base(t) + s(k) drift(t)

k counts the repeats of an input from 0; s is none, k, ln(1 + k / kappa) or
1 - exp(-k / kappa), one for all inputs and joints of a session. Law and kappa are
those by which earlier fitted runs predict later fitted ones best.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from twinstudio.plugin import api
from twinstudio_calibration.logs import Floats, JointLog, joint_logs
from twinstudio_calibration.telemetry import clock, garbage, order, units

Law = Literal["none", "linear", "logarithmic", "exponential"]
LAWS: tuple[Law, ...] = ("none", "linear", "logarithmic", "exponential")
KAPPAS = tuple(float(k) for k in np.geomspace(1.0, 30.0, 15))
LEAST_RUNS = 4
FIRST = 3
"""So many runs are fitted before the next is predicted in the choice of the law."""
TABLE = "drift over the session"


class Params(api.Params, frozen=True):
    """What is tried."""

    law: Annotated[
        Literal["auto", "none", "linear", "logarithmic", "exponential"],
        api.about("How drift grows with the number of repeats; auto predicts runs to find out"),
    ] = "auto"


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Runs of one input in the order they were made.

    digest: of the commands. time: float64[n] s. position: float64[runs, n, joints].
    """

    digest: str
    joints: tuple[str, ...]
    time: Floats
    position: Floats

    def holds(self, log: JointLog) -> bool:
        """Whether `log` is a run of this input."""
        return digest_of(log) == self.digest

    def first(self, count: int) -> "Repeats":
        """The earliest `count` runs."""
        return Repeats(self.digest, self.joints, self.time, self.position[:count])


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """A fitted input. base, drift: float64[n, joints]. runs: how many; numbers: theirs.

    scatter: sum of squares about the mean of the runs, over all samples and joints.
    """

    law: Law
    kappa: float
    base: Floats
    drift: Floats
    numbers: Floats
    scatter: float

    def predict(self, number: Floats) -> Floats:
        """Positions of runs number..., float64[runs, n, joints]."""
        grown = growth(self.law, self.kappa, np.asarray(number, dtype=np.float64))
        return self.base + grown[:, None, None] * self.drift


def growth(law: Law, kappa: float, number: Floats) -> Floats:
    """s(k), which is 0 at the first run."""
    if law == "none":
        return np.zeros_like(number)
    if law == "linear":
        return number.copy()
    if law == "logarithmic":
        return np.asarray(np.log1p(number / kappa))
    return np.asarray(1.0 - np.exp(-number / kappa))


def fit(repeats: Repeats, law: Law, kappa: float) -> Drift:
    """Least squares over the runs, at every sample and joint for itself."""
    runs = len(repeats.position)
    numbers = np.arange(runs, dtype=np.float64)
    design = np.column_stack([np.ones(runs), growth(law, kappa, numbers)])
    if law == "none":
        design = design[:, :1]
    flat = repeats.position.reshape(runs, -1)
    found = np.linalg.lstsq(design, flat, rcond=None)[0]
    shape = repeats.position.shape[1:]
    drift = np.zeros(shape) if law == "none" else found[1].reshape(shape)
    scatter = float(((flat - flat.mean(axis=0)) ** 2).sum())
    return Drift(law, kappa, found[0].reshape(shape), drift, numbers, scatter)


def choose(session: Sequence[Repeats]) -> tuple[Law, float, dict[Law, float]]:
    """The law and kappa by which early runs predict later ones best; the error of each law.

    Errors are root mean squares over the scatter of the fitted runs, for all inputs.
    """
    best: dict[Law, tuple[float, float]] = {}
    for law in LAWS:
        tried = KAPPAS if law in ("logarithmic", "exponential") else (1.0,)
        best[law] = min((_forward(session, law, kappa), kappa) for kappa in tried)
    law = min(LAWS, key=lambda one: best[one][0])
    return law, best[law][1], {one: best[one][0] for one in LAWS}


def _forward(session: Sequence[Repeats], law: Law, kappa: float) -> float:
    """Error of predicting each later fitted run from the runs before some point."""
    errors = []
    for repeats in session:
        scatter = rms(repeats.position - repeats.position.mean(axis=0))
        for known in range(FIRST, len(repeats.position)):
            fitted = fit(repeats.first(known), law, kappa)
            later = np.arange(known, len(repeats.position), dtype=np.float64)
            gaps = fitted.predict(later) - repeats.position[known:]
            errors += [(rms(gap) / scatter) ** 2 for gap in gaps]
    return math.sqrt(float(np.mean(errors)))


def rms(values: Floats) -> float:
    """Root mean square over everything."""
    return float(np.sqrt(np.mean(values**2)))


def spread(position: Floats) -> float:
    """Run-to-run spread [rad]: standard deviation over runs, rms over time and joints."""
    return float(np.sqrt(np.mean(position.var(axis=0, ddof=1))))


class SessionDrift(api.Calibrator[Params]):
    """How far repeats of the same commands wander, and how much of it is drift."""

    id = "twinstudio.session_drift"
    params = Params
    inputs = (
        api.InputSlot("log", "Runs of the session in their order, each a log", several=True),
        api.InputSlot("held_out", "The runs that came next, to validate on", several=True),
    )

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:  # noqa: ARG002 - all laws need the same
        """Whether inputs were repeated often enough; each log is one run."""
        found: list[api.Finding] = []
        try:
            read = read_runs(logs, scene)
        except api.PluginError as error:
            return [api.Finding(error.what, fatal=True, hint=error.hint)]
        for name, log in read.items():
            turning = np.ones(len(log.joints), dtype=bool)
            defects = [*clock(log), *garbage(log), *units(log, turning), *order(log)]
            found += [
                api.Finding(f"{name}: {one.text}", fatal=one.fatal, hint=one.hint)
                for one in defects
            ]
        runs = [len(repeats.position) for repeats in grouped(read)]
        if max(runs, default=0) < LEAST_RUNS:
            text = f"no input was repeated {LEAST_RUNS} times: {max(runs, default=0)} at most"
            hint = "give every run of the session as a log, in order, with its commands"
            found.append(api.Finding(text, fatal=True, hint=hint))
        elif short := sum(count < LEAST_RUNS for count in runs):
            found.append(api.Finding(f"{short} inputs with too few runs are left out"))
        return sorted(found, key=lambda finding: not finding.fatal)

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Law of the drift, its size a joint with intervals, and the curves of every input."""
        session = [r for r in grouped(read_runs(logs, scene)) if len(r.position) >= LEAST_RUNS]
        law, kappa, errors = choose(session)
        told = ", ".join(f"{one} {error:.2f}" for one, error in errors.items())
        context.log(f"later fitted runs predicted from earlier ones, over their scatter: {told}")
        if params.law != "auto":
            law = params.law
            tried = KAPPAS if law in ("logarithmic", "exponential") else (1.0,)
            kappa = min(tried, key=lambda one: _forward(session, law, one))
        results: list[api.Result] = []
        rows: list[tuple[float | int | str | None, ...]] = []
        for number, repeats in enumerate(session, start=1):
            context.progress(number / (len(session) + 1.0), f"input {number}")
            fitted = fit(repeats, law, kappa)
            rows.append((number, repeats.digest, law, kappa, len(fitted.numbers), fitted.scatter))
            results += _scalars(number, repeats, fitted)
            results += _curves(number, repeats, fitted)
        columns = ("input", "digest", "law", "kappa", "runs", "scatter")
        units_ = ("", "", "", "", "", "rad^2")
        return [api.Table(name=TABLE, columns=columns, units=units_, rows=tuple(rows)), *results]

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Error on runs not fitted over the run-to-run spread, with and without drift.

        They count on from the last fitted run, in the order given.
        """
        table = next(r for r in solved if isinstance(r, api.Table) and r.name == TABLE)
        held = {repeats.digest: repeats for repeats in grouped(read_runs(logs, scene))}
        rows: list[tuple[float | int | str | None, ...]] = []
        for row in table.rows:
            if repeats := held.get(str(row[1])):
                fitted = _restored(row, solved, repeats.joints)
                rows.append((row[0], *score(fitted, repeats)))
        ratios = ("mean of fitted runs over spread", "with drift over spread")
        columns, units_ = ("input", "spread", *ratios), ("", "rad", "1", "1")
        title = "free run on repeats not fitted"
        return [api.Table(name=title, columns=columns, units=units_, rows=tuple(rows))]


def score(fitted: Drift, held: Repeats) -> tuple[float, float, float]:
    """Spread of all runs [rad]; error of their mean, and of the drift, over it, on `held`."""
    later = len(fitted.numbers) + np.arange(len(held.position), dtype=np.float64)
    mean = fitted.predict(fitted.numbers).mean(axis=0)
    old, new = len(fitted.numbers), len(held.position)
    about = held.position - held.position.mean(axis=0)
    apart = old * new / (old + new) * float(((held.position.mean(axis=0) - mean) ** 2).sum())
    total = fitted.scatter + float((about**2).sum()) + apart
    sigma = math.sqrt(total / (old + new - 1) / mean.size)
    drifted = rms(fitted.predict(later) - held.position) / sigma
    return sigma, rms(mean - held.position) / sigma, drifted


def grouped(logs: Mapping[str, JointLog]) -> list[Repeats]:
    """Runs of the same commands, in the order of the logs; stamps do not order them.

    Runs of one input that differ in length are cut to the shortest.
    """
    runs: dict[str, list[JointLog]] = {}
    for log in logs.values():
        runs.setdefault(digest_of(log), []).append(log)
    found = []
    for digest, some in runs.items():
        length = min(len(log) for log in some)
        position = np.stack([log.position[:length] for log in some])
        found.append(Repeats(digest, some[0].joints, some[0].time[:length], position))
    return found


def digest_of(log: JointLog) -> str:
    """The commands of a run, as a short hash; NaN and the last decimals do not count."""
    commands = next(values for values in _commands(log) if values is not None)
    rounded = np.round(np.nan_to_num(commands), 6) + 0.0
    return hashlib.sha256(rounded.tobytes()).hexdigest()[:16]


def _commands(log: JointLog) -> tuple[Floats | None, ...]:
    return log.command_effort, log.command_position, log.command_velocity


def read_runs(logs: api.Logs, scene: api.Scene) -> dict[str, JointLog]:
    """Every log with positions and commands of the scene's joints, or of its own.

    Raises PluginError for a log without commands, or with positions not read.
    """
    blocks = {name: block for name, block in logs.items() if "joint.position" in block.layout}
    if not blocks:
        raise api.PluginError("no log has joint.position", hint="record the joints' positions")
    labels = next(iter(blocks.values())).layout.signal("joint.position").labels
    joints = scene.robot.joints if set(scene.robot.joints) <= set(labels) else labels
    read = joint_logs(blocks, joints)
    for name, log in read.items():
        if all(values is None for values in _commands(log)):
            text = f"{name} has no command: which runs repeat each other is unknown"
            raise api.PluginError(text, hint="record command.effort or command.position")
        if not np.isfinite(log.position).all():
            raise api.PluginError(f"{name} has positions that were not read", hint="cut them out")
    return read


def _scalars(number: int, repeats: Repeats, fitted: Drift) -> list[api.Scalar]:
    """Drift of each joint from the first run to the last, at the end of the motion."""
    runs = len(fitted.numbers)
    grown = growth(fitted.law, fitted.kappa, fitted.numbers)
    residual = repeats.position[:, -1] - fitted.predict(fitted.numbers)[:, -1]
    found = []
    for k, joint in enumerate(repeats.joints):
        size = float(grown[-1] * fitted.drift[-1, k])
        scatter = float(((grown - grown.mean()) ** 2).sum())
        half = math.inf
        if scatter > 0.0 and runs > 2:
            variance = float((residual[:, k] ** 2).sum()) / (runs - 2) / scatter
            half = _student(runs - 2) * float(grown[-1]) * math.sqrt(variance)
        share = _explained(repeats.position[:, :, k], fitted, k)
        found.append(
            api.Scalar(
                name=f"drift of {joint} in input {number}",
                value=size,
                unit="rad",
                low=size - half,
                high=size + half,
                note=f"first to last fitted run, at the end; {share:.0%} of the scatter of the runs"
                " is drift; Student's t over the runs",
            )
        )
    return found


def _explained(position: Floats, fitted: Drift, k: int) -> float:
    about = float(((position - position.mean(axis=0)) ** 2).sum())
    left = float(((position - fitted.predict(fitted.numbers)[:, :, k]) ** 2).sum())
    return 1.0 - left / about if about > 0.0 else 0.0


def _student(freedom: int) -> float:
    from scipy.stats import t  # noqa: PLC0415 - slow to import, and seldom needed

    return float(t.ppf(0.975, freedom))


def _curves(number: int, repeats: Repeats, fitted: Drift) -> list[api.Series]:
    time = tuple(map(float, repeats.time))
    found = []
    for name, values in (("base", fitted.base), ("drift", fitted.drift)):
        for k, joint in enumerate(repeats.joints):
            y = tuple(map(float, values[:, k]))
            title = _title(name, joint, number)
            found.append(api.Series(name=title, x=time, y=y, x_unit="s", y_unit="rad"))
    return found


def _title(name: str, joint: str, number: object) -> str:
    return f"{name} of {joint} in input {number}"


def _restored(row: Sequence[object], solved: api.Results, joints: Sequence[str]) -> Drift:
    """The drift that `solve` wrote for the input of `row`."""
    curves = {r.name: r.y for r in solved if isinstance(r, api.Series)}
    base, drift = (
        np.array([curves[_title(name, joint, row[0])] for joint in joints]).T
        for name in ("base", "drift")
    )
    law = next(one for one in LAWS if one == row[2])
    numbers = np.arange(int(str(row[4])), dtype=np.float64)
    return Drift(law, float(str(row[3])), base, drift, numbers, float(str(row[5])))


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [SessionDrift]
