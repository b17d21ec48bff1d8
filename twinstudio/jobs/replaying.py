"""A patch on trial: held-out logs replayed through the twin without it and with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from twinstudio.flow.align import pair
from twinstudio.flow.believable import longest_rising
from twinstudio.gap.metrics import KINDS
from twinstudio.jobs.logs import IMPOSED
from twinstudio.model.block import Block
from twinstudio.model.drive import per_joint
from twinstudio.model.pair import Pair
from twinstudio.model.scene import Scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.physics.rollout import Rollout, rollout

Floats = NDArray[np.float64]
Note = Callable[[str], None]
Progress = Callable[[float, str], None]
POSITION, EFFORT, CURRENT = "joint.position", "joint.effort", "joint.current"
MODEL_EFFORT = "model.effort"
SIGNALS = tuple(f"joint.{kind}" for kind in (*KINDS, "temperature"))
"""What is compared."""
SECONDS = 120.0
"""So much of each held-out log is replayed at most; a note says so where it is cut."""
STILL = 1e-3
"""A joint counts as moving at least this share of what the liveliest one does."""


@dataclass(frozen=True, slots=True, eq=False)
class SignalGap:
    """RMS of twin minus cell of one signal, joint by joint, float64[joints] in `units`.

    scale: standard deviation of the cell's signal, by which joints are made comparable.
    time [s], gap_before, gap_after: twin minus cell of the joint `shown`, for a plot.
    """

    log: str
    signal: str
    joints: tuple[str, ...]
    units: tuple[str, ...]
    before: Floats
    after: Floats
    scale: Floats
    shown: int
    time: Floats
    gap_before: Floats
    gap_after: Floats

    @property
    def ratio(self) -> float:
        """After over before, joints weighed by 1 / scale; below 1 is better."""
        before, after = (float(np.sqrt(np.mean((x / self.scale) ** 2))) for x in
                         (self.before, self.after))  # fmt: skip
        if before == 0.0:
            return 1.0 if after == 0.0 else float("inf")
        return after / before


@dataclass(frozen=True, slots=True)
class Replayer:
    """Replays `logs` (name -> samples of the cell) through twins of one robot.

    note: what a reader of the figures must know. progress: share done and a message;
    what it raises, such as Cancelled, ends the replay.
    """

    logs: Mapping[str, Block]
    note: Note
    progress: Progress

    def compare(self, before: Scene, after: Scene) -> list[SignalGap]:
        """Gap of each signal of each log, of the twins of `before` and `after`.

        Raises TwinstudioError where a twin cannot be simulated. Logs without the
        positions of all joints are left out, with a note.
        """
        usable = self._usable(before)
        found = []
        for k, (name, cell) in enumerate(usable.items()):
            twins = []
            for step, (scene, words) in enumerate(((before, "without"), (after, "with"))):
                done, share = (2 * k + step) / (2 * len(usable)), 1 / (2 * len(usable))
                text = f"replaying {name} through the twin, {words} the patch"
                self.progress(done, text)
                twins.append(rollout(scene, cell, on_progress=self._part(done, share, text)))
            if twins[0].mode != twins[1].mode:
                self.note(f"{name}: the twin ran {twins[0].mode} before and {twins[1].mode} after")
            self._tell(name, twins[0])
            found += _gaps(name, cell, (before, after), (twins[0], twins[1]), self._named(name))
        return found

    def _part(self, done: float, share: float, text: str) -> Callable[[float], None]:
        return lambda fraction: self.progress(done + share * fraction, text)

    def _tell(self, name: str, twin: Rollout) -> None:
        note = self._named(name)
        note(f"the twin ran {twin.mode}")
        for text in twin.notes:
            note(text)

    def _named(self, name: str) -> Note:
        return lambda text: self.note(f"replay of {name}: {text}")

    def _usable(self, scene: Scene) -> dict[str, Block]:
        usable = {}
        for name, block in self.logs.items():
            told = block.layout.signal(POSITION).labels if POSITION in block.layout else ()
            absent = [joint for joint in scene.robot.joints if joint not in told]
            if absent:
                if "." not in name:
                    self.note(f"{name} is not replayed: it has no position of {', '.join(absent)}")
                continue
            cell = self._cut(name, _advancing(block))
            if len(cell) >= 2:
                usable[name] = cell
        return usable

    def _cut(self, name: str, block: Block) -> Block:
        if not len(block):
            return block
        end = int(np.searchsorted(block.stamps, block.stamps[0] + round(SECONDS * 1e9)))
        if end < len(block):
            self.note(f"{name}: the first {SECONDS:g} s are replayed")
        return block.part(slice(0, end))


def with_effort(cell: Block, note: Note) -> Block:
    """A cell without measured efforts lends the torques of its controller's own model."""
    if EFFORT in cell.layout or MODEL_EFFORT not in cell.layout:
        return cell
    note(f"the log has no {EFFORT}: {MODEL_EFFORT}, the controller's own model, stands in")
    signals = tuple(
        structs.replace(signal, name=EFFORT) if signal.name == MODEL_EFFORT else signal
        for signal in cell.layout.signals
    )
    return Block(Layout(signals), cell.stamps, cell.values, cell.first)


