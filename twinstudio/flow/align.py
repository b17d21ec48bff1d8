"""Twin and cell brought onto one time base, the cell's."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Block, Stamps, Values
from twinstudio.model.errors import AlignError
from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout, Signal

HOLE_PERIODS = 5.0
_QUATERNION = ("qx", "qy", "qz", "qw")


class Clock(Protocol):
    """Maps a source's stamps onto the local clock."""

    @property
    def bound(self) -> float:
        """Uncertainty of a mapped stamp, s."""

    def to_local(self, stamps: Stamps) -> Stamps:
        """Local stamps, int64[n] ns, of source stamps."""


def pair(
    twin: Block,
    cell: Block,
    *,
    twin_clock: Clock | None = None,
    cell_clock: Clock | None = None,
    names: Sequence[str] | None = None,
    max_hole: int | None = None,
) -> Pair:
    """Twin and cell at the cell's instants, over the stretch that both cover.

    Twin values are interpolated linearly between the two samples around each
    instant; quaternions on the great arc, with the sign that is nearer to the
    cell's. Nothing is extrapolated. An instant strictly inside a pause of the
    twin longer than `max_hole` ns (default: five median periods of `twin`) gets
    NaN, and so does one beside a twin sample without a reading.

    twin_clock, cell_clock: map each side's stamps to the local clock; None
        leaves them as they are. Their bounds add up to the pair's uncertainty.
    names: the signals wanted; None takes all that both sides have.
    Raises AlignError when the sides share no signal or no time, when a shared
    signal means something else on each side, or when stamps go backwards.
    """
    layout = _shared(twin.layout, cell.layout, names)
    source, bound = _local(twin.stamps, twin_clock, "twin", strictly=True)
    base, more = _local(cell.stamps, cell_clock, "cell", strictly=False)
    first, stop = _common(source, base)
    base = base[first:stop]
    after, weight = _weights(source, base)
    twin_values = _interpolated(_columns(twin, layout), after, weight)
    cell_values = _columns(cell, layout)[first:stop]
    _turn(layout, _columns(twin, layout), cell_values, after, weight, out=twin_values)
    hole = _longest(source, max_hole)
    steps = source[after] - source[np.maximum(after - 1, 0)]
    twin_values[(steps > hole) & (weight > 0.0) & (weight < 1.0)] = np.nan
    return Pair(layout, base, twin_values, cell_values, 1e9 * (bound + more))


def _shared(twin: Layout, cell: Layout, names: Sequence[str] | None) -> Layout:
    wanted = [name for name in cell.names if name in twin] if names is None else names
    if not wanted:
        raise AlignError(
            "twin and cell have no signal in common",
            hint=f"twin: {', '.join(twin.names)}; cell: {', '.join(cell.names)}",
        )
    return Layout(tuple(_same(twin, cell, name) for name in wanted))


def _same(twin: Layout, cell: Layout, name: str) -> Signal:
    for side, layout in (("twin", twin), ("cell", cell)):
        if name not in layout:
            raise AlignError(
                f"the {side} has no signal '{name}'", hint=f"it has {', '.join(layout.names)}"
            )
    mine, other = twin.signal(name), cell.signal(name)
    if mine.labels != other.labels:
        raise AlignError(
            f"'{name}' has components {', '.join(mine.labels)} in the twin"
            f" but {', '.join(other.labels)} in the cell",
            hint="name the joints alike in scene and cell",
        )
    if mine.units != other.units:
        raise AlignError(
            f"'{name}' is in {', '.join(mine.units)} in the twin"
            f" but in {', '.join(other.units)} in the cell",
            hint="check which joints the scene and the cell say are prismatic",
        )
    return other


