"""Motions keep their limits and their height, and tell more than motions at random."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twinstudio_calibration.excitation import Design, Excitation, Params, focus, limits_of
from twinstudio_calibration.fourier import Limits, at_rest, series, within
from twinstudio_calibration.information import Sight, sight
from twinstudio_calibration.rigid_body import RigidBody, rigid_body

from twinstudio.flow.importers import import_log
from twinstudio.model.errors import PluginError
from twinstudio.model.results import Result, Scalar, Table
from twinstudio.model.scene import load_scene
from twinstudio.plugin import api
from twinstudio.plugin.context import Cancelled
from twinstudio.plugin.testing import FakeContext, check_plugin

SCENE = "panda_cell"
FEW = Params(scene=SCENE, tries=40, period=6.0, rate=50.0, harmonics=4)


@pytest.fixture(scope="module")
def panda() -> api.Scene:
    return load_scene(SCENE)


@pytest.fixture(scope="module")
def body(panda: api.Scene) -> RigidBody:
    return rigid_body(panda)


@pytest.fixture(scope="module")
def seeing(body: RigidBody, panda: api.Scene) -> Sight:
    limits, effort = limits_of(body, panda, FEW)
    return sight(body, limits, effort, 0.01 * effort, np.random.default_rng(0))


@pytest.fixture(scope="module")
def results() -> list[Result]:
    with FakeContext(3) as context:
        return list(Excitation().run(context, FEW))


def trajectory(results: list[Result]) -> np.ndarray:
    table = next(r for r in results if isinstance(r, Table) and r.name.startswith("trajectory"))
    return np.array(table.rows, dtype=np.float64)


def test_that_the_plugin_keeps_the_rules() -> None:
    assert check_plugin(Excitation, FEW) == []


@given(
    seed=st.integers(0, 10_000),
    share=st.floats(0.1, 1.0),
    harmonics=st.integers(2, 8),
    period=st.floats(3.0, 30.0),
)
def test_that_position_speed_and_acceleration_keep_their_limits(
    seed: int, share: float, harmonics: int, period: float
) -> None:
    rng = np.random.default_rng(seed)
    lower, upper = -rng.uniform(0.1, 3.0, 3), rng.uniform(0.1, 3.0, 3)
    limits = Limits(lower, upper, rng.uniform(0.1, 3.0, 3), rng.uniform(0.1, 10.0, 3))
    home = lower + rng.uniform(0.0, 1.0, 3) * (upper - lower)
    coefficients = at_rest(rng.normal(size=(2, 3, harmonics)))
    time = np.linspace(0.0, period, 301)
    motion = within(series(coefficients, home, period, time), home, limits, share)
    slack = 1.0 + 1e-9
    assert (motion.position >= home + (lower - home) * share * slack - 1e-12).all()
    assert (motion.position <= home + (upper - home) * share * slack + 1e-12).all()
    assert (np.abs(motion.velocity) <= limits.speed * share * slack).all()
    assert (np.abs(motion.acceleration) <= limits.acceleration * share * slack).all()


@given(seed=st.integers(0, 10_000), harmonics=st.integers(2, 8))
def test_that_motions_begin_and_end_at_home_and_at_rest(seed: int, harmonics: int) -> None:
    rng = np.random.default_rng(seed)
    home = rng.normal(size=2)
    coefficients = at_rest(rng.normal(size=(2, 2, harmonics)))
    motion = series(coefficients, home, 5.0, np.linspace(0.0, 5.0, 501))
    for row in (0, -1):
        assert motion.position[row] == pytest.approx(home, abs=1e-9)
        assert motion.velocity[row] == pytest.approx(0.0, abs=1e-9)
        assert motion.acceleration[row] == pytest.approx(0.0, abs=1e-8)


def test_that_velocity_is_the_derivative_of_position() -> None:
    rng = np.random.default_rng(1)
    motion = series(rng.normal(size=(2, 2, 5)), np.zeros(2), 8.0, np.linspace(0.0, 8.0, 8001))
    slope = np.gradient(motion.position, motion.time, axis=0)
    assert motion.velocity[1:-1] == pytest.approx(slope[1:-1], abs=1e-3)
    turn = np.gradient(motion.velocity, motion.time, axis=0)
    assert motion.acceleration[1:-1] == pytest.approx(turn[1:-1], abs=1e-3)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), floor=st.floats(0.0, 0.3))
def test_that_no_frame_goes_below_the_floor(
    seed: int, floor: float, panda: api.Scene, body: RigidBody
) -> None:
    params = msgspec.structs.replace(FEW, floor=floor)
    limits, _ = limits_of(body, panda, params)
    design = Design(panda, body, limits, params)
    motion = design.motion(np.random.default_rng(seed).normal(size=(2, 7, 4)))
    assert min(design.lowest(q) for q in motion.position) >= floor - 1e-3


def test_that_the_chosen_motion_tells_more_than_one_at_random(results: list[Result]) -> None:
    table = next(r for r in results if isinstance(r, Table) and r.name.startswith("doubt"))
    told = [row for row in table.rows if not row[3]]
    worst = [max(float(row[k] or 0.0) for row in told) for k in (1, 2)]
    assert worst[1] < worst[0]
    scalar = next(r for r in results if isinstance(r, Scalar) and r.name.startswith("doubt"))
    assert scalar.value == pytest.approx(worst[1])


def test_that_the_same_seed_gives_the_same_motion(results: list[Result]) -> None:
    with FakeContext(3) as context:
        again = list(Excitation().run(context, FEW))
    assert np.array_equal(trajectory(again), trajectory(results))


def test_that_the_file_holds_time_and_every_joint(tmp_path: Path, panda: api.Scene) -> None:
    path = tmp_path / "next.csv"
    with FakeContext(3) as context:
        given = list(Excitation().run(context, msgspec.structs.replace(FEW, file=str(path))))
    header = path.read_text().splitlines()[0]
    assert header == ",".join(("t", *panda.robot.joints))
    read = np.loadtxt(path, delimiter=",", skiprows=1)
    assert read == pytest.approx(trajectory(given), abs=1e-8)
    mapping = tmp_path / "next.toml"
    joints = ", ".join(f'"{joint}"' for joint in panda.robot.joints)
    mapping.write_text(
        f'[time]\ncolumn = "t"\nunit = "s"\n[[signal]]\nname = "command.position"\n'
        f'labels = [{joints}]\ncolumns = [{joints}]\nunit = "rad"\n'
    )
    import_log("csv", path, tmp_path / "next.mcap", mapping=mapping)
    assert (tmp_path / "next.mcap").stat().st_size > 0


def test_that_masses_that_only_sums_tell_are_not_promised(seeing: Sight) -> None:
    # Nothing turns the first link but its own axis: gravity and mass do not reach the effort.
    told = dict(zip(seeing.names, seeing.seen, strict=True))
    assert not told["mass of panda_link1"]
    assert told["coulomb of panda_joint1"]
    with pytest.raises(PluginError, match="no motion of this arm tells 'mass of panda_link1'"):
        focus(seeing, "mass of panda_link1")
    with pytest.raises(PluginError, match="there is no parameter 'charm'"):
        focus(seeing, "charm")


def test_that_focus_learns_what_it_is_asked_for(seeing: Sight) -> None:
    wanted = focus(seeing, "coulomb, viscous")
    assert [n for n, w in zip(seeing.names, wanted, strict=True) if w] == [
        name for name in seeing.names if name.startswith(("coulomb", "viscous"))
    ]


def test_that_a_home_below_the_floor_or_a_bad_file_is_refused(tmp_path: Path) -> None:
    with FakeContext() as context:
        with pytest.raises(PluginError, match=r"at home a frame .* below floor 2 m"):
            Excitation().run(context, msgspec.structs.replace(FEW, floor=2.0))
        gone = str(tmp_path / "absent" / "x.csv")
        with pytest.raises(PluginError, match="cannot be written"):
            Excitation().run(context, msgspec.structs.replace(FEW, file=gone))


def test_that_it_can_be_cancelled() -> None:
    with FakeContext(cancel_after=3) as context, pytest.raises(Cancelled):
        Excitation().run(context, FEW)
