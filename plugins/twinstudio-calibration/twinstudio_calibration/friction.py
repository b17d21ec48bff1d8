"""Friction of every joint: the ladder of laws, climbed as far as held-out data justify."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np

from twinstudio.plugin import api
from twinstudio_calibration import friction_fit as fitting
from twinstudio_calibration.friction_axes import axes_of, longest, measured_effort, whole_mass
from twinstudio_calibration.friction_fit import Fitted, Step
from twinstudio_calibration.friction_law import LADDER, Axis, Floats, Law, Shape
from twinstudio_calibration.friction_patch import patch_of
from twinstudio_calibration.logs import JointLog, joint_logs, logs_or_findings
from twinstudio_calibration.naming import Naming
from twinstudio_calibration.rigid_body import RigidBody, rigid_body
from twinstudio_calibration.telemetry import defects

METHOD = "95 %, linearised, residuals correlated in time (Newey-West)"
LAW = "friction law"
LEAST_SECONDS = 3.0


class Params(api.Params, frozen=True):
    """What is looked at."""

    cutoff: Annotated[
        float,
        api.si("Hz", low=0.0, high=2000.0, about="Nothing faster is looked at; 0: rate / 10"),
    ] = 0.0


class FrictionLadder(api.Calibrator[Params]):
    """Coulomb, viscous, asymmetric, Stribeck, presliding, load, temperature, ripple."""

    id = "twinstudio.friction"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:  # noqa: ARG002
        """Defects of the log, and whether every joint slides both ways."""
        found, absent = logs_or_findings(
            logs, scene.robot.joints, "position and effort of every joint"
        )
        if absent:
            return absent
        body = rigid_body(scene)
        log = next(iter(found.values()))
        needs = ["position"] if measured_effort(log, scene) is not None else ["effort"]
        turning = body.revolute
        findings = defects(log, needs=needs, least_seconds=LEAST_SECONDS, revolute=turning)
        if len(found) > 1:
            findings.append(api.Finding(f"{len(found)} logs: the first alone is fitted"))
        if not any(finding.fatal for finding in findings):
            findings += one_way(longest(log))
            if not whole_mass(body):
                findings += [
                    api.Finding(
                        f"{what}: its effort is taken for friction",
                        hint="mend the URDF's inertias first",
                    )
                    for what in body.absurd
                ]
        return findings

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Law and figures of every joint, the rungs tried, and the patch."""
        body = rigid_body(scene)
        log = longest(next(iter(joint_logs(logs, scene.robot.joints).values())))
        fits: list[Fitted] = []
        results: list[api.Result] = []
        axes = axes_of(log, scene, body, params.cutoff)
        for k, (joint, axis) in enumerate(zip(body.joints, axes, strict=True)):

            def progress(share: float, rung: str, k: int = k, joint: str = joint) -> None:
                context.progress((k + share) / len(axes), f"{joint}: {rung}")

            fitted, steps = fitting.climb(axis, progress=progress)
            fits.append(fitted)
            results += [rungs_table(joint, steps), *scalars(joint, fitted, body.revolute[k])]
            for step in steps:
                if not step.taken:
                    context.log(f"{joint}: {step.rung} is not justified: {step.why}")
        results.append(law_table(body.joints, fits, params.cutoff))
        results.append(patch_of(fits, axes, body, scene))
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Relative error of the effort on logs that were not fitted, before and after."""
        body = rigid_body(scene)
        laws, cutoff = laws_of(solved)
        results: list[api.Result] = []
        for name, log in joint_logs(logs, scene.robot.joints).items():
            if measured_effort(log, scene) is not None and log.duration > 1.0:
                axes = axes_of(longest(log), scene, body, cutoff)
                results += score(name, body, axes, laws, scene)
        return results


def one_way(log: JointLog) -> list[api.Finding]:
    """Joints that hardly move one of the two ways."""
    found = []
    for k, joint in enumerate(log.joints):
        moved = np.diff(log.position[:, k])
        up, down = moved[moved > 0.0].sum(), -moved[moved < 0.0].sum()
        if 20.0 * min(up, down) < max(up, down):
            text = f"{joint} moves one way only: its friction cannot be told from an offset"
            found.append(api.Finding(text, hint="move to and fro, slowly and fast"))
    return found


def score(
    name: str, body: RigidBody, axes: Sequence[Axis], laws: Sequence[Fitted], scene: api.Scene
) -> list[api.Result]:
    """Table of relative errors and residual's whiteness, and a curve a joint."""
    rows: list[tuple[str | float, ...]] = []
    curves = []
    for k, (joint, axis, law) in enumerate(zip(body.joints, axes, laws, strict=True)):
        target = axis.coarse(axis.effort)
        size = float(np.linalg.norm(target))
        before = target - fitting.predict(scenes_law(scene, body, k), axis)
        after = target - fitting.predict(law, axis)
        errors = [float(np.linalg.norm(part)) / size for part in (before, after)]
        rows.append((joint, *errors, whiteness(after)))
        unit = "N m" if body.revolute[k] else "N"
        time = axis.interval * axis.stride * np.arange(len(after))
        curves.append(
            api.Series(
                name=f"effort of {joint} on {name}: measured minus predicted",
                x=tuple(map(float, time)),
                y=tuple(map(float, after)),
                x_unit="s",
                y_unit=unit,
            )
        )
    table = api.Table(
        name=f"effort error on {name}",
        columns=("joint", "scene", "fitted", "correlation of neighbours"),
        units=("", "1", "1", "1"),
        rows=tuple(rows),
    )
    return [table, *curves]


