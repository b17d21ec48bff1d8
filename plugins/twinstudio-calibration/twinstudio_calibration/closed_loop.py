"""Closed-loop trajectory fit: gains, saturation, stiction and delays by simulating the drive."""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy import signal

from twinstudio.plugin import api
from twinstudio_calibration import closed_fit as fitting
from twinstudio_calibration.closed_fit import Found, Problem
from twinstudio_calibration.friction_axes import (
    EDGES,
    default_cutoff,
    longest,
    measured_effort,
    whole_mass,
)
from twinstudio_calibration.linearised import linear
from twinstudio_calibration.logs import Floats, JointLog, joint_logs, logs_or_findings
from twinstudio_calibration.naming import Naming
from twinstudio_calibration.rigid_body import RigidBody, rigid_body
from twinstudio_calibration.simulation import Drive, Record, rollout
from twinstudio_calibration.telemetry import defects

METHOD = "95 %, linearised at the best rollout, residuals correlated in time (Newey-West)"
DRIVES = "closed loop"
LEAST_SECONDS = 3.0
SATURATED = 0.01
"""Share of samples at the largest effort from which the limit is fitted."""
BAND = 0.05
"""Efforts this close to the largest are at it, for their noise."""
CROWDED = 4.0
"""At a limit there are so many times the efforts of the band below it."""
FOLLOWS = 0.5
"""Share of the effort's variance that the controller's law must explain at the start."""


class Params(api.Params, frozen=True):
    """How the log is cut."""

    segment: Annotated[
        float, api.si("s", low=0.2, high=60.0, about="Length of a segment of multiple shooting")
    ] = 2.0
    starts: Annotated[int, api.about("Random starts beside the first guess", low=0, high=200)] = 8


