"""The gap of a recording, computed without running a session."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinstudio.flow.align import Clock, pair
from twinstudio.flow.record import Recording, read_recording
from twinstudio.gap.table import tabulate
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError, SceneError
from twinstudio.model.gaps import GapTable
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.pair import Pair
from twinstudio.model.provenance import digest, provenance
from twinstudio.model.scene import Scene, load_scene
from twinstudio.physics.rollout import rollout
from twinstudio.physics.world import World
from twinstudio.report.page import Report, write_report
from twinstudio.session.gapline import shared_signals
from twinstudio.session.panels import panels_of_pair


@dataclass(frozen=True, slots=True, eq=False)
class LogGap:
    """The gap of one recording and what it was computed from."""

    log: Path
    scene: Scene
    pair: Pair
    table: GapTable


def gap_of_log(log: Path, where: str | Path) -> LogGap:
    """Compare the recording `log` with the twin of the scene at `where`.

    A recorded twin is used if there is one; else the scene's twin is run under the
    recorded commands, or follows the recorded joints where there are none.
    Raises RecordingError and SceneError in plain words.
    """
    scene = load_scene(where)
    recording = read_recording(log)
    cell = recording.sources.get("cell")
    if cell is None:
        names = ", ".join(recording.sources) or "none"
        raise RecordingError(
            "holds no source 'cell' to compare", where=str(log), hint=f"it holds {names}"
        )
    notes = list(recording.problems)
    measured = _advancing(cell.block, notes)
    _check_joints(measured, scene, log)
    twin, twin_clock, cell_clock = _twin(recording, scene, measured, notes)
    names = shared_signals(twin.layout, measured.layout)
    matched = pair(twin, measured, twin_clock=twin_clock, cell_clock=cell_clock, names=names)
    with World(scene) as world:
        kinematics = Kinematics(world.tree())
    table = tabulate(
        matched,
        command=measured,
        twin=twin,
        kinematics=kinematics,
        notes=tuple(notes),
    )
    return LogGap(log, scene, matched, table)


def report_of(outcome: LogGap, path: Path) -> Path:
    """Write the HTML report of a log's gap; returns its path."""
    return write_report(
        path,
        Report(
            title=f"Gap of {outcome.log.name}",
            subtitle=outcome.scene.name,
            table=outcome.table,
            layout=outcome.pair.layout,
            panels=panels_of_pair(outcome.pair),
            provenance=provenance(inputs={outcome.log.name: digest(outcome.log)}),
        ),
    )


def _twin(
    recording: Recording, scene: Scene, cell: Block, notes: list[str]
) -> tuple[Block, Clock | None, Clock | None]:
    """The twin's samples, and the clocks that bring both sides onto one time base."""
    recorded = recording.sources.get("twin")
    if recorded is None:
        result = rollout(scene, cell)
        notes += [f"the twin ran {result.mode}", *result.notes]
        return result.block, None, None
    twin = _advancing(recorded.block, notes)
    return twin, _clock(recording, "twin"), _clock(recording, "cell")


def _clock(recording: Recording, name: str) -> Clock | None:
    """The last clock model of a source: it rests on the most pings."""
    known = recording.clocks.get(name)
    return known[-1].model() if known else None


def _advancing(block: Block, notes: list[str]) -> Block:
    """The samples whose stamp is later than all before; `notes` counts the others."""
    latest = np.maximum.accumulate(block.stamps)
    keep = np.concatenate([[True], block.stamps[1:] > latest[:-1]])
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
