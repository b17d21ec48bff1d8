import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.gap.table import RunAccumulator, Timing, as_json, delays, tabulate
from twinstudio.model.block import Block
from twinstudio.model.errors import LayoutError
from twinstudio.model.gaps import GapTable, Lag
from twinstudio.model.kinematics import Kinematics, KinematicTree, Link
from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout, joint_signals, pose_signal

MS = 1_000_000
JOINTS = ("a", "b")
LAYOUT = Layout(
    (*joint_signals(JOINTS, kinds=("joint.position", "joint.velocity")), pose_signal("tcp.pose"))
)


def random_pair(seed: int, n: int = 200, missing: float = 0.1) -> Pair:
    rng = np.random.default_rng(seed)
    twin, cell = rng.normal(size=(2, n, LAYOUT.width))
    twin[rng.random(twin.shape) < missing] = np.nan
    return Pair(LAYOUT, np.arange(n) * MS, twin, cell)


def part(pair: Pair, rows: slice) -> Pair:
    return Pair(pair.layout, pair.stamps[rows], pair.twin[rows], pair.cell[rows])


def arm() -> Kinematics:
    bar = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    links = (
        Link(name="upper", joint="a", kind="revolute", coordinate=0),
        Link(name="lower", joint="b", parent=0, kind="revolute", coordinate=1, origin=bar),
        Link(name="tool", parent=1, origin=bar),
    )
    return Kinematics(KinematicTree(links=links, joints=JOINTS, tip="tool"))


def numbers(table: GapTable) -> list[float]:
    found: list[float] = []

    def walk(value) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                if not key.endswith("_bias"):
                    walk(value[key])
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, int | float):
            found.append(value)

    walk(as_json(table))
    return found


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 199), max_size=5))
def test_that_a_run_in_parts_has_the_figures_of_the_whole(seed, cuts):
    pair = random_pair(seed)
    whole = tabulate(pair, kinematics=arm())
    run = RunAccumulator(kinematics=arm())
    edges = sorted({0, *cuts, 200})
    for low, high in zip(edges[:-1], edges[1:], strict=True):  # noqa: RUF007
        run.add(part(pair, slice(low, high)))
    np.testing.assert_allclose(numbers(run.table()), numbers(whole), rtol=1e-12)
    for one, two in zip(run.table().joints, whole.joints, strict=True):
        assert one.position.bias == pytest.approx(two.position.bias, abs=1e-12 * two.position.rmse)


def test_that_figures_are_per_joint_and_over_all_joints():
    n = 10
    cell = np.zeros((n, 4))
    cell[:] = [1.0, 2.0, 0.5, 0.5]
    twin = cell + np.array([0.1, -0.2, 0.0, 1.0])
    layout = Layout(LAYOUT.signals[:2])
    made = tabulate(Pair(layout, np.arange(n) * MS, twin, cell))
    a, b = made.joints
    assert (a.name, b.name) == JOINTS
    assert a.position.rmse == pytest.approx(0.1)
    assert b.position.bias == pytest.approx(-0.2)
    assert b.position.relative == pytest.approx(0.1)
    assert made.overall.position.rmse == pytest.approx(math.sqrt((0.01 + 0.04) / 2))
    assert made.overall.position.maximum == pytest.approx(0.2)
    assert made.overall.position.relative == pytest.approx(math.sqrt(0.05 / 5.0))
    assert made.overall.position.n == 20
    assert a.effort is None
    assert (made.samples, made.start, made.end) == (10, 0, 9 * MS)


def test_that_joints_of_different_units_have_no_overall_figure_and_a_note_says_so():
    layout = Layout(joint_signals(JOINTS, ("b",), kinds=("joint.position",)))
    made = tabulate(Pair(layout, np.arange(3) * MS, np.ones((3, 2)), np.zeros((3, 2))))
    assert made.overall.position is None
    assert made.joints[1].position.rmse == 1.0
    assert "position has no overall figure: its joints are in m and rad" in made.notes


def test_that_missing_readings_are_left_out_and_counted():
    pair = random_pair(1, 100, 0.0)
    twin = pair.twin.copy()
    twin[:30, 1] = np.nan
    twin[:, 2] = np.nan
    made = tabulate(Pair(LAYOUT, pair.stamps, twin, pair.cell))
    assert made.joints[1].position.n == 70
    assert made.joints[0].velocity is None
    assert any("30 of 100" in note and note.startswith("position: 30") for note in made.notes)
    assert any("of a (100 of 100)" in note for note in made.notes)


