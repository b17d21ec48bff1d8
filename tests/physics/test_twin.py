import json
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from wire_helpers import until
from world_helpers import ARM_SCENE, BALL, PENDULUM, PENDULUM_SCENE, scene_in

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.link import Link
from twinstudio.flow.protocol import Description
from twinstudio.flow.serve import Endpoint
from twinstudio.model.block import Block, joined
from twinstudio.model.errors import LayoutError, LinkError
from twinstudio.model.geometry import SceneGeometry
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.physics.follower import Follower
from twinstudio.physics.pacing import MOST_BEHIND, Pacer
from twinstudio.physics.track import MOST_WAITING, Inbox
from twinstudio.physics.twin import TwinServer
from twinstudio.physics.world import World

MS = 1_000_000
STEP = MS
POSITION = ("joint.position", "command.position")
FULL = ("joint.position", "joint.velocity", "command.position")


def layout(scene, kinds):
    return Layout(joint_signals(scene.robot.joints, ("axis", "slide"), kinds=kinds))


# ---------------------------------------------------------------- pacing


class FakeTime:
    """A clock that only sleeping, and `pass_`, move."""

    def __init__(self):
        self.now = 10_000 * MS
        self.oversleep = 0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += round(seconds * 1e9) + self.oversleep

    def pass_(self, ns):
        self.now += ns


def test_that_steps_are_due_at_even_instants_however_late_each_begins():
    time = FakeTime()
    pacer = Pacer(1e-3, clock=time.clock, sleep=time.sleep)
    start, time.oversleep = time.now, 60_000
    dues = []
    for _ in range(100):
        dues.append(pacer.next()[0])
        time.pass_(200_000)
    assert dues == [start + k * MS for k in range(100)]
    pace = pacer.pace()
    assert pace.lateness_p50 == pytest.approx(60e-6)
    assert pace.real_time == pytest.approx(1.0, abs=0.01)
    assert (pace.stalls, pace.left_out) == (0, 0.0)


def test_that_a_short_stall_is_caught_up_without_losing_time():
    time = FakeTime()
    pacer = Pacer(1e-3, clock=time.clock, sleep=time.sleep)
    start = time.now
    pacer.next()
    time.pass_(50 * MS)
    for _ in range(60):
        due, now = pacer.next()
    assert due == start + 60 * MS == now
    assert pacer.pace().left_out == 0.0
    assert pacer.pace().lateness >= 40e-3


def test_that_a_long_stall_is_left_out_and_told():
    time = FakeTime()
    pacer = Pacer(1e-3, clock=time.clock, sleep=time.sleep)
    pacer.next()
    time.pass_(MOST_BEHIND + 5 * MS)
    due, now = pacer.next()
    assert due == now
    assert pacer.pace().stalls == 1
    assert pacer.pace().left_out == pytest.approx((MOST_BEHIND + 4 * MS) / 1e9)
    assert pacer.next()[0] == due + MS


def test_that_a_free_pacer_never_waits():
    time = FakeTime()
    pacer = Pacer(1e-3, free=True, clock=time.clock, sleep=None)
    assert [pacer.next()[0] - time.now for _ in range(3)] == [0, MS, 2 * MS]
    assert pacer.pace().lateness is None


# ---------------------------------------------------------------- follower


class Feed:
    """Stands for an inbox, and for whom the follower tells."""

    def __init__(self, scene, kinds=FULL, instance="one"):
        self.scene, self.items, self.told, self.rows = scene, deque(), [], []
        self.clock = ClockModel(reference=0, shift=0)
        self.describe(kinds, instance)

    def describe(self, kinds, instance):
        self.layout = layout(self.scene, kinds)
        self.items.append(
            Description(
                protocol=1, instance=instance, role="cell", name="c", software="", telemetry=1,
                revision=1, layout=self.layout, rate=1000.0,
            )
        )  # fmt: skip

    def send(self, stamps, values):
        values = np.broadcast_to(np.asarray(values, float), (len(stamps), self.layout.width))
        block = Block(self.layout, np.array(stamps, dtype=np.int64), values.copy())
        self.items.append((block, self.clock))

    def next(self):
        return self.items.popleft() if self.items else None

    def tell(self, level, code, text):
        self.told.append((level, code, text))

    def relayout(self, new):
        self.rows.append(self.follower.take())
        self.relaid = new

    def codes(self):
        return [code for _, code, _ in self.told]


