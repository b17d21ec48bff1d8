"""What a parser yields: the sources of a foreign log, before they are recorded."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from twinstudio.flow.protocol import Role
from twinstudio.model.block import Block
from twinstudio.model.errors import LogError
from twinstudio.model.signals import Layout

EXAMPLES = 5


@dataclass
class Tally:
    """What became of the rows of one table (a file, or one kind of row in a file).

    rows: rows read, header and trailing line end not counted.
    dropped: reason -> rows. where: reason -> first few row numbers, from 1.
    """

    name: str
    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    where: dict[str, list[int]] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Rows that went into the recording."""
        return self.rows - self.dropped.total()

    def drop(self, reason: str, numbers: Iterable[int]) -> None:
        """Count the rows with these numbers as left out because of `reason`."""
        for number in numbers:
            self.dropped[reason] += 1
            examples = self.where.setdefault(reason, [])
            if len(examples) < EXAMPLES:
                examples.append(int(number))


@dataclass(frozen=True)
class ImportedSource:
    """One source of a log. rate: nominal samples per second, 0 if irregular."""

    role: Role
    layout: Layout
    block: Block
    rate: float


@dataclass
class ImportedLog:
    """A foreign log in Twinstudio's terms.

    sources: name -> source. tables: what became of every row.
    notes: decisions a reader must know. problems: defects of the log.
    files: what was read.
    """

    sources: dict[str, ImportedSource]
    tables: list[Tally]
    files: list[Path]
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def cell(block: Block, rate: float) -> ImportedSource:
    """`block` as a source of role ``cell``."""
    return ImportedSource("cell", block.layout, block, rate)


def nominal_rate(stamps: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Samples per second from the mean interval, to three digits; 0 for fewer than two."""
    if len(stamps) < 2 or stamps[-1] <= stamps[0]:
        return 0.0
    return float(f"{(len(stamps) - 1) / ((stamps[-1] - stamps[0]) / 1e9):.3g}")


def refuse_empty(path: Path, tally: Tally) -> None:
    """Raise LogError when nothing of a table was kept, saying why."""
    if tally.kept:
        return
    if not tally.rows:
        raise LogError("has no data rows", where=str(path), hint="is the log complete?")
    reasons = ", ".join(f"{count} x {reason}" for reason, count in tally.dropped.items())
    raise LogError(
        f"none of {tally.rows} rows is usable ({reasons})",
        where=str(path),
        hint="check the format and the mapping",
    )
