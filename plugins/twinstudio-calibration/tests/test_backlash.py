"""Play, hysteresis and stiffness from three kinds of logs, and what only looks like play."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twinstudio_calibration import play
from twinstudio_calibration.backlash import Backlash, Params

from twinstudio.bench.calibration.backlash import (
    LEVER_PLAY,
    LEVER_STIFFNESS,
    SERVO_COUNT,
    SERVO_HYSTERESIS,
    geared_axis,
    pulled_lever,
)
from twinstudio.flow.importers.anylog import read_any
from twinstudio.model.block import Block
from twinstudio.model.results import Patch, Result, Scalar, Table
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin import api
from twinstudio.plugin.testing import FakeContext, check_plugin, make_block, make_scene

PLAY = 2e-3


@pytest.fixture(scope="module")
def geared() -> Block:
    """One axis with 2 mrad of play, and an encoder on either side of it."""
    return geared_axis(np.random.default_rng(5), PLAY)


def scene_of(joint: str) -> api.Scene:
    scene = make_scene()
    robot = msgspec.structs.replace(scene.robot, joints=(joint,))
    return msgspec.structs.replace(scene, robot=robot)


def solved(block: Block, params: Params | None = None, joint: str = "axis") -> list[Result]:
    with FakeContext() as context:
        return list(Backlash().solve(context, {"log": block}, scene_of(joint), params or Params()))


def scalars(results: list[Result]) -> dict[str, Scalar]:
    return {r.name: r for r in results if isinstance(r, Scalar)}


def fatal(block: Block, params: Params | None = None) -> list[str]:
    found = Backlash().check({"log": block}, scene_of("axis"), params or Params())
    return [finding.text for finding in found if finding.fatal]


def servo(widths: tuple[float, float]) -> Block:
    """Holds at three commands, the middle one from both sides; rests off by `widths`."""
    count = 2.0 * np.pi / 4096.0
    targets = [0.0, 0.15, 0.3, 0.15] * 4
    command = np.repeat(targets, 30)
    rest = np.array(
        [
            t + (widths[0] if t > b else -widths[1])
            for b, t in zip([0.3, *targets], targets, strict=False)
        ]
    )
    arrived = np.minimum(np.tile(np.arange(30) / 20.0, len(targets)), 1.0)
    before = np.repeat(np.concatenate([[rest[-1]], rest[:-1]]), 30)
    path = before + arrived * (np.repeat(rest, 30) - before)
    position = np.round(path / count) * count
    stamps = np.arange(len(command), dtype=np.int64) * 100_000_000
    layout = Layout(joint_signals(["axis"], kinds=("joint.position", "command.position")))
    return Block(layout, stamps, np.column_stack([position, command]))


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(Backlash) == []


def test_that_play_behind_an_encoder_is_found_and_promoted(geared: Block) -> None:
    results = solved(geared)
    width = scalars(results)["hysteresis width of axis"]
    assert width.value == pytest.approx(PLAY, rel=0.1)
    assert width.high - width.low < 0.2 * PLAY
    (patch,) = (r for r in results if isinstance(r, Patch))
    values = {change.key: change.value for change in patch.changes}
    assert values["drive.transmission.backlash"] == (width.value,)


def test_that_the_fit_explains_motor_minus_link_on_another_log(geared: Block) -> None:
    other = geared_axis(np.random.default_rng(6), PLAY)
    (table,) = Backlash().validate({"next": other}, scene_of("axis"), solved(geared))
    assert isinstance(table, Table)
    _, _, before, after = table.rows[0]
    assert float(after or 1.0) < 0.2 * float(before or 0.0)


def test_that_a_time_offset_of_encoders_is_not_taken_for_play() -> None:
    time = np.arange(5000) / 250.0
    motor = 0.4 * np.sin(time) + 0.2 * np.sin(2.3 * time)
    late = 0.4 * np.sin(time - 0.003) + 0.2 * np.sin(2.3 * (time - 0.003))
    noise = np.random.default_rng(1).normal(0.0, 5e-6, len(time))
    found = play.secondary(motor, late + noise, np.gradient(motor, time), None)
    assert found.apparent.value > 1e-3
    assert found.offset.value == pytest.approx(0.003, rel=0.02)
    assert abs(found.width.value) < 0.02 * found.apparent.value


def test_that_holds_tell_hysteresis_within_a_count_and_warn_of_the_dead_band() -> None:
    block = servo((4e-3, 5e-3))
    told = scalars(solved(block))["hold hysteresis of axis"]
    count = 2.0 * np.pi / 4096.0
    assert told.value == pytest.approx(9e-3, abs=count)
    assert told.high - told.value == pytest.approx(count, rel=0.01)
    assert "dead band" in told.note
    findings = Backlash().check({"log": block}, scene_of("axis"), Params())
    assert any("dead band" in finding.text for finding in findings)
    assert not any(finding.fatal for finding in findings)


def test_that_a_pulled_lever_tells_stiffness_and_play() -> None:
    block = pulled_lever(np.random.default_rng(3))
    told = scalars(solved(block, Params(method="lever")))
    assert told["gear stiffness of axis"].value == pytest.approx(LEVER_STIFFNESS, rel=0.1)
    assert told["play of axis"].value == pytest.approx(LEVER_PLAY, rel=0.1)


@given(width=st.floats(1e-4, 0.5), seed=st.integers(0, 99))
def test_that_the_link_of_a_play_never_leaves_its_ends(width: float, seed: int) -> None:
    motor = np.cumsum(np.random.default_rng(seed).normal(0.0, 0.05, 200))
    side = play.sides(motor, width)
    link = motor - 0.5 * width * side
    assert np.abs(side).max() <= 1.0 + 1e-9
    moved = np.diff(link)
    assert np.all((moved == 0.0) | (np.abs(np.abs(side[1:]) - 1.0) < 1e-6) | (np.abs(moved) < 1e-9))


def test_that_a_log_that_turns_never_round_is_refused(geared: Block) -> None:
    values = np.array(geared.values)
    values[:, 0] = np.linspace(0.0, 1.0, len(values))
    values[:, 1], values[:, 3] = 0.05, values[:, 0]
    block = Block(geared.layout, np.array(geared.stamps), values)
    assert any("not exciting" in text for text in fatal(block))


def test_that_degrees_and_short_logs_are_refused(geared: Block) -> None:
    values = np.array(geared.values)
    values[:, 0] = np.degrees(values[:, 0])
    block = Block(geared.layout, np.array(geared.stamps), values)
    assert any("degrees" in text or "derivative" in text for text in fatal(block))
    assert any("too short" in text for text in fatal(geared.part(slice(0, 100))))


def test_that_a_method_without_its_signal_is_refused(geared: Block) -> None:
    assert any("command position" in t for t in fatal(geared, Params(method="reversal")))
    without = geared.select(("joint.position", "joint.velocity"))
    assert any("effort" in text for text in fatal(without))
    assert fatal(make_block().select(("joint.velocity",))) == ["no log has joint.position"]


def test_that_regress_does_not_tell_a_column_that_others_make() -> None:
    x = np.linspace(0.0, 1.0, 100)
    found, _ = play.regress(np.column_stack([np.ones(100), x, 2.0 * x]), x)
    assert not found[2].told


@pytest.mark.data
def test_that_kr300_flips_with_speed_and_not_with_play(data: Path) -> None:
    log = read_any(data / "kuka_kr300" / "FF_A", format="kuka_kr300", mapping=None)
    block = log.recording.sources["cell"].block
    with FakeContext() as context:
        found = Backlash().solve(context, {"log": block}, load_scene("kuka_kr300"), Params())
    told = scalars(list(found))
    for axis in ("a1", "a2", "a3"):
        assert 0.03 < np.degrees(told[f"apparent hysteresis of {axis}"].value) < 0.07
        assert told[f"time offset of encoders of {axis}"].value == pytest.approx(2.9e-3, rel=0.1)
        assert "time offset" in told[f"hysteresis width of {axis}"].note
    assert not any(name.endswith("a4") for name in told)


@pytest.mark.data
def test_that_the_servo_holds_within_a_count_of_the_published_hysteresis(data: Path) -> None:
    source = data / "servo_backlash" / "motor_telemetry_single.csv"
    block = read_any(source, format="servo_backlash", mapping=None).recording.sources["cell"].block
    told = scalars(solved(block))["hold hysteresis of motor5"]
    assert np.degrees(told.value) == pytest.approx(SERVO_HYSTERESIS, abs=SERVO_COUNT)
