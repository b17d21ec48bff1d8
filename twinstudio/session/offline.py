"""The gap of a recording, computed without running a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinstudio.flow.align import Clock, pair
from twinstudio.flow.believable import longest_rising
from twinstudio.flow.record import Recording, read_recording
from twinstudio.gap.table import tabulate
from twinstudio.jobs.logs import IMPOSED
from twinstudio.jobs.replaying import with_effort
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError, SceneError
from twinstudio.model.gaps import GapTable
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.measured import Measured
from twinstudio.model.pair import Pair
from twinstudio.model.patches import load_patched
from twinstudio.model.provenance import digest, provenance
from twinstudio.model.scene import Scene
from twinstudio.model.signals import Layout
from twinstudio.physics.rollout import rollout
from twinstudio.physics.world import World
from twinstudio.report.page import Report, write_report
from twinstudio.session.gapline import shared_signals
from twinstudio.session.panels import panels_of_pair
from twinstudio.session.repeats import Floor, cell_of, noise_floor


@dataclass(frozen=True, slots=True, eq=False)
class LogGap:
    """The gap of one recording and what it was computed from."""

    log: Path
    scene: Scene
    pair: Pair
    table: GapTable


def gap_of_log(log: Path, where: str | Path, *, repeats: Sequence[Path] = ()) -> LogGap:
    """Compare the recording `log` with the twin of the scene at `where`.

    A recorded twin is used if there is one; else the scene's twin is run under the
    recorded commands, or follows the recorded joints where there are none.
    repeats: recordings of the same run, whose spread is the noise floor.
    Raises RecordingError and SceneError in plain words.
    """
    scene = load_patched(where)
    recording = read_recording(log)
    notes = list(recording.problems)
    measured = with_effort(_advancing(cell_of(recording), notes), notes.append)
    _check_joints(measured, scene, log)
    twin = _twin(recording, scene, measured, notes)
    shared = shared_signals(twin.block.layout, measured.layout)
    compared = [name for name in shared if name not in twin.imposed]
    matched = pair(
        twin.block, measured, twin_clock=twin.clock, cell_clock=twin.cell_clock, names=compared
    )
    with World(scene) as world:
        kinematics = Kinematics(world.tree())
    table = tabulate(
        matched,
        command=_commanded(recording, measured, notes),
        twin=twin.block,
        kinematics=None if twin.imposed else kinematics,
        floor=_floor(measured, repeats, notes),
        notes=tuple(notes),
    )
    return LogGap(log, scene, matched, table)


def _floor(cell: Block, repeats: Sequence[Path], notes: list[str]) -> Floor | None:
    if not repeats:
        return None
    others = [_advancing(cell_of(read_recording(path)), notes) for path in repeats]
    notes.append(f"the noise floor is the spread of {len(others) + 1} repeats")
    return noise_floor(cell, others)


def report_of(outcome: LogGap, path: Path, metrics: Sequence[Measured] = ()) -> Path:
    """Write the HTML report of a log's gap, and of what `metrics` said; returns its path."""
    return write_report(
        path,
        Report(
            title=f"Gap of {outcome.log.name}",
            subtitle=outcome.scene.name,
            table=outcome.table,
            layout=outcome.pair.layout,
            panels=panels_of_pair(outcome.pair),
            metrics=tuple(metrics),
            provenance=provenance(inputs={outcome.log.name: digest(outcome.log)}),
        ),
    )


def _commanded(recording: Recording, cell: Block, notes: list[str]) -> Block:
    """The cell's motion beside its commands, for its command-to-motion delay.

    Commands that were logged with stamps of their own (a source ``command``) count
    as they are; held onto the stamps of the measurement they would seem half a
    period late.
    """
    source = recording.sources.get("command")
    if source is None:
        return cell
    given = _advancing(source.block, notes)
    motion = cell.select(tuple(name for name in cell.layout.names if name.startswith("joint.")))
    stamps = np.union1d(given.stamps, motion.stamps)
    values = np.full((len(stamps), given.layout.width + motion.layout.width), np.nan)
    values[np.searchsorted(stamps, given.stamps), : given.layout.width] = given.values
    values[np.searchsorted(stamps, motion.stamps), given.layout.width :] = motion.values
    return Block(Layout(given.layout.signals + motion.layout.signals), stamps, values)


@dataclass(frozen=True, slots=True, eq=False)
class _Twin:
    """The twin's samples, and the clocks that bring both sides onto one time base.

    imposed: signals that were set to the cell's, so that their gap says nothing.
    """

    block: Block
    clock: Clock | None = None
    cell_clock: Clock | None = None
    imposed: tuple[str, ...] = ()


def _twin(recording: Recording, scene: Scene, cell: Block, notes: list[str]) -> _Twin:
    recorded = recording.sources.get("twin")
    if recorded is not None:
        block = _advancing(recorded.block, notes)
        return _Twin(block, _clock(recording, "twin"), _clock(recording, "cell"))
    result = rollout(scene, cell)
    notes += [f"the twin ran {result.mode}", *result.notes]
    if result.mode != "following":
        return _Twin(result.block)
    notes.append("its motion is the cell's own, so only efforts can differ")
    return _Twin(result.block, imposed=IMPOSED)


def _clock(recording: Recording, name: str) -> Clock | None:
    """The last clock model of a source: it rests on the most pings."""
    known = recording.clocks.get(name)
    return known[-1].model() if known else None


def _advancing(block: Block, notes: list[str]) -> Block:
    """As many samples as can be had with stamps that advance; `notes` counts the others."""
    keep = longest_rising(block.stamps)
    if keep.all():
        return block
    notes.append(f"{int((~keep).sum())} samples whose stamp does not advance are left out")
    return Block(block.layout, block.stamps[keep], block.values[keep], block.first)


def _check_joints(block: Block, scene: Scene, log: Path) -> None:
    layout = block.layout
    told = layout.signal("joint.position").labels if "joint.position" in layout else ()
    absent = [joint for joint in scene.robot.joints if joint not in told]
    if absent:
        raise SceneError(
            f"{log} has no position of {', '.join(absent)} of scene '{scene.name}'",
            hint=f"it has {', '.join(told) or 'no joint positions'}; is this the right scene?",
        )
    if not np.isfinite(block.of("joint.position")).any():
        raise RecordingError("holds no reading of any joint position", where=str(log))