class ClosedLoop(api.Calibrator[Params]):
    """Simulates each joint's loop under the logged commands until it moves as the log does."""

    id = "twinstudio.closed_loop"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:
        """Defects, commands of position, and efforts that follow from them."""
        found, absent = logs_or_findings(logs, scene.robot.joints, "position, effort and command")
        if absent:
            return absent
        body = rigid_body(scene)
        log = next(iter(found.values()))
        needs = ["command_position"]
        if measured_effort(log, scene) is None:
            needs.append("effort")
        least = max(LEAST_SECONDS, params.segment)
        findings = defects(log, needs=needs, least_seconds=least, revolute=body.revolute)
        if len(found) > 1:
            findings.append(api.Finding(f"{len(found)} logs: the first alone is fitted"))
        if not any(finding.fatal for finding in findings):
            findings += _strangers(longest(log), scene, body, params)
        return findings

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Parameters of every joint with intervals, and the patch."""
        body = rigid_body(scene)
        log = longest(next(iter(joint_logs(logs, scene.robot.joints).values())))
        results: list[api.Result] = []
        fits = []
        for k, joint in enumerate(body.joints):

            def progress(share: float, k: int = k, joint: str = joint) -> None:
                context.progress((k + share) / len(body.joints), joint)

            progress(0.0)
            problem = problem_of(log, scene, body, k, params, progress)
            found = fitting.fit(problem, context.rng, params.starts)
            fits.append(found)
            results += scalars(joint, found, body.revolute[k])
        results.append(drives_table(body.joints, fits))
        results.append(patch(fits, body))
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """Free run from the first state under the commands: how far motion and effort are off."""
        body = rigid_body(scene)
        drives = drives_of(solved)
        results: list[api.Result] = []
        for name, log in joint_logs(logs, scene.robot.joints).items():
            usable = log.command_position is not None and log.duration > 1.0
            if usable and measured_effort(log, scene) is not None:
                results += score(name, longest(log), scene, body, drives)
        return results


def record_of(
    log: JointLog, scene: api.Scene, body: RigidBody, joint: int, segment: float
) -> Record:
    """What drives the simulation of one joint, ends that filters spoil cut off."""
    step = log.interval
    cutoff = default_cutoff(1.0 / step)
    time = log.time[0] + step * np.arange(int(log.duration / step + 1e-6) + 1)
    told = measured_effort(log, scene)
    assert told is not None
    assert log.command_position is not None
    raw, effort, command = (_even(log, x, time) for x in (log.position, told, log.command_position))
    b, a = signal.butter(4, 2.0 * cutoff * step)
    position = signal.filtfilt(b, a, raw, axis=0)
    velocity = np.gradient(position, step, axis=0, edge_order=2)
    acceleration = np.gradient(velocity, step, axis=0, edge_order=2)
    inertia, load = _others(body, joint, (position, velocity, acceleration))
    keep = slice(round(EDGES / cutoff / step), -round(EDGES / cutoff / step))
    count = len(time[keep])
    length = max(1, round(segment / step))
    starts = np.arange(0, max(count - length // 2, 1), length)
    at = time[keep] - time[keep][0]
    columns = {
        "command": command[:, joint],
        "position": position[:, joint],
        "velocity": velocity[:, joint],
        "effort": effort[:, joint],
        "inertia": inertia,
        "load": load,
    }
    parts = {name: np.ascontiguousarray(column[keep]) for name, column in columns.items()}
    return Record(step=step, time=at, starts=starts, **parts)


def problem_of(
    log: JointLog,
    scene: api.Scene,
    body: RigidBody,
    joint: int,
    params: Params,
    progress: fitting.Progress = fitting.silent,
) -> Problem:
    """The fit of one joint, with a first guess by regression."""
    record = record_of(log, scene, body, joint, params.segment)
    return Problem(record, free_of(record), guess(record)[0], progress)


def free_of(record: Record) -> tuple[str, ...]:
    """What is fitted: all but the feedforward, the limit of effort only where it is reached.

    A feedforward of the command's speed acts like an earlier command; a guess takes none or
    all of it, whichever tells the effort better.
    """
    reached = math.isfinite(limit_of(record.effort))
    left = {"feed"} if reached else {"feed", "limit"}
    return tuple(name for name in Drive._fields if name not in left)


def plain_record(
    time: Floats, command: Floats, position: Floats, effort: Floats, segment: float
) -> Record:
    """The record of a single axis whose whole mass is to be found, float64[n] each, SI.

    Samples must be even; position goes through the filter of `record_of`.
    """
    step = float(time[1] - time[0])
    cutoff = default_cutoff(1.0 / step)
    b, a = signal.butter(4, 2.0 * cutoff * step)
    smooth = signal.filtfilt(b, a, position)
    keep = slice(round(EDGES / cutoff / step), -round(EDGES / cutoff / step))
    velocity = np.gradient(smooth, step, edge_order=2)
    series = (time - time[keep][0], command, smooth, velocity, effort)
    parts = [np.ascontiguousarray(column[keep]) for column in series]
    none, length = np.zeros(len(parts[0])), max(1, round(segment / step))
    starts = np.arange(0, max(len(none) - length // 2, 1), length)
    return Record(step, parts[0], parts[1], parts[2], parts[3], parts[4], none, none, starts)


def limit_of(effort: Floats) -> float:
    """The effort at which a controller is cut off; infinite if it is not."""
    size = np.abs(effort)
    top = float(np.quantile(size, 0.999))
    at = size > (1.0 - BAND) * top
    below = (size > (1.0 - 2.0 * BAND) * top) & ~at
    if at.mean() > SATURATED and at.sum() > CROWDED * below.sum():
        return float(np.median(size[at]))
    return math.inf


def guess(record: Record) -> tuple[Drive, float]:
    """Parameters by regression, and the share of the effort that the controller explains."""
    q, v, step = record.position, record.velocity, record.step
    command = np.gradient(record.command, step)
    limit = limit_of(record.effort)
    inside = np.abs(record.effort) < (1.0 - BAND) * limit
    best = (math.inf, 0.0, 0.0, np.zeros(3))
    for delay in np.concatenate([np.arange(0.0, 4.0), np.arange(4.0, 60.0, 2.0)]) * step:
        late = np.interp(record.time - delay, record.time, record.command)
        pace = np.interp(record.time - delay, record.time, command)
        for feed in (0.0, 1.0):
            table = np.stack([late - q, feed * pace - v, np.ones_like(q)], axis=1)
            values = linear(table[inside], record.effort[inside])
            off = float(np.std(record.effort[inside] - table[inside] @ values))
            if off < best[0]:
                best = (off, float(delay), feed, values)
    off, delay, feed, gains = best
    stiffness, damping = max(gains[0], 1e-9), max(gains[1], 1e-9 * abs(gains[0]))
    pull = np.gradient(v, step)
    net = record.effort - record.load - record.inertia * pull
    motion = np.stack([pull, v, np.sign(v), np.ones_like(v)], axis=1)
    mass, viscous, coulomb, offset = linear(motion, net)
    usual = float(np.std(net))
    level = max(coulomb, 1e-2 * usual)
    fast = float(np.quantile(np.abs(v), 0.95))
    drive = Drive(
        mass=max(mass, 1e-3 * usual / max(float(np.std(pull)), 1e-12)),
        coulomb=level,
        viscous=max(viscous, 1e-3 * usual / fast),
        offset=offset,
        breakaway=level,
        stribeck=0.1 * fast,
        travel=1e-4 * float(np.ptp(q)),
        stiffness=stiffness,
        damping=damping,
        limit=min(limit, 10.0 * float(np.abs(record.effort).max())),
        delay=delay,
        lag=0.3 * step,
        feed=feed,
    )
    return drive, 1.0 - (off / float(np.std(record.effort[inside]))) ** 2


def scalars(joint: str, found: Found, revolute: bool) -> Sequence[api.Scalar]:
    """Every free parameter with its interval."""
    naming = Naming(joint, revolute, METHOD, delay="command delay")
    return [
        naming.scalar(name, float(getattr(found.drive, name)), float(deviation))
        for name, deviation in zip(found.free, found.deviation, strict=True)
    ]


def score(
    name: str, log: JointLog, scene: api.Scene, body: RigidBody, drives: Sequence[Drive]
) -> list[api.Result]:
    """Table of the free run's errors, and a curve of position a joint."""
    rows: list[tuple[str | float, ...]] = []
    curves = []
    for k, (joint, drive) in enumerate(zip(body.joints, drives, strict=True)):
        record = record_of(log, scene, body, k, log.duration * 2.0)
        begin = np.array([[record.position[0], record.velocity[0]]])
        position, effort, _ = rollout(drive, record, begin)
        apart = position - record.position
        error = float(np.linalg.norm(effort - record.effort) / np.linalg.norm(record.effort))
        held = float(np.std(record.command - record.position))
        rows.append((joint, held, float(np.std(apart)), error))
        curves.append(
            api.Series(
                name=f"position of {joint} on {name}: simulated minus measured",
                x=tuple(map(float, record.time)),
                y=tuple(map(float, apart)),
                x_unit="s",
                y_unit="rad" if body.revolute[k] else "m",
            )
        )
    table = api.Table(
        name=f"free run on {name}",
        columns=("joint", "command apart", "simulation apart", "effort error"),
        units=("", "1", "1", "1"),
        rows=tuple(rows),
    )
    return [table, *curves]


