"""The emulated cell: a deterministic robot with a truth of its own."""

import msgspec
import numpy as np
import pytest

from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.rotations import quaternion_of_rpy
from twinstudio.model.scene import Scene, load_scene
from twinstudio.physics.cellfile import (
    CellTruth,
    CommandTruth,
    FrictionTruth,
    LinkTruth,
    MountTruth,
    PayloadTruth,
    SensorTruth,
    WayPoint,
    load_cell,
)
from twinstudio.physics.emulated import EmulatedCell, emulated_cell
from twinstudio.physics.mjmodel import InverseModel, Plant

FRICTIONLESS = FrictionTruth(presliding=(1e-3,))
EXACT = SensorTruth()


@pytest.fixture(scope="module")
def panda() -> Scene:
    return load_scene("panda_cell")


@pytest.fixture(scope="module")
def axis() -> Scene:
    return load_scene("emps_axis")


def truth_of(scene: Scene, **changes) -> CellTruth:
    truth = load_cell(scene.path(scene.cell.emulated), scene.robot.joints)
    return msgspec.structs.replace(truth, **changes)


def ideal(scene: Scene, **changes) -> CellTruth:
    """A truth without friction, noise, payload or error of place."""
    truth = truth_of(scene)
    controller = msgspec.structs.replace(
        truth.controller, feedforward=1.0, velocity_feedforward=1.0
    )
    values = {
        "friction": FRICTIONLESS,
        "sensors": EXACT,
        "payload": PayloadTruth(),
        "mount": MountTruth(),
        "command": CommandTruth(),
        "controller": controller,
        **changes,
    }
    return msgspec.structs.replace(truth, **values)


def cell(scene: Scene, truth: CellTruth | None = None, seed: int = 1) -> EmulatedCell:
    return EmulatedCell(scene, truth or truth_of(scene), np.random.default_rng(seed))


def plant(scene: Scene, **changes) -> Plant:
    return Plant(scene, ideal(scene, **changes), step=1e-3)


@pytest.mark.parametrize("name", ["panda_cell", "emps_axis"])
def test_that_the_same_seed_gives_the_same_bits(name):
    scene = load_scene(name)
    runs = [emulated_cell(scene, np.random.default_rng(s)).run(1.5) for s in (5, 5, 6)]
    assert runs[0].values.tobytes() == runs[1].values.tobytes()
    assert runs[0].stamps.tobytes() == runs[1].stamps.tobytes()
    assert runs[0].values.tobytes() != runs[2].values.tobytes()


def test_that_what_a_user_reads_is_published_with_units(panda, axis):
    layout = cell(panda).layout
    assert layout.signal("joint.position").labels == panda.robot.joints
    assert set(layout.signal("joint.effort").units) == {"N m"}
    for name in ("joint.current", "joint.temperature", "command.position", "command.velocity"):
        assert name in layout
    for name in ("tcp.pose", "object.cube.pose", "object.pin.pose", "ambient.temperature"):
        assert name in layout
    assert "object.table.pose" not in layout
    linear = cell(axis).layout
    assert linear.signal("joint.position").units == ("m",)
    assert linear.signal("joint.effort").units == ("N",)


def test_that_stamps_and_numbers_count_on_from_block_to_block(axis):
    source = EmulatedCell(axis, truth_of(axis), np.random.default_rng(0), start=7_000_000)
    first, second = source.advance(), source.advance()
    assert first.stamps.tolist() == [7_000_000 + k * 1_000_000 for k in range(5)]
    assert (first.first, second.first) == (0, 5)
    assert second.stamps[0] == 12_000_000
    source.move_clock(1_000)
    assert source.advance().stamps[0] == 17_001_000
    assert len(source.run(0.1)) == 100


def test_that_the_cell_starts_at_home_and_at_rest(panda):
    block = cell(panda).run(0.01)
    np.testing.assert_allclose(
        block.of("joint.position"), np.tile(panda.robot.home, (10, 1)), atol=3e-4
    )
    assert np.abs(block.of("joint.velocity")).max() < 0.02


@pytest.mark.parametrize("latency", [0.0, 0.0123, 0.02])
def test_that_motion_follows_its_command_by_the_latency_of_the_file(panda, latency):
    source = cell(panda, ideal(panda, command=CommandTruth(latency=latency)))
    block = source.run(source.player.program.approach_time + 4.0)
    time = (block.stamps - block.stamps[0]) / 1e9
    inner = slice(200, -200)
    shifts = np.arange(-0.005, 0.035, 0.0001)
    for joint in range(7):
        sent, done = block.of("command.position")[:, joint], block.of("joint.position")[:, joint]
        errors = [((np.interp(time - s, time, sent) - done)[inner] ** 2).sum() for s in shifts]
        assert shifts[int(np.argmin(errors))] == pytest.approx(latency, abs=0.5e-3)


