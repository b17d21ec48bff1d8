"""Inverse-dynamics identification: against a known truth, and what it refuses."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from twinstudio_calibration.inverse_dynamics import InverseDynamics, Params
from twinstudio_calibration.rigid_body import pseudo_inertia, rigid_body

from twinstudio.bench.calibration import arm_plant
from twinstudio.model.block import Block
from twinstudio.model.patches import Promoted, patched
from twinstudio.model.results import Patch, Scalar, Table
from twinstudio.model.scene import Scene
from twinstudio.plugin.testing import FakeContext, check_plugin

DELAY = 0.004


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return arm_plant.scene_in(tmp_path_factory.mktemp("arm"))


@pytest.fixture(scope="module")
def log() -> Block:
    rng = np.random.default_rng(7)
    return arm_plant.log_of(arm_plant.true_arm(rng, DELAY), rng)


@pytest.fixture(scope="module")
def solved(scene: Scene, log: Block) -> list:
    return list(InverseDynamics().solve(FakeContext(), {"log": log}, scene, Params()))


def scalars(results: list, kind: str) -> list[Scalar]:
    return [r for r in results if isinstance(r, Scalar) and r.name.startswith(f"{kind} of ")]


def changed(block: Block, columns: slice, new: np.ndarray) -> Block:
    values = block.values.copy()
    values[:, columns] = new
    return Block(block.layout, block.stamps.copy(), values)


def found(scene: Scene, block: Block) -> list:
    return list(InverseDynamics().check({"log": block}, scene, Params()))


def fatal(scene: Scene, block: Block) -> str:
    return " | ".join(f"{f.text}; {f.hint}" for f in found(scene, block) if f.fatal)


POSITION, EFFORT = slice(0, 7), slice(7, 14)


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(InverseDynamics) == []


def test_that_the_plant_and_the_regressor_agree_on_rigid_bodies(scene: Scene) -> None:
    arm, zero = arm_plant.nominal(), np.zeros(7)
    bare = arm_plant.Arm(arm.mass, arm.centre, arm.inertia, 0.0, zero, zero, zero)
    q, v, a = np.random.default_rng(1).normal(size=(3, 20, 7))
    body = rigid_body(scene)
    np.testing.assert_allclose(
        body.regressor(q, v, a) @ body.prior, arm_plant.efforts(bare, q, v, a), atol=1e-10
    )


def test_that_friction_of_a_known_truth_is_found(solved: list) -> None:
    coulomb, viscous = scalars(solved, "coulomb"), scalars(solved, "viscous")
    assert len(coulomb) == len(viscous) == 7
    for figure in coulomb:
        assert figure.value == pytest.approx(arm_plant.COULOMB, rel=0.05)
    assert np.median([f.value for f in viscous]) == pytest.approx(arm_plant.VISCOUS, rel=0.05)


def test_that_a_delay_below_a_sample_is_found(solved: list) -> None:
    delays = [figure.value for figure in scalars(solved, "delay")]
    assert np.median(delays) == pytest.approx(DELAY, abs=0.5e-3)


def test_that_what_cannot_be_told_apart_has_no_interval(solved: list) -> None:
    masses = {figure.name: figure for figure in scalars(solved, "mass")}
    assert not np.isfinite(masses["mass of link1"].high)


def test_that_the_patch_has_real_bodies_and_fits_the_scene(scene: Scene, solved: list) -> None:
    patch = next(r for r in solved if isinstance(r, Patch))
    new = patched(scene, (Promoted(patch=patch, run="r", when=0.0),))
    parameters = rigid_body(new).prior.reshape(-1, 10)
    assert all(np.linalg.eigvalsh(pseudo_inertia(row)).min() > 0.0 for row in parameters)
    assert len(new.drive.friction.coulomb) == 7


def test_that_held_out_error_is_near_the_noise(scene: Scene, solved: list) -> None:
    rng = np.random.default_rng(7)
    arm = arm_plant.true_arm(rng, DELAY)
    other = arm_plant.log_of(arm, np.random.default_rng(99))
    tables = InverseDynamics().validate({"log": other}, scene, solved)
    scores = next(r for r in tables if isinstance(r, Table) and r.name == "held-out error")
    overall = next(row for row in scores.rows if row[1] == "all")
    assert overall[2] < 0.05 < overall[3]


def test_that_the_same_log_gives_the_same_figures(scene: Scene, log: Block, solved: list) -> None:
    again = list(InverseDynamics().solve(FakeContext(), {"log": log}, scene, Params()))
    assert msgspec.json.encode(again) == msgspec.json.encode(solved)


def test_that_a_good_log_passes_its_check(scene: Scene, log: Block) -> None:
    findings = found(scene, log)
    assert not any(f.fatal for f in findings)
    assert any("43 of 43 base parameters" in f.text for f in findings)


def test_that_a_short_log_is_refused(scene: Scene, log: Block) -> None:
    assert "too short" in fatal(scene, log.part(slice(0, 200)))


def test_that_an_arm_at_rest_is_refused(scene: Scene, log: Block) -> None:
    still = changed(log, POSITION, np.tile(log.values[0, POSITION], (len(log), 1)))
    assert "not exciting" in fatal(scene, still)


def test_that_degrees_are_refused(scene: Scene, log: Block) -> None:
    assert "degrees" in fatal(scene, changed(log, POSITION, np.degrees(log.values[:, POSITION])))


def test_that_motor_side_positions_are_refused(scene: Scene, log: Block) -> None:
    assert "at the motor" in fatal(scene, changed(log, POSITION, 100 * log.values[:, POSITION]))


def test_that_motor_side_efforts_are_refused(scene: Scene, log: Block) -> None:
    assert "at the motor" in fatal(scene, changed(log, EFFORT, log.values[:, EFFORT] / 100))


def test_that_swapped_efforts_are_refused(scene: Scene, log: Block) -> None:
    swapped = log.values[:, EFFORT][:, [0, 3, 2, 1, 4, 5, 6]]
    assert "wrong joint order: joint2 and joint4" in fatal(scene, changed(log, EFFORT, swapped))


def test_that_saturated_efforts_are_refused(scene: Scene, log: Block) -> None:
    clipped = np.clip(log.values[:, EFFORT], -20.0, 20.0)
    assert "saturated" in fatal(scene, changed(log, EFFORT, clipped))


def test_that_missing_efforts_are_refused(scene: Scene, log: Block) -> None:
    assert "no effort" in fatal(scene, log.select(("joint.position",)))


def test_that_garbage_rows_are_refused(scene: Scene, log: Block) -> None:
    values = log.values.copy()
    values[100:110, POSITION] = 1e300
    assert "garbage" in fatal(scene, Block(log.layout, log.stamps.copy(), values))


def test_that_a_clock_that_jumps_is_told(scene: Scene, log: Block) -> None:
    stamps = log.stamps.copy()
    stamps[2000:] += 3_000_000_000
    late = Block(log.layout, stamps, log.values.copy())
    assert any("clock jumps 1 times" in f.text for f in found(scene, late))


def test_that_a_clock_that_goes_back_often_is_refused(scene: Scene, log: Block) -> None:
    stamps = log.stamps.copy()
    stamps[::10] -= 20_000_000
    assert "clock goes back" in fatal(scene, Block(log.layout, stamps, log.values.copy()))


@pytest.mark.parametrize(
    ("broken", "said"), [("missing", "link3 has no mass"), ("absurd", "link3 needs a radius")]
)
def test_that_absurd_inertias_are_told(tmp_path: Path, log: Block, broken: str, said: str) -> None:
    scene = arm_plant.scene_in(tmp_path)
    arm = arm_plant.nominal()
    arm.inertia[2] *= 1e3
    text = arm_plant.urdf(arm) if broken == "absurd" else arm_plant.urdf(arm, ("link3",))
    (tmp_path / "arm.urdf").write_text(text)
    assert any(said in f.text for f in found(scene, log))
