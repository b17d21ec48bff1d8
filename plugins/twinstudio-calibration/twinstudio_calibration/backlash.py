"""Backlash, compliance and hysteresis of joints: second encoder, reversal, or a pulled lever."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration import play
from twinstudio_calibration.logs import JointLog, joint_logs
from twinstudio_calibration.play import Estimate, Floats
from twinstudio_calibration.telemetry import clock, garbage, order, too_short, units

Method = Literal["secondary", "reversal", "lever"]
FITTED = "motor minus link"
LEAST = 50
LEAST_SECONDS = 5.0
LEAST_REVERSALS = 1
REGRESSION = "least squares, autocorrelation of the influences"
DEAD_BAND = (
    "a position controller may rest anywhere in its dead band, so this is hysteresis of"
    " holding and no measure of the gear's play alone"
)
TIME_OFFSET = (
    "most of what flips with the direction is a time offset between the two encoders times"
    " the speed, no play of the gear"
)


class Params(api.Params, frozen=True):
    """How the log was made."""

    method: Annotated[
        Literal["auto", "secondary", "reversal", "lever"],
        api.about(
            "secondary: encoder behind the gear; reversal: rests reached from both sides;"
            " lever: motor held, link pulled to and fro; auto takes what the log has"
        ),
    ] = "auto"
    settle: Annotated[
        float, api.si("s", low=0.0, high=60.0, about="A rest counts after a hold of so long")
    ] = 0.5
    least_move: Annotated[
        float, api.si("rad|m", low=0.0, about="A shorter move tells no side of approach")
    ] = 0.01


class Backlash(api.Calibrator[Params]):
    """Width of play and hysteresis, stiffness of the gear, and what only looks like them."""

    id = "twinstudio.backlash"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:
        """Whether a log has a second encoder, rests from both sides, or a pull."""
        blocks = {name: block for name, block in logs.items() if "joint.position" in block.layout}
        if not blocks:
            hint = "record the joints' positions"
            return [api.Finding("no log has joint.position", fatal=True, hint=hint)]
        found: list[api.Finding] = []
        for name, log in joint_logs(blocks, _joints(blocks, scene)).items():
            found += _defects(name, log, params)
        return sorted(found, key=lambda finding: not finding.fatal)

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Estimates of every joint that tells them, and the patch of those with an interval."""
        results: list[api.Result] = []
        found: dict[str, dict[str, Estimate]] = {}
        rows: list[tuple[float | int | str | None, ...]] = []
        for log in joint_logs(logs, _joints(logs, scene)).values():
            method = _method(log, params)
            for k, joint in enumerate(log.joints):
                context.checkpoint()
                scalars, told, row = _solve_one(log, k, method, params)
                results += scalars
                found.setdefault(joint, {}).update(told)
                rows += [row] if row else []
        columns = ("joint", "offset", "compliance", "width")
        units = ("", "s", "rad/(N m)", "rad")
        results.append(api.Table(name=FITTED, columns=columns, units=units, rows=tuple(rows)))
        if changes := _changes(found, scene):
            reason = "fitted to the log; check the errors on the part held out"
            results.append(api.Patch(name="transmission", changes=changes, reason=reason))
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Error of motor minus link on logs not fitted, before and after, rms rad (m)."""
        table = next(r for r in solved if isinstance(r, api.Table) and r.name == FITTED)
        fitted = {str(row[0]): np.array(row[1:], dtype=np.float64) for row in table.rows}
        rows: list[tuple[float | int | str | None, ...]] = []
        for name, log in joint_logs(logs, _joints(logs, scene)).items():
            for k, joint in enumerate(log.joints):
                if joint in fitted and (score := _score(log, k, fitted[joint])):
                    rows.append((name, joint, *score))
        columns, units_ = ("log", "joint", "before", "after"), ("", "", "rad", "rad")
        title = "motor minus link on the part held out, rms"
        return [api.Table(name=title, columns=columns, units=units_, rows=tuple(rows))]


def _solve_one(
    log: JointLog, k: int, method: Method, params: Params
) -> tuple[list[api.Scalar], dict[str, Estimate], tuple[float | str, ...] | None]:
    """Scalars, what may go into the scene, and the row that `validate` needs."""
    joint = log.joints[k]
    if method == "secondary":
        read = _usable(log, k, "position", "secondary_position", "velocity")
        if read is None:
            return [], {}, None
        q, link, w = (_column(log, f, k)[read] for f in _SECONDARY)
        effort = None if log.effort is None else log.effort[read, k]
        found = play.secondary(q, link, w, effort)
        return _told_secondary(joint, found)
    if method == "reversal":
        read = _usable(log, k, "position", "command_position")
        if read is None:
            return [], {}, None
        command, q = _column(log, "command_position", k)[read], log.position[read, k]
        held = play.hold(log.time[read], command, q, params.settle, params.least_move)
        return ([_told_hold(joint, held, command, q)] if held else []), {}, None
    read = _usable(log, k, "position", "effort")
    if read is None:
        return [], {}, None
    deflection = log.position[read, k]
    if log.secondary_position is not None and np.isfinite(log.secondary_position[read, k]).all():
        deflection = log.secondary_position[read, k] - deflection
    pulled = play.lever(deflection, _column(log, "effort", k)[read])
    return _told_lever(joint, pulled) if pulled else ([], {}, None)


_SECONDARY = ("position", "secondary_position", "velocity")


def _told_secondary(
    joint: str, found: play.Secondary
) -> tuple[list[api.Scalar], dict[str, Estimate], tuple[float | str, ...]]:
    apparent = abs(found.apparent.value)
    late = apparent > 0.0 and abs(found.width.value) < 0.3 * apparent and found.offset.told
    why = f"forward minus backward, whatever makes it; {REGRESSION}"
    scalars = [
        _scalar(f"apparent hysteresis of {joint}", found.apparent, "rad", why),
        _scalar(f"time offset of encoders of {joint}", found.offset, "s", REGRESSION),
        _scalar(f"hysteresis width of {joint}", found.width, "rad", _of_width(found, late=late)),
    ]
    told = {"backlash": found.width} if found.width.low > 0.0 else {}
    compliance = found.compliance
    if compliance is not None:
        stiffness = compliance.inverse() if compliance.value else Estimate(0.0, -math.inf, math.inf)
        scalars.append(_scalar(f"gear stiffness of {joint}", stiffness, "N m/rad", REGRESSION))
        if stiffness.low > 0.0 and stiffness.told:
            told["stiffness"] = stiffness
    bends = compliance.value if compliance is not None else 0.0
    return scalars, told, (joint, found.offset.value, bends, found.width.value)


def _of_width(found: play.Secondary, *, late: bool) -> str:
    note = f"without time offset and wind-up; {REGRESSION}"
    if found.width.high <= 0.0 or found.width.value <= 0.0:
        note += "; at or below zero: none seen"
    return f"{note}; {TIME_OFFSET}" if late else note


def _told_hold(joint: str, held: play.Hold, command: Floats, position: Floats) -> api.Scalar:
    counts = f"{held.holds} rests at {held.targets} commands, one count is {held.count:.3g} rad"
    off = float(np.abs(position - command).min())
    note = f"interval: one count, or the spread over the commands; {counts}; {DEAD_BAND}"
    return _scalar(
        f"hold hysteresis of {joint}",
        held.width,
        "rad",
        note if off == 0.0 else f"{note}; it rests off its command by {off:.3g} rad or more",
    )


def _told_lever(
    joint: str, pulled: play.Lever
) -> tuple[list[api.Scalar], dict[str, Estimate], None]:
    scalars = [
        _scalar(f"gear stiffness of {joint}", pulled.stiffness, "N m/rad", REGRESSION),
        _scalar(f"play of {joint}", pulled.play, "rad", REGRESSION),
        _scalar(f"hysteresis width of {joint}", pulled.hysteresis, "rad", REGRESSION),
    ]
    told = {"backlash": pulled.play} if pulled.play.low > 0.0 else {}
    if pulled.stiffness.told and pulled.stiffness.low > 0.0:
        told["stiffness"] = pulled.stiffness
    return scalars, told, None


def _score(log: JointLog, k: int, fitted: Floats) -> tuple[float, float] | None:
    read = _usable(log, k, *_SECONDARY)
    if read is None:
        return None
    q, link, w = (_column(log, f, k)[read] for f in _SECONDARY)
    effort = np.zeros_like(q) if log.effort is None else log.effort[read, k]
    offset, compliance, width = fitted
    gap = q - link
    side = play.sides(q, abs(width) or play.resolution(q))
    rest = gap - offset * w - compliance * effort - 0.5 * width * side
    return float(gap.std()), float(rest.std())


def _changes(found: dict[str, dict[str, Estimate]], scene: api.Scene) -> tuple[api.Change, ...]:
    """Keys of which every joint has a figure, or of which the scene knows the others."""
    changes = []
    for key in ("backlash", "stiffness"):
        old = tuple(getattr(scene.drive.transmission, key))
        joints = scene.robot.joints
        known = old * len(joints) if len(old) == 1 else old
        if not any(key in told for told in found.values()):
            continue
        # No backlash is a value that a joint can have; no stiffness is none.
        if key == "stiffness" and not known and any(key not in found.get(j, {}) for j in joints):
            continue
        values = tuple(
            found[j][key].value if key in found.get(j, {}) else (known[k] if known else 0.0)
            for k, j in enumerate(joints)
        )
        changes.append(api.Change(key=f"drive.transmission.{key}", value=values))
    return tuple(changes)


def _defects(name: str, log: JointLog, params: Params) -> list[api.Finding]:
    if len(log) < LEAST or log.duration < LEAST_SECONDS:
        return [too_short(log, LEAST_SECONDS)]
    turning = np.ones(len(log.joints), dtype=bool)
    found = [*clock(log), *garbage(log), *units(log, turning), *order(log)]
    method = _method(log, params)
    needs = {"secondary": _SECONDARY, "reversal": ("command_position",), "lever": ("effort",)}
    lacks = [field for field in needs[method] if getattr(log, field) is None]
    if lacks:
        text = f"{name}: {method} needs {', '.join(lacks).replace('_', ' ')}, which the log lacks"
        hint = "record it, or choose another method"
        return [*found, api.Finding(text, fatal=True, hint=hint)]
    return [*found, *_excitation(log, method, params)]


def _excitation(log: JointLog, method: Method, params: Params) -> list[api.Finding]:
    """Whether joints turn round often enough for `method`."""
    told = []
    for k in range(len(log.joints)):
        scalars, _, _ = _solve_one(log, k, method, params) if _turns(log, k, method) else ([], 0, 0)
        told.append(bool(scalars))
    silent = [joint for joint, some in zip(log.joints, told, strict=True) if not some]
    found = [api.Finding(f"{method}: {DEAD_BAND}")] if method == "reversal" and any(told) else []
    if silent:
        text = f"not exciting: {method} tells nothing of {', '.join(silent)}"
        hint = {
            "secondary": "move to and fro at several speeds, with the second encoder logged",
            "reversal": "approach one command from both sides, and wait there",
            "lever": "hold the motor, and pull the link to and fro",
        }[method]
        found.append(api.Finding(text, fatal=not any(told), hint=hint))
    return found


def _turns(log: JointLog, k: int, method: Method) -> bool:
    field = {"secondary": "position", "reversal": "command_position", "lever": "effort"}[method]
    values = _column(log, field, k)
    values = values[np.isfinite(values)]
    if len(values) < LEAST or float(np.ptp(values)) == 0.0:
        return False
    side = np.sign(play.sides(values, 0.1 * float(np.ptp(values))))
    return int((np.diff(side[side != 0.0]) != 0.0).sum()) >= LEAST_REVERSALS


def _method(log: JointLog, params: Params) -> Method:
    if params.method != "auto":
        return params.method
    if log.secondary_position is not None and log.velocity is not None:
        return "secondary"
    return "reversal" if log.command_position is not None else "lever"


def _usable(log: JointLog, k: int, *fields: str) -> NDArray[np.bool_] | None:
    """Samples of joint k that have all `fields`; None if they are too few."""
    read = np.ones(len(log), dtype=bool)
    for field in fields:
        if getattr(log, field) is None:
            return None
        read &= np.isfinite(_column(log, field, k))
    return read if int(read.sum()) >= LEAST else None


def _column(log: JointLog, field: str, k: int) -> Floats:
    values: Floats = getattr(log, field)
    return values[:, k]


def _scalar(name: str, found: Estimate, unit: str, note: str) -> api.Scalar:
    note = note if found.told else f"not identifiable from this log; {note}"
    return api.Scalar(
        name=name, value=found.value, unit=unit, low=found.low, high=found.high, note=note
    )


def _joints(logs: api.Logs, scene: api.Scene) -> tuple[str, ...]:
    """The scene's joints, if the logs have them; else those of the first log.

    A hysteresis is worth knowing without a scene for the robot; only the patch needs one.
    """
    blocks = [block for block in logs.values() if "joint.position" in block.layout]
    labels = blocks[0].layout.signal("joint.position").labels if blocks else ()
    return scene.robot.joints if set(scene.robot.joints) <= set(labels) else labels


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [Backlash]