def test_that_the_gap_of_the_demo_is_visible_and_believable(panda):
    source = cell(panda)
    block = source.run(source.player.program.approach_time + source.player.program.cycle_time)
    error = block.of("command.position") - block.of("joint.position")
    rms = np.sqrt((error**2).mean(axis=0))
    assert (rms > 0.5e-3).all()
    assert (rms < 10e-3).all()
    assert np.abs(block.of("joint.effort")).max(axis=0)[:4].max() < 87.0
    assert np.abs(block.of("joint.velocity")).max(axis=0).min() > 0.2  # every joint is excited
    # The tool stays above table, parts and fixture (0.07 m), and the parts where they are.
    assert block.of("tcp.pose")[:, 2].min() > 0.07
    for name in ("cube", "pin", "block"):
        moved = block.of(f"object.{name}.pose")[-1, :3] - block.of(f"object.{name}.pose")[0, :3]
        assert np.abs(moved).max() < 1e-3


def test_that_armature_slows_the_acceleration(axis):
    for armature in (0.0, 30.0):
        motor = msgspec.structs.replace(truth_of(axis).motor, armature=(armature,))
        body = plant(axis, motor=motor, links={})
        body.step(np.array([50.0]))
        assert body.acceleration[0] == pytest.approx(50.0 / (95.1 + armature), rel=1e-5)


def test_that_the_inverse_model_undoes_the_plant(panda):
    body, inverse = plant(panda), InverseModel(panda, ideal(panda))
    rng = np.random.default_rng(2)
    for _ in range(20):
        wanted = rng.normal(size=7)
        effort = inverse.effort(body.q, body.v, wanted)
        body.step(effort)
        # A mote of payload is always there.
        np.testing.assert_allclose(body.acceleration, wanted, atol=2e-3)


def test_that_a_joint_at_rest_below_break_away_stays_at_rest(axis):
    source = cell(axis)
    rub, body = source.friction, source.plant
    breakaway, seen = 26.0 * 0.88, []
    for k in range(8000):
        push = 0.9 * breakaway * min(1.0, k / 1000)
        body.step(push - rub.effort(body.v))
        seen.append(body.q[0])
    assert abs(seen[-1] - seen[0]) < 20e-6
    assert abs(seen[-1] - seen[5000]) < 1e-9
    for _ in range(1000):
        body.step(1.2 * breakaway - rub.effort(body.v))
    assert body.v[0] > 1e-3


def test_that_friction_takes_energy_from_the_arm_and_never_gives(panda):
    weightless = msgspec.structs.replace(
        panda, simulation=msgspec.structs.replace(panda.simulation, gravity=(0.0, 0.0, 0.0))
    )
    source = cell(weightless)
    rub, body, none = source.friction, source.plant, np.zeros(7)
    rng = np.random.default_rng(3)
    for _ in range(60):
        body.step(rng.normal(scale=15.0, size=7))
    body.step(none)
    total = [body.energy() + rub.stored().sum()]
    for _ in range(1500):
        body.step(-rub.effort(body.v))
        total.append(body.energy() + rub.stored().sum())
    assert total[0] > 0.05
    # Explicit steps exchange a little between motion and elastic contact.
    assert max(np.diff(total)) < 2e-3 * total[0]
    assert total[-1] < 1e-3 * total[0]


def test_that_mass_scale_and_payload_load_the_shoulder(panda):
    def holding(**changes) -> float:
        still = (WayPoint(to=panda.robot.home),)
        block = cell(panda, ideal(panda, program=still, **changes)).run(0.5)
        return float(block.of("joint.effort")[-1, 1])

    nominal = holding(links={})
    heavy = holding(links={"panda_link5": LinkTruth(mass_scale=2.0)})
    loaded = holding(links={}, payload=PayloadTruth(mass=2.0))
    assert abs(heavy - nominal) > 2.5
    # The tool is 0.307 m before the shoulder in the home pose.
    assert abs(loaded - nominal) == pytest.approx(2.0 * 9.81 * 0.307, rel=0.02)