@contextmanager
def following(scene, mode="commanded", **more):
    feed = Feed(scene, **more)
    with World(scene) as world:
        feed.follower = Follower(world, mode, feed)
        try:
            yield feed, feed.follower, world
        finally:
            feed.follower.close()


def advance(feed, follower, first, last):
    """Steps at first ... last ms; returns the block of them."""
    for k in range(first, last + 1):
        follower.take_in(feed)
        follower.step(k * MS)
    return Block(follower.layout, *follower.take())


@pytest.fixture
def axis():
    return load_scene("emps_axis")


def test_that_a_twin_without_a_cell_stays_at_home(axis):
    with following(axis) as (feed, follower, _):
        feed.items.clear()
        block = advance(feed, follower, 0, 50)
        assert np.abs(block.of("joint.position")).max() < 1e-6
        assert set(block.of("command.position").ravel()) == {0.0}


def test_that_the_twin_is_set_to_the_first_sample_and_then_commanded(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.02, 0.12]])
        feed.send([20 * MS], [[0.1, 0.02, 0.14]])
        block = advance(feed, follower, 0, 30)
        position, command = (block.of(f"{kind}.position")[:, 0] for kind in ("joint", "command"))
        assert np.abs(position[:10]).max() < 1e-6
        assert (position[10], block.of("joint.velocity")[10, 0]) == (0.1, 0.02)
        # A command holds from its stamp until the next.
        assert command.tolist() == [0.0] * 10 + [0.12] * 10 + [0.14] * 11
        assert position[-1] > position[10]
        assert feed.codes() == ["synchronised"]


def test_that_stamps_are_mapped_to_our_clock(axis):
    with following(axis) as (feed, follower, _):
        feed.clock = ClockModel(reference=0, shift=1000 * MS)
        feed.send([1010 * MS], [[0.1, 0.0, 0.12]])
        block = advance(feed, follower, 0, 20)
        assert np.argmax(block.of("command.position")[:, 0] == 0.12) == 10


def test_that_late_commands_are_counted_and_used_at_once(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.0, 0.1]])
        advance(feed, follower, 0, 30)
        feed.send(
            [20 * MS, 25 * MS, 40 * MS], [[0.1, 0.0, 0.11], [0.1, 0.0, 0.12], [0.1, 0.0, 0.13]]
        )
        command = advance(feed, follower, 31, 45).of("command.position")[:, 0]
        assert command.tolist() == [0.12] * 9 + [0.13] * 6
        assert follower.counts.late == 2


def test_that_repeated_and_reversed_stamps_are_left_out_and_counted(axis):
    with following(axis) as (feed, follower, _):
        feed.send(
            [10 * MS, 10 * MS, 9 * MS, 11 * MS],
            [[0.1, 0, 0.1], [9, 9, 9], [9, 9, 9], [0.1, 0, 0.2]],
        )
        block = advance(feed, follower, 0, 20)
        assert set(block.of("command.position").ravel()) == {0.0, 0.1, 0.2}
        assert follower.counts.stale == 2


def test_that_a_missing_reading_holds_the_last_one_and_is_counted(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS, 11 * MS], [[0.1, 0.0, 0.1], [0.1, np.nan, np.nan]])
        feed.send([12 * MS], [[np.nan, 0.0, np.nan]])
        block = advance(feed, follower, 0, 20)
        assert set(block.of("command.position").ravel()) == {0.0, 0.1}
        assert follower.counts.missing == 4
        assert np.isfinite(block.values).all()


