"""Friction takes energy, holds what rests, and stops what moves, whatever its contact."""

import numpy as np
import pytest
from drive_helpers import Joint
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.mechanisms.contact import stored
from twinstudio.model.drive import Controller, Drive, Friction, Thermal

KINDS = ["rigid", "maxwell", "lugre"]
NO_GAIN = Controller(stiffness=(0.0,))


def friction_of(kind, **more):
    given_ = {"coulomb": (1.0,), "breakaway": (1.5,), "stribeck": (0.05,), "viscous": (0.4,)}
    given_ |= {"presliding": (2e-4,), "elements": 4, "contact": kind}
    return Friction(**(given_ | more))


def limp(friction):
    """A drive without gains: nothing but friction acts."""
    return Drive(controller=NO_GAIN, friction=friction)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    inertia=st.floats(1e-4, 1e3),
    step=st.sampled_from([1e-4, 1e-3, 4e-3]),
    travel=st.floats(1e-6, 1e-1),
    asymmetry=st.floats(-0.9, 0.9),
    breakaway=st.floats(1.0, 4.0),
    pushes=st.lists(st.floats(-8.0, 8.0), min_size=2, max_size=40),
    hold=st.integers(1, 30),
    speed=st.floats(-2.0, 2.0),
)
def test_that_friction_never_gives_more_than_its_bristles_hold(  # noqa: PLR0917
    kind, inertia, step, travel, asymmetry, breakaway, pushes, hold, speed
):
    friction = friction_of(
        kind, presliding=(travel,), asymmetry=(asymmetry,), breakaway=(breakaway,),
        load_external=(0.1,), stribeck_load_external=(0.05,), quadratic=(0.1,),
    )  # fmt: skip
    joint = Joint(limp(friction), inertia, step=step, v=speed)
    log = joint.run(np.repeat(pushes, hold))
    moved = np.diff(log[:, 0], prepend=0.0)
    taken = np.cumsum(-log[:, 2] * moved)
    scale = 1e-9 + 1e-9 * np.abs(log[:, 2] * moved).sum()
    assert taken.min() > -scale
    assert taken[-1] > stored(joint.state) - scale


@pytest.mark.parametrize("damping", [0.0, 1.0])
def test_that_lugre_with_bristle_damping_takes_energy_on_every_closed_motion(damping):
    # Passive for s2 > s1 (Fs - Fc) / Fc: here 0.6 > 0.5.
    friction = friction_of("lugre", bristle_damping=(damping,), viscous=(0.6,))
    joint = Joint(limp(friction), 0.02)
    log = joint.run(4.0 * np.sin(np.arange(8000) * 0.02))
    taken = np.cumsum(-log[:, 2] * np.diff(log[:, 0], prepend=0.0))
    assert taken.min() > -1e-9
    assert taken[-1] > 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.97])
def test_that_what_rests_below_breakaway_rests_for_an_hour(kind, share):
    joint = Joint(limp(friction_of(kind)), 0.05)
    joint.run(np.linspace(0.0, -1.5 * share, 1000))
    joint.run(np.full(2000, -1.5 * share))
    before = joint.q
    joint.run(np.full(3_600_000, -1.5 * share), keep=False)
    assert abs(joint.q - before) < 1e-9
    assert abs(joint.v) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_that_more_than_breakaway_moves_it(kind):
    joint = Joint(limp(friction_of(kind)), 0.05)
    joint.run(np.linspace(0.0, -1.6, 2000))
    assert joint.v > 0.1


@pytest.mark.parametrize("step", [1e-3, 1e-2])
@pytest.mark.parametrize("inertia", [1e-4, 1.0])
def test_that_rigid_friction_stops_a_joint_without_turning_it_back(step, inertia):
    friction = Friction(coulomb=(1.0,), contact="rigid")
    joint = Joint(limp(friction), inertia, step=step, v=0.3)
    log = joint.run(np.zeros(1000))
    assert (log[:, 1] >= 0.0).all()
    assert log[-1, 1] == 0.0
    # v^2 I / (2 Fc), but for the last step
    assert log[-1, 0] == pytest.approx(0.3**2 * inertia / 2.0, abs=0.3 * step)


def test_that_presliding_is_a_spring_with_hysteresis_over_its_travel():
    friction = Friction(coulomb=(1.0,), presliding=(1e-3,), contact="maxwell", elements=1)
    joint = Joint(limp(friction), 0.1)
    joint.run(np.linspace(0.0, -0.5, 4000))
    joint.run(np.full(4000, -0.5))
    assert joint.q == pytest.approx(0.5e-3, rel=1e-3)
    joint.run(np.linspace(-0.5, 0.0, 4000))
    joint.run(np.zeros(4000))
    assert joint.q == pytest.approx(0.0, abs=1e-6)


def test_that_more_elements_soften_before_they_slide():
    friction = Friction(coulomb=(1.0,), presliding=(1e-3,), elements=4)
    joint = Joint(limp(friction), 0.1)
    joint.run(np.linspace(0.0, -0.5, 8000))
    joint.run(np.full(4000, -0.5))
    # Elements slip at 1/4 ... 4/4 of the travel: sum of min(x / x_i, 1) / 4 = 1/2.
    x = np.linspace(0.0, 1e-3, 100_001)
    held = np.minimum(x[:, None] / (1e-3 * np.arange(1, 5) / 4), 1.0).mean(axis=1)
    assert joint.q == pytest.approx(np.interp(0.5, held, x), rel=2e-3)


def test_that_lugre_is_stable_at_two_milliseconds_and_a_hundredth():
    # Euler's method is not: step over relaxation time is s0 w / g dt = 2.
    friction = Friction(
        coulomb=(1.0,), breakaway=(1.5,), stribeck=(0.001,), viscous=(0.4,),
        presliding=(1.5e-5,), contact="lugre", bristle_damping=(0.0,),
    )  # fmt: skip
    joint = Joint(limp(friction), 1e6, step=2e-3, v=0.01)
    log = joint.run(np.zeros(500))
    # steady force of the law at 0.01 rad/s: 1.00400 N m, of Canudas de Wit et al. 1995
    np.testing.assert_allclose(-log[50:, 2], 1.00400, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_that_a_hot_case_has_less_friction(kind):
    warm = friction_of(kind, temperature=(-0.01,))
    drive = Drive(controller=NO_GAIN, friction=warm, thermal=Thermal(ambient=75.0))
    cold = Joint(limp(warm), 10.0, v=1.0).run(np.zeros(50))
    hot = Joint(drive, 10.0, v=1.0).run(np.zeros(50))
    assert -hot[-1, 2] == pytest.approx(-cold[-1, 2] - 0.5, abs=0.02)