def test_that_a_payload_can_be_picked_up_and_put_down(panda):
    still = (WayPoint(to=panda.robot.home),)
    source = cell(panda, ideal(panda, program=still))
    before = source.run(0.3).of("joint.effort")[-1, 1]
    source.carry(2.0)
    loaded = source.run(0.5).of("joint.effort")[-1, 1]
    source.carry(0.0)
    after = source.run(0.5).of("joint.effort")[-1, 1]
    assert abs(loaded - before) == pytest.approx(2.0 * 9.81 * 0.307, rel=0.02)
    assert after == pytest.approx(before, abs=1e-2)


def test_that_the_hidden_mount_shows_in_the_tool_pose_alone(panda):
    still = (WayPoint(to=panda.robot.home),)
    shift = MountTruth(base=(1e-3, 0.0, 0.0), tool=(0.0, 0.0, 2e-3))
    straight = cell(panda, ideal(panda, program=still)).run(0.02)
    shifted = cell(panda, ideal(panda, program=still, mount=shift)).run(0.02)
    moved = shifted.of("tcp.pose")[-1, :3] - straight.of("tcp.pose")[-1, :3]
    np.testing.assert_allclose(moved, [1e-3, 0.0, -2e-3], atol=2e-5)  # the tool points down
    np.testing.assert_allclose(
        shifted.of("joint.position"), straight.of("joint.position"), atol=1e-5
    )


def test_that_base_and_held_joints_are_placed_as_the_scene_says(panda, axis):
    home = cell(panda, ideal(panda)).run(0.01).of("tcp.pose")[0]
    np.testing.assert_allclose(home[:3], [0.30689, 0.0, 0.48528], atol=1e-5)
    carriage = cell(axis, ideal(axis)).run(0.01).of("tcp.pose")[0]
    np.testing.assert_allclose(carriage, [-0.12, 0.0, 0.82, 0.0, 0.0, 0.0, 1.0], atol=1e-9)
    robot = msgspec.structs.replace(
        panda.robot, tcp="panda_leftfinger", held={**panda.robot.held, "panda_finger_joint1": 0.04}
    )
    wide = msgspec.structs.replace(panda, robot=robot)
    narrow = msgspec.structs.replace(
        panda, robot=msgspec.structs.replace(panda.robot, tcp="panda_leftfinger")
    )
    poses = [cell(s, ideal(s)).run(0.01).of("tcp.pose")[0, :3] for s in (wide, narrow)]
    assert np.linalg.norm(poses[0] - poses[1]) == pytest.approx(0.02, abs=1e-6)


def test_that_loose_parts_rest_where_the_scene_puts_them(panda):
    block = cell(panda, ideal(panda)).run(1.0)
    for thing in panda.objects:
        name = f"object.{thing.name}.pose"
        if name not in block.layout:
            assert thing.mass == 0.0 or thing.fixed
            continue
        pose = block.of(name)[-1]
        np.testing.assert_allclose(pose[:3], thing.at.position, atol=1e-3)
        np.testing.assert_allclose(pose[3:], quaternion_of_rpy(thing.at.rpy), atol=1e-2)


def test_that_sensor_noise_in_the_stream_is_that_of_the_file(panda):
    still = (WayPoint(to=panda.robot.home),)
    source = cell(panda, ideal(panda, program=still, sensors=truth_of(panda).sensors))
    block = source.run(4.0)
    late = slice(1000, None)
    np.testing.assert_allclose(
        block.of("joint.velocity")[late].std(axis=0), [0.0008] * 4 + [0.001] * 3, rtol=0.06
    )
    counts = block.of("joint.position") / 0.012e-3
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    assert block.of("joint.temperature")[late].std(axis=0).max() == pytest.approx(0.1, rel=0.1)
    np.testing.assert_allclose(block.of("tcp.pose")[late, :3].std(axis=0), 5e-5, rtol=0.15)


def test_that_effort_of_motor_and_link_differ_by_friction(axis):
    moving = (WayPoint(to=(0.2,)),)
    friction = FrictionTruth(presliding=(1e-5,), coulomb=(20.0,), viscous=(100.0,))
    measured = {}
    for side in ("motor", "link"):
        truth = ideal(
            axis, friction=friction, sensors=SensorTruth(effort_side=side), program=moving
        )
        measured[side] = cell(axis, truth).run(1.2)
    speed = measured["motor"].of("joint.velocity")[-1, 0]
    acceleration = np.gradient(measured["motor"].of("joint.velocity")[:, 0], 1e-3)[-2]
    assert speed > 0.05
    difference = (measured["motor"].of("joint.effort") - measured["link"].of("joint.effort"))[-1, 0]
    expected = 20.0 + 100.0 * speed + 30.0 * acceleration
    assert difference == pytest.approx(expected, rel=0.02)
    current = measured["motor"].of("joint.current")[:, 0]
    np.testing.assert_allclose(
        current * 0.35 * 314.16, measured["motor"].of("joint.effort")[:, 0], rtol=1e-12
    )


