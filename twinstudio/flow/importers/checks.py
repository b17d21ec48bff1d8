"""What a recorded source suffers from, measured and never mended."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.importers.log import ImportedSource
from twinstudio.model.block import Block, Stamps
from twinstudio.model.signals import Layout

GAP = 3.0  # an interval longer than this times the median is a gap
SPIKE = 5.0  # K, by which one reading must leave and return to be a spike
HELD = 5  # samples at the extreme value that make a saturation
LEVELS = 32  # a column with fewer values than this is a switch or coarse, not saturated
SATURATES = ("velocity", "effort", "current")


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The stamps of a source; durations in s.

    rate: from the mean interval. jitter: standard deviation of the intervals
    that are no gap. intervals: shortest, median, longest. gaps: intervals
    beyond 3 medians; largest_gap and its time from the first sample.
    duplicated, backward: stamps equal to or before the one before.
    """

    duration: float
    rate: float
    jitter: float
    intervals: tuple[float, float, float]
    gaps: int
    largest_gap: float
    largest_gap_at: float
    duplicated: int
    backward: int


class SourceCheck(Timing, frozen=True, kw_only=True):
    """Findings about one source; columns as ``signal/label``.

    repeated: samples whose numbers, commands aside, all equal those before.
    nan: column -> readings missing. constant, empty: columns with one value (events aside), none.
    saturated: column -> samples that sit at its largest magnitude in runs.
    spikes: temperature column -> single readings over 5 K off both neighbours.
    """

    name: str
    samples: int
    nominal_rate: float
    repeated: int
    nan: dict[str, int]
    constant: tuple[str, ...]
    empty: tuple[str, ...]
    saturated: dict[str, int]
    spikes: dict[str, int]


def check(name: str, source: ImportedSource) -> SourceCheck:
    """Look through one source."""
    block = source.block
    columns = block.layout.columns
    finite = np.isfinite(block.values)
    missing = (~finite).sum(axis=0)
    low, high = _extremes(block, finite)
    empty = ~finite.any(axis=0)
    events = np.array([name.startswith("event.") for name in columns])
    constant = (low == high) & ~empty & ~events & (len(block) > 1)
    # A command held at the stamps of a measurement says nothing about the sensor.
    read = np.array([not name.startswith("command.") for name in columns])
    values = block.values[:, read] if read.any() else block.values
    same = _equal(values[1:], values[:-1]).all(axis=1)
    return SourceCheck(
        name=name,
        samples=len(block),
        nominal_rate=source.rate,
        repeated=int(same.sum()),
        nan={columns[k]: int(missing[k]) for k in np.nonzero(missing)[0]},
        constant=tuple(columns[k] for k in np.nonzero(constant)[0]),
        empty=tuple(columns[k] for k in np.nonzero(empty)[0]),
        saturated=_saturated(block, low, high),
        spikes=_spikes(block),
        **msgspec.structs.asdict(_timing(block.stamps)),
    )


def _timing(stamps: Stamps) -> Timing:
    intervals = np.diff(stamps) / 1e9
    n = len(intervals)
    span = float(stamps[-1] - stamps[0]) / 1e9 if n else 0.0
    median = float(np.median(intervals)) if n else 0.0
    gaps = intervals > GAP * median if median > 0 else np.zeros(n, dtype=bool)
    regular = intervals[~gaps]
    largest = int(np.argmax(intervals)) if gaps.any() else -1
    return Timing(
        duration=span,
        rate=n / span if span > 0 else 0.0,
        jitter=float(regular.std()) if len(regular) else 0.0,
        intervals=(float(intervals.min()), median, float(intervals.max())) if n else (0.0,) * 3,
        gaps=int(gaps.sum()),
        largest_gap=float(intervals[largest]) if largest >= 0 else 0.0,
        largest_gap_at=float(stamps[largest] - stamps[0]) / 1e9 if largest >= 0 else 0.0,
        duplicated=int((intervals == 0).sum()),
        backward=int((intervals < 0).sum()),
    )


def _extremes(
    block: Block, finite: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest reading of each column, +inf and -inf without any."""
    low = np.where(finite, block.values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(finite, block.values, -np.inf).max(axis=0, initial=-np.inf)
    return low, high


def _equal(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = (a == b) | (np.isnan(a) & np.isnan(b))
    return equal


def _saturated(block: Block, low: NDArray[np.float64], high: NDArray[np.float64]) -> dict[str, int]:
    found = {}
    for k in _columns_of(block.layout, SATURATES):
        column = block.values[:, k]
        if not np.isfinite(low[k]) or low[k] == high[k] or len(np.unique(column)) < LEVELS:
            continue
        held = sum(_in_runs(column == edge) for edge in (low[k], high[k]) if edge != 0.0)
        if held:
            found[block.layout.columns[k]] = held
    return found


def _columns_of(layout: Layout, quantities: tuple[str, ...]) -> list[int]:
    """Columns of measured joint signals of these quantities."""
    return [
        k
        for signal in layout.signals
        if signal.name.startswith("joint.") and signal.name.endswith(quantities)
        for k in range(*layout.span(signal.name).indices(layout.width))
    ]


def _in_runs(hit: NDArray[np.bool_]) -> int:
    """How many True stand in runs of at least HELD."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hit.astype(np.int8), [0]])))
    runs = edges[1::2] - edges[::2]
    return int(runs[runs >= HELD].sum())


def _spikes(block: Block) -> dict[str, int]:
    found = {}
    for k, unit in enumerate(block.layout.units):
        if unit != "degC" or len(block) < 3:
            continue
        column = block.values[:, k]
        before, here, after = column[:-2], column[1:-1], column[2:]
        away = (np.abs(here - before) > SPIKE) & (np.abs(here - after) > SPIKE)
        count = int((away & (np.abs(before - after) < SPIKE)).sum())
        if count:
            found[block.layout.columns[k]] = count
    return found
