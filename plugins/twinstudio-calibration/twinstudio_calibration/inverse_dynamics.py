"""Identifies masses, friction, drive gains and delays by inverse-dynamics regression."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration import arm_checks, arm_results, telemetry
from twinstudio_calibration.arm_model import ArmModel, Source, compared, predict, target_of
from twinstudio_calibration.arm_search import Wish, known_gain, model_of, search
from twinstudio_calibration.logs import JointLog, advancing, joint_logs, logs_or_findings
from twinstudio_calibration.rigid_body import RigidBody, rigid_body

Floats = NDArray[np.float64]
LEAST_SECONDS = 3.0
LAGS = 20
NEEDED = "joint.position, and joint.effort or joint.current"


class Params(api.Params, frozen=True):
    """What is measured, and how it is filtered."""

    source: Annotated[
        Literal["auto", "effort", "current"],
        api.about("What is explained; auto takes efforts where the log has them"),
    ] = "auto"
    fit_cutoff: Annotated[
        float, api.si("Hz", low=0.5, high=100.0, about="Efforts and model are filtered alike below")
    ] = 10.0
    score_cutoff: Annotated[
        float,
        api.si("Hz", low=0.0, high=500.0, about="Filter of both before they are scored; 0 for raw"),
    ] = 0.0
    longest_delay: Annotated[
        float, api.si("s", low=0.0, high=0.2, about="Largest delay of effort behind motion")
    ] = 0.03
    counterbalanced: Annotated[
        str, api.about("Joints with a counterbalance, separated by commas")
    ] = ""


class InverseDynamics(api.Calibrator[Params]):
    """Rigid bodies, friction, drive gains and delay of every joint, from its efforts."""

    id = "twinstudio.inverse_dynamics"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:
        """Defects of telemetry and model, then rank and condition of the base parameters."""
        body = rigid_body(scene)
        if unknown := [joint for joint in balanced(params) if joint not in body.joints]:
            raise api.PluginError(
                f"the scene has no joint '{unknown[0]}' to be counterbalanced",
                hint=f"it has {', '.join(body.joints)}",
            )
        told, absent = logs_or_findings(logs, scene.robot.joints, NEEDED)
        if absent:
            return absent
        found = arm_checks.model_findings(body)
        source = source_of(told, params)
        for log in told.values():
            found += telemetry.defects(
                log, needs=(source,), least_seconds=LEAST_SECONDS, revolute=body.revolute
            )
            if not any(finding.fatal for finding in found):
                found += arm_checks.limit_findings(body, log)
        if any(finding.fatal for finding in found):
            return found
        usable = [advancing(log) for log in told.values()]
        for log in usable:
            found += arm_checks.effort_findings(body, log, source)
        return [*found, *arm_checks.excitation(body, usable)]

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Parameters with intervals, the model as a table, and the patch."""
        body = rigid_body(scene)
        told = joint_logs(logs, scene.robot.joints)
        usable = [advancing(log) for log in told.values()]
        wish = wish_of(told, scene, params)
        fitting = search(body, usable, wish, context.progress)
        model = model_of(fitting, wish)
        for text in arm_results.unpatched(body, model):
            context.log(text)
        reason = f"inverse dynamics of {', '.join(told)}; prior strength {fitting.strength:.3g}"
        return [
            *arm_results.figures(fitting, model),
            arm_results.table_of(body, model),
            scores("training error", body, model, told),
            arm_results.patch_of(body, model, reason),
        ]

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Errors on what was held out, against the scene's own model and the controller's."""
        body = rigid_body(scene)
        model = arm_results.model_from(solved, body)
        told = joint_logs(logs, scene.robot.joints)
        return [
            scores("held-out error", body, model, told),
            whiteness(body, model, told),
            *curves(body, model, told),
        ]


def balanced(params: Params) -> frozenset[str]:
    """The joints with a counterbalance."""
    return frozenset(filter(None, (word.strip() for word in params.counterbalanced.split(","))))


def source_of(logs: dict[str, JointLog], params: Params) -> Source:
    """Efforts or currents, as asked or as the logs have them."""
    if params.source != "auto":
        return params.source
    have = all(log.effort is not None for log in logs.values())
    return "effort" if have or any(log.current is None for log in logs.values()) else "current"


def wish_of(logs: dict[str, JointLog], scene: api.Scene, params: Params) -> Wish:
    """What the search is asked for."""
    source = source_of(logs, params)
    gain = known_gain(scene.drive.motor.drive_gain, len(scene.robot.joints))
    return Wish(
        source=source,
        fit_cutoff=params.fit_cutoff,
        score_cutoff=params.score_cutoff,
        longest_delay=params.longest_delay,
        balanced=balanced(params),
        gain=gain if source == "current" else None,
    )


def scores(name: str, body: RigidBody, model: ArmModel, logs: dict[str, JointLog]) -> api.Table:
    """Relative error of each joint and log: before is the scene's bodies without friction.

    ||measured - predicted|| / ||measured||, both filtered alike; the row "all" takes all
    joints together, "all, weighted" each by 1 / standard deviation of what was measured.
    """
    rows: list[tuple[str, str, float, float | None, float | None]] = []
    for label, whole in logs.items():
        log = advancing(whole)
        measured, after = compared_by(model, log, predict(model, body, log))
        before = compared_by(model, log, predict(_nominal(model, body), body, log))[1]
        own = log.model_current if model.source == "current" else log.model_effort
        vendor = None if own is None else compared_by(model, log, own)[1]
        for j, joint in enumerate(body.joints):
            part = np.s_[:, j]
            rows.append(
                (
                    label,
                    joint,
                    *_errors(
                        measured[part],
                        after[part],
                        before[part],
                        None if vendor is None else vendor[part],
                    ),
                )
            )
        rows.append((label, "all", *_errors(measured, after, before, vendor)))
        w = 1.0 / measured.std(axis=0)
        rows.append(
            (
                label,
                "all, weighted",
                *_errors(
                    measured * w, after * w, before * w, None if vendor is None else vendor * w
                ),
            )
        )
    return api.Table(
        name=name,
        columns=("log", "joint", "after", "before", "controller's own model"),
        units=("", "", "1", "1", "1"),
        rows=tuple(rows),
    )


def compared_by(model: ArmModel, log: JointLog, predicted: Floats) -> tuple[Floats, Floats]:
    """Measured and predicted as the model is scored."""
    return compared(log, target_of(log, model.source), predicted, model.score_cutoff)


def _nominal(model: ArmModel, body: RigidBody) -> ArmModel:
    """The scene's bodies alone, with the gains that were found."""
    return ArmModel(
        source=model.source,
        inertial=body.prior,
        gain=model.gain,
        own=tuple({} for _ in body.joints),
        contact=model.contact,
        delay=np.zeros(len(body.joints)),
        motion_cutoff=model.motion_cutoff,
        score_cutoff=model.score_cutoff,
    )


