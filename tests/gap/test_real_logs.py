"""The gap table against figures computed straight from the raw files of real robots."""

import numpy as np
import pytest
import scipy.io

from twinstudio.flow.align import pair
from twinstudio.gap.metrics import floor_of_repeats
from twinstudio.gap.table import delays, tabulate
from twinstudio.gap.timing import Lag
from twinstudio.model.block import Block
from twinstudio.model.scene import data_folder
from twinstudio.model.signals import Layout, joint_signals

pytestmark = pytest.mark.data
PANDA = tuple(f"joint{k}" for k in range(1, 8))


def raw(*parts: str):
    path = data_folder().joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"there is no {path}: set TWINSTUDIO_DATA to the folder of real logs")
    return path


def nanoseconds(t) -> np.ndarray:
    return np.rint(np.asarray(t) * 1e9).astype(np.int64)


@pytest.fixture(scope="module")
def panda():
    measured = np.loadtxt(raw("panda_gaz", "measured.csv"), delimiter=",", skiprows=1)
    command = np.loadtxt(raw("panda_gaz", "commanded_velocity.csv"), delimiter=",", skiprows=1)
    return measured, command


@pytest.fixture(scope="module")
def emps():
    file = scipy.io.loadmat(raw("emps", "DATA_EMPS.mat"))
    return file["t"].ravel(), file["qg"].ravel(), file["qm"].ravel()


def direct_delay(x, y, dt) -> float:
    """By the definition in twinstudio.gap.timing, in the plainest way."""
    r = []
    for k in range(200):
        a, b = x[: len(x) - k], y[k:]
        a, b = a - a.mean(), b - b.mean()
        r.append(a @ b / np.sqrt((a @ a) * (b @ b)))
    k = int(np.argmax(r))
    return (k + (r[k - 1] - r[k + 1]) / (2 * (r[k - 1] - 2 * r[k] + r[k + 1]))) * dt


def both_streams(measured, command) -> Block:
    """One block with a row for every sample of either stream."""
    layout = Layout(joint_signals(PANDA, kinds=("command.velocity", "joint.velocity")))
    tm, tc = nanoseconds(measured[:, 0]), nanoseconds(command[:, 0])
    stamps = np.union1d(tm, tc)
    values = np.full((len(stamps), 14), np.nan)
    values[np.searchsorted(stamps, tc), :7] = command[:, 1:]
    values[np.searchsorted(stamps, tm), 7:] = measured[:, 8:15]
    return Block(layout, stamps, values)


def test_that_panda_delays_are_20_to_21_ms_and_as_computed_directly(panda):
    measured, command = panda
    made = delays(
        both_streams(measured, command), "command.velocity", "joint.velocity", PANDA, dt=1e-3
    )
    start = min(measured[0, 0], command[0, 0])
    grid = start + 1e-3 * np.arange(14_000)
    grid = grid[(grid >= command[0, 0] - 1e-9) & (grid <= measured[-1, 0] + 1e-9)]
    for c, joint in enumerate(PANDA):
        x = np.interp(grid, command[:, 0], command[:, c + 1])
        y = np.interp(grid, measured[:, 0], measured[:, c + 8])
        assert isinstance(made[joint], Lag)
        assert made[joint].seconds == pytest.approx(direct_delay(x, y, 1e-3), rel=1e-6)
        assert 0.020 <= made[joint].seconds < 0.0215
        assert made[joint].correlation > 0.9999


def test_that_panda_delays_do_not_hang_on_the_grid(panda):
    found = delays(both_streams(*panda), "command.velocity", "joint.velocity", PANDA)
    for lag in found.values():
        assert 0.020 <= lag.seconds < 0.0215


def test_that_panda_figures_are_as_computed_directly(panda):
    measured, command = panda
    layout = Layout(joint_signals(PANDA, kinds=("joint.velocity",)))
    # The commanded velocity stands in for a twin that follows at once.
    twin = Block(layout, nanoseconds(command[:, 0]), command[:, 1:].copy())
    cell = Block(layout, nanoseconds(measured[:, 0]), measured[:, 8:15].copy())
    made = tabulate(pair(twin, cell))
    inside = (measured[:, 0] >= command[0, 0]) & (measured[:, 0] <= command[-1, 0])
    t, dq = measured[inside, 0], measured[inside, 8:15]
    gaps = np.empty_like(dq)
    for c in range(7):
        gaps[:, c] = np.interp(t, command[:, 0], command[:, c + 1]) - dq[:, c]
        check(made.joints[c].velocity, gaps[:, c], dq[:, c])
    check(made.overall.velocity, gaps.ravel(), dq.ravel())
    assert made.samples == len(t)


def test_that_the_emps_delay_is_7_ms_and_as_computed_directly(emps):
    t, reference, position = emps
    layout = Layout(
        joint_signals(("axis",), ("axis",), kinds=("command.position", "joint.position"))
    )
    block = Block(layout, nanoseconds(t), np.column_stack([reference, position]))
    found = delays(block, "command.position", "joint.position", ("axis",))["axis"]
    grid = t[0] + 1e-3 * np.arange(int(t[-1] / 1e-3 + 1e-6) + 1)
    x, y = (np.interp(grid, t, series) for series in (reference, position))
    x, y = ((s[2:] - s[:-2]) / 2e-3 for s in (x, y))
    assert found.seconds == pytest.approx(direct_delay(x, y, 1e-3), rel=1e-6)
    assert found.seconds == pytest.approx(0.007, abs=0.0005)
    assert found.signal == "position, rate of change"


def test_that_emps_figures_are_as_computed_directly(emps):
    t, reference, position = emps
    layout = Layout(joint_signals(("axis",), ("axis",), kinds=("joint.position",)))
    twin, cell = (Block(layout, nanoseconds(t), s[:, None].copy()) for s in (reference, position))
    made = tabulate(pair(twin, cell))
    check(made.joints[0].position, reference - position, position)
    check(made.overall.position, reference - position, position)


def test_that_the_floor_of_schunk_repeats_is_as_computed_directly():
    runs = [
        np.loadtxt(raw("schunk_tum", "Robot", f"measurement_{k}", "trajectory.csv"), delimiter=",")
        for k in (1, 2, 3, 4)
    ]
    length = min(len(run) for run in runs)
    runs = [run[:length, :6] for run in runs]
    made = floor_of_repeats(runs)
    for joint in range(6):
        spread = np.var([run[:, joint] for run in runs], axis=0, ddof=1)
        assert made[joint] == pytest.approx(np.sqrt(np.mean(spread)), rel=1e-6)
        assert 1e-5 < made[joint] < 0.3


def check(made, gap, cell) -> None:
    assert made.n == len(gap)
    assert made.rmse == pytest.approx(np.sqrt(np.mean(gap**2)), rel=1e-6)
    assert made.maximum == pytest.approx(np.abs(gap).max(), rel=1e-6)
    assert made.bias == pytest.approx(gap.mean(), rel=1e-6)
    assert made.relative == pytest.approx(np.linalg.norm(gap) / np.linalg.norm(cell), rel=1e-6)
