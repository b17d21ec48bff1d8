"""All mechanisms together: each can be switched off, steps converge, seeds repeat."""

from typing import get_args

import msgspec
import numpy as np
import pytest
from drive_helpers import Joint

from twinstudio.mechanisms import compiled as compilation
from twinstudio.mechanisms.drives import JointDrives
from twinstudio.mechanisms.tables import in_effect
from twinstudio.mechanisms.thermal import Network, heat_up
from twinstudio.model.drive import (
    Cable,
    CommandPath,
    Controller,
    Drive,
    Encoders,
    Friction,
    Mechanism,
    Motor,
    Thermal,
    Transmission,
)
from twinstudio.model.errors import SceneError

FULL = Drive(
    command=CommandPath(latency=(0.0123,), jitter=0.002, jitter_kind="gamma", hold=0.002),
    controller=Controller(
        stiffness=(3000.0,), damping=(150.0,), integral_time=(0.5,), feedforward=0.9,
        current_lag=(0.0015,),
    ),
    motor=Motor(
        armature=(0.3,), drive_gain=(8.0,), max_current=(10.0,), max_effort=(75.0,),
        max_speed=(1.5,), max_power=(80.0,),
    ),
    transmission=Transmission(
        backlash=(1e-3,), stiffness=(1e4,), damping=(10.0,), ripple=(0.3,), ripple_order=(80.0,),
        error=(1e-4,), error_order=(60.0,),
    ),
    friction=Friction(
        coulomb=(2.0,), viscous=(3.0,), breakaway=(2.5,), stribeck=(0.05,), presliding=(4e-4,),
        elements=4, load_motor=(0.03,), temperature=(-0.005,), viscous_temperature=(25.0,),
    ),
    thermal=Thermal(
        resistance=(0.4,), winding_capacity=(16.0,), case_capacity=(500.0,),
        winding_to_case=(1.1,), case_to_ambient=(1.9,), magnet=-0.001,
    ),
    cable=Cable(stiffness=(2.0,), rest=(0.3,), pull=(0.5,)),
    encoders=Encoders(resolution=(1e-4,), offset=(2e-3,), noise=(1e-5,), velocity_noise=(1e-3,)),
)  # fmt: skip
SIMPLE = Drive(
    controller=Controller(stiffness=(3000.0,), damping=(150.0,)),
    friction=Friction(coulomb=(2.0,), viscous=(3.0,), presliding=(4e-4,)),
)


def swing(drive, *, step=1e-3, seconds=2.0, seed=0, load=3.0):
    time = np.arange(round(seconds / step)) * step
    target = 0.3 * (1.0 - np.cos(2.0 * np.pi * time))
    return Joint(drive, 0.4, step=step, seed=seed).run(np.full(len(time), load), target)


def without(drive, *names):
    return msgspec.structs.replace(drive, off=names)


SWITCHED = [name for name in get_args(Mechanism) if name not in ("expansion", "payload")]


@pytest.mark.parametrize("name", [name for name in SWITCHED if name != "armature"])
def test_that_switching_one_off_is_the_drive_without_it(name):
    off = without(FULL, name)
    rest = in_effect(off)
    assert rest != FULL
    np.testing.assert_array_equal(
        swing(off, seconds=0.4), swing(msgspec.structs.replace(rest, off=()), seconds=0.4)
    )


@pytest.mark.parametrize("name", [n for n in SWITCHED if n not in ("armature", "sensors")])
def test_that_each_mechanism_matters(name):
    assert np.abs(swing(without(FULL, name)) - swing(FULL))[:, 0].max() > 1e-6


def test_that_without_a_rotor_play_and_elasticity_are_refused():
    with pytest.raises(SceneError, match="armature"):
        JointDrives(without(FULL, "armature"), 1, 1e-3, np.random.default_rng(0))
    drives = JointDrives(
        without(FULL, "armature", "backlash", "compliance"), 1, 1e-3, np.random.default_rng(0)
    )
    assert drives.armature == 0.0


