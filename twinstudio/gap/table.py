"""The gap table: figures per joint and overall, of one pair or of a whole run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinstudio.gap.export import as_json
from twinstudio.gap.metrics import KINDS, Sums, pose_distance, tool_distance
from twinstudio.gap.timing import MAX_LAG, NoLag, lags, on_grid, uniform_grid
from twinstudio.model.block import Block, Stamps
from twinstudio.model.errors import LayoutError
from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag, Spread
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout

Floats = NDArray[np.float64]

__all__ = ["RunAccumulator", "Timing", "as_json", "compared", "delays", "joint_names", "tabulate"]

COMPARED = ("velocity", "position", "effort")
TCP = "tcp.pose"
_HOLE_PERIODS = 5.0
_HOLE = 1e8
_PAUSE = 10 * 10**9
"""Longer pauses [ns] are cut to this: no delay is looked for across them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What the timing figures of a table are made from; each part may be missing.

    cell, twin: blocks with ``command.*`` and the matching ``joint.*`` signals.
    transport: source stamp to arrival [s], any shape.
    max_lag: longest command-to-motion delay looked for [s].
    """

    cell: Block | None = None
    twin: Block | None = None
    transport: Floats | None = None
    max_lag: float = MAX_LAG


def tabulate(
    pair: Pair,
    *,
    command: Block | None = None,
    twin: Block | None = None,
    kinematics: Kinematics | None = None,
    transport: Floats | None = None,
    floor: Mapping[str, Mapping[str, float]] | None = None,
    notes: Sequence[str] = (),
) -> GapTable:
    """The gap of one pair.

    command: the cell's own block, for its command-to-motion delay; twin: the
    twin's. The first of velocity, position, effort that stands in a block both
    as ``command.*`` and as ``joint.*`` is compared, see `twinstudio.gap.timing`.
    kinematics: gives the tool points from joint positions; without it they come
    from ``tcp.pose`` where both sides have it.
    transport: source stamp to arrival [s]. floor: joint -> signal -> RMS spread
    of repeats of the cell, e.g. ``{"joint1": {"position": 1e-4}}``.
    Raises LayoutError when the pair has no joint signal.
    """
    run = RunAccumulator(kinematics=kinematics)
    run.add(pair)
    timing = Timing(cell=command, twin=twin, transport=transport)
    return run.table(timing=timing, floor=floor, notes=notes)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over some pairs, that can be added up. start, end: ns; 0 before the first."""

    sums: Sums | None
    tool: Sums | None
    samples: int
    start: int
    end: int


