import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.flow.align import pair
from twinstudio.gap.timing import (
    NoLag,
    correlations,
    lag,
    lags,
    on_grid,
    rate_of_change,
    uniform_grid,
)
from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError
from twinstudio.model.gaps import Lag
from twinstudio.model.signals import Layout, joint_signals

DT = 1e-3
T = np.arange(10_000) * DT


def motion(seed: int, high: float = 2.0):
    """A sum of six sines up to `high` Hz [rad/s], as a function of time [s]."""
    rng = np.random.default_rng(seed)
    f = rng.uniform(0.1, high, 6)
    f[0] = 0.8 * high  # some of it always moves briskly
    a, phase = rng.uniform(0.1, 0.4, 6), rng.uniform(0, 2 * np.pi, 6)
    return lambda t: (a * np.sin(2 * np.pi * np.multiply.outer(t, f) + phase)).sum(-1)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.0, 0.2), st.sampled_from([1.0, 5.0, 40.0]))
def test_that_a_delay_is_recovered_within_a_tenth_of_a_sample(seed, delay, high):
    f = motion(seed, high)
    made = lag(f(T), f(T - delay), DT)
    assert abs(made.seconds - delay) < 0.1 * DT
    assert made.correlation > 0.99


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.0, 0.2))
def test_that_a_delay_of_positions_is_recovered_by_their_rates(seed, delay):
    f = motion(seed)
    command, response = 3.0 + 0.2 * f(T), 3.01 + 0.2 * f(T - delay)
    assert abs(lag(command, response, DT, rates=True).seconds - delay) < 0.1 * DT


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(20))
def test_that_realistic_noise_costs_less_than_half_a_millisecond(noise, seed):
    rng = np.random.default_rng(seed)
    delay = rng.uniform(0.003, 0.06)
    f = motion(seed, 1.0)
    response = f(T - delay) + noise * rng.normal(size=len(T))
    assert abs(lag(f(T), response, DT).seconds - delay) < 0.5e-3


def test_that_correlations_are_pearsons_of_the_overlap_at_each_lag():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 60, 2)) + 5.0
    x[7, 0] = y[[3, 30], 1] = np.nan
    made = correlations(x, y, 12)
    assert made.shape == (14, 2)
    for row, k in enumerate(range(-1, 13)):
        for c in range(2):
            a = x[max(0, -k) : 60 - max(0, k), c]
            b = y[max(0, k) : 60 + min(0, k), c]
            both = np.isfinite(a) & np.isfinite(b)
            assert made[row, c] == pytest.approx(np.corrcoef(a[both], b[both])[0, 1], abs=1e-12)


def test_that_missing_stretches_do_not_move_the_delay():
    f = motion(5)
    command, response = f(T), f(T - 0.0213)
    response[3000:3500] = np.nan
    command[100:120] = np.nan
    assert lag(command, response, DT).seconds == pytest.approx(0.0213, abs=1e-5)


def test_that_offset_and_gain_do_not_move_the_delay():
    f = motion(6)
    plain, other = lag(f(T), f(T - 0.03), DT), lag(f(T), 7.0 - 0.0 + 0.2 * f(T - 0.03), DT)
    assert plain.seconds == pytest.approx(other.seconds, abs=1e-9)


@pytest.mark.parametrize("rates", [False, True])
def test_that_flat_series_have_no_delay(rates):
    f = motion(1)
    rng = np.random.default_rng(1)
    still = np.full(len(T), 0.7)
    assert lag(still, f(T), DT, rates=rates) == NoLag("the command does not move")
    assert lag(f(T), still, DT, rates=rates) == NoLag("the response does not move")
    assert isinstance(lag(still + 1e-13 * rng.normal(size=len(T)), f(T), DT, rates=rates), NoLag)
    ramp = lag(T, f(T), DT, rates=rates)
    assert isinstance(ramp, NoLag) or ramp.correlation >= 0.5


def test_that_a_steady_ramp_of_positions_has_no_delay():
    made = lag(0.1 * T, 0.1 * (T - 0.02), DT, rates=True)
    assert isinstance(made, NoLag)


def test_that_noise_has_no_delay():
    rng = np.random.default_rng(2)
    made = lag(motion(3)(T), rng.normal(size=len(T)), DT)
    assert isinstance(made, NoLag)
    assert "does not follow" in made.reason