def test_that_the_tool_distance_comes_from_joints_or_else_from_poses():
    pair = random_pair(2, 50, 0.0)
    by_pose = tabulate(pair).tcp
    distance = np.linalg.norm(pair.gap[:, 4:7], axis=1)
    assert by_pose.rmse == pytest.approx(np.sqrt(np.mean(distance**2)))
    assert by_pose.bias == pytest.approx(distance.mean())
    assert by_pose.relative is None
    by_joints = tabulate(pair, kinematics=arm()).tcp
    tools = [arm().tool(q[:, :2])[:, :3, 3] for q in (pair.twin, pair.cell)]
    assert by_joints.maximum == pytest.approx(np.linalg.norm(tools[0] - tools[1], axis=1).max())


def test_that_a_robot_with_other_joints_gets_a_note_instead_of_a_tool_distance():
    layout = Layout(joint_signals(("a",), kinds=("joint.position",)))
    pair = Pair(layout, np.arange(3) * MS, np.ones((3, 1)), np.ones((3, 1)))
    made = tabulate(pair, kinematics=arm())
    assert made.tcp is None
    assert made.notes == ("no tool distance from joints: the pair lacks b",)


def commanded(kinds=("velocity",), delay=0.02, joints=JOINTS, still=()) -> Block:
    t = np.arange(4000) * 1e-3
    names = tuple(f"{family}.{kind}" for kind in kinds for family in ("command", "joint"))
    layout = Layout(joint_signals(joints, kinds=names))
    values = np.zeros((len(t), layout.width))
    for c, joint in enumerate(joints):
        if joint in still:
            continue
        for kind in kinds:
            for family, late in (("command", 0.0), ("joint", delay + 0.001 * c)):
                phase = 2 * np.pi * (0.7 + 0.2 * c) * (t - late)
                values[:, layout.column(f"{family}.{kind}", joint)] = np.sin(phase)
    return Block(layout, np.arange(4000) * MS, values)


@pytest.mark.parametrize("kinds", [("velocity",), ("position",), ("position", "velocity")])
def test_that_delays_compare_a_command_with_its_own_kind(kinds):
    made = tabulate(random_pair(0), command=commanded(kinds), twin=commanded(kinds, 0.005))
    for c, joint in enumerate(made.joints):
        assert joint.command_to_motion.seconds == pytest.approx(0.02 + 0.001 * c, abs=1e-5)
        assert joint.twin_command_to_motion.seconds == pytest.approx(0.005 + 0.001 * c, abs=1e-5)
    expected = "velocity" if "velocity" in kinds else "position, rate of change"
    assert made.joints[0].command_to_motion.signal == expected
    assert made.overall.command_to_motion.seconds == pytest.approx(0.0205, abs=1e-5)


def test_that_a_joint_that_rests_has_no_delay_and_a_note_says_why():
    made = tabulate(random_pair(0), command=commanded(still=("b",)))
    assert made.joints[1].command_to_motion is None
    assert "no command-to-motion delay of cell b: the command does not move" in made.notes
    assert made.overall.command_to_motion is not None


def test_that_without_commands_there_is_no_delay():
    block = commanded().select(("joint.velocity",))
    made = tabulate(random_pair(0), command=block)
    assert made.overall.command_to_motion is None
    assert "no command-to-motion delay of the cell: no command beside its motion" in made.notes
    empty = tabulate(random_pair(0), command=commanded().part(slice(0, 0)))
    assert "no command-to-motion delay of the cell: no samples yet" in empty.notes


def test_that_a_command_in_rows_of_its_own_is_found():
    block = commanded()
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.repeat([True, False], 2000))
    values = block.values.copy()
    values[rows, :2] = np.nan
    values[~rows, 2:] = np.nan
    made = tabulate(random_pair(0), command=Block(block.layout, block.stamps, values))
    assert made.joints[0].command_to_motion.seconds == pytest.approx(0.02, abs=2e-4)


def test_that_transport_floor_and_notes_are_passed_on():
    transport = np.array([np.nan, *np.arange(101.0)]) * 1e-3
    made = tabulate(
        random_pair(0), transport=transport, floor={"b": {"position": 2e-4}}, notes=("by hand",)
    )
    assert made.transport.p50 == pytest.approx(0.05)
    assert made.transport.p99 == pytest.approx(0.099)
    assert made.joints[1].floor == {"position": 2e-4}
    assert made.notes[0] == "by hand"


