"""Friction that drifts from run to run is found by free runs under the commanded torque."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twinstudio_calibration import session_model as model
from twinstudio_calibration.session_friction import Params, SessionFriction

from twinstudio.model.block import Block
from twinstudio.model.results import Patch, Scalar, Table
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin import api
from twinstudio.plugin.testing import FakeContext, check_plugin, make_scene

INERTIA, VISCOUS, COULOMB = 2.0, 12.0, 1.5
KINDS = ("joint.position", "joint.velocity", "command.effort")
STEP, SMALL = 0.01, 20


def run(number: int, rng: np.random.Generator) -> Block:
    """A joint whose viscous friction falls as it warms; small explicit steps, smooth friction."""
    time = np.arange(300) * STEP
    torque = 6.0 + 4.0 * np.sin(2.0 * time)
    viscous = VISCOUS * math.exp(-0.3 * (1.0 - math.exp(-number / 3.0)))
    q, w = 0.2, 0.3
    rows = []
    for u in torque:
        rows.append((q + rng.normal(0.0, 1e-5), w, u))
        for _ in range(SMALL):
            w += STEP / SMALL * (u - viscous * w - COULOMB * math.tanh(w / 1e-3)) / INERTIA
            q += STEP / SMALL * w
    layout = Layout(joint_signals(["a"], kinds=KINDS))
    stamps = np.rint(time * 1e9).astype(np.int64)
    return Block(layout, stamps, np.array(rows))


@pytest.fixture(scope="module")
def session() -> dict[str, Block]:
    rng = np.random.default_rng(8)
    return {f"run{k}": run(k, rng) for k in range(10)}


def scene() -> api.Scene:
    made = make_scene()
    robot = msgspec.structs.replace(made.robot, joints=("a",))
    return msgspec.structs.replace(made, robot=robot)


def fatal(logs: dict[str, Block]) -> list[str]:
    found = SessionFriction().check(logs, scene(), Params())
    return [finding.text for finding in found if finding.fatal]


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(SessionFriction) == []


def test_that_friction_that_falls_is_found_and_predicts_later_runs(
    session: dict[str, Block],
) -> None:
    names = list(session)
    first = {name: session[name] for name in names[:6]}
    later = {name: session[name] for name in names[6:]}
    assert fatal(first) == []
    with FakeContext() as context:
        solved = SessionFriction().solve(context, first, scene(), Params())
    told = {r.name: r for r in solved if isinstance(r, Scalar)}
    assert told["viscous friction of a"].value == pytest.approx(VISCOUS, rel=0.1)
    truth = math.exp(-0.3 * (1.0 - math.exp(-5.0 / 3.0)))
    found = told["viscous friction of a, last run over first"]
    assert found.value == pytest.approx(truth, rel=0.03)
    assert found.low <= truth <= found.high
    (patch,) = (r for r in solved if isinstance(r, Patch))
    values = {change.key: change.value for change in patch.changes}
    assert values["drive.friction.viscous"] == pytest.approx((VISCOUS * truth,), rel=0.1)
    (table,) = SessionFriction().validate(later, scene(), solved)
    assert isinstance(table, Table)
    _, _, naive, ran = table.rows[0]
    assert float(ran or 9.0) < 0.3
    assert float(naive or 0.0) > 1.0


def test_that_friction_without_drift_predicts_worse(session: dict[str, Block]) -> None:
    names = list(session)
    first = {name: session[name] for name in names[:6]}
    later = {name: session[name] for name in names[6:]}
    ran = []
    for drift in (True, False):
        with FakeContext() as context:
            solved = SessionFriction().solve(context, first, scene(), Params(drift=drift))
        (table,) = SessionFriction().validate(later, scene(), solved)
        assert isinstance(table, Table)
        ran.append(float(table.rows[0][3] or 0.0))
    assert ran[0] < 0.5 * ran[1]


@given(level=st.floats(0.0, 0.99), start=st.floats(-3.0, 3.0))
def test_that_a_joint_at_rest_below_coulomb_friction_stays(level: float, start: float) -> None:
    theta = np.array([0.0, 1.0, math.log(COULOMB), 0.0, 0.0, 0.0, 0.0, 0.0])
    torque = np.full((50, 1), level * COULOMB)
    position = np.full((1, 51, 1), start)
    runs = model.Runs("", ("a",), np.zeros(1), 0.01, torque, position, np.zeros((1, 1)))
    fitted = model.JointFit(theta, np.zeros((8, 8)), np.ones(8, dtype=bool))
    assert (model.SessionFit("none", 1.0, (fitted,)).run(runs) == start).all()


def test_that_runs_without_torque_or_with_uneven_samples_are_refused(
    session: dict[str, Block],
) -> None:
    uneven = {}
    for name, block in session.items():
        stamps = np.array(block.stamps)
        stamps[100:] += 20_000_000
        uneven[name] = Block(block.layout, stamps, np.array(block.values))
    assert any("uneven samples" in text for text in fatal(uneven))
    broken = {}
    for name, block in session.items():
        values = np.array(block.values)
        values[50, 2] = np.nan
        broken[name] = Block(block.layout, np.array(block.stamps), values)
    assert any("lacks commanded torques" in text for text in fatal(broken))
    silent = {name: b.select(("joint.position", "joint.velocity")) for name, b in session.items()}
    assert any("has no command" in text for text in fatal(silent))
