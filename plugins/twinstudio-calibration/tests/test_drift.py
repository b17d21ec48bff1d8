"""Repeats that drift are told from repeats that scatter, and later runs are predicted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twinstudio_calibration.drift import (
    LAWS,
    TABLE,
    Law,
    Params,
    Repeats,
    SessionDrift,
    choose,
    fit,
    growth,
    rms,
    spread,
)

from twinstudio.model.block import Block
from twinstudio.model.results import Patch, Scalar, Table
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.testing import FakeContext, check_plugin, make_block, make_scene

KINDS = ("joint.position", "command.effort")


def run(number: int, rng: np.random.Generator, *, size: float = 0.1, noise: float = 0.002) -> Block:
    """Run `number` of one input: a sine that grows with wear, and scatters as a whole."""
    time = np.arange(300) * 0.01
    drift = size * (1.0 - np.exp(-number / 3.0)) * time / time[-1]
    position = np.sin(time) + drift + noise * rng.normal() * time
    layout = Layout(joint_signals(["a"], kinds=KINDS))
    stamps = np.arange(300, dtype=np.int64) * 10_000_000
    return Block(layout, stamps, np.column_stack([position, 2.0 * np.cos(time)]))


def session(count: int, **kwargs: float) -> dict[str, Block]:
    rng = np.random.default_rng(4)
    return {f"run{k}": run(k, rng, **kwargs) for k in range(count)}


def fatal(logs: dict[str, Block]) -> list[str]:
    found = SessionDrift().check(logs, make_scene(), Params())
    return [finding.text for finding in found if finding.fatal]


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(SessionDrift) == []


def test_that_drift_is_found_and_later_runs_are_predicted() -> None:
    runs = session(12)
    first = dict(list(runs.items())[:6])
    with FakeContext() as context:
        solved = SessionDrift().solve(context, first, make_scene(), Params())
    told = {r.name: r for r in solved if isinstance(r, Scalar)}["drift of a in input 1"]
    truth = 0.1 * (1.0 - np.exp(-5.0 / 3.0))
    assert told.value == pytest.approx(truth, rel=0.1)
    assert told.low <= truth <= told.high
    assert not any(isinstance(r, Patch) for r in solved)
    later = dict(list(runs.items())[6:])
    (table,) = SessionDrift().validate(later, make_scene(), solved)
    assert isinstance(table, Table)
    _, sigma, naive, drifted = table.rows[0]
    assert float(sigma or 0.0) == pytest.approx(spread(_stacked(runs).position), rel=1e-6)
    assert float(drifted or 9.0) < 1.0 < float(naive or 0.0)


def test_that_scatter_without_drift_is_called_none() -> None:
    with FakeContext() as context:
        runs = session(8, size=0.0, noise=0.02)
        solved = SessionDrift().solve(context, runs, make_scene(), Params())
    table = next(r for r in solved if isinstance(r, Table) and r.name == TABLE)
    assert table.rows[0][2] == "none"


def test_that_the_choice_of_the_law_uses_fitted_runs_alone() -> None:
    known = _stacked(session(6))
    assert choose([known]) == choose([known.first(6)])
    law, kappa, errors = choose([known])
    assert errors[law] == min(errors.values())
    gap = fit(known, law, kappa).predict(np.arange(6.0)) - known.position
    assert rms(gap) < spread(known.position)


@given(law=st.sampled_from(LAWS), kappa=st.floats(0.5, 50.0))
def test_that_growth_starts_at_nothing_and_never_turns_back(law: Law, kappa: float) -> None:
    grown = growth(law, kappa, np.arange(20.0))
    assert grown[0] == 0.0
    assert (np.diff(grown) >= 0.0).all()


def test_that_too_few_runs_and_runs_without_command_are_refused() -> None:
    assert any("repeated 4 times: 2" in text for text in fatal(session(2)))
    silent = {name: block.select(("joint.position",)) for name, block in session(6).items()}
    assert any("has no command" in text for text in fatal(silent))
    assert fatal({}) == ["no log has joint.position"]
    assert fatal({"x": make_block().select(("joint.velocity",))}) == ["no log has joint.position"]


def test_that_a_run_with_missing_positions_or_in_degrees_is_refused() -> None:
    runs = session(6)
    broken = np.array(runs["run2"].values)
    broken[10, 0] = np.nan
    runs["run2"] = Block(runs["run2"].layout, np.array(runs["run2"].stamps), broken)
    assert any("run2 has positions that were not read" in text for text in fatal(runs))
    runs = session(6)
    turned = np.array(runs["run1"].values) * np.array([180.0 / np.pi, 1.0])
    runs["run1"] = Block(runs["run1"].layout, np.array(runs["run1"].stamps), turned)
    assert any("no joint turns so far" in text for text in fatal(runs))


def _stacked(runs: dict[str, Block]) -> Repeats:
    positions = np.stack([np.array(block.of("joint.position")) for block in runs.values()])
    return Repeats("", ("a",), np.arange(300) * 0.01, positions)