class RunAccumulator:
    """Adds up pairs of one layout as they come; O(new data) in time, O(1) in memory."""

    def __init__(
        self,
        *,
        kinematics: Kinematics | None = None,
        layout: Layout | None = None,
        remarks: tuple[str, ...] = (),
    ) -> None:
        """`layout`, `remarks`: of pairs counted elsewhere, see `like`."""
        self._kinematics = kinematics
        self._layout = layout
        self._sums: Sums | None = None
        self._tool: Sums | None = None
        self._remarks = remarks
        self._samples = 0
        self._start = self._end = 0

    def add(self, pair: Pair) -> None:
        """Take in a pair; raises LayoutError if its layout is another than before."""
        if self._layout is None:
            joint_names(pair.layout)
            self._layout = pair.layout
        elif pair.layout != self._layout:
            raise LayoutError("pairs of different layouts cannot be added; start a new table")
        if not len(pair):
            return
        self._sums = _together(self._sums, Sums.of(pair.twin, pair.cell))
        distance = self._distance(pair)
        if distance is not None:
            tool = Sums.of(distance[:, None], np.zeros((len(pair), 1)))
            self._tool = _together(self._tool, tool)
        if not self._samples:
            self._start = int(pair.stamps[0])
        self._samples += len(pair)
        self._end = int(pair.stamps[-1])

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        return Totals(self._sums, self._tool, self._samples, self._start, self._end)

    def absorb(self, later: Totals) -> None:
        """Count what another accumulator of the same layout counted after this one."""
        if not later.samples:
            return
        self._sums = _together(self._sums, later.sums)
        self._tool = _together(self._tool, later.tool)
        self._start = self._start if self._samples else later.start
        self._samples += later.samples
        self._end = later.end

    def like(self) -> "RunAccumulator":
        """An empty accumulator for pairs of the same layout, with the same remarks."""
        return RunAccumulator(
            kinematics=self._kinematics, layout=self._layout, remarks=self._remarks
        )

    def table(
        self,
        *,
        timing: Timing | None = None,
        floor: Mapping[str, Mapping[str, float]] | None = None,
        notes: Sequence[str] = (),
    ) -> GapTable:
        """Figures of all pairs so far; raises LayoutError before the first.

        The timing figures are of the blocks in `timing` alone; give a recent
        stretch of some seconds.
        """
        if self._layout is None:
            raise LayoutError("there is no gap yet", hint="add a pair of twin and cell first")
        timing = timing or Timing()
        remarks = [*notes, *self._remarks, *self._missing(self._layout)]
        names = joint_names(self._layout)
        cell = _delays(timing.cell, names, "cell", timing.max_lag, remarks)
        twin = _delays(timing.twin, names, "twin", timing.max_lag, remarks)
        joints = tuple(
            JointGap(
                name=name,
                position=self._figures("position", name),
                velocity=self._figures("velocity", name),
                effort=self._figures("effort", name),
                current=self._figures("current", name),
                command_to_motion=cell.get(name),
                twin_command_to_motion=twin.get(name),
                floor=dict((floor or {}).get(name, {})),
            )
            for name in names
        )
        overall = JointGap(
            name="overall",
            position=self._together("position", remarks),
            velocity=self._together("velocity", remarks),
            effort=self._together("effort", remarks),
            current=self._together("current", remarks),
            command_to_motion=_typical(cell),
            twin_command_to_motion=_typical(twin),
        )
        return GapTable(
            joints=joints,
            overall=overall,
            samples=self._samples,
            start=self._start,
            end=self._end,
            tcp=self._tool_figures(),
            transport=_spread(timing.transport),
            notes=tuple(dict.fromkeys(remarks)),
        )

    def _figures(self, kind: str, joint: str) -> Figures | None:
        layout, signal = self._layout, f"joint.{kind}"
        if layout is None or self._sums is None or signal not in layout:
            return None
        if joint not in layout.signal(signal).labels:
            return None
        column = layout.column(signal, joint)
        return self._sums.figures(slice(column, column + 1))

    def _together(self, kind: str, remarks: list[str]) -> Figures | None:
        """All joints together, if they share a unit; if not, a remark says so."""
        layout, signal = self._layout, f"joint.{kind}"
        if layout is None or self._sums is None or signal not in layout:
            return None
        units = sorted(set(layout.signal(signal).units))
        if len(units) > 1:
            remarks.append(f"{kind} has no overall figure: its joints are in {' and '.join(units)}")
            return None
        return self._sums.figures(layout.span(signal))

    def _distance(self, pair: Pair) -> Floats | None:
        layout = pair.layout
        if self._kinematics is not None and "joint.position" in layout:
            wanted = self._kinematics.tree.joints
            labels = layout.signal("joint.position").labels
            if set(wanted) <= set(labels):
                columns = [layout.column("joint.position", name) for name in wanted]
                return tool_distance(pair.twin[:, columns], pair.cell[:, columns], self._kinematics)
            absent = ", ".join(name for name in wanted if name not in labels)
            self._remarks = (f"no tool distance from joints: the pair lacks {absent}",)
        if TCP in layout:
            span = layout.span(TCP)
            return pose_distance(pair.twin[:, span], pair.cell[:, span])
        return None

    def _tool_figures(self) -> Figures | None:
        """Of the distance, so bias is its mean; relative to nothing sensible."""
        return self._tool.figures() if self._tool is not None else None

    def _missing(self, layout: Layout) -> list[str]:
        """A line for each joint signal in which some samples had no reading."""
        if self._sums is None:
            return []
        lines = []
        for kind in KINDS:
            if f"joint.{kind}" not in layout:
                continue
            left_out = self._sums.left_out[layout.span(f"joint.{kind}")]
            if left_out.any():
                worst = layout.signal(f"joint.{kind}").labels[int(left_out.argmax())]
                lines.append(
                    f"{kind}: {int(left_out.sum())} readings missing in twin or cell were left"
                    f" out, most of them of {worst} ({int(left_out.max())} of {self._samples})"
                )
        return lines


def _together(one: Sums | None, other: Sums | None) -> Sums | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def joint_names(layout: Layout) -> tuple[str, ...]:
    """The joints that occur in ``joint.*`` signals; raises LayoutError if there are none."""
    names: dict[str, None] = {}
    for kind in KINDS:
        if f"joint.{kind}" in layout:
            names.update(dict.fromkeys(layout.signal(f"joint.{kind}").labels))
    if not names:
        raise LayoutError(
            "twin and cell share no joint signal to compare",
            hint=f"they share {', '.join(layout.names)}",
        )
    return tuple(names)