def test_that_all_off_leaves_nothing_to_do():
    rng = np.random.default_rng(0)
    assert JointDrives(without(FULL, *get_args(Mechanism)), 7, 1e-3, rng).empty
    assert JointDrives(Drive(), 7, 1e-3, rng).empty
    assert JointDrives(Drive(encoders=Encoders(noise=(1e-5,))), 7, 1e-3, rng).empty
    for name in get_args(Mechanism):
        others = [other for other in get_args(Mechanism) if other != name]
        if name not in ("expansion", "payload", "sensors", "backlash", "compliance"):
            assert not JointDrives(without(FULL, *others), 7, 1e-3, rng).empty, name


def test_that_a_drive_without_effects_gives_the_ideal_effort():
    # An ideal drive knows the model: only its own position correction is left.
    joint = Joint(Drive(thermal=Thermal(ambient=20.0)), 0.5)
    log = joint.run(np.full(500, 7.0), np.full(500, 0.2))
    assert log[-1, 2] == pytest.approx(7.0)
    assert joint.q == pytest.approx(0.2)


def test_that_the_physics_adds_the_armature_unless_the_rotor_moves_by_itself():
    rng = np.random.default_rng(0)
    gear = Transmission(stiffness=(1e4, 0.0))
    drive = Drive(motor=Motor(armature=(0.1, 0.2)), transmission=gear)
    np.testing.assert_array_equal(JointDrives(drive, 2, 1e-3, rng).armature, [0.0, 0.2])


@pytest.mark.parametrize("contact", ["rigid", "maxwell", "lugre"])
def test_that_halving_the_step_converges(contact):
    friction = msgspec.structs.replace(SIMPLE.friction, contact=contact)
    drive = msgspec.structs.replace(SIMPLE, friction=friction)
    truth = swing(drive, step=1e-3 / 32)[31::32, 0]
    errors = [
        np.abs(swing(drive, step=1e-3 / n)[n - 1 :: n, 0] - truth).max() for n in (1, 2, 4, 8)
    ]
    assert errors[0] < 1e-3
    assert (np.diff(np.log2(errors)) < -0.6).all(), errors


def test_that_a_seed_repeats_and_another_does_not():
    np.testing.assert_array_equal(swing(FULL, seed=5), swing(FULL, seed=5))
    assert np.abs(swing(FULL, seed=6)[:, 0] - swing(FULL, seed=5)[:, 0]).max() > 1e-5


def test_that_reset_forgets_everything_but_the_random_stream():
    drives = JointDrives(without(FULL, "command", "sensors"), 2, 1e-3, np.random.default_rng(1))
    two = np.full(2, 0.1)

    def some():
        drives.reset(two)
        steps = [
            drives.effort(k * 1_000_000, two, 0 * two, two + 1e-3 * k, two, 1 + two).copy()
            for k in range(20)
        ]
        return np.array(steps), drives.temperatures

    (first, warm), (again, same) = some(), some()
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(warm, same)


def test_that_limits_hold():
    drive = without(FULL, "backlash", "compliance", "ripple", "command", "friction", "cable")
    drives = JointDrives(drive, 1, 1e-3, np.random.default_rng(0))
    one, none, heavy = np.ones(1), np.zeros(1), np.full(1, 100.0)
    for k in range(50):
        effort = drives.effort(k * 1_000_000, none, none, 10 * one, none, heavy)
    assert effort[0] == pytest.approx(75.0, rel=0.01)
    assert drives.current[0] == pytest.approx(75.0 / 8.0)
    for k in range(50, 100):
        effort = drives.effort(k * 1_000_000, none, 1.25 * one, 10 * one, none, heavy)
    assert effort[0] == pytest.approx(80.0 / 1.25, rel=0.01)
    for k in range(100, 150):
        effort = drives.effort(k * 1_000_000, none, 1.6 * one, 10 * one, none, heavy)
    assert effort[0] == pytest.approx(0.0, abs=1e-9)
    # What brakes is not bounded by power or speed.
    for k in range(150, 200):
        effort = drives.effort(k * 1_000_000, none, 1.6 * one, -10 * one, none, heavy)
    assert effort[0] == pytest.approx(-75.0, rel=0.01)