def drives_table(joints: Sequence[str], fits: Sequence[Found]) -> api.Table:
    """All that `drives_of` needs."""
    rows: list[tuple[str | float, ...]] = [
        (joint, *found.drive) for joint, found in zip(joints, fits, strict=True)
    ]
    units = tuple("" for _ in range(len(Drive._fields) + 1))
    return api.Table(name=DRIVES, columns=("joint", *Drive._fields), units=units, rows=tuple(rows))


def drives_of(solved: api.Results) -> list[Drive]:
    """The drives that `drives_table` wrote; raises PluginError without them."""
    table = next((r for r in solved if isinstance(r, api.Table) and r.name == DRIVES), None)
    if table is None:
        raise api.PluginError(f"the results hold no table '{DRIVES}'")
    return [Drive(*(float(value or 0.0) for value in row[1:])) for row in table.rows]


def patch(fits: Sequence[Found], body: RigidBody) -> api.Patch:
    """Controller, friction, latency; mass of a single prismatic axis, armature of others."""
    keys = {
        "drive.controller.stiffness": "stiffness",
        "drive.controller.damping": "damping",
        "drive.friction.coulomb": "coulomb",
        "drive.friction.viscous": "viscous",
        "drive.friction.offset": "offset",
        "drive.friction.breakaway": "breakaway",
        "drive.friction.stribeck": "stribeck",
        "drive.friction.presliding": "travel",
        "drive.command.latency": "delay",
        "drive.controller.current_lag": "lag",
    }
    if all("limit" in found.free for found in fits):
        keys["drive.motor.max_effort"] = "limit"
    if not whole_mass(body):
        keys["drive.motor.armature"] = "mass"
    changes = [
        api.Change(
            key=key, value=tuple(max(_signed(name), float(getattr(f.drive, name))) for f in fits)
        )
        for key, name in keys.items()
    ]
    ones = tuple(1.0 for _ in fits)
    changes.append(api.Change(key="drive.friction.stribeck_exponent", value=ones))
    changes.append(api.Change(key="drive.friction.contact", value="maxwell"))
    feed = float(np.clip(np.mean([found.drive.feed for found in fits]), 0.0, 1.5))
    changes.append(api.Change(key="drive.controller.velocity_feedforward", value=feed))
    if whole_mass(body):
        mass = float(fits[0].drive.mass)
        changes.append(api.Change(key=f"links.{body.links[0]}.mass", value=mass))
    reason = "each joint simulated in its loop under the logged commands, multiple shooting"
    return api.Patch(name="closed loop", changes=tuple(changes), reason=reason)


