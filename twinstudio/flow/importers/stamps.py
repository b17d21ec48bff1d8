"""Keep stamps within what a recording can hold."""

import numpy as np

from twinstudio.flow.importers.log import ImportedLog, ImportedSource, Tally
from twinstudio.model.block import Block
from twinstudio.model.errors import LogError

LAST = (2**31 - 1) * 10**9 + 999_999_999  # ns; seconds are an int32 in ROS time
OUTSIDE = "time before 0 or past 2^31 s"


def within_recording(log: ImportedLog) -> ImportedLog:
    """Leave out, and count, samples whose stamp a recording cannot hold.

    Raises LogError when a source has nothing else.
    """
    for name, source in log.sources.items():
        stamps = source.block.stamps
        keep = (stamps >= 0) & (stamps <= LAST)
        if keep.all():
            continue
        if not keep.any():
            raise LogError(
                f"every time of source '{name}' is before 0 or past 2^31 s",
                hint="is the unit of the time right?",
            )
        table = _table_of(log, name, source)
        table.drop(OUTSIDE, np.flatnonzero(~keep) + 1)
        block = Block(source.layout, stamps[keep].copy(), source.block.values[keep].copy())
        log.sources[name] = ImportedSource(source.role, source.layout, block, source.rate)
    return log


def _table_of(log: ImportedLog, name: str, source: ImportedSource) -> Tally:
    """The table that source came from: of its name, or with as many rows kept."""
    for table in log.tables:
        if table.name == name or table.kept == len(source.block):
            return table
    return log.tables[0]