def _local(
    stamps: Stamps, clock: Clock | None, side: str, *, strictly: bool
) -> tuple[Stamps, float]:
    """Stamps on the local clock, checked, and the bound of the mapping in s."""
    if len(stamps) == 0:
        raise AlignError(f"the {side} has no samples", hint="wait until it streams")
    if clock is not None:
        stamps = clock.to_local(stamps)
    steps = np.diff(stamps)
    if (steps < 0).any() or (strictly and (steps == 0).any()):
        raise AlignError(
            f"stamps of the {side} repeat or go backwards",
            hint="take the samples from a history or an imported log, which drop such",
        )
    return stamps, 0.0 if clock is None else float(clock.bound)


def _common(twin: Stamps, cell: Stamps) -> tuple[int, int]:
    """Rows of the cell that lie within the twin's stretch."""
    first = int(cell.searchsorted(twin[0], "left"))
    stop = int(cell.searchsorted(twin[-1], "right"))
    if first < stop:
        return first, stop
    zero = min(int(twin[0]), int(cell[0]))
    spans = [[(int(t) - zero) / 1e9 for t in (s[0], s[-1])] for s in (twin, cell)]
    raise AlignError(
        "twin and cell do not overlap in time: counted from the earlier one, the twin covers"
        f" {spans[0][0]:.3f} to {spans[0][1]:.3f} s, the cell {spans[1][0]:.3f} to"
        f" {spans[1][1]:.3f} s",
        hint="map both to one clock, or choose stretches recorded at the same time",
    )


def _weights(source: Stamps, base: Stamps) -> tuple[NDArray[np.intp], Values]:
    """For each instant the first twin sample at or after it, and that sample's weight.

    An exact hit has weight 1, so that its neighbour does not matter.
    """
    after = source.searchsorted(base, "left")
    before = np.maximum(after - 1, 0)
    step = source[after] - source[before]
    weight = np.ones(len(base))
    np.divide(base - source[before], step, out=weight, where=step > 0)
    return after, weight


def _interpolated(values: Values, after: NDArray[np.intp], weight: Values) -> Values:
    before = np.where(weight == 1.0, after, np.maximum(after - 1, 0))
    low = values[before]
    out: Values = low + weight[:, None] * (values[after] - low)
    return out


def _turn(
    layout: Layout,
    twin: Values,
    cell: Values,
    after: NDArray[np.intp],
    weight: Values,
    *,
    out: Values,
) -> None:
    """Overwrite the quaternions in `out` by interpolation on the great arc."""
    for signal in layout.signals:
        if signal.labels[-4:] != _QUATERNION:
            continue
        stop = layout.span(signal.name).stop
        span = slice(stop - 4, stop)
        before = np.where(weight == 1.0, after, np.maximum(after - 1, 0))
        turned = _slerp(twin[before, span], twin[after, span], weight)
        facing = np.sum(turned * cell[:, span], axis=1)
        out[:, span] = np.where(facing < 0.0, -1.0, 1.0)[:, None] * turned


def _slerp(a: Values, b: Values, weight: Values) -> Values:
    """Spherical interpolation of unit quaternions (Shoemake, SIGGRAPH 1985), the short way."""
    cosine = np.sum(a * b, axis=1)
    b = np.where(cosine < 0.0, -1.0, 1.0)[:, None] * b
    # The chord gives the angle without the loss of digits that arccos has near 0.
    angle = 2.0 * np.arcsin(np.minimum(1.0, 0.5 * np.linalg.norm(b - a, axis=1)))
    small = ~(angle > 1e-6)
    safe = np.where(small, 1.0, np.sin(angle))
    left = np.where(small, 1.0 - weight, np.sin((1.0 - weight) * angle) / safe)
    right = np.where(small, weight, np.sin(weight * angle) / safe)
    out: Values = left[:, None] * a + right[:, None] * b
    return out


def _longest(source: Stamps, max_hole: int | None) -> float:
    if max_hole is not None:
        return float(max_hole)
    return HOLE_PERIODS * float(np.median(np.diff(source))) if len(source) > 1 else np.inf


def _columns(block: Block, layout: Layout) -> Values:
    """The columns of `layout`'s signals, a view when they are all there is."""
    if layout == block.layout:
        return block.values
    return np.concatenate([block.of(name) for name in layout.names], axis=1)