def _advancing(block: Block) -> Block:
    keep = longest_rising(block.stamps)
    return block if keep.all() else Block(block.layout, block.stamps[keep], block.values[keep])


def _gaps(
    log: str,
    cell: Block,
    scenes: tuple[Scene, Scene],
    twins: tuple[Rollout, Rollout],
    note: Note,
) -> list[SignalGap]:
    """Gaps of all signals that the cell and both twins have and that no twin was given."""
    # What was measured is held against both in amperes: a gain that only the patch
    # tells serves the twin without it too, which knows none.
    known = [gain for scene in scenes if (gain := _gain(scene)) is not None]
    gains = (known[0], known[-1]) if known else (None, None)
    blocks = [_with_current(twin.block, gain) for twin, gain in zip(twins, gains, strict=True)]
    if CURRENT not in cell.layout or not all(CURRENT in block.layout for block in blocks):
        cell = with_effort(cell, note)
    imposed = IMPOSED if "following" in {twin.mode for twin in twins} else ()
    names = [
        name
        for name in SIGNALS
        if name not in imposed and all(_alike(block, cell, name) for block in blocks)
    ]
    if not names:
        return []
    pairs = [pair(block, cell, names=names) for block in blocks]
    return [found for name in names if (found := _gap(log, name, pairs[0], pairs[1])) is not None]


def _alike(twin: Block, cell: Block, name: str) -> bool:
    both = name in twin.layout and name in cell.layout
    return both and twin.layout.signal(name) == cell.layout.signal(name)


def _gap(log: str, name: str, before: Pair, after: Pair) -> SignalGap | None:
    """None without a sample in which both twins and the cell have a reading."""
    stamps, rows, other = np.intersect1d(before.stamps, after.stamps, return_indices=True)
    if not len(stamps):
        return None
    span = before.layout.span(name)
    signal = before.layout.signal(name)
    cell = before.cell[rows, span]
    twins = before.twin[rows, span], after.twin[other, after.layout.span(name)]
    known = np.isfinite(cell) & np.isfinite(twins[0]) & np.isfinite(twins[1])
    alive = np.flatnonzero(known.any(axis=0))
    if not len(alive):
        return None
    rms = [_rms(np.where(known, twin - cell, np.nan)[:, alive]) for twin in twins]
    spread = np.nanstd(np.where(known, cell, np.nan)[:, alive], axis=0)
    floor = STILL * float(spread.max()) or 1.0
    scale = np.maximum(spread, floor)
    worst = int(np.argmax(rms[0] / scale))
    column = alive[worst]
    return SignalGap(
        log=log,
        signal=name,
        joints=tuple(signal.labels[k] for k in alive),
        units=tuple(signal.units[k] for k in alive),
        before=rms[0],
        after=rms[1],
        scale=scale,
        shown=worst,
        time=(stamps - stamps[0]) * 1e-9,
        gap_before=twins[0][:, column] - cell[:, column],
        gap_after=twins[1][:, column] - cell[:, column],
    )


def _rms(values: Floats) -> Floats:
    result: Floats = np.sqrt(np.nanmean(values**2, axis=0))
    return result


def _gain(scene: Scene) -> Floats | None:
    given = scene.drive.motor.drive_gain
    if not given:
        return None
    gain = per_joint(given, len(scene.robot.joints))
    return gain if bool((gain > 0.0).all()) else None


def _with_current(block: Block, gain: Floats | None) -> Block:
    """`block` with the current that its efforts take, where it tells none of its own."""
    if EFFORT not in block.layout or (
        CURRENT in block.layout and np.isfinite(block.of(CURRENT)).any()
    ):
        return block
    block = block.select(tuple(name for name in block.layout.names if name != CURRENT))
    if gain is None:
        return block
    labels = block.layout.signal(EFFORT).labels
    (current,) = joint_signals(labels, kinds=(CURRENT,))
    values = np.hstack([block.values, block.of(EFFORT) / gain])
    return Block(Layout((*block.layout.signals, current)), block.stamps, values, block.first)
