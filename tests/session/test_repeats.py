"""The noise floor from repeats of one run."""

from pathlib import Path

import numpy as np
import pytest
from record_helpers import announced

from twinstudio.flow.record import read_recording
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.session.repeats import cell_of, noise_floor

LAYOUT = Layout(joint_signals(("a", "b"), kinds=("joint.position", "joint.effort")))


def run(seed: int, *, start: int, period: int, spread: float, layout: Layout = LAYOUT) -> Block:
    """Ten seconds of one motion, each run with a deviation of its own."""
    rng = np.random.default_rng(seed)
    time = np.arange(0, 10**10, period, dtype=np.int64)
    motion = np.sin(time / 1e9)[:, None] * np.ones(layout.width)
    return Block(layout, start + time, motion + spread * rng.standard_normal(layout.width))


def test_that_the_floor_is_the_spread_of_runs_whatever_their_clocks_and_rates() -> None:
    runs = [
        run(k, start=k * 10**15, period=1_000_000 + 100_000 * (k % 2), spread=0.01)
        for k in range(40)
    ]
    floor = noise_floor(runs[0], runs[1:])
    for joint in ("a", "b"):
        assert floor[joint]["position"] == pytest.approx(0.01, rel=0.3)
        assert floor[joint]["effort"] == pytest.approx(0.01, rel=0.3)


def test_that_identical_repeats_have_no_spread() -> None:
    one = run(1, start=0, period=1_000_000, spread=0.01)
    floor = noise_floor(one, [one])
    assert floor["a"]["position"] == pytest.approx(0.0, abs=1e-12)


def test_that_a_kind_one_repeat_lacks_has_no_floor() -> None:
    fewer = Layout(joint_signals(("a", "b"), kinds=("joint.position",)))
    floor = noise_floor(
        run(1, start=0, period=1_000_000, spread=0.01),
        [run(2, start=0, period=1_000_000, spread=0.01, layout=fewer)],
    )
    assert set(floor["a"]) == {"position"}


def test_that_a_cell_without_samples_is_told_from_no_cell(tmp_path: Path) -> None:
    with announced(tmp_path / "a.mcap", "cell"):
        pass
    with pytest.raises(RecordingError, match="its source 'cell' has no samples"):
        cell_of(read_recording(tmp_path / "a.mcap"))
