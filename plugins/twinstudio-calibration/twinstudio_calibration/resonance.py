"""Stiffness of gear and arm from the resonances of one axis that is shaken by its motor."""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration.flexible import (
    ChainFit,
    Figure,
    Floats,
    chain_of,
    fit_chain,
    frequency_response,
    parameters,
    simulated,
)
from twinstudio_calibration.logs import JointLog, advancing, joint_logs
from twinstudio_calibration.telemetry import clock, missing, saturation, too_short

CHAIN = "chain of masses"
LEAST_SECONDS = 5.0
LEAST_LINES = 20
"""Lines of the frequency response with enough torque, below which no resonance is seen."""
UNEXPLAINED = 0.5
"""Share of the speed that a chain must not leave, or it is not this axis."""
METHOD = "Gauss-Newton, noise scaled by its autocorrelation time"


class Params(api.Params, frozen=True):
    """What the axis is like."""

    joint: Annotated[str, api.about("The joint that was shaken; empty for the only one")] = ""
    masses: Annotated[int, api.about("2: motor and link; 3: motor, gear, arm", low=2, high=3)] = 3


class Resonance(api.Calibrator[Params]):
    """Resonances, antiresonances, stiffnesses and inertias of a flexible axis."""

    id = "twinstudio.resonance"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:  # noqa: ARG002 - the log is all it takes
        """Whether torque shakes the joint over a band of frequencies while it turns one way."""
        try:
            log = _log(logs, params)
        except api.PluginError as error:
            return [api.Finding(error.what, fatal=True, hint=error.hint)]
        if len(log) < 2 or log.duration < LEAST_SECONDS:
            return [too_short(log, LEAST_SECONDS)]
        found = [*clock(log), *missing(log, ("velocity", "effort")), *saturation(log)]
        if not any(finding.fatal for finding in found):
            found += _excitation(log)
        return sorted(found, key=lambda finding: not finding.fatal)

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Figures with intervals, the frequency response, and the patch of gear and armature."""
        log = _log(logs, params)
        step, torque, speed = _even(log)
        context.progress(0.1, "fitting the chain")
        fitted = fit_chain(torque, speed, step, params.masses)
        joint = log.joints[0]
        results: list[api.Result] = [*scalars(joint, fitted), _table(joint, fitted)]
        results.append(_curve(joint, torque, speed, step))
        results += _patch(joint, fitted, scene)
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:  # noqa: ARG002 - the chain is all it takes
        """Share of the speed's variation that the chain leaves, on logs not fitted."""
        table = next(r for r in solved if isinstance(r, api.Table) and r.name == CHAIN)
        theta = np.log(np.array([float(row[2] or 0.0) for row in table.rows]))
        joint = str(table.rows[0][0])
        rows: list[tuple[float | int | str | None, ...]] = []
        for name, log in joint_logs(logs, (joint,)).items():
            step, torque, speed = _even(log)
            moved, extra = simulated(chain_of(theta), torque, step)
            rest = speed - moved
            rest -= extra @ np.linalg.lstsq(extra, rest, rcond=1e-10)[0]
            rows.append(
                (name, 1.0, float(np.linalg.norm(rest) / np.linalg.norm(speed - speed.mean())))
            )
        title = "speed not explained on the part held out, share"
        return [
            api.Table(
                name=title,
                columns=("log", "before", "after"),
                units=("", "1", "1"),
                rows=tuple(rows),
            )
        ]


def scalars(joint: str, fitted: ChainFit) -> list[api.Scalar]:
    """Resonances and antiresonances [Hz], stiffnesses [N m/rad] and inertias [kg m^2]."""
    masses = len(fitted.chain.inertia)
    wanted = [
        ("resonance", "resonances", "Hz", masses - 1),
        ("antiresonance", "antiresonances", "Hz", masses - 1),
        ("stiffness", "stiffness", "N m/rad", masses - 1),
        ("damping", "damping", "N m s/rad", masses - 1),
        ("inertia", "inertia", "kg m^2", masses),
    ]
    found = []
    for name, of, unit, count in wanted:
        for k in range(count):
            value, spread = fitted.spread(Figure(of, k))
            told = math.isfinite(spread) and spread < 0.5 * value and fitted.share < UNEXPLAINED
            half = 1.96 * spread if told else math.inf
            note = METHOD if told else f"not identifiable from this log; {METHOD}"
            title = f"{name} {k + 1} of {joint}"
            found.append(
                api.Scalar(
                    name=title,
                    value=value,
                    unit=unit,
                    low=value - half,
                    high=value + half,
                    note=note,
                )
            )
    return found


