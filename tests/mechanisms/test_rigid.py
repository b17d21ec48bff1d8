"""Compiled rigid-body dynamics against two engines that share no code with it."""

import numpy as np
import pinocchio
import pytest
from world_helpers import ARM_SCENE, PENDULUM, PENDULUM_SCENE, scene_in

from twinstudio.mechanisms.armature import factor, inverse, sure_inertia, through_armature
from twinstudio.mechanisms.rigid import RigidBody, mass_and_bias
from twinstudio.model.errors import LayoutError
from twinstudio.model.rotations import matrix
from twinstudio.model.scene import load_scene
from twinstudio.physics.inertials import with_inertials
from twinstudio.physics.models import rewritten
from twinstudio.physics.world import World

PLACED = ARM_SCENE + 'base = { position = [1.0, 2.0, 3.0], rpy = [0.3, "20 deg", 1.0] }\n'


def body_of(scene):
    with World(scene) as world:
        return RigidBody(world.tree(), world.inertias(), scene.simulation.gravity)


def motions(count, joints, seed=4):
    return np.random.default_rng(seed).normal(size=(3, count, joints))


def pinocchio_model(scene):
    """The same robot in Pinocchio: held joints locked, gravity in the base's frame."""
    text = with_inertials(rewritten(scene.path(scene.robot.model), scene), scene)
    model = pinocchio.buildModelFromXML(text)
    rest = pinocchio.neutral(model)
    for name, value in scene.robot.held.items():
        rest[model.joints[model.getJointId(name)].idx_q] = value
    held = [model.getJointId(name) for name in scene.robot.held]
    model = pinocchio.buildReducedModel(model, held, rest)
    base = scene.robot.base
    turn = pinocchio.rpy.rpyToMatrix(np.array(base.rpy))
    model.gravity.linear = turn.T @ np.array(scene.simulation.gravity)
    return model


def as_pinocchio(model, q):
    """Joint positions in Pinocchio's own coordinates: an endless joint has cos and sin."""
    found = pinocchio.neutral(model)
    for joint, value in zip(list(model.joints)[1:], q, strict=True):
        found[joint.idx_q] = np.cos(value) if joint.nq == 2 else value
        if joint.nq == 2:
            found[joint.idx_q + 1] = np.sin(value)
    return found


@pytest.fixture(params=["panda_cell", "kuka_kr300", "emps_axis", "arm", "pendulum"])
def scene(request, tmp_path):
    if request.param == "arm":
        return scene_in(tmp_path, PLACED)
    if request.param == "pendulum":
        return scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    return load_scene(request.param)


def test_that_dynamics_agree_with_pinocchio(scene):
    body, model = body_of(scene), pinocchio_model(scene)
    data = model.createData()
    q, qd, qdd = motions(20, body.joints)
    mass, bias, effort = body.mass_matrix(q), body.bias(q, qd), body.inverse_dynamics(q, qd, qdd)
    size = np.abs(effort).max()
    for k in range(len(q)):
        there = as_pinocchio(model, q[k])
        upper = np.triu(pinocchio.crba(model, data, there))
        full = upper + np.triu(upper, 1).T
        np.testing.assert_allclose(mass[k], full, atol=1e-12 * size)
        drift = pinocchio.nonLinearEffects(model, data, there, qd[k])
        np.testing.assert_allclose(bias[k], drift, atol=1e-12 * size)
        found = pinocchio.rnea(model, data, there, qd[k], qdd[k])
        np.testing.assert_allclose(effort[k], found, atol=1e-12 * size)


@pytest.mark.parametrize("name", ["panda_cell", "emps_axis"])
def test_that_dynamics_agree_with_pybullets_own(name):
    scene = load_scene(name)
    body = body_of(scene)
    q, qd, qdd = motions(10, body.joints)
    with World(scene) as world:
        client, robot = world.client, world.robot
        for k in range(len(q)):
            full = np.array([world.rest, np.zeros(len(world.rest)), np.zeros(len(world.rest))])
            full[:, world.dofs] = q[k], qd[k], qdd[k]
            rows = full.tolist()
            effort = np.array(client.calculateInverseDynamics(robot, *rows))[world.dofs]
            np.testing.assert_allclose(
                body.inverse_dynamics(q[k], qd[k], qdd[k]), effort, atol=1e-11
            )
            mass = np.array(client.calculateMassMatrix(robot, rows[0]))
            np.testing.assert_allclose(
                body.mass_matrix(q[k]), mass[np.ix_(world.dofs, world.dofs)], atol=1e-11
            )


