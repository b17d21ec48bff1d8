"""The thermal fitter finds a network that another code made, and says what it cannot tell."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from twinstudio_calibration import thermal_records as records
from twinstudio_calibration.thermal import (
    NETWORK,
    Params,
    ThermalNetwork,
    choose_node,
    fit_joints,
    free_run,
    network_of,
    network_table,
    rms,
    scalars,
)

from twinstudio.bench.calibration.thermal import (
    AMBIENT,
    CASE_CAPACITY,
    CASE_TO_AMBIENT,
    COPPER,
    RESISTANCE_65,
    TIME_CONSTANTS,
    WINDING_CAPACITY,
    WINDING_TO_CASE,
    plant,
)
from twinstudio.flow.importers.anylog import read_any
from twinstudio.model.block import Block
from twinstudio.model.results import Patch, Scalar, Table
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin import api
from twinstudio.plugin.testing import FakeContext, check_plugin, make_block, make_scene

COLD_RESISTANCE = RESISTANCE_65 / (1.0 + 40.0 * COPPER)
KINDS = ("joint.current", "joint.temperature")


@pytest.fixture(scope="module")
def warmed() -> Block:
    """An hour of the knee of an OpenSourceLeg."""
    return plant(np.random.default_rng(7))


def scene_of(joint: str) -> api.Scene:
    scene = make_scene()
    return msgspec.structs.replace(
        scene, robot=msgspec.structs.replace(scene.robot, joints=(joint,))
    )


def texts(block: Block) -> list[str]:
    scene = scene_of("knee")
    return [f.text for f in ThermalNetwork().check({"log": block}, scene, Params()) if f.fatal]


def changed(block: Block, values: np.ndarray) -> Block:
    return Block(block.layout, np.array(block.stamps), values)


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(ThermalNetwork) == []


def test_that_capacities_and_resistances_of_a_known_network_are_found(warmed: Block) -> None:
    network = fit_joints(records.heating(warmed, 1.0), "winding", AMBIENT, 2.0)
    told = {s.name: s for s in scalars("knee", network.fits[0], COLD_RESISTANCE)}
    truths = {
        "fast time constant of knee": TIME_CONSTANTS[0],
        "slow time constant of knee": TIME_CONSTANTS[1],
        "winding capacity of knee": WINDING_CAPACITY,
        "resistance winding to case of knee": WINDING_TO_CASE,
        "case capacity of knee": CASE_CAPACITY,
        "resistance case to ambient of knee": CASE_TO_AMBIENT,
    }
    for name, truth in truths.items():
        assert told[name].value == pytest.approx(truth, rel=0.1), name
        assert told[name].high - told[name].low < 0.5 * truth, name


def test_that_friction_of_a_joint_that_never_moves_is_not_identifiable(warmed: Block) -> None:
    network = fit_joints(records.heating(warmed, 1.0), "winding", AMBIENT, 2.0)
    told = {s.name: s for s in scalars("knee", network.fits[0], COLD_RESISTANCE)}
    assert told["friction heat of knee"].high == float("inf")


def test_that_the_free_run_uses_no_temperature_of_the_held_out_part(warmed: Block) -> None:
    cut = 2 * len(warmed) // 3
    network = fit_joints(records.heating(warmed.part(slice(0, cut)), 1.0), "winding", AMBIENT, 2.0)
    rest = records.heating(warmed.part(slice(cut, None)), 1.0)
    blind = replace(rest, temperature=np.full_like(rest.temperature, np.nan))
    assert np.array_equal(free_run(network, rest), free_run(network, blind))
    assert float(np.sqrt(rms(free_run(network, rest), rest))[0]) < 0.2


def test_that_the_place_of_the_sensor_is_found(warmed: Block) -> None:
    node, errors = choose_node(records.heating(warmed, 1.0), AMBIENT, 2.0)
    assert node == "winding"
    assert errors["winding"] < errors["case"]


def test_that_a_network_survives_its_table(warmed: Block) -> None:
    network = fit_joints(records.heating(warmed, 1.0), "winding", AMBIENT, 2.0)
    back = network_of([network_table(network)])
    assert back.end == network.end
    assert back.fits[0].theta == pytest.approx(network.fits[0].theta)


def test_that_solve_and_validate_give_patch_and_held_out_errors(warmed: Block) -> None:
    cut = 2 * len(warmed) // 3
    scene, params = scene_of("knee"), Params(resistance=COLD_RESISTANCE, ambient=AMBIENT)
    with FakeContext() as context:
        log = {"log": warmed.part(slice(0, cut))}
        solved = ThermalNetwork().solve(context, log, scene, params)
    (patch,) = (r for r in solved if isinstance(r, Patch))
    values = {change.key: change.value for change in patch.changes}
    assert values["drive.thermal.case_capacity"] == pytest.approx((CASE_CAPACITY,), rel=0.1)
    assert values["drive.thermal.ambient"] == pytest.approx(AMBIENT, abs=1.0)
    held_out = {"log": warmed.part(slice(cut, None))}
    table, _ = ThermalNetwork().validate(held_out, scene, solved)
    assert isinstance(table, Table)
    _, held, ran = table.rows[0]
    assert float(ran or 0.0) < 0.2 < float(held or 0.0)


def test_that_without_a_resistance_there_is_no_figure_in_watts(warmed: Block) -> None:
    with FakeContext() as context:
        solved = ThermalNetwork().solve(
            context, {"log": warmed}, scene_of("knee"), Params(node="winding")
        )
    assert not any(isinstance(r, Patch) for r in solved)
    names = {r.name for r in solved if isinstance(r, Scalar)}
    assert names == {
        "fast time constant of knee",
        "slow time constant of knee",
        "surroundings of knee",
    }
    assert any(r.name == NETWORK for r in solved)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda v: v + np.array([0.0, 273.15]), "in kelvin"),
        (lambda v: v * np.array([1.0, 0.0]) + np.array([0.0, 20.0]), "not exciting"),
        (lambda v: v * np.array([0.0, 1.0]), "never changes"),
        (lambda v: v * np.array([np.nan, 1.0]), "is missing in"),
        (lambda v: np.where(np.arange(len(v))[:, None] == 900, 1e30, v), "no joint has"),
        (lambda v: v * np.array([1.0, np.nan]), "no readings"),
    ],
)
def test_that_a_bad_log_is_refused_in_one_line(warmed: Block, spoil: object, said: str) -> None:
    assert callable(spoil)
    found = texts(changed(warmed, spoil(np.array(warmed.values))))
    assert any(said in text for text in found), found
    assert all("\n" not in text for text in found)


def test_that_a_log_without_temperature_current_or_time_is_refused(warmed: Block) -> None:
    assert texts(make_block()) == ["no log has joint.temperature"]
    assert texts(warmed.select(("joint.temperature",))) == ["the log has no joint.current"]
    assert "too short" in texts(warmed.part(slice(0, 100)))[0]


def test_that_a_clock_that_jumps_or_stands_is_refused(warmed: Block) -> None:
    jumped, stopped = np.array(warmed.stamps), np.array(warmed.stamps)
    jumped[1000:] += 3_600_000_000_000
    stopped[1000:1500] = stopped[1000]
    for stamps, said in ((jumped, "jumps by 3601 s"), (stopped, "stands still")):
        block = Block(warmed.layout, stamps, np.array(warmed.values))
        assert any(said in text for text in texts(block))


def test_that_neighbours_heat_each_other() -> None:
    seconds = 4000
    layout = Layout(joint_signals(["a", "b"], kinds=KINDS))
    current = np.zeros((seconds, 2))
    current[:, 0] = 3.0 * (np.arange(seconds) % 1500 < 700)
    hot = cold = 20.0
    warm = np.empty((seconds, 2))
    for k in range(seconds):
        warm[k] = hot, cold
        hot += 0.02 * current[k, 0] ** 2 / 9.0 - (hot - 20.0) / 800.0 - (hot - cold) / 400.0
        cold += (hot - cold) / 400.0 - (cold - 20.0) / 800.0
    read = np.round(warm / 0.0625) * 0.0625
    stamps = np.arange(seconds, dtype=np.int64) * 1_000_000_000
    block = Block(layout, stamps, np.hstack([current + 1e-3 * (stamps[:, None] % 7), read]))
    cut = 2500
    network = fit_joints(records.heating(block.part(slice(0, cut)), 1.0), "case", 20.0, 1.0)
    rest = records.heating(block.part(slice(cut, None)), 1.0)
    assert np.sqrt(rms(free_run(network, rest), rest)).max() < 0.15
    assert np.exp(network.fits[1].theta[3]) == pytest.approx(1.0 / 400.0, rel=0.3)


@pytest.mark.data
def test_that_a_ur3_is_followed_through_the_third_that_was_held_out(data: Path) -> None:
    log = read_any(data / "ur3_cobotops" / "session1.csv", format="ur3_cobotops", mapping=None)
    block = log.recording.sources["cell"].block
    cut = 2 * len(block) // 3
    scene = make_scene()
    with FakeContext() as context:
        first = {"log": block.part(slice(0, cut))}
        solved = ThermalNetwork().solve(context, first, scene, Params())
    rest = {"log": block.part(slice(cut, None))}
    table = ThermalNetwork().validate(rest, scene, solved)[0]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows if float(row[2] or 9.0) > 0.2] == []
