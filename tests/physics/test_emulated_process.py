"""The emulated cell as a process: it streams, obeys, misbehaves on request, and ends."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from twinstudio.flow.link import Link
from twinstudio.model.block import Block
from twinstudio.model.errors import LinkError
from twinstudio.model.scene import load_scene
from twinstudio.physics.cellfaults import NAMES, LossyEndpoint
from twinstudio.physics.emulated import CellServer, emulated_cell

PATIENCE = 30.0
SERVE = "import sys; from twinstudio.physics.emulated import serve; serve(sys.argv[1], attached={})"


@contextmanager
def running(scene: str = "emps_axis", attached: bool = True) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE.format(attached), scene],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def control(process: subprocess.Popen) -> str:
    line = process.stdout.readline()
    if not line:
        pytest.fail(process.stderr.read())
    return json.loads(line)["control"]


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {what}")
        time.sleep(0.01)


@pytest.fixture
def joined() -> Iterator[tuple[Link, list[Block]]]:
    """A running axis, a link to it, and the blocks that came."""
    blocks: list[Block] = []
    with running() as process:
        link = Link(control(process), sinks=[blocks.append])
        try:
            until(lambda: len(blocks) > 20, "blocks arrive")
            yield link, blocks
        finally:
            link.close()


def test_that_it_streams_a_kilohertz_without_loss(joined):
    link, blocks = joined
    assert link.description.role == "cell"
    assert link.description.rate == 1000.0
    until(lambda: len(blocks) > 100, "half a second of blocks")
    stamps = np.concatenate([block.stamps for block in list(blocks)])
    assert (np.diff(stamps) > 0).all()
    assert np.median(np.diff(stamps)) == 1_000_000
    assert link.health().lost == 0
    for block in list(blocks):
        assert block.received >= block.stamps[-1]  # the same clock: nothing from the future


def test_that_status_tells_of_motion_heat_and_timing(joined):
    status = joined[0].request("status")
    assert status["running"] is True
    assert status["faults"] == []
    assert status["lateness_p99"] >= status["lateness_p50"] >= 0.0
    assert len(status["case_temperature"]) == 1
    assert status["payload"] == 1.5


def test_that_the_motion_halts_and_goes_on(joined):
    link, blocks = joined
    link.request("program", run=False)
    until(lambda: not blocks[-1].of("command.velocity").any(), "the motion halts")
    assert link.request("status")["rate"] == 0.0
    link.request("program", run=True)
    link.request("speed", factor=0.5)
    until(lambda: blocks[-1].of("command.velocity").any(), "the motion goes on")
    until(lambda: link.request("status")["rate"] == 0.5, "half speed is reached")


def test_that_the_surroundings_can_be_warmed(joined):
    link, blocks = joined
    link.request("temperature", ambient=35.0)
    until(lambda: blocks[-1].of("ambient.temperature")[0, 0] == 35.0, "the ambient follows")


def test_that_every_fault_shows_at_the_other_end(joined):
    link, blocks = joined
    seen: dict[str, Callable[[], bool]] = {
        "nan": lambda: np.isnan(blocks[-1].of("joint.position")).all(),
        "repeat_stamp": lambda: 0 in np.diff(blocks[-1].stamps),
        "reverse_stamp": lambda: max(np.diff(blocks[-1].stamps)) < 0,
        "heat": lambda: blocks[-1].of("joint.temperature")[-1, 0] > 21.5,
        "payload": lambda: link.request("status")["payload"] == 900.0,
        "snag": lambda: abs(blocks[-1].of("joint.effort")).max() > 120.0,
    }
    values = {"heat": 900.0, "payload": 900.0, "snag": 150.0}
    for name, shows in seen.items():
        extra = {"value": values[name]} if name in values else {}
        extra |= {"joint": "axis"} if name == "snag" else {}
        assert link.request("fault", name=name, on=True, **extra) == [name]
        until(shows, name)
        assert link.request("fault", name=name, on=False) == []
        if name != "heat":  # what is warm stays warm
            until(lambda shows=shows: not shows(), f"{name} is over")


def test_that_a_cell_can_vanish_and_come_back(joined):
    link, blocks = joined
    link.request("fault", name="vanish", on=True)
    link.request("status")
    silent = len(blocks)
    until(lambda: link.health().age > 0.2, "silence")
    assert len(blocks) <= silent + 2
    link.request("fault", name="vanish", on=False)
    until(lambda: len(blocks) > silent + 10, "it is back")


def test_that_dropped_messages_are_counted_as_lost(joined):
    link, _ = joined
    link.request("fault", name="drop", on=True, value=7)
    until(lambda: link.health().lost >= 35, "seven messages of five samples are missed")
    assert link.health().lost == 35


@pytest.mark.parametrize(
    ("operation", "args", "words"),
    [
        ("fault", {"name": "gremlin", "on": True}, "unknown fault 'gremlin'"),
        ("fault", {"name": "payload", "on": True}, "needs 'value': kg"),
        ("fault", {"name": "snag", "on": True, "value": 1.0, "joint": "nose"}, "one of: axis"),
        ("fault", {"name": "nan", "on": "yes"}, "'on' must be true or false"),
        ("fault", {"name": 3, "on": True}, "are texts"),
        ("fault", {"name": "heat", "on": True, "value": -1.0}, "'value' must be"),
        ("speed", {"factor": 2.0}, "'factor' must be 0 to 1"),
        ("speed", {"factor": True}, "'factor' must be 0 to 1"),
        ("speed", {}, "'factor' must be 0 to 1"),
        ("temperature", {"ambient": "warm"}, "'ambient' must be -40 to 80"),
        ("program", {"on": True}, "unknown argument 'on'; known: run"),
        ("status", {"all": True}, "unknown argument 'all'"),
    ],
)
def test_that_a_wrong_request_is_refused_in_plain_words(shared_link, operation, args, words):
    with pytest.raises(LinkError, match=words):
        shared_link.request(operation, **args)


@pytest.fixture(scope="module")
def shared_link() -> Iterator[Link]:
    with running() as process:
        link = Link(control(process))
        try:
            yield link
        finally:
            link.close()


def test_that_operations_are_described(shared_link):
    until(lambda: shared_link.description is not None, "hello")
    offered = {operation.name: operation for operation in shared_link.description.operations}
    assert set(offered) == {"status", "program", "speed", "temperature", "fault", "stop"}
    for name in NAMES:
        assert name in offered["fault"].args["name"]


def stalling(seconds: float) -> Callable[[], bool]:
    """Lets a server publish 20 blocks, and takes its time once after the tenth."""
    calls = iter(range(21))

    def over() -> bool:
        k = next(calls)
        if k == 10:
            time.sleep(seconds)
        return k == 20

    return over


@pytest.mark.parametrize(("stall", "left_out"), [(0.05, False), (0.4, True)])
def test_that_a_stall_is_caught_up_or_else_reported(stall, left_out):
    cell = emulated_cell(load_scene("emps_axis"), np.random.default_rng(0))
    server = CellServer(cell, end=lambda: None)
    sent: list[np.ndarray] = []
    with LossyEndpoint(role="cell", name="axis", layout=cell.layout, rate=1000.0) as endpoint:
        endpoint.publish = lambda stamps, _values: sent.append(stamps)
        server.run(endpoint, until=stalling(stall))
        link = Link(endpoint.control)
        try:
            until(lambda: link.description is not None, "hello")
            events = link.request("events", since=0)
        finally:
            link.close()
    status = server.status({})
    gaps = np.diff(np.concatenate(sent))
    assert len(gaps) == 99
    if left_out:
        assert status["left_out"] > 0.3
        assert [event["code"] for event in events] == ["behind"]
        assert gaps.max() == pytest.approx(1e6 + status["left_out"] * 1e9)
    elif status["left_out"] == 0.0:  # or else the machine itself stalled
        assert (gaps == 1_000_000).all()
        assert events == []


def test_that_it_ends_with_its_parent():
    with running() as process:
        control(process)
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        process.stdin = None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_that_it_ends_when_told_by_a_signal(number):
    with running(attached=False) as process:
        control(process)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


def test_that_it_ends_on_request():
    with running(attached=False) as process:
        link = Link(control(process))
        try:
            until(lambda: link.description is not None, "hello")
            link.request("stop")
            assert process.wait(PATIENCE) == 0
        finally:
            link.close()


def test_that_a_scene_that_is_not_there_is_an_error():
    with running("no_such_scene") as process:
        assert process.wait(PATIENCE) != 0
        assert "there is no scene 'no_such_scene'" in process.stderr.read()