def _signed(name: str) -> float:
    """The least value of a parameter."""
    return -math.inf if name == "offset" else 0.0


def _others(
    body: RigidBody, joint: int, motion: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """What the arm's model adds to a joint along the motion: inertia and load, float64[n]."""
    position, velocity, acceleration = motion
    n = len(position)
    if whole_mass(body):
        gravity = body.regressor(*np.zeros((3, 1, 1)))[0, 0, 0]
        if abs(gravity) > 1e-6:
            # The mass is unknown, and its weight with it: the model's is taken.
            return np.zeros(n), np.full(n, gravity * body.prior[0])
        return np.zeros(n), np.zeros(n)
    few = np.arange(0, n, 4)
    push = np.zeros((len(few), len(body.joints)))
    push[:, joint] = 1.0
    still = np.zeros_like(push)
    told = body.regressor(position[few], velocity[few], acceleration[few]) @ body.prior
    weight = body.regressor(position[few], still, still) @ body.prior
    inertia = (body.regressor(position[few], still, push) @ body.prior - weight)[:, joint]
    load = told[:, joint] - inertia * acceleration[few, joint]
    at = np.arange(n)
    return np.interp(at, few, inertia), np.interp(at, few, load)


def _strangers(
    log: JointLog, scene: api.Scene, body: RigidBody, params: Params
) -> list[api.Finding]:
    """Joints whose effort no position controller explains."""
    found = []
    for k, joint in enumerate(body.joints):
        _, share = guess(record_of(log, scene, body, k, params.segment))
        if share < FOLLOWS:
            text = (
                f"the effort of {joint} does not follow from its command: a position controller"
                f" explains {share:.0%} of it"
            )
            hint = "gains will be wrong; a feedforward of the robot's model may be at work"
            found.append(api.Finding(text, hint=hint))
    return found


def _even(log: JointLog, values: Floats, time: Floats) -> Floats:
    columns = []
    for column in values.T:
        known = np.isfinite(column)
        columns.append(np.interp(time, log.time[known], column[known]))
    return np.stack(columns, axis=1)


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [ClosedLoop]