def test_that_losses_heat_the_joints_and_heat_lowers_friction(axis):
    friction = msgspec.structs.replace(truth_of(axis).friction, temperature=(0.01,))
    thermal = msgspec.structs.replace(
        truth_of(axis).thermal, winding_capacity=(0.5,), case_capacity=(2.0,)
    )
    source = cell(axis, truth_of(axis, friction=friction, thermal=thermal))
    cold = source.run(1.0)
    assert source.heat.case[0] > 21.0
    source.heat.extra = np.array([25.0])
    warm = source.run(12.0)
    case = 21.0 + 1.9 * 25.0
    assert warm.of("joint.temperature")[-1, 0] == pytest.approx(case, abs=3.0)
    assert warm.of("joint.temperature")[-1, 0] > cold.of("joint.temperature")[-1, 0] + 20.0
    slide = source.friction.effort(np.array([0.1]))
    for _ in range(100):
        slide = source.friction.effort(np.array([0.1]))
    expected = (19.0 * 0.88 + 21.8) * np.exp(-0.01 * (source.heat.case[0] - 25.0))
    assert slide[0] == pytest.approx(expected, rel=1e-3)


def test_that_a_cold_and_a_hot_cell_move_differently(axis):
    runs = []
    for start in (0.0, 80.0):
        thermal = msgspec.structs.replace(truth_of(axis).thermal, start=(start,))
        runs.append(cell(axis, truth_of(axis, thermal=thermal)).run(2.0))
    cold, hot = (np.abs(run.of("joint.effort")[1000:]).mean() for run in runs)
    assert cold > hot + 5.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"links": {"panda_elbow": LinkTruth()}}, "no link 'panda_elbow'; it has"),
    ],
)
def test_that_an_unknown_link_is_named(panda, changes, words):
    with pytest.raises(PhysicsError, match=words):
        cell(panda, ideal(panda, **changes))


def test_that_gains_that_cannot_be_stable_are_refused(panda):
    controller = msgspec.structs.replace(truth_of(panda).controller, damping=(400.0,))
    with pytest.raises(SceneError, match=r"panda_joint\d' is unstable.*lower controller.damping"):
        cell(panda, ideal(panda, controller=controller))


def test_that_a_motion_that_diverges_is_an_error_and_not_a_number(axis):
    source = cell(axis)
    source.plant.step(np.array([np.nan]))
    with pytest.raises(PhysicsError, match="diverged"):
        source.run(0.1)


def test_that_a_scene_without_an_emulated_cell_says_so(axis):
    bare = msgspec.structs.replace(axis, cell=msgspec.structs.replace(axis.cell, emulated=""))
    with pytest.raises(SceneError, match="has no emulated cell"):
        emulated_cell(bare, np.random.default_rng(0))


def test_that_robot_joints_the_model_lacks_are_named(panda):
    joints = (*panda.robot.joints[:-1], "panda_joint9")
    robot = msgspec.structs.replace(
        panda.robot, joints=joints, held={**panda.robot.held, "panda_joint7": 0.0}
    )
    with pytest.raises(PhysicsError, match="no movable joint 'panda_joint9'"):
        plant(msgspec.structs.replace(panda, robot=robot))
    forgotten = msgspec.structs.replace(panda.robot, held={})
    with pytest.raises(PhysicsError, match=r"must stand in robot\.joints or in robot\.held"):
        plant(msgspec.structs.replace(panda, robot=forgotten))


def test_that_joints_may_be_signalled_in_another_order(panda):
    order = [6, 0, 3, 1, 5, 2, 4]
    joints = tuple(panda.robot.joints[k] for k in order)
    home = tuple(panda.robot.home[k] for k in order)
    shuffled = msgspec.structs.replace(
        panda, robot=msgspec.structs.replace(panda.robot, joints=joints, home=home)
    )
    motor = msgspec.structs.replace(ideal(panda).motor, armature=(0.3,))
    straight, mixed = plant(panda, motor=motor), plant(shuffled, motor=motor)
    push = np.arange(7.0)
    for _ in range(20):
        straight.step(push)
        mixed.step(push[order])
    np.testing.assert_allclose(mixed.q, straight.q[order], atol=1e-12)
