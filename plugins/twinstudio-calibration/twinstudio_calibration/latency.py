"""Latency and jitter: how far each joint's motion is behind its command."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np

from twinstudio.plugin import api
from twinstudio_calibration import delays, stamps
from twinstudio_calibration.delays import Delay, Response, Trace
from twinstudio_calibration.logs import Floats, JointLog, advancing, joint_logs, logs_or_findings
from twinstudio_calibration.telemetry import clock, garbage, order, too_short, units

METHOD = "95 %, linearised, residuals correlated in time (Newey-West)"
LEAST_SECONDS = 2.0
LATE = "latency"
PAIRS = (
    ("command.velocity", "velocity", "command_velocity"),
    ("command.position", "position", "command_position"),
)
"""Signal of a command, field of its response, field of the command in the same log."""


class Params(api.Params, frozen=True):
    """Where to look."""

    longest: Annotated[
        float, api.si("s", low=0.005, high=2.0, about="The longest delay looked for")
    ] = 0.3
    window: Annotated[
        float, api.si("s", low=0.2, high=60.0, about="Length of a piece with a delay of its own")
    ] = 1.0


class Latency(api.Calibrator[Params]):
    """Command to motion and transport of every joint, with intervals, and their spread."""

    id = "twinstudio.latency"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:
        """Commands and responses that move, and whose clock the stamps are of."""
        found, absent = logs_or_findings(logs, scene.robot.joints, "positions and commands")
        if absent:
            return absent
        name, log = next(iter(found.items()))
        if len(log) < 50 or log.duration < max(LEAST_SECONDS, 3.0 * params.longest):
            return [too_short(log, max(LEAST_SECONDS, 3.0 * params.longest))]
        turning = [True] * len(log.joints)
        findings = [*clock(log), *garbage(log), *units(log, np.array(turning)), *order(log)]
        traces = traces_of(name, logs, advancing(log))
        if traces is None:
            text = "the log has no command of velocity or position"
            hint = "record what was commanded beside what was measured"
            findings.append(api.Finding(text, fatal=True, hint=hint))
        else:
            findings += _still(traces, log.joints)
        if len(found) > 1:
            findings.append(api.Finding(f"{len(found)} logs: the first alone is fitted"))
        return [*sorted(findings, key=lambda f: not f.fatal), *caveats(name, logs, log)]

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Delays of every joint as figures, quantiles and histograms; the patch."""
        name, log = next(iter(joint_logs(logs, scene.robot.joints).items()))
        log = advancing(log)
        traces = traces_of(name, logs, log)
        assert traces is not None
        notes = [finding.text for finding in caveats(name, logs, log)]
        for note in notes:
            context.log(note)
        results: list[api.Result] = []
        rows = []
        for k, (joint, trace) in enumerate(zip(log.joints, traces, strict=True)):
            context.progress(k / len(traces), joint)
            whole = delays.command_to_motion(trace, params.longest)
            if whole is None:
                context.log(f"{joint}: the response does not follow the command")
                continue
            pieces = delays.windows(trace, whole, params.window, params.longest)
            dead = delays.transport(trace, whole, params.longest)
            results += figures(joint, whole, pieces, dead)
            rows.append(_row(joint, whole, pieces, dead))
        results.append(table(rows))
        if notes:
            caveat = tuple((note,) for note in notes)
            results.append(api.Table(name="caveats", columns=("caveat",), units=("",), rows=caveat))
        if len(rows) == len(scene.robot.joints):
            results.append(patch(rows, notes))
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:
        """What delay is left, and how far command and motion are apart, before and after."""
        late = _told(solved)
        results: list[api.Result] = []
        for name, log in joint_logs(logs, scene.robot.joints).items():
            traces = traces_of(name, logs, advancing(log))
            if traces is not None and log.duration > 1.0:
                results.append(_score(name, log.joints, traces, late))
        return results