def test_that_a_peak_at_the_edge_is_no_answer():
    f = motion(4)
    late = lag(f(T), f(T - 0.3), DT, max_lag=0.2)
    assert isinstance(late, NoLag)
    assert "200 ms" in late.reason
    assert lag(f(T), f(T + 0.02), DT) == NoLag("the response leads the command")


def test_that_no_delay_at_all_is_zero():
    f = motion(7)
    assert lag(f(T), f(T), DT).seconds == pytest.approx(0.0, abs=1e-7)


def test_that_too_few_readings_are_refused():
    made = lag(np.arange(5.0), np.arange(5.0), DT)
    assert made == NoLag("the command has only 5 readings")
    gone = np.full(len(T), np.nan)
    assert lag(motion(1)(T), gone, DT) == NoLag("the response has only 0 readings")


def test_that_samples_far_apart_tell_no_delay():
    f = motion(2, 0.1)
    slow = np.arange(200.0)
    assert lag(f(slow), f(slow), 1.0) == NoLag("samples 1 s apart tell no delay this short")


def test_that_columns_are_independent():
    f, g = motion(8), motion(9)
    command = np.column_stack([f(T), np.zeros(len(T)), g(T)])
    response = np.column_stack([f(T - 0.01), g(T), g(T - 0.04)])
    first, second, third = lags(command, response, DT, signal="velocity")
    assert isinstance(second, NoLag)
    assert (round(first.seconds, 5), round(third.seconds, 5)) == (0.01, 0.04)
    assert isinstance(first, Lag)
    assert first.signal == "velocity"


def test_that_wrong_shapes_are_refused():
    with pytest.raises(LayoutError):
        lags(np.zeros((5, 1)), np.zeros((4, 1)), DT)
    with pytest.raises(LayoutError):
        lags(np.zeros((5, 1)), np.zeros((5, 1)), 0.0)


def test_that_resampling_skips_missing_readings_and_keeps_holes():
    stamps = np.array([0, 10, 20, 100, 110]) + 10**18
    values = np.array([[0.0, 0.0], [1.0, np.nan], [2.0, 2.0], [10.0, np.nan], [11.0, np.nan]])
    grid = uniform_grid(10**18 - 10, 10**18 + 120, 10e-9)
    made = on_grid(stamps, values, grid, max_hole=50)
    nan = np.nan
    expected = [nan, 0, 1, 2, nan, nan, nan, nan, nan, nan, nan, 10, 11, nan]
    np.testing.assert_array_equal(made[:, 0], expected)
    np.testing.assert_array_equal(made[:, 1], [nan, 0, 1, 2, *[nan] * 10])
    free = on_grid(stamps, values, grid)
    np.testing.assert_allclose(free[1:13, 0], np.arange(12.0))


def test_that_a_grid_ends_at_the_last_stamp():
    assert uniform_grid(5, 5 + 3_000_000, 1e-3).tolist() == [5, 1_000_005, 2_000_005, 3_000_005]
    assert len(uniform_grid(0, 2_999_999, 1e-3)) == 3


def test_that_rates_are_central_differences():
    np.testing.assert_allclose(rate_of_change(np.array([[0.0], [1.0], [4.0]]), 0.5), [[4.0]])


class Ahead:
    """A clock that is `offset` ns ahead of the local one."""

    bound = 1e-4

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def to_local(self, stamps):
        return stamps - self.offset


@pytest.mark.parametrize(("noise", "allowed"), [(0.0, 1e-4), (1e-2, 5e-4)])
def test_that_a_delay_is_recovered_across_clocks_that_differ(noise, allowed):
    f, delay, offset = motion(11), 0.0137, 123_456_789_000
    rng = np.random.default_rng(0)
    layout = Layout(joint_signals(("j",), kinds=("joint.velocity",)))
    local = 5 * 10**9 + np.arange(len(T)) * 1_000_000
    late = f(T - delay) + noise * rng.normal(size=len(T))
    cell = Block(layout, local + offset + 300_000, f(T + 3e-4)[:, None])
    twin = Block(layout, local, late[:, None])
    made = pair(twin, cell, cell_clock=Ahead(offset))
    found = lag(made.cell[:, 0], made.twin[:, 0], DT)
    assert abs(found.seconds - delay) < allowed
