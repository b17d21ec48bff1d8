"""The noise floor of a cell: how far its own repeats of one run are apart."""

from collections.abc import Mapping, Sequence

import numpy as np

from twinstudio.flow.record import Recording
from twinstudio.gap.metrics import KINDS, floor_of_repeats
from twinstudio.gap.timing import on_grid
from twinstudio.model.block import Block, Stamps
from twinstudio.model.errors import RecordingError

Floor = Mapping[str, Mapping[str, float]]
HOLE_PERIODS = 5.0


def cell_of(recording: Recording) -> Block:
    """The cell's samples in a recording; raises RecordingError when there are none."""
    cell = recording.sources.get("cell")
    if cell is not None and not len(cell.block):
        raise RecordingError("its source 'cell' has no samples", where=str(recording.path))
    if cell is None:
        names = ", ".join(recording.sources) or "none"
        raise RecordingError(
            "holds no source 'cell' to compare", where=str(recording.path), hint=f"it holds {names}"
        )
    return cell.block


def noise_floor(first: Block, repeats: Sequence[Block]) -> Floor:
    """Joint -> kind -> RMS spread of `first` and its repeats, SI.

    Each begins at its own first sample; all are brought onto the instants of
    `first`, linearly, over the stretch that all of them cover. A kind counts when
    every repeat has it for the same joints.
    """
    since = first.stamps - first.stamps[0]
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        name = f"joint.{kind}"
        if any(name not in block.layout for block in (first, *repeats)):
            continue
        labels = first.layout.signal(name).labels
        if any(block.layout.signal(name).labels != labels for block in repeats):
            continue
        spread = floor_of_repeats(
            [first.of(name), *(_onto(since, block, name) for block in repeats)]
        )
        for label, value in zip(labels, spread, strict=True):
            if np.isfinite(value):
                found.setdefault(label, {})[kind] = float(value)
    return found


def _onto(since: Stamps, block: Block, name: str) -> np.ndarray:
    stamps = block.stamps - block.stamps[0]
    hole = HOLE_PERIODS * float(np.median(np.diff(stamps)))
    return on_grid(stamps, block.of(name), since, max_hole=hole)
