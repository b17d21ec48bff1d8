"""The chain of masses finds the resonances that another code shook."""

import msgspec
import numpy as np
import pytest
from twinstudio_calibration.flexible import Chain, chain_of, parameters, simulated
from twinstudio_calibration.resonance import Params, Resonance

from twinstudio.bench.calibration.backlash import ANTIRESONANCES, RESONANCES, shaken_axis
from twinstudio.model.block import Block
from twinstudio.model.results import Patch, Scalar, Table
from twinstudio.plugin import api
from twinstudio.plugin.testing import FakeContext, check_plugin, make_block, make_scene

CHAIN = Chain(np.array([0.01, 0.02, 0.03]), np.array([20.0, 30.0]), np.array([0.05, 0.02]), 0.01)


@pytest.fixture(scope="module")
def shaken() -> Block:
    """Twenty seconds of the flexible axis."""
    return shaken_axis(np.random.default_rng(2))


def scene() -> api.Scene:
    made = make_scene()
    robot = msgspec.structs.replace(made.robot, joints=("motor",))
    return msgspec.structs.replace(made, robot=robot)


def fatal(block: Block, params: Params | None = None) -> list[str]:
    found = Resonance().check({"log": block}, scene(), params or Params())
    return [finding.text for finding in found if finding.fatal]


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(Resonance) == []


def test_that_resonances_of_the_three_mass_axis_are_found_within_a_percent(shaken: Block) -> None:
    cut = len(shaken) // 2
    with FakeContext() as context:
        results = Resonance().solve(context, {"log": shaken.part(slice(0, cut))}, scene(), Params())
    told = {r.name: r for r in results if isinstance(r, Scalar)}
    for k in (0, 1):
        for name, truth in (("resonance", RESONANCES[k]), ("antiresonance", ANTIRESONANCES[k])):
            found = told[f"{name} {k + 1} of motor"]
            assert found.value == pytest.approx(truth, rel=0.01)
            assert found.high - found.low < 0.02 * truth
    assert any(isinstance(r, Patch) for r in results)
    (table,) = Resonance().validate({"log": shaken.part(slice(cut, None))}, scene(), results)
    assert isinstance(table, Table)
    assert float(table.rows[0][2] or 1.0) < 0.1


def test_that_parameters_and_chain_are_one() -> None:
    again = chain_of(parameters(CHAIN))
    assert again.inertia == pytest.approx(CHAIN.inertia)
    assert again.resonances == pytest.approx(CHAIN.resonances)


def test_that_zeros_and_poles_of_a_chain_alternate() -> None:
    line = np.column_stack([CHAIN.antiresonances, CHAIN.resonances]).ravel()
    assert (np.diff(line) > 0.0).all()


def test_that_a_constant_torque_ends_in_the_speed_its_friction_allows() -> None:
    speed, extra = simulated(CHAIN, np.full(20_000, 0.3), 2e-3)
    assert speed[-1] == pytest.approx(0.3 / CHAIN.viscous, rel=1e-2)
    assert extra[:, -1] * 0.3 == pytest.approx(speed, abs=1e-9)


def test_that_a_torque_of_one_frequency_is_refused(shaken: Block) -> None:
    values = np.array(shaken.values)
    values[:, 2] = np.sin(2.0 * np.pi * 3.0 * np.arange(len(values)) * 1e-3)
    block = Block(shaken.layout, np.array(shaken.stamps), values)
    assert any("too few frequencies" in text for text in fatal(block))


def test_that_missing_torque_short_logs_and_many_joints_are_refused(shaken: Block) -> None:
    without = shaken.select(("joint.position", "joint.velocity"))
    assert any("no effort" in text for text in fatal(without))
    assert any("too short" in text for text in fatal(shaken.part(slice(0, 500))))
    assert fatal(make_block()) == ["the log has 2 joints, and one is fitted at a time"]
    assert fatal(make_block().select(("joint.velocity",))) == ["no log has joint.position"]
