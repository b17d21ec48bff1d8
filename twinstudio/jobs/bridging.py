"""A source bridge as a job: what it delivers goes into a recording in the run's folder."""

import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.jobs.stored import FOLDER, RECORDING
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError, LayoutError
from twinstudio.model.params import Params
from twinstudio.model.provenance import provenance
from twinstudio.model.results import Scalar
from twinstudio.model.signals import Layout
from twinstudio.plugin.context import Cancelled
from twinstudio.plugin.kinds import SourceBridge

if TYPE_CHECKING:
    from twinstudio.jobs.execute import Execution


def stream(job: "Execution", plugin: SourceBridge[Any], params: Params) -> None:
    """Record what `plugin` delivers until it ends, its duration is over or it is cancelled.

    Whatever came is kept, also when the bridge raises. Raises JobError for what is
    no block of its layout.
    """
    layout = plugin.layout(params)
    if not isinstance(layout, Layout):
        raise JobError(f"{job.spec.plugin}.layout returned a {type(layout).__name__}, no Layout")
    name = f"{FOLDER}/{RECORDING}"
    path = job.folder / name
    path.parent.mkdir(exist_ok=True)
    job.enter("running")
    job.context.end_after(job.spec.duration)
    tally = _Tally()
    with RecordingWriter(path, provenance=provenance(seed=job.spec.seed)) as writer:
        writer.source("cell", SourceDescription("cell", job.spec.title, layout, 0.0))
        try:
            for block in _blocks(job, plugin, params, layout):
                writer.write("cell", block)
                tally.take(block)
                job.context.tell(job.context.share, f"{tally.count} samples")
        except Cancelled:
            if job.context.cancelled or not job.context.over:
                raise  # cancelled, or of the bridge's own making
        finally:
            job.files.append(name)
            job.results += tally.results()
    job.enter("analysing")


def _blocks(
    job: "Execution", plugin: SourceBridge[Any], params: Params, layout: Layout
) -> Iterator[Block]:
    """What the bridge yields as blocks; ends when the job is over."""
    given = iter(plugin.blocks(job.context, params))
    what = f"{job.spec.plugin}.blocks"
    count = 0
    try:
        for item in given:
            block = _block(item, layout, count, what)
            count += len(block)
            if len(block):
                yield block
            if job.context.over:
                return
    finally:
        if isinstance(given, Generator):
            given.close()  # lets it close its connection before the recording is


def _block(item: object, layout: Layout, first: int, what: str) -> Block:
    if not isinstance(item, tuple) or len(item) != 2:
        raise JobError(f"{what} yielded a {type(item).__name__}", hint="yield (stamps, values)")
    # Copies: a bridge may fill the same buffers again.
    stamps, values = np.array(item[0]), np.array(item[1])
    try:
        return Block(layout, stamps, values, first, time.monotonic_ns())
    except LayoutError as error:
        raise JobError(f"{what} yielded what does not fit its layout: {error}") from error


class _Tally:
    """How much came, and over which time."""

    def __init__(self) -> None:
        self.count = 0
        self._first = self._last = 0

    def take(self, block: Block) -> None:
        """Count `block`."""
        if not self.count:
            self._first = int(block.stamps[0])
        self.count += len(block)
        self._last = int(block.stamps[-1])

    def results(self) -> list[Scalar]:
        """The figures of the recording."""
        span = (self._last - self._first) * 1e-9
        return [
            Scalar(name="samples", value=float(self.count), unit="1"),
            Scalar(name="span", value=span, unit="s", note="from the first stamp to the last"),
        ]