def test_that_a_step_of_pybullet_accelerates_as_computed(scene):
    body = body_of(scene)
    q, qd, qdd = (part[0] for part in motions(1, body.joints))
    q = np.array(scene.robot.home) + 0.01 * q  # away from the ends of travel
    effort = body.inverse_dynamics(q, qd, qdd)
    with World(scene) as world:
        world.reset(q.tolist(), qd.tolist())
        world.driver("effort")(effort.tolist())
        world.step()
        gained = (world.joint_state()[1] - qd) / scene.simulation.step
    np.testing.assert_allclose(gained, qdd, atol=1e-4)


def test_that_both_at_once_are_each_alone(scene):
    body = body_of(scene)
    q, qd, _ = motions(1, body.joints)
    mass, bias = np.empty((body.joints, body.joints)), np.empty(body.joints)
    mass_and_bias(body.bodies, q[0], qd[0], mass, bias)
    np.testing.assert_array_equal(mass, body.mass_matrix(q[0]))
    np.testing.assert_array_equal(bias, body.bias(q[0], qd[0]))


def test_that_effort_through_the_armature_moves_as_a_rotor_would():
    body = body_of(load_scene("panda_cell"))
    rng = np.random.default_rng(2)
    q, qd, effort = rng.normal(size=(3, 7))
    armature = rng.uniform(0.01, 1.0, 7)
    mass, bias = body.mass_matrix(q), body.bias(q, qd)
    lower, found = mass + np.diag(armature), np.empty(7)
    assert factor(lower)
    through_armature(lower, armature, effort, bias, found)
    heavy = mass + np.diag(armature)
    expected = mass @ np.linalg.solve(heavy, effort - bias) + bias
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["panda_cell", "kuka_kr300"])
def test_that_a_sure_inertia_is_nowhere_above_that_of_the_arm(name):
    body = body_of(load_scene(name))
    for q in motions(20, body.joints)[0]:
        mass = body.mass_matrix(q)
        lower, inverted, sure = mass.copy(), np.empty_like(mass), np.empty(body.joints)
        assert factor(lower)
        inverse(lower, inverted)
        np.testing.assert_allclose(inverted @ mass, np.eye(body.joints), atol=1e-9)
        sure_inertia(inverted, sure)
        assert np.linalg.eigvalsh(mass - np.diag(sure)).min() > -1e-9 * sure.max()
        assert (sure > 0.0).all()


def test_that_a_joint_that_moves_no_other_keeps_its_inertia():
    lower, inverted, sure = np.diag([2.0, 5.0]), np.empty((2, 2)), np.empty(2)
    assert factor(lower)
    inverse(lower, inverted)
    sure_inertia(inverted, sure)
    np.testing.assert_allclose(sure, [2.0, 5.0])


def test_that_a_matrix_that_is_not_positive_definite_is_told():
    assert not factor(np.diag([1.0, 0.0]))
    assert not factor(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_that_power_is_the_change_of_energy():
    """With gravity off, effort times speed is what the kinetic energy gains."""
    scene = load_scene("kuka_kr300")
    with World(scene) as world:
        body = RigidBody(world.tree(), world.inertias(), (0.0, 0.0, 0.0))
    q, qd, qdd = (part[0] for part in motions(1, body.joints))

    def energy(time):
        speed = qd + time * qdd
        there = q + time * qd + 0.5 * time**2 * qdd
        return 0.5 * speed @ body.mass_matrix(there) @ speed

    gained = (energy(1e-5) - energy(-1e-5)) / 2e-5
    assert gained == pytest.approx(body.inverse_dynamics(q, qd, qdd) @ qd, rel=1e-6)


def test_that_merged_links_keep_their_weight(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    body = body_of(scene)
    assert body.bodies.mass.tolist() == [2.0]
    assert np.linalg.norm(body.bodies.moment[0]) == pytest.approx(1.0)
    turn = matrix(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))[:3, :3]
    np.testing.assert_array_equal(turn @ body.bodies.gravity, [0.0, 0.0, -9.81])


def test_that_arrays_of_another_width_are_refused():
    body = body_of(load_scene("emps_axis"))
    with pytest.raises(LayoutError, match="expected 1 joints"):
        body.mass_matrix(np.zeros((3, 2)))