def test_that_an_integral_removes_what_a_constant_load_leaves_and_does_not_wind_up():
    drive = Drive(
        controller=Controller(stiffness=(1000.0,), damping=(60.0,), integral_time=(0.2,)),
        motor=Motor(max_effort=(30.0,)),
    )
    log = Joint(drive, 0.5).run(np.full(6000, 10.0), np.full(6000, 0.5))
    assert log[-1, 0] == pytest.approx(0.5, abs=1e-5)
    assert log[:, 0].max() < 0.75


def test_that_damping_beyond_the_step_is_stable():
    # damping dt / inertia is 20: explicit, it would explode
    drive = Drive(controller=Controller(stiffness=(2000.0,), damping=(200.0,)))
    log = Joint(drive, 0.01).run(np.zeros(3000), np.full(3000, 0.1))
    assert log[-1, 0] == pytest.approx(0.1, abs=1e-6)
    assert np.abs(log[:, 0]).max() < 0.11


def test_that_current_heats_the_winding_as_the_network_says():
    drive = without(FULL, "backlash", "compliance", "command", "friction", "ripple")
    heat = msgspec.structs.replace(FULL.thermal, copper=0.0, magnet=0.0)
    drives = JointDrives(
        msgspec.structs.replace(drive, thermal=heat), 1, 1e-3, np.random.default_rng(0)
    )
    one, none, heavy = np.ones(1), np.zeros(1), np.full(1, 100.0)
    for k in range(3000):
        drives.effort(k * 1_000_000, none, none, 10 * one, none, heavy)
    power = 0.4 * (75.0 / 8.0) ** 2
    warm = heat_up(
        np.array([0.0, 3.0]), np.array([[power, 0.0]] * 2), Network(16.0, 500.0, 1.1, 1.9),
        25.0, np.array([25.0, 25.0]),
    )  # fmt: skip
    np.testing.assert_allclose(drives.temperatures[0], warm[-1], rtol=2e-3)


def test_that_friction_heats_the_case():
    drive = msgspec.structs.replace(
        SIMPLE, motor=Motor(drive_gain=(8.0,)), thermal=FULL.thermal,
        controller=Controller(stiffness=(0.0,)),
    )  # fmt: skip
    joint = Joint(drive, 1000.0, v=1.0)
    joint.run(np.zeros(2000))
    # 5 W of friction for 2 s into 500 J/K
    assert joint.drives.temperatures[0, 1] - 25.0 == pytest.approx(5 * 2 / 500.0, rel=0.02)


def test_that_encoders_count_are_offset_and_noisy():
    drive = Drive(encoders=Encoders(resolution=(1e-3,), offset=(0.02,), velocity_noise=(0.1,)))
    drives = JointDrives(drive, 3, 1e-3, np.random.default_rng(0))
    truth = np.array([0.0104, 0.5, -0.3333])
    told = [drives.measured(truth, truth, truth)[1].copy() for _ in range(5000)]
    position, _, effort = drives.measured(truth, truth, truth)
    np.testing.assert_allclose(position, [0.030, 0.52, -0.313], atol=1e-12)
    np.testing.assert_array_equal(effort, truth)
    assert np.std(told, axis=0) == pytest.approx(0.1, rel=0.05)


def test_that_a_drive_without_gain_tells_no_current():
    assert np.isnan(JointDrives(SIMPLE, 1, 1e-3, np.random.default_rng(0)).current).all()


def test_that_a_law_is_compiled_anew_when_another_file_of_the_package_changes(monkeypatch):
    def law(x):
        return x + 1.0

    before = compilation.compiled(law)
    assert before(1.0) == 2.0
    again = compilation.compiled(law)
    assert again(1.0) == 2.0
    assert again.stats.cache_hits
    monkeypatch.setattr(compilation, "package_stamp", lambda: b"changed")
    changed = compilation.compiled(law)
    assert changed(1.0) == 2.0
    assert changed.stats.cache_misses
    assert not changed.stats.cache_hits


def test_that_laws_work_where_nothing_can_be_written(monkeypatch):
    def refuse(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compilation, "_PackageCache", refuse)
    assert compilation.compiled(lambda x: 2.0 * x)(4.0) == 8.0