def compared(layout: Layout) -> str | None:
    """Which kind tells the delay: the first that is there as command and as motion."""
    return next((k for k in COMPARED if f"command.{k}" in layout and f"joint.{k}" in layout), None)


def _delays(
    block: Block | None, joints: Sequence[str], side: str, max_lag: float, remarks: list[str]
) -> dict[str, Lag]:
    """Command-to-motion delay of each joint that has one; why not goes into `remarks`."""
    if block is None:
        return {}
    kind = compared(block.layout)
    if kind is None:
        remarks.append(f"no command-to-motion delay of the {side}: no command beside its motion")
        return {}
    if len(block) < 2:
        remarks.append(f"no command-to-motion delay of the {side}: no samples yet")
        return {}
    command, motion = f"command.{kind}", f"joint.{kind}"
    labels = block.layout.signal(command).labels
    names = [n for n in joints if n in labels and n in block.layout.signal(motion).labels]
    found = delays(block, command, motion, names, max_lag=max_lag)
    for name, result in found.items():
        if isinstance(result, NoLag):
            remarks.append(f"no command-to-motion delay of {side} {name}: {result.reason}")
    return {name: result for name, result in found.items() if isinstance(result, Lag)}


def delays(
    block: Block,
    command: str,
    motion: str,
    joints: Sequence[str],
    *,
    max_lag: float = MAX_LAG,
    dt: float | None = None,
) -> dict[str, Lag | NoLag]:
    """The delay of signal `motion` behind signal `command`, joint by joint.

    dt: step of the common grid [s], by default the median period of `motion`, to
    a whole microsecond. The grid starts at the block's first stamp. Positions
    are compared by their rates of change.
    """
    if dt is None:
        dt = max(round(_period(block, motion, joints) / 1e3), 1) * 1e-6
    block = _without_long_pauses(block)
    grid = uniform_grid(int(block.stamps[0]), int(block.stamps[-1]), dt)
    asked, moved = (_gridded(block, signal, joints, grid) for signal in (command, motion))
    kind = motion.rsplit(".", 1)[-1]
    rates = kind == "position"
    label = "position, rate of change" if rates else kind
    found = lags(asked, moved, dt, max_lag=max_lag, rates=rates, signal=label)
    return dict(zip(joints, found, strict=True))


def _without_long_pauses(block: Block) -> Block:
    """`block` with long pauses shortened, so that a grid over it needs no more than it holds."""
    steps = np.diff(block.stamps)
    longest = max(_PAUSE, round(10 * float(np.median(steps)))) if len(steps) else _PAUSE
    if not (steps > longest).any():
        return block
    stamps = block.stamps[0] + np.concatenate([[0], np.cumsum(np.minimum(steps, longest))])
    return Block(block.layout, stamps.astype(np.int64), block.values, block.first)


def _gridded(block: Block, signal: str, joints: Sequence[str], grid: Stamps) -> Floats:
    """Columns of `joints` on the grid; pauses over 0.1 s and five periods stay missing."""
    hole = max(_HOLE, _HOLE_PERIODS * _period(block, signal, joints))
    return on_grid(block.stamps, _columns(block, signal, joints), grid, max_hole=hole)


def _period(block: Block, signal: str, joints: Sequence[str]) -> float:
    """Median distance [ns] of the rows in which the signal has a reading; 0 if unknown.

    A signal may be sampled more rarely than its block has rows.
    """
    present = np.isfinite(_columns(block, signal, joints)).any(1)
    return float(np.median(np.diff(block.stamps[present]))) if present.sum() > 1 else 0.0


def _columns(block: Block, signal: str, joints: Sequence[str]) -> Floats:
    columns: Floats = block.values[:, [block.layout.column(signal, name) for name in joints]]
    return columns


def _typical(found: Mapping[str, Lag]) -> Lag | None:
    """The median delay over joints, with the poorest correlation among them."""
    if not found:
        return None
    every = list(found.values())
    return Lag(
        seconds=float(np.median([lag.seconds for lag in every])),
        correlation=min(lag.correlation for lag in every),
        signal=every[0].signal,
    )


def _spread(transport: Floats | None) -> Spread | None:
    known = None if transport is None else transport[np.isfinite(transport)]
    if known is None or not len(known):
        return None
    p50, p99 = np.percentile(known, [50, 99])
    return Spread(p50=float(p50), p99=float(p99))