def traces_of(name: str, logs: api.Logs, log: JointLog) -> list[Trace] | None:
    """Command and response of every joint: of a source of commands beside the log, or in it."""
    for signal, field, own in PAIRS:
        response = getattr(log, field)
        if response is None:
            continue
        for key, block in logs.items():
            if key.startswith(f"{name}.") and signal in block.layout:
                return _beside(block, signal, log, response)
        command = getattr(log, own)
        if command is not None:
            pairs = zip(command.T, response.T, strict=True)
            return [Trace(log.time, one, log.time, other) for one, other in pairs]
    return None


def caveats(name: str, logs: api.Logs, log: JointLog) -> list[api.Finding]:
    """Why a delay from these stamps may not be the actuator's latency."""
    found = []
    usable = advancing(log)
    exact = stamps.robot_clock(usable)
    if exact is not None:
        text = (
            f"the stamps are host time: positions step by whole periods of an exact robot clock of"
            f" {exact.period * 1e3:.3f} ms (off by {exact.off:.1%} of one; the stamps by"
            f" {exact.stamped:.0%}), with {exact.repeated} readings repeated and {exact.skipped}"
            f" lost; the stamps jitter by {exact.jitter * 1e3:.2f} ms"
        )
        found.append(api.Finding(text, hint="record the robot's own stamps"))
    beside = [key for key in logs if key.startswith(f"{name}.") and _commands(logs[key])]
    frozen = stamps.frozen_start(usable)
    if beside or frozen:
        text = "a constant offset between the clocks of command and response is part of every delay"
        if frozen:
            text += (
                f": the response's first reading is repeated for {frozen * 1e3:.1f} ms at the"
                " start, so up to that much may be start-up offset"
            )
        hint = "do not take it for pure actuator latency; stamp both with one clock"
        found.append(api.Finding(text, hint=hint))
    behind = stamps.velocity_behind(usable, 0.05)
    if np.isfinite(behind).any() and abs(middle := float(np.nanmedian(behind))) > 1e-3:
        ahead = "behind" if middle > 0.0 else "ahead of"
        text = f"the logged velocity is {abs(middle) * 1e3:.1f} ms {ahead} the logged position"
        hint = "delays from velocity hold its filter's; from position they are that much shorter"
        found.append(api.Finding(text, hint=hint))
    return found


def figures(
    joint: str, whole: Delay, pieces: Sequence[Delay], dead: Response | None
) -> Iterable[api.Result]:
    """Scalars of one joint and the distribution of its pieces."""
    yield _scalar(f"command to motion of {joint}", whole.seconds, whole.deviation)
    if dead is not None:
        note = f"{METHOD}; dead time before a response of order {dead.order}"
        yield _scalar(f"transport of {joint}", dead.dead, dead.deviation, note)
        yield api.Scalar(name=f"lag of the drive of {joint}", value=dead.lag, unit="s")
    jitter, most = delays.spread(list(pieces))
    yield api.Scalar(
        name=f"jitter of {joint}",
        value=jitter,
        unit="s",
        low=0.0,
        high=most,
        note=f"between {len(pieces)} pieces, beyond their own uncertainty",
    )
    ordered = np.sort([piece.seconds for piece in pieces])
    if len(ordered):
        share = (np.arange(len(ordered)) + 0.5) / len(ordered)
        yield api.Series(
            name=f"delays of {joint}, share of pieces below",
            x=tuple(map(float, ordered)),
            y=tuple(map(float, share)),
            x_unit="s",
            y_unit="1",
        )


_COLUMNS = ("joint", "command to motion", "5 %", "median", "95 %", "transport", "lag", "jitter")


def table(rows: Sequence[tuple[str | float, ...]]) -> api.Table:
    """All joints together; quantiles are of the pieces."""
    units = ("", *("s" for _ in _COLUMNS[1:]))
    return api.Table(name=LATE, columns=_COLUMNS, units=units, rows=tuple(rows))


