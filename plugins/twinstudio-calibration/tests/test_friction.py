"""The friction ladder on published laws, on bad logs, and on a real axis."""

import numpy as np
import pytest
from scipy.signal import butter, filtfilt
from twinstudio_calibration import friction_fit as fitting
from twinstudio_calibration.friction import FrictionLadder, Params, laws_of
from twinstudio_calibration.friction_law import Axis, Law, Shape

from twinstudio.bench.calibration.friction_plants import (
    BAM_M1,
    PANDA_A,
    Motion,
    bam_effort,
    panda,
    read,
    three_mass,
)
from twinstudio.flow.importers.anylog import read_any
from twinstudio.jobs.logs import split
from twinstudio.model.block import Block
from twinstudio.model.results import Patch, Scalar, Table
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.testing import FakeContext


def axis_of(reading, rigid=0.0) -> Axis:
    b, a = butter(4, 0.2)
    position = filtfilt(b, a, reading.position)
    keep = slice(50, -50)
    known = (np.zeros(len(position)) + rigid)[keep]
    effort = reading.effort[keep] - known
    return Axis(0.001, np.ascontiguousarray(position[keep]), effort, 2 * np.pi, 10, known=known)


@pytest.mark.parametrize("seed", [1, 2])
def test_that_coulomb_and_viscous_friction_are_recovered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, w, a = Motion(5.0, 10.0).draw(rng)
    effort = bam_effort(BAM_M1, w, BAM_M1["armature"] * a, np.zeros_like(q))
    fitted = fitting.solve(Law(("viscous",)), axis_of(read(rng, q, effort, 0.2, 1e-5)))
    assert fitted.value("coulomb") == pytest.approx(BAM_M1["Kc"], rel=0.05)
    assert fitted.value("viscous") == pytest.approx(BAM_M1["Kv"], rel=0.10)
    for name, truth in (("coulomb", BAM_M1["Kc"]), ("viscous", BAM_M1["Kv"])):
        assert abs(fitted.value(name) - truth) < 4.0 * fitted.deviation(name)


def test_that_a_smooth_law_is_chosen_where_friction_is_smooth() -> None:
    rng = np.random.default_rng(3)
    q, w, a = Motion(2.0, 10.0).draw(rng)
    fitted, _ = fitting.climb(axis_of(read(rng, q, 0.3 * a + panda(1)(w), 0.05, 1e-5)))
    assert "smooth" in fitted.law.rungs
    assert fitted.value("coulomb") == pytest.approx(PANDA_A[1] / 2, rel=0.05)


def test_that_the_friction_of_a_motor_is_recovered_under_its_own_law() -> None:
    rng = np.random.default_rng(4)
    q, w, a = Motion(100.0, 10.0).draw(rng)
    law = Law(("viscous", "smooth"), Shape(width=1.0))
    fitted = fitting.solve(law, axis_of(read(rng, q, 0.0329 * a + three_mass(w), 0.02, 1e-3)))
    assert fitted.value("coulomb") == pytest.approx(0.74302635727901, rel=0.05)
    assert fitted.value("viscous") == pytest.approx(0.00986346744839, rel=0.10)


def test_that_richer_laws_are_refused_with_a_reason_where_friction_is_simple() -> None:
    rng = np.random.default_rng(5)
    q, w, a = Motion(1.0, 10.0).draw(rng)
    effort = 0.5 * a + 2.0 * np.sign(w) + 1.0 * w
    fitted, steps = fitting.climb(axis_of(read(rng, q, effort, 0.05, 1e-5)))
    assert "Stribeck" not in fitted.law.rungs
    assert "load" not in fitted.law.rungs
    assert all(step.taken or step.why for step in steps)


def test_that_what_the_motion_does_not_show_has_no_interval() -> None:
    table = np.column_stack([np.ones(500), np.ones(500), np.linspace(0.0, 1.0, 500)])
    cov = fitting.covariance(table, np.random.default_rng(6).normal(size=500))
    assert np.isinf(cov[0, 0])
    assert np.isinf(cov[1, 1])
    assert np.isfinite(cov[2, 2])


SCENE = "scenes/emps_axis"


def prismatic_log(rng: np.random.Generator, *, one_way: bool = False) -> Block:
    """A log of the scene's axis: 50 kg, Coulomb 20 N, viscous 150 N s/m."""
    q, w, a = Motion(0.2, 8.0).draw(rng)
    if one_way:
        q, w, a = np.linspace(0.0, 0.2, len(q)), np.full(len(q), 0.025), np.zeros(len(q))
    effort = 50.0 * a + 20.0 * np.sign(w) + 150.0 * w + 1.0
    reading = read(rng, q, effort, 0.5, 1e-6)
    layout = Layout(joint_signals(("axis",), ("axis",), kinds=("joint.position", "joint.effort")))
    stamps = np.arange(len(q), dtype=np.int64) * 1_000_000
    return Block(layout, stamps, np.column_stack([reading.position, reading.effort]))


def test_that_the_plugin_finds_mass_and_friction_and_a_patch_for_them() -> None:
    scene, logs = load_scene(SCENE), {"log": prismatic_log(np.random.default_rng(7))}
    plugin = FrictionLadder()
    assert not [f for f in plugin.check(logs, scene, Params()) if f.fatal]
    results = plugin.solve(FakeContext(seed=1), logs, scene, Params())
    scalars = {r.name: r for r in results if isinstance(r, Scalar)}
    assert scalars["coulomb of axis"].value == pytest.approx(20.0, rel=0.05)
    patch = next(r for r in results if isinstance(r, Patch))
    changes = {change.key: change.value for change in patch.changes}
    assert changes["links.carriage.mass"] == pytest.approx(50.0, rel=0.01)
    laws, _ = laws_of(results)
    assert laws[0].value("coulomb") == pytest.approx(scalars["coulomb of axis"].value)


def test_that_a_joint_that_moves_one_way_only_is_found() -> None:
    scene = load_scene(SCENE)
    logs = {"log": prismatic_log(np.random.default_rng(8), one_way=True)}
    texts = [finding.text for finding in FrictionLadder().check(logs, scene, Params())]
    assert any("one way only" in text for text in texts)


def test_that_a_log_without_effort_is_refused() -> None:
    scene, block = load_scene(SCENE), prismatic_log(np.random.default_rng(9))
    findings = FrictionLadder().check({"log": block.select(("joint.position",))}, scene, Params())
    assert any(finding.fatal and "effort" in finding.text for finding in findings)


@pytest.mark.data
def test_that_the_last_third_of_a_real_axis_is_told_within_two_per_cent(data) -> None:
    scene = load_scene(SCENE)
    sources = read_any(data / "emps").recording.sources
    fit, held_out = split({"log": sources["cell"].block}, 2.0 / 3.0)
    plugin = FrictionLadder()
    results = plugin.solve(FakeContext(seed=1), fit, scene, Params())
    scores = next(r for r in plugin.validate(held_out, scene, results) if isinstance(r, Table))
    row = dict(zip(scores.columns, scores.rows[0], strict=True))
    assert row["fitted"] < 0.020
    assert row["fitted"] < row["scene"]
