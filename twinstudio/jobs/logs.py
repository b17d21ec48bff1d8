"""Logs as a job's plugin gets them: any readable format, split by time, paired with a twin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinstudio.flow.align import Clock, pair
from twinstudio.flow.believable import longest_rising
from twinstudio.flow.importers.anylog import AnyLog, read_any
from twinstudio.flow.record import Recording
from twinstudio.jobs.spec import Input
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError
from twinstudio.model.pair import Pair
from twinstudio.model.scene import Scene
from twinstudio.plugin.slots import mapping_for

Note = Callable[[str], None]
IMPOSED = ("joint.position", "joint.velocity", "tcp.pose")
"""What a twin that follows the cell takes from it, so that its gap says nothing."""
SHOWN = 6


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads the inputs of a job; what a reader of the figures must know goes to `note`.

    progress: is told how far a twin that is run for a log has come, 0 to 1, and may
    raise to end it.
    """

    inputs: Mapping[str, Input]
    note: Note
    progress: Callable[[float], None] | None = None

    def read(self, name: str) -> AnyLog:
        """The log that the input `name` is.

        Raises JobError if reading it takes files that its hash does not cover, and
        LogError or RecordingError for what is no log.
        """
        given = self.inputs[name]
        mapping = mapping_for(name, self.inputs)
        log = read_any(
            Path(given.path),
            format=given.format,
            mapping=Path(self.inputs[mapping].path) if mapping else None,
        )
        _check_covered(log, Path(given.path), name)
        self.note(f"input '{name}' is read as {log.format}")
        for text in (*log.notes, *log.recording.problems):
            self.note(f"input '{name}': {text}")
        return log

    def blocks(self, name: str, scene: Scene) -> dict[str, Block]:
        """Samples of the cell under `name`, of every other source beside it under ``name.source``.

        A log that has several sources and calls none ``cell`` gives each as ``name.source``.
        """
        log = self.read(name)
        found = {
            source: recorded.block
            for source, recorded in log.recording.sources.items()
            if recorded.role == "cell" and len(recorded.block)
        }
        if not found:
            raise JobError("holds no samples of the cell", where=self.inputs[name].path)
        main = "cell" if "cell" in found or len(found) > 1 else next(iter(found))
        blocks = {name if s == main else f"{name}.{s}": block for s, block in found.items()}
        for key, block in blocks.items():
            self._note_joints(key, block, scene)
        return blocks

    def pair(self, name: str, scene: Scene | None, *, imposed: bool = False) -> Pair:
        """Twin and cell of the log `name`.

        imposed: keep what a twin that follows the cell takes from it.

        A log without a twin is compared with that of `scene`, run under the logged
        commands, or along the motion where there are none. Raises JobError without both.
        """
        recording = self.read(name).recording
        where = self.inputs[name].path
        cell = recording.sources.get("cell")
        twin = recording.sources.get("twin")
        if cell is None or (twin is None and scene is None):
            absent = " and no ".join(
                side for side, source in (("twin", twin), ("cell", cell)) if source is None
            )
            raise JobError(
                f"holds no {absent}, and twin and cell are compared",
                where=where,
                hint="record cell and twin together, or give a scene whose twin is run",
            )
        if twin is not None:
            clocks = {side: _clock(recording, side) for side in ("twin", "cell")}
            return pair(
                self._advancing("twin", twin.block),
                self._advancing("cell", cell.block),
                twin_clock=clocks["twin"],
                cell_clock=clocks["cell"],
            )
        assert scene is not None
        return self._with_twin_of(scene, self._advancing("cell", cell.block), imposed=imposed)

    def _with_twin_of(self, scene: Scene, cell: Block, *, imposed: bool) -> Pair:
        from twinstudio.physics.rollout import rollout  # noqa: PLC0415 - most jobs need no engine

        result = rollout(scene, cell, on_progress=self.progress)
        self.note(f"the twin of scene '{scene.name}' ran {result.mode}")
        for text in result.notes:
            self.note(text)
        told = result.block.layout
        names = [name for name in cell.layout.names if name in told]
        if result.mode == "following":
            self.note("its motion is the cell's own, so only efforts can differ")
            names = [name for name in names if imposed or name not in IMPOSED]
        return pair(result.block, cell, names=names)

    def _advancing(self, side: str, block: Block) -> Block:
        """As many samples as can be had with stamps that advance."""
        keep = longest_rising(block.stamps)
        if keep.all():
            return block
        self.note(f"{side}: {int((~keep).sum())} samples whose stamp does not advance are left out")
        return Block(block.layout, block.stamps[keep], block.values[keep], block.first)

    def _note_joints(self, name: str, block: Block, scene: Scene) -> None:
        if "joint.position" not in block.layout:
            return
        told = block.layout.signal("joint.position").labels
        absent = [joint for joint in scene.robot.joints if joint not in told]
        if absent:
            self.note(
                f"input '{name}' has no position of {_some(absent)} of scene '{scene.name}';"
                f" it has {_some(told)}; labels in a mapping file name the columns of csv and mat"
            )


def split(blocks: Mapping[str, Block], share: float) -> tuple[dict[str, Block], dict[str, Block]]:
    """The first `share` of the blocks of one log, and the rest.

    The longest is cut after that share of its samples, the others at the same instant.
    """
    longest = max(blocks.values(), key=len)
    cut = int(np.ceil(len(longest) * share))
    first, last = {}, {}
    for name, block in blocks.items():
        at = cut
        if block is not longest and cut < len(longest):
            at = int(np.count_nonzero(block.stamps < longest.stamps[cut]))
        first[name], last[name] = block.part(slice(0, at)), block.part(slice(at, len(block)))
    return first, last


def _check_covered(log: AnyLog, path: Path, name: str) -> None:
    """A file that was read and not hashed could change without anybody noticing."""
    whole = path.resolve()
    outside = [f for f in log.files if whole not in (f.resolve(), *f.resolve().parents)]
    if outside:
        raise JobError(
            f"reading input '{name}' takes {_some([f.name for f in outside])} too, whose content"
            " the job was not made for",
            where=str(path),
            hint=f"give the folder instead: {path.parent}",
        )


def _clock(recording: Recording, name: str) -> Clock | None:
    """The last clock model of a source: it rests on the most pings."""
    known = recording.clocks.get(name)
    return known[-1].model() if known else None


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN]) or 'none'}{more}"