def patch(rows: Sequence[tuple[str | float, ...]], notes: Sequence[str]) -> api.Patch:
    """Transport of each joint as the command's latency, and the largest jitter."""
    dead = tuple(max(float(row[_COLUMNS.index("transport")]), 0.0) for row in rows)
    jitter = float(np.median([float(row[_COLUMNS.index("jitter")]) for row in rows]))
    changes = [api.Change(key="drive.command.latency", value=dead)]
    if jitter > 0.0:
        changes.append(api.Change(key="drive.command.jitter", value=jitter))
        changes.append(api.Change(key="drive.command.jitter_kind", value="gamma"))
    reason = "dead time between command and motion"
    if notes:
        reason += f"; caveat: {'; '.join(notes)}"
    return api.Patch(name="latency", changes=tuple(changes), reason=reason)


def _row(
    joint: str, whole: Delay, pieces: Sequence[Delay], dead: Response | None
) -> tuple[str | float, ...]:
    values = [piece.seconds for piece in pieces] or [whole.seconds]
    low, middle, high = (float(q) for q in np.quantile(values, (0.05, 0.5, 0.95)))
    apart = (whole.seconds, 0.0) if dead is None else (dead.dead, dead.lag)
    return (joint, whole.seconds, low, middle, high, *apart, delays.spread(list(pieces))[0])


def _scalar(name: str, value: float, deviation: float, note: str = METHOD) -> api.Scalar:
    half = 1.96 * deviation
    told = math.isfinite(half)
    return api.Scalar(
        name=name,
        value=value,
        unit="s",
        low=value - half if told else -math.inf,
        high=value + half if told else math.inf,
        note=note if told else "not identifiable from this log",
    )


def _beside(block: api.Block, signal: str, log: JointLog, response: Floats) -> list[Trace] | None:
    labels = block.layout.signal(signal).labels
    if any(joint not in labels for joint in log.joints):
        return None
    time = (block.stamps - log.start).astype(np.float64) * 1e-9
    rising = np.concatenate([[True], np.diff(np.maximum.accumulate(time)) > 0.0])
    values = block.of(signal)[rising]
    return [
        Trace(time[rising], values[:, labels.index(joint)], log.time, response[:, k])
        for k, joint in enumerate(log.joints)
    ]


def _commands(block: api.Block) -> bool:
    return any(signal in block.layout for signal, _, _ in PAIRS)


def _still(traces: Sequence[Trace], joints: Sequence[str]) -> list[api.Finding]:
    """Commands that tell no delay."""
    still = [
        joint
        for joint, trace in zip(joints, traces, strict=True)
        if not np.isfinite(trace.command).any() or np.nanstd(np.diff(trace.command)) == 0.0
    ]
    if not still:
        return []
    text = f"not exciting: the command of {', '.join(still)} does not change"
    hint = "command a motion with many reversals"
    return [api.Finding(text, fatal=len(still) == len(joints), hint=hint)]


def _told(solved: api.Results) -> dict[str, float]:
    found = next((r for r in solved if isinstance(r, api.Table) and r.name == LATE), None)
    if found is None:
        raise api.PluginError(f"the results hold no table '{LATE}'")
    return {str(row[0]): float(row[1] or 0.0) for row in found.rows}


def _score(
    name: str, joints: Sequence[str], traces: Sequence[Trace], late: dict[str, float]
) -> api.Table:
    rows: list[tuple[str | float | None, ...]] = []
    for joint, trace in zip(joints, traces, strict=True):
        if joint in late:
            left = delays.command_to_motion(trace, 0.3)
            apart = [_apart(trace, delay) for delay in (0.0, late[joint])]
            rows.append((joint, left.seconds - late[joint] if left else None, *apart))
    return api.Table(
        name=f"delay left on {name}",
        columns=("joint", "delay left", "apart before", "apart after"),
        units=("", "s", "1", "1"),
        rows=tuple(rows),
    )


def _apart(trace: Trace, delay: float) -> float:
    """Distance of response and delayed command, as a share of the response's spread."""
    trace = trace.usable
    at = trace.time - delay
    inside = (at >= trace.command_time[0]) & (at <= trace.command_time[-1])
    told = np.interp(at[inside], trace.command_time, trace.command)
    gap = trace.response[inside] - told
    return float(np.std(gap) / max(float(np.std(trace.response[inside])), 1e-300))


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [Latency]
