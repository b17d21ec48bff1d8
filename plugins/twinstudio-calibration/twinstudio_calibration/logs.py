"""From samples of the cell to arrays: the one way that all fitters go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api

Floats = NDArray[np.float64]
POSITION = "joint.position"
SIGNALS = {
    "velocity": "joint.velocity",
    "effort": "joint.effort",
    "current": "joint.current",
    "temperature": "joint.temperature",
    "command_position": "command.position",
    "command_velocity": "command.velocity",
    "command_effort": "command.effort",
    "secondary_position": "secondary.position",
    "model_current": "model.current",
    "model_effort": "model.effort",
}
"""Field of `JointLog` and signal it comes from."""


@dataclass(frozen=True, slots=True, eq=False)
class JointLog:
    """Samples of some joints, as they were logged: gaps and repeats are left in.

    joints: names in the order of the columns. time: float64[n], s since `start`.
    start: stamp of the first sample, ns on the cell's clock. All others are
    float64[n, joints] in SI (rad or m, rad/s or m/s, N m or N, A, degC), NaN where there
    is no reading, or None if the log has no such signal. A signal that covers some of
    the joints is NaN for the others. model_current, model_effort: what the robot's own
    controller predicts.
    """

    joints: tuple[str, ...]
    start: int
    time: Floats
    position: Floats
    velocity: Floats | None = None
    effort: Floats | None = None
    current: Floats | None = None
    temperature: Floats | None = None
    command_position: Floats | None = None
    command_velocity: Floats | None = None
    command_effort: Floats | None = None
    secondary_position: Floats | None = None
    model_current: Floats | None = None
    model_effort: Floats | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """From the first to the last sample, s; 0 without samples."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    @property
    def interval(self) -> float:
        """Median time between samples, s; NaN with fewer than two."""
        return float(np.median(np.diff(self.time))) if len(self) > 1 else float("nan")

    def rows(self, keep: NDArray[np.bool_] | slice) -> "JointLog":
        """Some of the samples as a log of their own; `time` still counts from `start`."""
        arrays = (field.name for field in fields(self) if field.name not in {"joints", "start"})
        parts: dict[str, Any] = {
            name: value[keep] for name in arrays if (value := getattr(self, name)) is not None
        }
        return replace(self, **parts)


def joint_log(block: api.Block, joints: Sequence[str]) -> JointLog:
    """The columns of `joints`, in that order, from `block`.

    Raises PluginError if the block has no position of one of them.
    """
    told = block.layout.signal(POSITION).labels if POSITION in block.layout else ()
    if absent := [joint for joint in joints if joint not in told]:
        raise api.PluginError(
            f"the log has no {POSITION} of {', '.join(absent)}",
            hint=f"it has {', '.join(told) or 'no joint positions'}; labels in a mapping file"
            " name the columns",
        )
    start = int(block.stamps[0]) if len(block) else 0
    columns = {field: _columns(block, signal, joints) for field, signal in SIGNALS.items()}
    position = _columns(block, POSITION, joints)
    assert position is not None
    return JointLog(
        joints=tuple(joints),
        start=start,
        time=(block.stamps - start).astype(np.float64) * 1e-9,
        position=position,
        **columns,
    )


def joint_logs(logs: api.Logs, joints: Sequence[str]) -> dict[str, JointLog]:
    """Every log that has joint positions, by name; other sources (``NAME.source``) are not it."""
    return {
        name: joint_log(block, joints)
        for name, block in logs.items()
        if "." not in name or POSITION in block.layout
    }


def logs_or_findings(
    logs: api.Logs, joints: Sequence[str], record: str
) -> tuple[dict[str, JointLog], list[api.Finding]]:
    """The joints' logs; without any, or where one lacks a joint, a finding in their place.

    record: what to record, for the finding's hint.
    """
    try:
        found = joint_logs(logs, joints)
    except api.PluginError as error:
        return {}, [api.Finding(error.what, fatal=True, hint=error.hint)]
    if not found:
        return {}, [api.Finding("no log has joint positions", fatal=True, hint=f"record {record}")]
    return found, []


def advancing(log: JointLog) -> JointLog:
    """The log without samples whose time does not advance, or that have no position.

    Say in the results how many that were: ``len(log) - len(advancing(log))``.
    """
    finite = np.isfinite(log.position).all(axis=1)
    latest = np.maximum.accumulate(np.where(finite, log.time, -np.inf))
    before = np.concatenate([[-np.inf], latest[:-1]])
    return log.rows(finite & (log.time > before))


def stretches(log: JointLog, gap: float) -> Iterator[slice]:
    """Runs of samples without a pause of more than `gap` s or a step back in time."""
    step = np.diff(log.time)
    cuts = np.flatnonzero((step > gap) | (step <= 0.0)) + 1
    edges = [0, *cuts.tolist(), len(log)]
    for first, last in pairwise(edges):
        if last > first:
            yield slice(first, last)


def _columns(block: api.Block, name: str, joints: Sequence[str]) -> Floats | None:
    """Columns of signal `name` for `joints`, NaN for those it lacks; None if it has none."""
    if name not in block.layout:
        return None
    labels = block.layout.signal(name).labels
    found = [joint in labels for joint in joints]
    if not any(found):
        return None
    values = np.full((len(block), len(joints)), np.nan)
    source = block.of(name)
    for k, joint in enumerate(joints):
        if joint in labels:
            values[:, k] = source[:, labels.index(joint)]
    return values