def _errors(
    measured: Floats, after: Floats, before: Floats, vendor: Floats | None
) -> tuple[float, float, float | None]:
    size = float(np.linalg.norm(measured))
    others = None if vendor is None else float(np.linalg.norm(measured - vendor)) / size
    return (
        float(np.linalg.norm(measured - after)) / size,
        float(np.linalg.norm(measured - before)) / size,
        others,
    )


def whiteness(body: RigidBody, model: ArmModel, logs: dict[str, JointLog]) -> api.Table:
    """How much of the residual is left to explain: its correlation from sample to sample.

    Lag-one correlation, and Ljung-Box Q over its degrees of freedom (1 for white noise).
    """
    rows: list[tuple[str, str, float, float]] = []
    for label, whole in logs.items():
        log = advancing(whole)
        residual = target_of(log, model.source) - predict(model, body, log)
        for joint, column in zip(body.joints, residual.T, strict=True):
            rows.append((label, joint, *_portmanteau(column)))
    return api.Table(
        name="whiteness of the residual",
        columns=("log", "joint", "lag-one correlation", "Ljung-Box Q over lags"),
        units=("", "", "1", "1"),
        rows=tuple(rows),
    )


def _portmanteau(residual: Floats) -> tuple[float, float]:
    centred = residual - residual.mean()
    n, energy = len(centred), float(centred @ centred)
    rho = np.array([centred[k:] @ centred[: n - k] / energy for k in range(1, LAGS + 1)])
    q = n * (n + 2) * float(np.sum(rho**2 / (n - np.arange(1, LAGS + 1))))
    return float(rho[0]), q / LAGS


def curves(body: RigidBody, model: ArmModel, logs: dict[str, JointLog]) -> list[api.Series]:
    """Measured and predicted of every joint over time, thinned to what a plot shows."""
    found = []
    for label, whole in logs.items():
        log = advancing(whole)
        told = {"measured": target_of(log, model.source), "predicted": predict(model, body, log)}
        stride = max(1, len(log) // 2000)
        for j, joint in enumerate(body.joints):
            unit = "A" if model.source == "current" else ("N m" if body.revolute[j] else "N")
            found += [
                api.Series(
                    name=f"{label}: {what} {model.source} of {joint}",
                    x=tuple(log.time[::stride].tolist()),
                    y=tuple(values[::stride, j].tolist()),
                    x_unit="s",
                    y_unit=unit,
                )
                for what, values in told.items()
            ]
    return found


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The fitter of this module."""
    return [InverseDynamics]