def test_that_the_json_has_every_key_and_no_number_that_is_none():
    pair = random_pair(3)
    twin = np.full_like(pair.twin, np.nan)
    empty = as_json(tabulate(Pair(LAYOUT, pair.stamps, twin, pair.cell)))
    full = as_json(tabulate(pair, command=commanded(), transport=np.ones(3)))
    assert empty.keys() == full.keys()
    assert empty["joints"][0].keys() == full["joints"][0].keys()
    assert empty["overall"]["position_rmse"] is None
    assert full["joints"][0]["name"] == "a"
    assert full["joints"][0]["command_to_motion_ms"] == pytest.approx(20.0, abs=0.01)
    assert full["joints"][0]["effort_rmse"] is None
    assert full["seconds"] == pytest.approx(0.199)
    assert full["transport_p99_ms"] == 1000.0
    json.dumps([empty, full], allow_nan=False)


def test_that_a_table_can_be_written_and_read_again():
    made = tabulate(random_pair(4), command=commanded())
    assert msgspec.json.decode(msgspec.json.encode(made), type=GapTable) == made


def test_that_pairs_that_cannot_be_tabulated_are_refused():
    run = RunAccumulator()
    with pytest.raises(LayoutError, match="there is no gap yet"):
        run.table()
    layout = Layout((pose_signal("tcp.pose"),))
    with pytest.raises(LayoutError, match="share no joint signal"):
        run.add(Pair(layout, np.arange(2), np.ones((2, 7)), np.ones((2, 7))))
    run.add(random_pair(0))
    other = Layout(LAYOUT.signals[:1])
    with pytest.raises(LayoutError, match="different layouts"):
        run.add(Pair(other, np.arange(2), np.ones((2, 2)), np.ones((2, 2))))


def test_that_an_empty_pair_has_a_table_without_figures():
    made = tabulate(random_pair(0).__class__(LAYOUT, np.arange(0), *[np.empty((0, 11))] * 2))
    assert made.samples == 0
    assert made.joints[0].position is None
    assert as_json(made)["seconds"] == 0.0


def test_that_a_run_takes_timing_of_its_own_stretch():
    run = RunAccumulator()
    run.add(random_pair(0))
    late = run.table(timing=Timing(cell=commanded(delay=0.3), max_lag=0.1))
    assert late.overall.command_to_motion is None
    assert any("no delay up to 100 ms" in note for note in late.notes)


def test_that_a_pause_of_years_needs_no_grid_over_it() -> None:
    kinds = ("command.position", "joint.position")
    layout = Layout(joint_signals(("a",), kinds=kinds))
    time = np.arange(2000, dtype=np.int64) * 1_000_000
    wave = np.sin(time / 2e8)
    values = np.stack([wave, np.roll(wave, 10)], axis=1)
    stamps = time.copy()
    stamps[1000:] += 10 * 365 * 86_400 * 10**9
    found = delays(Block(layout, stamps, values), *kinds, ["a"])["a"]
    assert isinstance(found, Lag)
    assert abs(found.seconds - 0.010) < 1e-3


def test_that_parts_counted_apart_add_up_to_the_whole():
    pair = random_pair(3)
    whole, first = RunAccumulator(kinematics=arm()), RunAccumulator(kinematics=arm())
    whole.add(pair)
    parts = []
    for rows in (slice(0, 50), slice(50, 51), slice(51, 200)):
        parts.append(RunAccumulator(kinematics=arm()))
        parts[-1].add(part(pair, rows))
    first.add(part(pair, slice(0, 0)))
    summed = whole.like()
    for each in (first, *parts):
        summed.absorb(each.totals)
    one, other = as_json(whole.table()), as_json(summed.table())
    assert one.keys() == other.keys()
    for joint, again in zip(one["joints"], other["joints"], strict=True):
        for key, value in joint.items():
            same = pytest.approx(again[key], rel=1e-12) if isinstance(value, float) else again[key]
            assert value == same, key
    assert (one["samples"], one["seconds"]) == (other["samples"], other["seconds"])
    assert one["tcp_rmse_mm"] == pytest.approx(other["tcp_rmse_mm"], rel=1e-12)
