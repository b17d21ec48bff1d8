"""What the report says of defects in the sources."""

import numpy as np

from twinstudio.flow.importers.checks import check
from twinstudio.flow.importers.log import ImportedSource
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout, joint_signals

JOINTS = ("a", "b")
KINDS = ("joint.velocity", "joint.temperature", "command.position")


def source(stamps: list[int], values: np.ndarray) -> ImportedSource:
    layout = Layout(joint_signals(JOINTS, kinds=KINDS))
    return ImportedSource(
        "cell", layout, Block(layout, np.array(stamps, dtype=np.int64), values), 100.0
    )


def noise(n: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n, 6))


def test_that_gaps_repeats_and_reversals_of_stamps_are_found() -> None:
    ms = [0, 10, 20, 30, 70, 80, 80, 75, 90, 100]
    found = check("cell", source([k * 10**6 for k in ms], noise(10)))
    assert (found.gaps, found.duplicated, found.backward) == (1, 1, 1)
    assert (found.largest_gap, found.largest_gap_at) == (0.04, 0.03)
    assert found.intervals == (-0.005, 0.01, 0.04)
    assert found.duration == 0.1
    assert abs(found.rate - 90.0) < 1e-9


def test_that_regular_stamps_have_no_gap_and_no_jitter() -> None:
    found = check("cell", source([k * 10**7 for k in range(50)], noise(50)))
    assert (found.gaps, found.duplicated, found.backward, found.jitter) == (0, 0, 0, 0.0)


def test_that_dead_and_empty_columns_are_named() -> None:
    values = noise(20)
    values[:, 0] = 3.0
    values[5, 0] = np.nan
    values[:, 1] = np.nan
    found = check("cell", source(list(range(20)), values))
    assert found.constant == ("joint.velocity/a",)
    assert found.empty == ("joint.velocity/b",)
    assert found.nan == {"joint.velocity/a": 1, "joint.velocity/b": 20}


def test_that_a_repeated_sample_is_found_though_its_command_moves_on() -> None:
    values = noise(20)
    values[7, :4] = values[6, :4]
    values[12] = values[11]
    values[11:13, 1] = np.nan
    assert check("cell", source(list(range(20)), values)).repeated == 2


def test_that_a_clipped_signal_is_found_and_a_free_one_is_not() -> None:
    wave = 3.0 * np.sin(np.linspace(0.0, 12.0, 400))
    values = noise(400)
    values[:, 0] = np.clip(wave, -2.0, 2.0)
    values[:, 1] = wave
    found = check("cell", source(list(range(400)), values)).saturated
    assert list(found) == ["joint.velocity/a"]
    assert found["joint.velocity/a"] == int((np.abs(wave) >= 2.0).sum())


def test_that_a_switch_is_not_called_saturated() -> None:
    values = noise(100)
    values[:, 0] = np.repeat([0.0, 1.0], 50)
    assert check("cell", source(list(range(100)), values)).saturated == {}


def test_that_a_temperature_that_leaves_and_returns_is_a_spike() -> None:
    values = noise(30)
    values[:, 2] = 30.0
    values[9, 2] = 92.0
    values[:, 3] = np.repeat([30.0, 50.0], 15)
    assert check("cell", source(list(range(30)), values)).spikes == {"joint.temperature/a": 1}


def test_that_one_or_no_sample_is_no_trouble() -> None:
    for n in (0, 1):
        found = check("cell", source(list(range(n)), noise(n)))
        assert (found.samples, found.rate, found.gaps) == (n, 0.0, 0)
        assert found.constant == ()
