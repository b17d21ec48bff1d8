"""Which samples have a stamp that their source's clock can have shown when they came.

One wild stamp must not spoil what comes after it: whoever orders samples by their
stamps (history, twin) takes in `believable` ones alone. Recordings keep them all.
"""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from twinstudio.flow.clock import ClockModel
from twinstudio.model.block import Block, Stamps

AHEAD = 1_000_000_000
"""How far a stamp may lie after its sample's arrival [ns], beyond the clock's bound."""
BEHIND = 3600 * 1_000_000_000
"""How long a sample may have been on its way [ns]."""


def latest(clock: ClockModel, received: int) -> int:
    """The latest stamp [ns, source's clock] that a sample `received` [ns, ours] may have."""
    return _there(clock, received) + AHEAD + round(clock.bound * 1e9)


def astray(block: Block, clock: ClockModel | None) -> NDArray[np.bool_] | None:
    """Which samples cannot have been stamped by `clock`, bool[n]; None if all can.

    All can while the clock is not known, or if the block was never sent.
    """
    if clock is None or block.received is None or not len(block):
        return None
    low = _there(clock, block.received) - BEHIND
    high = latest(clock, block.received)
    stamps = block.stamps
    if low <= int(stamps.min()) and int(stamps.max()) <= high:
        return None
    return np.asarray((stamps < low) | (stamps > high), dtype=np.bool_)


def believable(block: Block, clock: ClockModel | None) -> Block:
    """`block` without the samples that are `astray`; itself if there are none."""
    wrong = astray(block, clock)
    if wrong is None:
        return block
    keep = ~wrong
    return Block(block.layout, block.stamps[keep], block.values[keep], block.first, block.received)


def longest_rising(stamps: Stamps) -> NDArray[np.bool_]:
    """The most samples of a log whose stamps go up strictly, bool[n].

    For logs, whose source's clock is gone: a wild stamp among others costs itself
    alone, not all that follow it. (Longest increasing subsequence, by patience.)
    """
    if bool((stamps[1:] > stamps[:-1]).all()):
        return np.ones(len(stamps), dtype=np.bool_)
    tops: list[int] = []
    places: list[int] = []
    before = np.full(len(stamps), -1, dtype=np.int64)
    for k, stamp in enumerate(stamps.tolist()):
        pile = bisect_left(tops, stamp)
        before[k] = places[pile - 1] if pile else -1
        if pile == len(tops):
            tops.append(stamp)
            places.append(k)
        else:
            tops[pile], places[pile] = stamp, k
    keep = np.zeros(len(stamps), dtype=np.bool_)
    k = places[-1] if places else -1
    while k >= 0:
        keep[k] = True
        k = int(before[k])
    return keep


def _there(clock: ClockModel, received: int) -> int:
    return int(clock.to_source(np.array([received], dtype=np.int64))[0])
