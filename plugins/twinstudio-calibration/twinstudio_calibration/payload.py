"""Identifies what an arm carries from a loaded and an unloaded log."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration import arm_checks, arm_results, inverse_dynamics, telemetry
from twinstudio_calibration.arm_search import Wish, model_of, search
from twinstudio_calibration.bodies import nearest_real
from twinstudio_calibration.logs import advancing, joint_logs, logs_or_findings
from twinstudio_calibration.payload_fit import PayloadFit, fit_payload, loaded, with_payload
from twinstudio_calibration.rigid_body import RigidBody, centre_and_inertia, moved, rigid_body

Floats = NDArray[np.float64]
LOADED, UNLOADED, KNOWN = "loaded", "unloaded", "known"
LEAST_MASS = 1e-3
LEAST_GYRATION = 0.01
"""m; the least extent of a payload in any direction."""


class Params(inverse_dynamics.Params, frozen=True):
    """As of the inverse dynamics, and the mass of the known load."""

    known_mass: Annotated[
        float,
        api.si(
            "kg", low=0.0, high=5000.0, about="Mass carried in the log 'known', if there is one"
        ),
    ] = 0.0


class PayloadIdentification(api.Calibrator[Params]):
    """Mass, centre and inertia of the payload, with intervals."""

    id = "twinstudio.payload"
    params = Params
    inputs: ClassVar[tuple[api.InputSlot, ...]] = (
        api.InputSlot(LOADED, "Log of the arm with the payload"),
        api.InputSlot(UNLOADED, "Log of the arm without, best along the same motion", several=True),
        api.InputSlot(
            KNOWN, "Log with a load of known mass, which gives the drive gains", required=False
        ),
        api.InputSlot(
            "held_out",
            "Loaded log to validate on; without one the end of each log is kept for it",
            required=False,
            several=True,
        ),
    )

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:
        """Defects of every log, excitation, and whether the scale of currents is known."""
        body = rigid_body(scene)
        told, absent = logs_or_findings(logs, scene.robot.joints, inverse_dynamics.NEEDED)
        if absent:
            return absent
        source = inverse_dynamics.source_of(told, params)
        found = arm_checks.model_findings(body)
        for name, log in told.items():
            least = inverse_dynamics.LEAST_SECONDS
            defects = telemetry.defects(
                log, needs=(source,), least_seconds=least, revolute=body.revolute
            )
            found += [api.Finding(f"{name}: {d.text}", d.fatal, d.hint) for d in defects]
        if KNOWN in told and params.known_mass <= 0.0:
            text = "the log 'known' is there, and known_mass is not"
            found.append(api.Finding(text, fatal=True, hint="give the mass that it carries"))
        if any(finding.fatal for finding in found):
            return found
        if source == "current" and KNOWN not in told and not scene.drive.motor.drive_gain:
            text = "without drive gains the payload's scale rests on the masses of the model"
            hint = "add a log 'known' with a load of known mass, or drive.motor.drive_gain"
            found.append(api.Finding(text, hint=hint))
        return [*found, *arm_checks.excitation(body, [advancing(log) for log in told.values()])]

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """The unloaded arm first, then the payload."""
        body = rigid_body(scene)
        told = joint_logs(logs, scene.robot.joints)
        wish = inverse_dynamics.wish_of(told, scene, params)
        empty = [advancing(log) for name, log in told.items() if name.startswith(UNLOADED)]
        fitting = search(body, empty, wish, context.progress)
        arm, doubt = model_of(fitting, wish), fitting.spread()
        masses: dict[str, float | None] = {LOADED: None}
        if KNOWN in told:
            masses[KNOWN] = params.known_mass
        rows = [
            loaded(body, arm, advancing(told[name]), mass, params.fit_cutoff)
            for name, mass in masses.items()
        ]
        size = len(arm.inertial)
        fixed = wish.source == "effort" or wish.gain is not None or KNOWN not in told
        found = fit_payload(arm, doubt[:size, :size], rows, known_gain=fixed)
        model = with_payload(arm, found)
        return [
            *_figures(body, scene, found, wish),
            arm_results.table_of(body, model),
            inverse_dynamics.scores("training error", body, model, {LOADED: told[LOADED]}),
            *([_patch(body, scene, found)] if found.parameters[0] > LEAST_MASS else []),
        ]

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Errors on what was held out of the loaded log."""
        body = rigid_body(scene)
        model = arm_results.model_from(solved, body)
        told = joint_logs(logs, scene.robot.joints)
        used = {n: log for n, log in told.items() if n == LOADED or n.startswith("held_out")}
        return [
            inverse_dynamics.scores("held-out error", body, model, used),
            inverse_dynamics.whiteness(body, model, used),
        ]


def _figures(body: RigidBody, scene: api.Scene, fit: PayloadFit, wish: Wish) -> list[api.Scalar]:
    """Mass and centre in the tool's frame; infinite where the prior says as much."""
    half = fit.factor * np.sqrt(np.diag(fit.spread))
    note = arm_results.METHOD
    mass = float(fit.parameters[0])
    found = [
        api.Scalar(
            name="payload mass",
            value=mass,
            unit="kg",
            low=mass - half[0],
            high=mass + half[0],
            note=note,
        )
    ]
    if mass < LEAST_MASS:
        return found
    turn, shift = body.tool(scene.robot.tcp)
    centre = turn.T @ (fit.parameters[1:4] / mass - shift)
    slope = np.hstack([-fit.parameters[1:4, None] / mass**2, np.eye(3) / mass])
    spread = turn.T @ slope @ fit.spread[:4, :4] @ slope.T @ turn
    for k, axis in enumerate("xyz"):
        value, width = float(centre[k]), fit.factor * float(np.sqrt(spread[k, k]))
        known = width < fit.factor * 0.15
        low, high = (value - width, value + width) if known else (-np.inf, np.inf)
        said = note if known else arm_results.UNKNOWN
        found.append(
            api.Scalar(
                name=f"payload centre {axis}", value=value, unit="m", low=low, high=high, note=said
            )
        )
    if wish.source == "current":
        for joint, gain in zip(body.joints, fit.gain, strict=True):
            value = 1.0 / float(gain)
            name = f"drive gain of {joint}"
            found.append(api.Scalar(name=name, value=value, unit="N m/A", note="see the mass"))
    return found


def _patch(body: RigidBody, scene: api.Scene, fit: PayloadFit) -> api.Patch:
    """The payload in the tool's frame; its inertia is made that of a real body."""
    real = nearest_real(fit.parameters, LEAST_GYRATION)
    turn, shift = body.tool(scene.robot.tcp)
    mass, centre, inertia = centre_and_inertia(moved(real, turn.T, -turn.T @ shift))
    return api.Patch(
        name="payload",
        changes=(
            api.Change(key="payload.mass", value=mass),
            api.Change(key="payload.centre", value=tuple(centre.tolist())),
            api.Change(key="payload.inertia", value=tuple(inertia.tolist())),
        ),
        reason="what the loaded log needs beyond the unloaded one; the inertia is the nearest"
        " that a body of this mass and centre can have",
    )


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The fitter of this module."""
    return [PayloadIdentification]