def whiteness(residual: Floats) -> float:
    """Correlation of the residual with itself one sample later; 0 is white."""
    centred = residual - residual.mean()
    return float(centred[1:] @ centred[:-1] / max(float(centred @ centred), 1e-300))


def scenes_law(scene: api.Scene, body: RigidBody, joint: int) -> Fitted:
    """What the scene says of a joint now: mass, Coulomb, viscous friction and offset."""
    friction = scene.drive.friction
    values = [
        (given[joint] if len(given) > 1 else given[0]) if given else 0.0
        for given in (friction.offset, friction.coulomb, friction.viscous)
    ]
    armature = scene.drive.motor.armature
    mass = armature[joint % len(armature)] if armature else 0.0
    mass += float(body.prior[0]) if whole_mass(body) else 0.0
    return Fitted(Law(("viscous",)), np.array([mass, *values]), np.zeros((0, 0)), np.zeros(0), 0.0)


def scalars(joint: str, fitted: Fitted, revolute: bool) -> Iterable[api.Scalar]:
    """Every number of the law with its interval."""
    law = fitted.law
    shape = {name: getattr(law.shape, name) for name in law.free()}
    numbers = dict(zip(law.names, fitted.values, strict=True)) | shape
    naming = Naming(joint, revolute, METHOD, delay="effort behind the motion")
    for name, value in numbers.items():
        yield naming.scalar(name, float(value), fitted.deviation(name))


def rungs_table(joint: str, steps: Sequence[Step]) -> api.Table:
    """Every rung that was tried, its held-out errors, and why it was not taken."""
    kinds = tuple(steps[0].errors)
    columns = [f"{kind} {when}" for kind in kinds for when in ("without", "with")]
    rows = tuple(
        (
            step.rung,
            *(e for kind in kinds for e in step.errors[kind]),
            "yes" if step.taken else f"not justified: {step.why}",
        )
        for step in steps
    )
    return api.Table(
        name=f"friction ladder of {joint}: relative error by what was held out",
        columns=("rung", *columns, "taken"),
        units=("", *("1" for _ in columns), ""),
        rows=rows,
    )


_SHAPE = ("delay", "travel", "width", "shift", "stribeck", "exponent", "order")


def law_table(joints: Sequence[str], fits: Sequence[Fitted], cutoff: float) -> api.Table:
    """The laws with all that `laws_of` needs; one row a number."""
    rows: list[tuple[str, str, float]] = []
    for joint, fitted in zip(joints, fits, strict=True):
        rows += [(joint, f"rung {rung}", float(k)) for k, rung in enumerate(fitted.law.rungs)]
        rows += [(joint, name, float(getattr(fitted.law.shape, name))) for name in _SHAPE]
        rows += [
            (joint, f"column {name}", float(value))
            for name, value in zip(fitted.law.names, fitted.values, strict=True)
        ]
        rows.append((joint, "cutoff", cutoff))
    return api.Table(
        name=LAW, columns=("joint", "what", "value"), units=("", "", ""), rows=tuple(rows)
    )


def laws_of(solved: api.Results) -> tuple[list[Fitted], float]:
    """Laws and cutoff that `law_table` wrote; raises PluginError without them."""
    table = next((r for r in solved if isinstance(r, api.Table) and r.name == LAW), None)
    if table is None:
        raise api.PluginError(f"the results hold no table '{LAW}'")
    joints: dict[str, dict[str, float]] = {}
    for joint, what, value in table.rows:
        joints.setdefault(str(joint), {})[str(what)] = float(value or 0.0)
    fits, cutoff = [], 0.0
    for told in joints.values():
        rungs = tuple(r for r in LADDER if f"rung {r}" in told)
        rungs = tuple(sorted(rungs, key=lambda rung: told[f"rung {rung}"]))
        law = Law(rungs, Shape(**{name: told[name] for name in _SHAPE}))
        values = np.array([told[f"column {name}"] for name in law.names])
        fits.append(Fitted(law, values, np.zeros((0, 0)), np.zeros(0), 0.0))
        cutoff = told["cutoff"]
    return fits, cutoff


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [FrictionLadder]