def test_that_a_cell_that_starts_anew_sets_the_twin_once(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.0, 0.1]])
        advance(feed, follower, 0, 20)
        feed.describe(FULL, "two")
        feed.send([30 * MS], [[0.2, 0.0, 0.2]])
        feed.send([35 * MS], [[0.1, 0.0, 0.2]])
        block = advance(feed, follower, 21, 40)
        position = block.of("joint.position")[:, 0]
        assert position[9] == 0.2
        assert np.abs(position[9:] - 0.2).max() < 1e-6
        assert feed.codes() == ["synchronised", "resynchronised"]
        assert follower.counts.resynchronised == 1


def test_that_a_relayout_of_the_same_cell_does_not_move_the_twin(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.0, 0.1]])
        advance(feed, follower, 0, 20)
        feed.describe(POSITION, "one")
        feed.send([30 * MS], [[0.2, 0.1]])
        block = advance(feed, follower, 21, 40)
        assert np.abs(block.of("joint.position") - 0.1).max() < 1e-6
        assert feed.codes() == ["synchronised"]


@pytest.mark.parametrize("kind", ["velocity", "effort"])
def test_that_other_commands_change_the_layout_and_lose_no_row(axis, kind):
    kinds = ("joint.position", f"command.{kind}")
    with following(axis, kinds=kinds) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.05]])
        block = advance(feed, follower, 0, 29)
        (before,) = feed.rows
        assert before[0].tolist() == [k * MS for k in range(10)]
        assert block.stamps[0] == 10 * MS
        assert feed.relaid == block.layout
        assert set(block.of(f"command.{kind}").ravel()) == {0.05}
        assert block.of("joint.position")[-1, 0] > 0.1


def test_that_a_following_twin_is_where_the_cell_was_measured(tmp_path):
    scene = scene_in(tmp_path, PENDULUM_SCENE, PENDULUM)
    with following(scene, "following", kinds=("joint.position", "joint.velocity")) as parts:
        feed, follower, _ = parts
        stamps = np.arange(10, 60, 4) * MS
        q = 0.3 + 0.5 * stamps / 1e9
        feed.send(stamps, np.column_stack([q, np.full(len(q), 0.5)]))
        block = advance(feed, follower, 0, 80)
        # On the line between samples, and held after the last.
        expected = 0.3 + 0.5 * np.minimum(block.stamps, stamps[-1]) / 1e9
        position = block.of("joint.position")[:, 0]
        np.testing.assert_allclose(position, expected, rtol=0.0, atol=1e-12)
        assert set(block.of("joint.velocity").ravel()) == {0.5}
        weight = 2.0 * 9.81 * 0.5 * np.sin(expected)
        np.testing.assert_allclose(block.of("joint.effort")[:, 0], weight, atol=1e-5)


def test_that_a_following_twin_does_not_bridge_a_long_pause(axis):
    with following(axis, "following", kinds=("joint.position",)) as (feed, follower, _):
        feed.send([10 * MS, 500 * MS], [[0.1], [0.2]])
        block = advance(feed, follower, 0, 510)
        assert set(block.of("joint.position")[:490, 0]) == {0.1}
        assert block.of("joint.position")[-1, 0] == 0.2
        assert np.abs(block.of("joint.velocity")).max() == 0.0


def test_that_effort_includes_the_acceleration_of_a_cell_that_tells_positions_only(axis):
    with following(axis, "following", kinds=("joint.position",)) as (feed, follower, _):
        stamps = np.arange(10, 100) * MS
        feed.send(stamps, (0.5 * 2.0 * (stamps / 1e9) ** 2)[:, None])
        block = advance(feed, follower, 0, 99)
        assert block.of("joint.effort")[-1, 0] == pytest.approx(2.0 * 95.1, rel=1e-3)


