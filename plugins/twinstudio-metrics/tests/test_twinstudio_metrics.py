"""The metrics find what was put into the data."""

import numpy as np
import pytest
from twinstudio_metrics.band import ErrorBand
from twinstudio_metrics.band import Params as BandParams
from twinstudio_metrics.reversal import Params as ReversalParams
from twinstudio_metrics.reversal import ReversalError
from twinstudio_metrics.worst import Params as WorstParams
from twinstudio_metrics.worst import WorstJoint

from twinstudio.model.errors import LayoutError, ParamsError
from twinstudio.model.pair import Pair
from twinstudio.model.params import make
from twinstudio.plugin.testing import check_plugin, make_pair


def changed(pair: Pair, column: int, gap: np.ndarray) -> Pair:
    """`pair` with another gap in one column."""
    twin = np.array(pair.twin)
    twin[:, column] = pair.cell[:, column] + gap
    return Pair(pair.layout, pair.stamps, twin, np.array(pair.cell))


@pytest.mark.parametrize("cls", [WorstJoint, ErrorBand, ReversalError])
def test_that_a_metric_keeps_the_rules(cls: type) -> None:
    assert check_plugin(cls) == []


def test_that_the_worst_joint_is_named_with_its_time() -> None:
    pair = make_pair(joints=3)
    gap = np.zeros(len(pair))
    gap[250] = -0.03
    worst, table = WorstJoint().measure(changed(pair, 1, gap), WorstParams())
    assert worst.value == pytest.approx(0.03)
    assert worst.note == "joint2, 0.500 s after the start"
    assert [row[0] for row in table.rows] == ["joint1", "joint2", "joint3"]


def test_that_a_joint_without_a_reading_is_left_out() -> None:
    pair = make_pair(joints=2, offsets=(0.5, 0.001))
    unread = changed(pair, 0, np.full(len(pair), np.nan))
    worst, table = WorstJoint().measure(unread, WorstParams())
    assert worst.value == pytest.approx(0.001)
    assert [row[0] for row in table.rows] == ["joint2"]
    assert [r.name for r in ErrorBand().measure(unread, BandParams())] == ["gap of joint2"]


def test_that_a_signal_that_is_not_there_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"no signal 'tcp\.pose'"):
        WorstJoint().measure(make_pair(), WorstParams(signal="tcp.pose"))


def test_that_the_band_holds_its_share() -> None:
    pair = make_pair(joints=1, seconds=20.0)
    noise = np.random.default_rng(3).normal(0.004, 0.001, len(pair))
    (band,) = ErrorBand().measure(changed(pair, 0, noise), BandParams(share=0.9))
    assert band.value == pytest.approx(0.004, abs=5e-5)
    assert (band.low, band.high) == pytest.approx((0.004 - 0.001645, 0.004 + 0.001645), abs=5e-5)
    assert np.mean((noise >= band.low) & (noise <= band.high)) == pytest.approx(0.9, abs=1e-3)


def test_that_the_reversal_error_is_twice_what_hangs_on_the_direction() -> None:
    pair = make_pair(joints=1, seconds=10.0)
    speed = pair.cell[:, pair.layout.column("joint.velocity", "joint1")]
    gap = 0.01 + 0.002 * np.sign(speed)
    (error,) = ReversalError().measure(changed(pair, 0, gap), ReversalParams())
    assert error.value == pytest.approx(0.004)


def test_that_a_speed_out_of_bounds_is_refused_with_its_range() -> None:
    with pytest.raises(ParamsError, match=r"'moving'.*allowed 0 rad/s or m/s and more"):
        make(ReversalParams, {"moving": -1.0})


def test_that_a_constant_gap_is_no_reversal_error() -> None:
    pair = make_pair(joints=1, seconds=10.0, offsets=(0.01,))
    (error,) = ReversalError().measure(pair, ReversalParams())
    assert error.value == pytest.approx(0.0, abs=1e-12)


def test_that_a_joint_that_moves_one_way_has_no_reversal_error() -> None:
    assert ReversalError().measure(make_pair(joints=1, seconds=0.3), ReversalParams()) == []
