"""Whether the check of step and solver sees what moves, and only that."""

import numpy as np
import pytest
from world_helpers import ARM_SCENE, BALL, PENDULUM, PENDULUM_SCENE, scene_in

from twinstudio.model.scene import load_scene
from twinstudio.physics.exercise import exercise
from twinstudio.physics.stepcheck import step_check
from twinstudio.physics.world import World

LOOSE = "[twin]\nposition_gain = 0.002\nvelocity_gain = 0.05\n"


def moved(outcome, variant="half the step"):
    return {c.quantity for c in outcome.changes if c.moves and c.variant == variant}


def test_that_a_slow_motion_at_a_fine_step_is_found_honest(tmp_path):
    toml = PENDULUM_SCENE + LOOSE + '[simulation]\nstep = "0.2 ms"\n'
    outcome = step_check(scene_in(tmp_path, toml, PENDULUM), seconds=1.0, bound=0.05)
    assert not any(change.moves for change in outcome.changes)
    assert "fine enough" in outcome.verdict


def test_that_a_coarse_step_is_found_to_move_results(tmp_path):
    toml = PENDULUM_SCENE + '[simulation]\nstep = "20 ms"\n'
    outcome = step_check(scene_in(tmp_path, toml, PENDULUM), seconds=2.0)
    assert "joint effort" in moved(outcome)
    assert "half the step moves" in outcome.verdict
    assert "simulation.step smaller" in outcome.verdict
    halved = outcome.variants[1]
    assert halved.step == outcome.variants[0].step / 2.0


def test_that_a_bouncing_ball_shows_in_contacts_and_objects(tmp_path):
    outcome = step_check(scene_in(tmp_path, ARM_SCENE + LOOSE + BALL), seconds=1.0)
    quantities = {change.quantity for change in outcome.changes}
    assert {"contact force, sum", "object position", "energy"} <= quantities


def test_that_the_energy_of_a_falling_ball_is_kept(tmp_path):
    toml = ARM_SCENE + LOOSE + BALL.replace("[5.0, 0.0, 1.0]", "[5.0, 0.0, 100.0]")
    outcome = step_check(scene_in(tmp_path, toml), seconds=0.5)
    (change,) = (
        c for c in outcome.changes if c.quantity == "energy" and c.variant == "half the step"
    )
    # It falls by 1.2 m: 6 J, of which semi-implicit Euler errs by step / time.
    assert change.change < 0.05


def test_that_the_same_check_gives_the_same_figures(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    assert step_check(scene, seconds=0.5) == step_check(scene, seconds=0.5)


@pytest.mark.parametrize("name", ["kuka_kr300", "emps_axis"])
def test_that_an_exercise_begins_at_home_and_keeps_to_the_limits(name):
    scene = load_scene(name)
    with World(scene) as world:
        commands = exercise(scene, world, 8.0)
        assert commands.shape == (8001, len(world.joints))
        np.testing.assert_allclose(commands[0], scene.robot.home, atol=1e-12)
        assert (commands >= world.limits[:, 0]).all()
        assert (commands <= world.limits[:, 1]).all()
    assert np.ptp(commands, axis=0).min() > 0.05


def test_that_the_commands_that_are_given_are_those_that_run(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE + LOOSE, PENDULUM)
    still = step_check(scene, seconds=0.5, commands=np.zeros((501, 1)))
    (change,) = (
        c for c in still.changes if c.quantity == "joint position" and c.variant == "half the step"
    )
    assert change.change < 1e-6