def test_that_speed_is_taken_from_positions_where_the_cell_has_none(axis):
    with following(axis, "following", kinds=("joint.position",)) as (feed, follower, _):
        stamps = np.arange(10, 60) * MS
        feed.send(stamps, 0.2 * stamps[:, None] / 1e9)
        block = advance(feed, follower, 0, 59)
        assert block.of("joint.velocity")[-1, 0] == pytest.approx(0.2)
        assert "command.position" not in block.layout


def test_that_a_twin_that_strays_too_far_is_set_to_the_cell(axis):
    with following(axis, "resynchronised") as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.0, 0.1]])
        feed.send([20 * MS], [[0.1 + 0.004, 0.0, 0.1]])
        feed.send([30 * MS], [[0.1 + 0.006, 0.0, 0.1]])
        block = advance(feed, follower, 0, 30)
        position = block.of("joint.position")[:, 0]
        assert position[20] == pytest.approx(0.1, abs=1e-6)
        assert position[30] == 0.1 + 0.006
        assert feed.codes() == ["synchronised", "resynchronised"]
        assert "axis was off by 0.006 m" in feed.told[-1][2]


def test_that_a_twin_that_strays_all_the_time_is_told_once_a_second(axis):
    with following(axis, "resynchronised") as (feed, follower, _):
        stamps = np.arange(10, 1500, 10) * MS
        places = np.where(np.arange(len(stamps)) % 2, 0.1, 0.2)
        feed.send(stamps, np.column_stack([places, 0 * places, places[::-1]]))
        advance(feed, follower, 0, 1500)
        assert follower.counts.resynchronised > 100
        assert feed.codes() == ["synchronised", "resynchronised", "resynchronised"]


def test_that_a_cell_the_twin_cannot_use_is_an_alarm_and_the_twin_goes_on(axis):
    with following(axis, kinds=("joint.position",)) as (feed, follower, _):
        feed.send([10 * MS], [[0.1]])
        block = advance(feed, follower, 0, 20)
        assert len(block) == 21
        ((level, code, text),) = feed.told
        assert (level, code) == ("alarm", "cell-unusable")
        assert "use mode 'following'" in text
        follower.set_mode("following")
        feed.send([30 * MS], [[0.1]])
        assert advance(feed, follower, 21, 40).of("joint.position")[-1, 0] == 0.1


def test_that_a_mode_the_cell_cannot_serve_is_refused_and_changes_nothing(axis):
    with following(axis, "following", kinds=("joint.position",)) as (feed, follower, _):
        feed.send([10 * MS], [[0.1]])
        advance(feed, follower, 0, 20)
        with pytest.raises(LayoutError, match=r"mode 'commanded' needs command\.position"):
            follower.set_mode("commanded")
        assert follower.mode == "following"


def test_that_modes_can_be_changed_while_running(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.0, 0.1]])
        advance(feed, follower, 0, 20)
        follower.set_mode("following")
        feed.send([30 * MS], [[0.101, 0.0, 0.1]])
        assert advance(feed, follower, 21, 40).of("joint.position")[-1, 0] == 0.101
        follower.set_mode("commanded")
        position = advance(feed, follower, 41, 300).of("joint.position")[:, 0]
        assert position[0] == 0.101
        assert position[-1] == pytest.approx(0.1, abs=1e-4)


def test_that_the_last_command_holds_when_the_cell_vanishes(axis):
    with following(axis) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.0, 0.101]])
        block = advance(feed, follower, 0, 500)
        assert block.of("joint.position")[-1, 0] == pytest.approx(0.101, abs=1e-4)


def test_that_letting_go_holds_the_robot_where_it_is(axis):
    with following(axis, kinds=("joint.position", "command.velocity")) as (feed, follower, _):
        feed.send([10 * MS], [[0.1, 0.2]])
        there = advance(feed, follower, 0, 100).of("joint.position")[-1, 0]
        follower.let_go()
        block = advance(feed, follower, 101, 600)
        assert "command.position" in block.layout
        assert block.of("joint.position")[-1, 0] == pytest.approx(there, abs=0.02)


