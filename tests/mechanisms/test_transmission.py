"""Play and elasticity between motor and link: energy, resonance, and what encoders see."""

import numpy as np
import pytest
from drive_helpers import Joint
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstudio.mechanisms.chain import resonances
from twinstudio.mechanisms.encoders import rotor_at
from twinstudio.mechanisms.transmission import dead_zone, play
from twinstudio.model.drive import Controller, Drive, Encoders, Friction, Motor, Transmission

NO_GAIN = Controller(stiffness=(0.0,))
ROTOR, LINK = 0.02, 0.05


def loose(**gear):
    """A motor without gains before a gear."""
    return Drive(
        controller=NO_GAIN, motor=Motor(armature=(ROTOR,)), transmission=Transmission(**gear)
    )


def energy(log, stiffness, half, step):
    """Of rotor, link and spring at half steps, where an engine's speeds belong."""
    link = log[:, 0] - 0.5 * step * log[:, 1]
    spring = 0.5 * stiffness * dead_zone(log[:, 3] - link, half) ** 2
    return 0.5 * ROTOR * log[:, 4] ** 2 + 0.5 * LINK * log[:, 1] ** 2 + spring


@pytest.mark.parametrize("stiffness", [10.0, 500.0, 2000.0])
@pytest.mark.parametrize("backlash", [0.0, 2e-3])
def test_that_an_elastic_gear_without_damping_keeps_its_energy(stiffness, backlash):
    joint = Joint(loose(stiffness=(stiffness,), backlash=(backlash,)), LINK, v=0.2)
    log = joint.run(np.zeros(20_000))
    kept = energy(log, stiffness, backlash / 2, 1e-3) / (0.5 * LINK * 0.2**2)
    # Speeds and positions of an engine are half a step apart: (w dt)^2 / 4 of play in the sum.
    assert np.abs(kept - 1.0).max() < 0.01 + 0.5 * stiffness / 0.0143 * 1e-6
    assert abs(kept[-1000:].mean() - 1.0) < 0.03


@settings(max_examples=40, deadline=None)
@given(
    stiffness=st.sampled_from([0.0, 30.0, 3e3, 1e6]),
    damping=st.floats(0.05, 5.0),
    backlash=st.floats(1e-4, 2e-2),
    speed=st.floats(-2.0, 2.0),
)
def test_that_play_never_gives_energy(stiffness, damping, backlash, speed):
    gear = {"backlash": (backlash,), "stiffness": (stiffness,)}
    gear |= {"damping": (damping,)} if stiffness else {}
    joint = Joint(loose(**gear), LINK, v=speed)
    log = joint.run(np.zeros(3000))
    moving = 0.5 * ROTOR * log[:, 4] ** 2 + 0.5 * LINK * log[:, 1] ** 2
    first = 0.5 * LINK * speed**2
    assert moving.max() <= first * 1.03 + 1e-12
    momentum = ROTOR * log[:, 4] + LINK * log[:, 1]
    np.testing.assert_allclose(momentum, LINK * speed, atol=1e-9)


def test_that_rigid_flanks_meet_without_rebound_and_stay_in_the_play():
    joint = Joint(loose(backlash=(1e-2,)), LINK, v=0.5)
    log = joint.run(np.zeros(500))
    common = LINK * 0.5 / (LINK + ROTOR)
    np.testing.assert_allclose(log[-1, [1, 4]], common, rtol=1e-6)
    assert np.abs(log[:, 3] - log[:, 0] + 0.5e-3 * log[:, 1]).max() < 5e-3 * 1.2


