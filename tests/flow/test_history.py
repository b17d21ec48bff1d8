import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.flow.history import History
from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError, QuantityError
from twinstudio.model.signals import Layout, Signal

MS = 1_000_000
EPOCH = 1_700_000_000_000_000_000


def layout(width: int) -> Layout:
    labels = tuple(f"a{k}" for k in range(width))
    return Layout((Signal(name="x", labels=labels, units=("1",) * width),))


def block(stamps, values, received=None, of=None) -> Block:
    values = np.array(values, np.float64)
    if values.ndim == 1:
        values = values[:, None]
    of = of or layout(values.shape[1])
    return Block(of, np.array(stamps, np.int64), values, 0, received)


def history(width: int = 1, budget: int = 2**20, rate: float = 1000.0) -> History:
    return History(layout(width), budget, rate=rate)


def filled(stamps, values, **kwargs) -> History:
    values = np.array(values, np.float64).reshape(len(stamps), -1)
    made = history(values.shape[1], **kwargs)
    made.append(block(stamps, values))
    return made


@st.composite
def series(draw, most: int = 400):
    """Increasing stamps with pauses, values with NaN, and how they are split into blocks."""
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = rng.choice([1, MS // 3, MS, 7 * MS, 900 * MS], size=n, p=[0.05, 0.3, 0.5, 0.1, 0.05])
    start = draw(st.sampled_from([-5 * 10**9, 0, EPOCH, 9 * 10**18]))
    values = rng.normal(size=(n, 2))
    values[rng.random((n, 2)) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    cuts = draw(st.lists(st.integers(1, n), max_size=8))
    return start + np.cumsum(steps), values, sorted({0, *cuts, n})


def append_split(made: History, stamps, values, cuts) -> None:
    for low, high in pairwise(cuts):
        made.append(block(stamps[low:high], values[low:high], of=made.layout))


@settings(deadline=None, max_examples=80)
@given(series(), st.integers(1, 500), st.floats(0, 1), st.floats(0, 1))
def test_that_an_envelope_bounds_exactly_the_samples_of_its_bins(data, pixels, left, right):
    stamps, values, cuts = data
    made = history(2)
    append_split(made, stamps, values, cuts)
    first, last = int(stamps[0]), int(stamps[-1])
    start = first + int(left * (last - first))
    end = start + 1 + int(right * (last - first))
    shown = made.envelope([0, 1], start, end, pixels)
    if shown.width == 0:
        inside = (stamps >= start) & (stamps <= end)
        real = np.isin(shown.time, stamps[inside])
        np.testing.assert_array_equal(shown.time[real], stamps[inside])
        np.testing.assert_array_equal(shown.low[real], values[inside])
        np.testing.assert_array_equal(shown.high[real], values[inside])
        assert np.isnan(shown.low[~real]).all()
        return
    assert shown.width * pixels >= end - start
    bins = stamps // shown.width
    fine = shown.time // shown.width
    for index in range(start // shown.width + 1, end // shown.width):
        inside = values[bins == index]
        drawn = shown.low[fine == index], shown.high[fine == index]
        if len(inside) == 0:
            assert all(np.isnan(part).all() for part in drawn)
            continue
        np.testing.assert_array_equal(drawn[0][0], np.fmin.reduce(inside, 0))
        np.testing.assert_array_equal(drawn[1][0], np.fmax.reduce(inside, 0))


@settings(deadline=None, max_examples=60)
@given(series(), st.integers(2, 300))
def test_that_how_samples_are_split_into_blocks_does_not_matter(data, pixels):
    stamps, values, cuts = data
    whole, split = history(2), history(2)
    whole.append(block(stamps, values, of=whole.layout))
    append_split(split, stamps, values, cuts)
    start, end = int(stamps[0]), int(stamps[-1]) + 1
    one, two = (h.envelope([0, 1], start, end, pixels) for h in (whole, split))
    for name in ("time", "low", "high"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(whole.window(start, end).values, split.window(start, end).values)
    assert (whole.kept, whole.nbytes) == (split.kept, split.nbytes)


@settings(deadline=None, max_examples=25)
@given(st.integers(40_000, 200_000), st.integers(1, 4), st.integers(1, 3000))
def test_that_the_budget_is_never_exceeded(budget, width, step):
    try:
        made = history(width, budget)
    except QuantityError:
        return
    stamp = 0
    for _ in range(30):
        stamps = stamp + np.arange(1, step + 1) * MS
        stamp = int(stamps[-1])
        made.append(block(stamps, np.zeros((step, width)), of=made.layout))
        assert made.nbytes <= budget
    first, last = made.span()
    assert last == stamp
    assert first <= MS


def test_that_ten_hours_stay_in_the_budget_and_show_their_whole_extent():
    made = history(2, 400_000)
    hours = 10 * 3600 * 1000
    for start in range(0, hours, 1_000_000):
        stamps = EPOCH + np.arange(start, start + 1_000_000) * MS
        values = np.full((len(stamps), 2), start / hours)
        values[0] = start, -start
        made.append(block(stamps, values, of=made.layout))
    assert made.nbytes <= 400_000
    end = EPOCH + (hours - 1) * MS
    first, last = made.span()
    assert last == end
    assert first <= EPOCH
    shown = made.envelope([0, 1], EPOCH, end, 500)
    assert shown.time[0] - EPOCH <= shown.width
    assert end - shown.time[-1] <= shown.width
    assert 100 <= len(shown.time) <= 502
    assert np.nanmax(shown.high[:, 0]) == 35_000_000.0
    assert np.nanmin(shown.low[:, 1]) == -35_000_000.0


def test_that_bins_are_the_same_wherever_the_window_stands():
    rng = np.random.default_rng(1)
    n = 20_000
    made = filled(EPOCH + np.arange(n) * MS, rng.normal(size=n))
    seen: dict[int, tuple[float, float]] = {}
    for shift in range(0, 200, 7):
        start = EPOCH + (2000 + shift) * MS
        shown = made.envelope([0], start, start + 10_000 * MS, 600)
        assert len(shown.time) <= 602
        for t, low, high in zip(shown.time[1:-1], shown.low[1:-1], shown.high[1:-1], strict=True):
            assert seen.setdefault(int(t), (low[0], high[0])) == (low[0], high[0])


def test_that_an_envelope_includes_the_newest_sample():
    made = history()
    for k in range(3000):
        made.append(block([k * MS], [float(k)], of=made.layout))
        if k % 50 == 7:
            for pixels in (3, 60, 2000):
                assert made.envelope([0], 0, (k + 1) * MS, pixels).high[-1, 0] == k


def test_that_single_samples_are_shown_when_zoomed_in():
    made = filled(np.arange(1000) * MS, np.arange(1000.0))
    shown = made.envelope([0], 100 * MS, 110 * MS, 500)
    assert shown.width == 0
    np.testing.assert_array_equal(shown.time, np.arange(100, 111) * MS)
    np.testing.assert_array_equal(shown.low[:, 0], np.arange(100.0, 111.0))
    time, value = shown.line()
    assert len(time) == len(value) == 11


def test_that_a_fast_source_is_binned_below_the_base():
    made = filled(np.arange(20_000) * (MS // 10), np.arange(20_000.0), rate=10_000.0)
    shown = made.envelope([0], 500 * MS, 1500 * MS, 1000)
    assert 0 < shown.width <= 2 * MS
    assert len(shown.time) <= 1002
    time, value = shown.line()
    assert len(time) == len(value) <= 2004


def test_that_coarser_bins_stand_in_where_fine_data_was_given_up():
    made = history(1, 400_000)
    for start in range(0, 400_000, 1000):
        stamps = (start + np.arange(1000)) * MS
        made.append(block(stamps, np.arange(start, start + 1000.0), of=made.layout))
    shown = made.envelope([0], 20_000 * MS, 80_000 * MS, 20_000)
    assert len(shown.time) > 5
    bins = shown.width // MS
    np.testing.assert_array_equal(
        (shown.high - shown.low)[1:-1, 0], np.full(len(shown.time) - 2, bins - 1.0)
    )
    assert len(made.window(0, 100 * MS)) == 0


@pytest.mark.parametrize("pixels", [2000, 100, 10])
def test_that_silence_is_drawn_as_a_hole(pixels):
    stamps = np.concatenate([np.arange(500), np.arange(1500, 2000)]) * MS
    shown = filled(stamps, np.ones(1000)).envelope([0], 0, 2000 * MS, pixels)
    (at,) = np.flatnonzero(np.isnan(shown.low[:, 0]))
    assert 499 * MS < shown.time[at] < 1500 * MS
    assert (np.diff(shown.time) > 0).all()


def test_that_a_slow_source_has_no_holes():
    shown = filled(np.arange(300) * 40 * MS, np.ones(300), rate=0.0)
    for pixels in (50, 500, 5000):
        assert not np.isnan(shown.envelope([0], 0, 12_000 * MS, pixels).low).any()


def test_that_a_bin_without_any_reading_is_missing_and_others_ignore_nan():
    values = np.ones(100)
    values[[3, 40]] = np.nan
    values[60:80] = np.nan
    shown = filled(np.arange(100) * MS, values).envelope([0], 0, 100 * MS, 25)
    assert shown.width == 4 * MS
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(shown.low[:, 0])), np.arange(15, 20))


def test_that_samples_that_do_not_advance_are_refused_and_counted():
    made = history()
    made.append(block([10, 20, 20, 15, 30, 25, 31], [0, 1, 2, 3, 4, 5, 6]))
    made.append(block([31, 5, 40], [7, 8, 9]))
    assert (made.kept, made.refused) == (5, 5)
    kept = made.window(0, 100)
    np.testing.assert_array_equal(kept.stamps, [10, 20, 30, 31, 40])
    np.testing.assert_array_equal(kept.values[:, 0], [0, 1, 4, 6, 9])


def test_that_at_gives_the_sample_at_or_before_an_instant():
    made = filled([EPOCH, EPOCH + 10], [1.0, 2.0])
    assert made.at(EPOCH - 1) is None
    assert made.at(EPOCH)[0] == 1.0
    assert made.at(EPOCH + 9)[0] == 1.0
    assert made.at(EPOCH + 10**15)[0] == 2.0


def test_that_an_instant_whose_samples_are_gone_is_known_roughly():
    made = history(1, 400_000)
    for start in range(0, 400_000, 1000):
        stamps = (start + np.arange(1000)) * MS
        made.append(block(stamps, np.arange(start, start + 1000.0), of=made.layout))
    assert made.at(100_000 * MS) is None
    assert made.middle(100_000 * MS)[0] == pytest.approx(100_000.0, abs=8192)
    assert made.middle(399_998 * MS)[0] == pytest.approx(399_998.0, abs=2)
    assert made.middle(500_000 * MS) is None


def test_that_an_empty_history_says_so():
    made = history()
    assert made.latest() is None
    assert made.span() is None
    assert made.at(0) is None
    assert len(made.window(0, 10)) == 0
    for pixels in (1, 10, 10_000_000):
        assert len(made.envelope([0], 0, 10_000 * MS, pixels).time) == 0


def test_that_clear_forgets_samples_so_that_earlier_stamps_are_taken_again():
    made = filled([100, 200], [1.0, 2.0])
    made.clear()
    assert made.span() is None
    made.append(block([5], [3.0]))
    assert made.latest().values[0, 0] == 3.0
    assert made.refused == 0


def test_that_copies_are_handed_out():
    made = filled(np.arange(10) * MS, np.zeros(10))
    before = made.window(0, 10 * MS)
    made.clear()
    made.append(block(np.arange(10) * MS, np.ones(10)))
    assert (before.values == 0.0).all()


def test_that_data_can_be_found_by_arrival():
    made = history()
    for k in range(200):
        late = 500 * MS if k >= 100 else 0
        stamps = (10 * k + np.arange(10)) * MS
        made.append(block(stamps, 10 * k + np.arange(10.0), received=10 * k * MS + late + 11 * MS))
    assert made.window(1002 * MS, 1510 * MS, by_arrival=True).stamps.tolist() == []
    found = made.window(1500 * MS, 1511 * MS, by_arrival=True)
    np.testing.assert_array_equal(found.stamps, np.arange(1000, 1010) * MS)
    assert (made.received(1000 * MS, 1009 * MS) == 1511 * MS).all()
    assert made.span(by_arrival=True) == (11 * MS, 2501 * MS)
    for pixels in (4000, 200, 20):
        shown = made.envelope([0], 1200 * MS, 2600 * MS, pixels, by_arrival=True)
        assert shown.time[0] >= 1200 * MS
        assert np.nanmin(shown.low) >= 1000.0 - 256.0
        assert np.nanmax(shown.high) == 1999.0


def test_that_more_samples_than_there_is_room_for_leave_the_newest():
    made = history(1, 60_000)
    made.append(block(np.arange(50_000) * MS, np.arange(50_000.0)))
    assert made.latest().stamps[0] == 49_999 * MS
    kept = made.window(0, 60_000 * MS)
    assert kept.stamps[-1] == 49_999 * MS
    assert (np.diff(kept.stamps) == MS).all()
    np.testing.assert_array_equal(kept.values[:, 0], kept.stamps / MS)


def test_that_another_layout_and_a_tiny_budget_are_refused():
    with pytest.raises(LayoutError, match="another layout"):
        history(1).append(block([1], [[1.0, 2.0]]))
    with pytest.raises(QuantityError, match="too small"):
        history(64, 1000)
    with pytest.raises(QuantityError, match="nothing to draw"):
        history(1).envelope([0], 5, 5, 100)


def test_that_the_smallest_budget_it_suggests_is_enough():
    with pytest.raises(QuantityError) as caught:
        history(64, 1000)
    history(64, int(caught.value.hint.split()[2]))


def test_that_one_can_read_while_another_appends():
    made = history(2)
    stop = threading.Event()

    def feed() -> None:
        for k in range(400):
            stamps = (10 * k + np.arange(10)) * MS
            made.append(block(stamps, np.column_stack([stamps, -stamps]), of=made.layout))
        stop.set()

    thread = threading.Thread(target=feed)
    thread.start()
    while not stop.is_set():
        if (span := made.span()) is None:
            continue
        shown = made.envelope([0, 1], 0, span[1] + 1, 100)
        np.testing.assert_array_equal(shown.low[:, 0], -shown.high[:, 1])
        seen = made.window(0, span[1])
        np.testing.assert_array_equal(seen.values[:, 0], seen.stamps)
    thread.join()
    assert made.kept == 4000