def test_that_reset_brings_everything_home_and_then_back_to_the_cell(tmp_path):
    scene = scene_in(tmp_path, ARM_SCENE + BALL)
    with following(scene, kinds=POSITION) as (feed, follower, world):
        feed.send([10 * MS], [[0.5, 0.0, 0.5, 0.0]])
        advance(feed, follower, 0, 400)
        assert world.object_pose("ball")[2] < 0.5
        follower.reset()
        assert world.object_pose("ball")[2] == 1.0
        feed.send([500 * MS], [[0.5, 0.0, 0.5, 0.0]])
        advance(feed, follower, 401, 500)
        assert feed.codes() == ["synchronised", "synchronised"]


def test_that_an_inbox_is_bounded_and_counts_what_it_drops(axis):
    inbox, feed = Inbox(), Feed(axis)
    for k in range(MOST_WAITING + 5):
        feed.send([k], [[0.0, 0.0, 0.0]])
        inbox._put(feed.items.pop())
    assert inbox.dropped == 5
    assert inbox.next()[0].stamps[0] == 5


# ---------------------------------------------------------------- server


class Cell:
    """A cell in this process that a test feeds."""

    def __init__(self, scene, kinds=FULL, port=0):
        self.endpoint = Endpoint(
            role="cell", name="cell", layout=layout(scene, kinds), rate=1000.0, control_port=port
        )
        self.stop = threading.Event()
        self.values = [0.05] * self.endpoint.description.layout.width
        self.values[1] = 0.0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        import time

        while not self.stop.wait(0.005):
            now = time.monotonic_ns()
            stamps = np.arange(now - 5 * MS, now, MS, dtype=np.int64)
            self.endpoint.publish(stamps, np.tile(self.values, (len(stamps), 1)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.endpoint.close()


@contextmanager
def served(scene, mode="commanded"):
    """A running twin server, a link to it, its blocks and its events."""
    over, blocks, events = threading.Event(), [], []
    with TwinServer(scene, mode=mode, end=over.set) as server:
        server.open()
        pacer = Pacer(scene.simulation.step)
        thread = threading.Thread(target=server.run, args=(pacer,), kwargs={"until": over.is_set})
        thread.start()
        try:
            with Link(
                server.endpoint.control, sinks=(blocks.append,), on_event=events.append
            ) as link:
                link.wait()
                yield link, blocks, events
        finally:
            over.set()
            thread.join()


def test_that_a_live_twin_follows_a_cell_through_restart_and_loss(axis):
    with served(axis) as (link, blocks, events):
        until(lambda: blocks)
        with Cell(axis) as cell:
            control = cell.endpoint.control
            link.request("follow", control=control)
            until(lambda: [e.code for e in events].count("synchronised") == 1)
            until(lambda: blocks[-1].of("command.position")[-1, 0] == 0.05)
            until(lambda: "cell-found" in [e.code for e in events])
            cell.values = [0.2, 0.0, 0.2]
            until(lambda: blocks[-1].of("joint.position")[-1, 0] > 0.19)
        until(lambda: "cell-lost" in [e.code for e in events])
        port = int(control.rsplit(":", 1)[1])
        with Cell(axis, port=port):
            until(lambda: "resynchronised" in [e.code for e in events])
            until(lambda: blocks[-1].of("joint.position")[-1, 0] < 0.06)
        status = link.request("status")
        assert status["resynchronised"] == 1
        assert status["following"] == control
        link.request("unfollow")
        assert link.request("status")["following"] == ""
        whole = joined(list(blocks))
        assert set(np.diff(whole.stamps)) == {MS} or status["stalls"]
        assert link.health().lost == 0


def test_that_published_stamps_run_behind_the_clock_as_the_scene_says(axis):
    slow = msgspec.structs.replace(axis, twin=msgspec.structs.replace(axis.twin, behind=0.5))
    with served(slow) as (link, blocks, _):
        until(lambda: len(blocks) > 3 and link.clock is not None)
        age = blocks[-1].received - int(link.clock.to_local(blocks[-1].stamps)[-1])
        assert 500 * MS <= age < 1500 * MS


def test_that_every_operation_answers_or_says_what_is_wrong(tmp_path):
    with served(scene_in(tmp_path, ARM_SCENE + BALL)) as (link, _, _):
        status = link.request("status")
        assert {"real_time", "lateness", "late", "mode", "left_out"} <= status.keys()
        geometry = msgspec.convert(link.request("geometry"), SceneGeometry)
        assert geometry.tree.joints == ("turn", "slide")
        assert {mesh.body for mesh in geometry.meshes} == {"robot", "floor", "ball"}
        hit = link.request("ray", **{"from": [4.5, 1.0, 3.0], "to": [4.5, 1.0, -3.0]})
        assert (hit["body"], hit["position"]) == ("floor", pytest.approx([4.5, 1.0, 0.0], abs=1e-3))
        assert link.request("ray", **{"from": [90, 0, 3], "to": [90, 0, -3]}) is None
        link.request("mode", mode="following")
        assert link.request("status")["mode"] == "following"
        link.request("reset")
        for op, args, words in [
            ("mode", {"mode": "sideways"}, "commanded, following, resynchronised"),
            ("mode", {}, "give mode"),
            ("status", {"x": 1}, "got x; give no arguments"),
            ("follow", {"control": 5}, "address"),
            ("follow", {"control": "nowhere"}, "nowhere"),
            ("ray", {"from": [1, 2], "to": [0, 0, 0]}, "'from' must be three numbers"),
        ]:
            with pytest.raises(LinkError, match=words):
                link.request(op, **args)


def test_that_a_stop_request_ends_the_loop(axis):
    over = threading.Event()
    with TwinServer(axis, mode="commanded", end=over.set) as server:
        server.open()
        pacer = Pacer(axis.simulation.step)
        thread = threading.Thread(target=server.run, args=(pacer,), kwargs={"until": over.is_set})
        thread.start()
        with Link(server.endpoint.control) as link:
            link.wait()
            link.request("stop")
        thread.join(10.0)
        assert not thread.is_alive()


# ---------------------------------------------------------------- process

SERVE = "import sys; from twinstudio.physics.twin import serve; serve(sys.argv[1], attached={})"


@contextmanager
def process(scene, attached=True):
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE.format(attached), str(scene)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def test_that_a_twin_process_announces_itself_alone_on_its_output_and_ends_with_its_parent():
    with process("panda_cell") as child:
        control = json.loads(child.stdout.readline())["control"]
        with Link(control) as link:
            description = link.wait(20.0)
            assert (description.role, description.rate) == ("twin", 1000.0)
            assert "object.cube.pose" in description.layout
            assert "object.table.pose" not in description.layout
        child.stdin.close()
        child.stdin = None
        assert child.wait(20.0) == 0
        assert child.stdout.read() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to handle")
def test_that_a_twin_process_ends_cleanly_when_told_to():
    with process("emps_axis", attached=False) as child:
        json.loads(child.stdout.readline())
        child.send_signal(signal.SIGTERM)
        assert child.wait(20.0) == 0


def test_that_a_twin_process_with_a_bad_model_leaves_its_last_words(tmp_path):
    scene_in(tmp_path, ARM_SCENE, "<robot")
    with process(tmp_path) as child:
        output, words = child.communicate(timeout=30.0)
        assert child.returncode != 0
        assert output == ""
        assert "robot.urdf: PyBullet cannot load this model" in words.strip().splitlines()[-1]
