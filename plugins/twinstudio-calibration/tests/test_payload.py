"""Payload identification against a known truth."""

from pathlib import Path

import numpy as np
import pytest
from twinstudio_calibration.payload import Params, PayloadIdentification

from twinstudio.bench.calibration import arm_plant
from twinstudio.model.results import Patch, Scalar
from twinstudio.plugin.testing import FakeContext, check_plugin

MASS, CENTRE = 2.0, np.array([0.02, -0.03, 0.12])


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(PayloadIdentification) == []


def test_that_a_known_payload_is_found(tmp_path: Path) -> None:
    scene, rng = arm_plant.scene_in(tmp_path), np.random.default_rng(11)
    arm = arm_plant.true_arm(rng, 0.004)
    logs = {
        "unloaded": arm_plant.log_of(arm, rng),
        "loaded": arm_plant.log_of(arm.carrying(MASS, CENTRE), rng),
    }
    solved = PayloadIdentification().solve(FakeContext(), logs, scene, Params())
    figures = {r.name: r for r in solved if isinstance(r, Scalar)}
    assert figures["payload mass"].value == pytest.approx(MASS, rel=0.01)
    in_tool = CENTRE - [0.0, 0.0, arm_plant.LENGTHS[-1]]
    found = [figures[f"payload centre {axis}"].value for axis in "xyz"]
    np.testing.assert_allclose(found, in_tool, atol=0.01)
    patch = next(r for r in solved if isinstance(r, Patch))
    assert patch.changes[0].key == "payload.mass"


def test_that_a_known_load_without_its_mass_is_refused(tmp_path: Path) -> None:
    scene, rng = arm_plant.scene_in(tmp_path), np.random.default_rng(3)
    log = arm_plant.log_of(arm_plant.nominal(), rng)
    logs = {"loaded": log, "unloaded": log, "known": log}
    findings = PayloadIdentification().check(logs, scene, Params())
    assert any(f.fatal and "known_mass" in f.text for f in findings)


@pytest.mark.data
def test_that_a_real_payload_is_within_four_percent(data: Path) -> None:
    from twinstudio.bench.calibration.rigid import payload

    assert all(row.passed for row in payload())
