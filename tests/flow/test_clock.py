"""The clock estimate holds whatever the delays, and says how sure it is."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.flow.clock import ClockEstimator, ClockModel

SECOND = 1_000_000_000
MS = 1_000_000
DAY = 86_400 * SECOND


@dataclass
class Source:
    """A clock with an offset [ns], a skew [ppb] and steps [(local ns, ns)]."""

    offset: int
    ppb: int
    start: int
    steps: list[tuple[int, int]] = field(default_factory=list)

    def at(self, local: int) -> int:
        stepped = sum(step for when, step in self.steps if local >= when)
        return local + self.offset + (local - self.start) * self.ppb // 10**9 + stepped


def ping(source: Source, sent: int, out: int, held: int, back: int) -> tuple[int, int, int, int]:
    arrived = sent + out
    left = arrived + held
    return sent, source.at(arrived), source.at(left), left + back


offsets = st.integers(-30 * DAY, 30 * DAY)
skews = st.integers(-200_000, 200_000)
delays = st.one_of(st.integers(0, 200_000), st.integers(0, 50 * MS))
pings = st.lists(
    st.tuples(st.integers(1 * MS, 5 * SECOND), delays, st.integers(0, 5 * MS), delays),
    min_size=1,
    max_size=60,
)


@given(offsets, skews, st.integers(10**15, 10**18), pings)
@settings(max_examples=150, deadline=None)
def test_that_the_true_offset_lies_within_the_stated_bound(offset, ppb, start, rounds):
    source = Source(offset, ppb, start)
    estimator = ClockEstimator()
    now = start
    for wait, out, held, back in rounds:
        stamps = ping(source, now + wait, out, held, back)
        assert estimator.add(*stamps)
        now = stamps[3]
        model = estimator.model()
        assert model is not None
        true = source.at(model.reference) - model.reference
        assert abs(true - model.shift) <= model.margin * SECOND + 1
        assert abs(ppb * 1e-9 - model.skew) <= model.skew_margin + 1e-12
        probes = np.array([start, (start + now) // 2, now, now + SECOND, now + 60 * SECOND])
        mapped = model.to_local(np.array([source.at(int(t)) for t in probes], dtype=np.int64))
        sure = model.uncertainty(np.array([source.at(int(t)) for t in probes], dtype=np.int64))
        assert (np.abs(mapped - probes) <= sure * SECOND + 3).all()
    assert estimator.steps == 0


@given(offsets, skews, st.integers(20 * MS, DAY), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_that_a_step_of_the_source_clock_restarts_the_estimate(offset, ppb, step, back, seed):
    rng = np.random.default_rng(seed)
    start = 10**15
    when = start + 15 * SECOND
    source = Source(offset, ppb, start, [(when, -step if back else step)])
    estimator = ClockEstimator()
    for k in range(120):
        sent = start + k * SECOND // 4
        if sent <= when < sent + 20 * MS:
            continue
        out, home = (int(d) for d in rng.exponential(0.5 * MS, 2))
        assert estimator.add(*ping(source, sent, min(out, 4 * MS), 10_000, min(home, 4 * MS)))
        model = estimator.model()
        true = source.at(model.reference) - model.reference
        assert abs(true - model.shift) <= model.margin * SECOND + 1
    assert estimator.steps == 1


@given(offsets, skews, st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_that_the_bound_shrinks_towards_half_the_shortest_round_trip(offset, ppb, seed):
    rng = np.random.default_rng(seed)
    source = Source(offset, ppb, 10**15)
    estimator = ClockEstimator()
    shortest = 10**12
    for k in range(400):
        out, home = (50_000 + int(d) for d in rng.exponential(200_000, 2))
        stamps = ping(source, 10**15 + k * SECOND // 4, out, 5_000, home)
        estimator.add(*stamps)
        shortest = min(shortest, out + home)
    # The band also allows for clocks that wander over 100 s, and for a skew yet unsure.
    assert estimator.model().margin * SECOND < 0.75 * shortest + 20_000
    assert estimator.model().skew_margin < 10e-6


def test_that_pings_older_than_the_window_are_forgotten():
    # A frequency change that no straight line follows stays a matter of the window.
    estimator = ClockEstimator(window=10.0)
    for k in range(400):
        sent = k * SECOND // 4
        estimator.add(*ping(Source(0, 0, 0), sent, 100_000, 0, 100_000))
    assert len(estimator._old) + len(estimator._recent) < 20


@pytest.mark.parametrize(
    "stamps",
    [(10, 0, 0, 9), (0, 5, 4, 10), (0, 0, 2**63, 5), (0, 0, 1_000_000, 10), (0, -(2**70), 0, 9)],
)
def test_that_impossible_stamps_are_refused_and_counted(stamps):
    estimator = ClockEstimator()
    assert not estimator.add(*stamps)
    assert estimator.refused == 1
    assert estimator.model() is None


def test_that_pongs_out_of_order_are_refused():
    estimator = ClockEstimator()
    assert estimator.add(100, 200, 200, 300)
    assert not estimator.add(0, 200, 200, 250)


def test_that_mapping_keeps_every_nanosecond_of_big_stamps():
    model = ClockModel(reference=10**18 + 1, shift=123_456_789_012_345_679)
    stamps = np.arange(5, dtype=np.int64) + 10**18 + 123_456_789_012_345_679
    assert model.to_local(stamps).tolist() == [10**18 + k for k in range(5)]
    assert model.to_source(model.to_local(stamps)).tolist() == stamps.tolist()


@given(
    st.integers(-(10**18), 10**18),
    st.integers(-(10**17), 10**17),
    st.floats(-3e-4, 3e-4),
    st.lists(st.integers(-(10**15), 10**15), min_size=1),
)
def test_that_the_inverse_mapping_comes_back_within_a_nanosecond(reference, shift, skew, away):
    model = ClockModel(reference, shift, skew)
    local = np.array(away, dtype=np.int64) + reference
    back = model.to_local(model.to_source(local))
    assert np.abs(back - local).max() <= 1


def test_that_mapping_an_empty_array_gives_an_empty_array():
    assert ClockModel(0, 5).to_local(np.empty(0, dtype=np.int64)).shape == (0,)
