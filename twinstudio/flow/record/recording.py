"""A recording in memory."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.record.schema import ClockRecord, EventRecord
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError
from twinstudio.model.provenance import Provenance
from twinstudio.model.signals import Layout


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Consecutive samples of one source under one layout.

    block: all of them; `block.first` is that of the first sample.
    sequence: int64[n], sequence numbers. received: int64[n], ns on the
    recorder's clock, None if they were never sent (imported logs).
    """

    block: Block
    sequence: NDArray[np.int64]
    received: NDArray[np.int64] | None

    def blocks(self) -> Iterator[Block]:
        """The samples as blocks: cut where a number is missing or the arrival changes."""
        broken = np.diff(self.sequence) != 1
        if self.received is not None:
            broken |= np.diff(self.received) != 0
        edges = [0, *(np.flatnonzero(broken) + 1).tolist(), len(self.sequence)]
        for start, end in itertools.pairwise(edges):
            if end > start:
                yield Block(
                    self.block.layout,
                    self.block.stamps[start:end],
                    self.block.values[start:end],
                    int(self.sequence[start]),
                    None if self.received is None else int(self.received[start]),
                )


@dataclass(frozen=True)
class RecordedSource:
    """All samples of one source.

    role: ``cell`` or ``twin``. name: what people call it. rate: nominal samples
    per second, 0 if irregular. layout: the latest it announced.
    stretches: one a layout in the order of recording, usually one.
    """

    role: str
    name: str
    rate: float
    layout: Layout
    stretches: tuple[Stretch, ...]

    @cached_property
    def main(self) -> Stretch:
        """The longest stretch, an empty one if nothing was recorded."""
        if not self.stretches:
            none = np.empty(0, dtype=np.int64)
            block = Block(self.layout, none.copy(), np.empty((0, self.layout.width)))
            return Stretch(block, none, None)
        return max(self.stretches, key=lambda stretch: len(stretch.block))

    @property
    def block(self) -> Block:
        """The samples of the longest stretch."""
        return self.main.block

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Sequence numbers of `block`, int64[n]."""
        return self.main.sequence

    @property
    def received(self) -> NDArray[np.int64] | None:
        """Receive stamps of `block`, int64[n] ns on the recorder's clock, or None."""
        return self.main.received

    @cached_property
    def lost(self) -> int:
        """Samples missing by sequence number."""
        steps = self._steps(self._sequences)
        return int((steps[steps > 1] - 1).sum())

    @cached_property
    def restarts(self) -> int:
        """How often the sequence numbers went back: the source had started anew."""
        return int((self._steps(self._sequences) < 1).sum())

    @cached_property
    def repeated(self) -> int:
        """Samples whose stamp is that of their predecessor."""
        return int((self._steps(self._stamps) == 0).sum())

    @cached_property
    def reversed(self) -> int:
        """Samples whose stamp is before that of their predecessor."""
        return int((self._steps(self._stamps) < 0).sum())

    @cached_property
    def missing(self) -> int:
        """NaN values."""
        return sum(int(np.isnan(stretch.block.values).sum()) for stretch in self.stretches)

    @property
    def _sequences(self) -> list[NDArray[np.int64]]:
        return [stretch.sequence for stretch in self.stretches]

    @property
    def _stamps(self) -> list[NDArray[np.int64]]:
        return [stretch.block.stamps for stretch in self.stretches]

    @staticmethod
    def _steps(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        if not arrays:
            return np.empty(0, dtype=np.int64)
        whole = np.concatenate(arrays)
        return np.asarray(whole[1:] - whole[:-1], dtype=np.int64)

    def findings(self) -> tuple[str, ...]:
        """What is noteworthy about the samples, in plain words."""
        count = sum(len(stretch.block) for stretch in self.stretches)
        counted = (
            (self.lost, "samples lost, by sequence number"),
            (self.restarts, "restarts of the source"),
            (self.repeated, "repeated stamps"),
            (self.reversed, "stamps before their predecessor's"),
            (self.missing, "NaN values"),
        )
        lines = [f"{number} {what}" for number, what in counted if number]
        if len(self.stretches) > 1:
            lines.append(
                f"{len(self.stretches) - 1} changes of layout;"
                f" the longest stretch has {len(self.block)} of {count} samples"
            )
        return tuple(lines if count else ["no samples"])


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of source `source` or of the ``session``; at: local time seen [ns]."""

    source: str
    at: int
    event: EventRecord


@dataclass(frozen=True, slots=True)
class Recording:
    """What a file holds.

    sources: by their name in the file, e.g. ``cell`` and ``twin``.
    clocks: per source, oldest first. scene_text: the scene.toml in force then.
    started: (wall-clock ns, local ns) of one instant, to date local time.
    problems: what is wrong or noteworthy, one line each; empty if nothing is.
    """

    path: Path
    sources: dict[str, RecordedSource]
    events: tuple[RecordedEvent, ...] = ()
    clocks: dict[str, tuple[ClockRecord, ...]] = field(default_factory=dict)
    scene_text: str = ""
    provenance: Provenance | None = None
    started: tuple[int, int] | None = None
    problems: tuple[str, ...] = ()

    def source(self, name: str) -> RecordedSource:
        """The source called `name`; raises RecordingError listing what there is."""
        if name not in self.sources:
            raise no_source(name, self.path, self.sources)
        return self.sources[name]


def no_source(name: str, path: Path, known: Iterable[str]) -> RecordingError:
    """The complaint that `path` has no source `name`."""
    return RecordingError(
        f"no source '{name}' in it",
        where=str(path),
        hint=f"it has {', '.join(known) or 'none'}",
    )