def _table(joint: str, fitted: ChainFit) -> api.Table:
    n = len(fitted.chain.inertia)
    names = [f"inertia {k + 1}" for k in range(n)]
    names += [f"stiffness {k + 1}" for k in range(n - 1)]
    names += [f"damping {k + 1}" for k in range(n - 1)] + ["viscous"]
    values = np.exp(parameters(fitted.chain))
    rows = tuple((joint, name, float(v)) for name, v in zip(names, values, strict=True))
    return api.Table(
        name=CHAIN, columns=("joint", "parameter", "value"), units=("", "", ""), rows=rows
    )


def _curve(joint: str, torque: Floats, speed: Floats, step: float) -> api.Series:
    frequency, response = frequency_response(torque, speed, step)
    return api.Series(
        name=f"speed over torque of {joint}, 20 log10",
        x=tuple(map(float, frequency)),
        y=tuple(map(float, 20.0 * np.log10(np.abs(response)))),
        x_unit="Hz",
        y_unit="1",
    )


def _patch(joint: str, fitted: ChainFit, scene: api.Scene) -> list[api.Result]:
    """Gear and motor of a scene whose only joint this is."""
    if scene.robot.joints != (joint,) or fitted.share >= UNEXPLAINED:
        return []
    values = {
        "drive.transmission.stiffness": fitted.chain.stiffness[0],
        "drive.transmission.damping": fitted.chain.damping[0],
        "drive.motor.armature": fitted.chain.inertia[0],
    }
    changes = tuple(api.Change(key=key, value=(float(v),)) for key, v in values.items())
    reason = "resonances of the axis; what bends behind the gear is no part of the twin"
    return [api.Patch(name="gear", changes=changes, reason=reason)]


def _excitation(log: JointLog) -> list[api.Finding]:
    step, torque, speed = _even(log)
    found = []
    if (
        float(np.ptp(torque)) == 0.0
        or len(frequency_response(torque, speed, step)[0]) < LEAST_LINES
    ):
        text = "not exciting: the torque holds too few frequencies"
        hint = "shake the joint with many sines or noise over the band of its resonances"
        found.append(api.Finding(text, fatal=True, hint=hint))
    if (speed > 0.0).any() and (speed < 0.0).any():
        text = f"{log.joints[0]} turns both ways: friction that flips is not in this model"
        found.append(api.Finding(text, hint="shake it while it turns one way"))
    return found


def _log(logs: api.Logs, params: Params) -> JointLog:
    """The one joint of the first log; raises PluginError if it is not clear which."""
    blocks = [block for block in logs.values() if "joint.position" in block.layout]
    if not blocks:
        raise api.PluginError("no log has joint.position", hint="record the joint's position")
    labels = blocks[0].layout.signal("joint.position").labels
    names = (params.joint,) if params.joint else labels
    if len(names) != 1:
        text = f"the log has {len(names)} joints, and one is fitted at a time"
        raise api.PluginError(text, hint=f"give joint, one of {', '.join(labels)}")
    return advancing(next(iter(joint_logs(logs, names).values())))


def _even(log: JointLog) -> tuple[float, Floats, Floats]:
    """Step, torque and speed on even times, linear between samples."""
    if log.effort is None or log.velocity is None:
        raise api.PluginError("the log has no velocity or no effort", hint="record both")
    step = log.interval
    time = np.arange(log.time[0], log.time[-1], step)
    columns: list[NDArray[np.float64]] = []
    for values in (log.effort[:, 0], log.velocity[:, 0]):
        read = np.isfinite(values)
        columns.append(np.interp(time, log.time[read], values[read]))
    return step, columns[0], columns[1]


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [Resonance]