@pytest.mark.parametrize("stiffness", [50.0, 300.0])
def test_that_the_gear_swings_as_its_linear_model(stiffness):
    damping = 0.02
    joint = Joint(loose(stiffness=(stiffness,), damping=(damping,)), LINK, v=0.1)
    log = joint.run(np.zeros(4000))
    (frequency,), (ratio,) = resonances((ROTOR, LINK), (stiffness,), (damping,))
    twist = log[:, 4] - log[:, 1]
    crossings = np.flatnonzero(np.diff(np.sign(twist)))
    edges = crossings + twist[crossings] / (twist[crossings] - twist[crossings + 1])
    cycles = (len(edges) - 1) / 2.0
    assert cycles / ((edges[-1] - edges[0]) * 1e-3) == pytest.approx(frequency, rel=0.01)
    size = np.log(np.abs(twist)[np.abs(twist) > 0].max())
    late = np.log(np.abs(twist[2000:3000]).max())
    early = np.log(np.abs(twist[0:1000]).max())
    decay = (early - late) / 2.0
    assert size >= early
    assert decay == pytest.approx(ratio * 2 * np.pi * frequency, rel=0.05)


def test_that_a_held_motor_leaves_the_link_its_play():
    drive = Drive(
        controller=Controller(stiffness=(5000.0,), damping=(50.0,)),
        motor=Motor(armature=(0.1,)),
        transmission=Transmission(backlash=(4e-3,), stiffness=(2e4,), damping=(20.0,)),
        friction=Friction(coulomb=(2.0,), presliding=(1e-4,)),
    )
    joint = Joint(drive, 0.1)
    joint.run(np.full(3000, 1.0))
    low = joint.q - joint.state["rotor"]
    joint.run(np.full(3000, -1.0))
    # all of the play, and twice what 1 N m twists the gear
    assert joint.q - joint.state["rotor"] - low == pytest.approx(4e-3 + 2 / 2e4, rel=1e-3)


def test_that_a_motor_encoder_does_not_see_what_the_gear_does():
    gear = {"backlash": (4e-3,), "stiffness": (2e4,), "damping": (20.0,)}
    drive = Drive(
        controller=Controller(stiffness=(5000.0,), damping=(50.0,)),
        motor=Motor(armature=(0.1,)),
        transmission=Transmission(**gear),
        friction=Friction(coulomb=(2.0,), contact="rigid"),
        encoders=Encoders(secondary=False),
    )
    joint = Joint(drive, 0.1)
    joint.run(np.full(3000, 1.0))
    told = joint.drives.measured(np.array([joint.q]), np.array([joint.v]), np.zeros(1))[0][0]
    assert joint.q - told == pytest.approx(-2e-3 - 1 / 2e4, rel=1e-3)


def test_that_a_stiff_and_light_gear_needs_no_small_step():
    drive = Drive(
        controller=Controller(stiffness=(2000.0,), damping=(40.0,)),
        motor=Motor(armature=(1e-3,)),
        transmission=Transmission(backlash=(1e-4,), stiffness=(1e6,), damping=(5.0,)),
        friction=Friction(coulomb=(0.5,), presliding=(1e-4,)),
    )
    joint = Joint(drive, 0.05, step=4e-3)
    log = joint.run(np.zeros(3000), np.full(3000, 0.1))
    assert np.abs(log[:, 0]).max() < 0.25
    assert np.ptp(log[-100:, 0]) < 1e-6


def test_that_the_error_of_a_gear_is_undone_at_the_motor():
    drives = Joint(
        Drive(
            controller=NO_GAIN,
            transmission=Transmission(error=(1e-3,), error_order=(50.0,), error_phase=(0.3,)),
        ),
        1.0,
    ).drives
    motor = rotor_at(0.4, drives.tables.joints[0])
    assert motor + 1e-3 * np.sin(50.0 * motor + 0.3) == pytest.approx(0.4, abs=1e-8)


def test_that_the_play_operator_drags_behind():
    motor = np.concatenate([np.linspace(0, 1, 50), np.linspace(1, 0, 50)])
    link = play(motor, 0.1, 0.0)
    assert link[49] == pytest.approx(0.9)
    assert link[-1] == pytest.approx(0.1)
    assert (link[49:58] == link[49]).all()
