"""The programs in the protocol page work as they stand, without Twinstudio's code."""

import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from wire_helpers import LAYOUT, until

import twinstudio
from twinstudio.flow.link import Link
from twinstudio.flow.serve import Endpoint
from twinstudio.model.errors import LinkError

PAGE = (Path(twinstudio.__file__).parent / "docs" / "protocol.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The page's programs as files, by name."""
    folder = tmp_path_factory.mktemp("stranger")
    files = {}
    for name, code in re.findall(r"```python\n# (\w+)\.py(.*?)```", PAGE, re.DOTALL):
        assert "twinstudio" not in code.lower()
        files[name] = folder / f"{name}.py"
        files[name].write_text(f"# {name}{code}", encoding="utf-8")
    assert set(files) == {"bridge", "client"}
    return files


@contextmanager
def bridge(programs, control=0, telemetry=0):
    """A running bridge: its process and the address of its control socket."""
    command = [sys.executable, "-I", programs["bridge"], str(control), str(telemetry)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def client(programs, address):
    command = [sys.executable, "-I", programs["client"], address]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_that_the_pages_bridge_streams_to_a_link(programs):
    blocks, events = [], []
    with (
        bridge(programs) as address,
        Link(address, sinks=[blocks.append], on_event=events.append) as link,
    ):
        until(lambda: link.health().received > 500)
        until(lambda: events)
        health = link.health()
        assert (health.state, health.lost, health.garbage) == ("streaming", 0, 0)
        assert (health.repeated, health.reversed) == (0, 0)
        assert [event.code for event in events] == ["started"]
        assert link.description.name == "two joints"
        assert link.clock.bound < 1.0
        assert abs(link.clock.offset) <= link.clock.bound  # one machine, one clock
        block = blocks[-1]
        angle = np.sin(block.stamps / 1e9)
        assert np.allclose(block.of("joint.position"), np.column_stack([angle, -angle]))
        assert np.isnan(block.of("joint.current")).all()
        with pytest.raises(LinkError, match="unknown operation 'dance'; known: hello"):
            link.request("dance")


def test_that_the_pages_bridge_is_found_again_after_a_restart(programs):
    with bridge(programs) as address:
        port = int(address.rsplit(":", 1)[1])
        link = Link(address)
        until(lambda: link.health().received)
    with link:
        until(lambda: link.health().state == "silent")
        with bridge(programs, control=port):
            until(lambda: link.health().restarts == 1 and link.health().state == "streaming")
            assert link.health().lost == 0


def test_that_the_pages_client_reads_an_endpoint(programs):
    stop = threading.Event()
    with Endpoint(role="twin", name="t", layout=LAYOUT, rate=100.0) as endpoint:
        endpoint.event("info", "ready", "go")

        def publish():
            k = 0
            while not stop.wait(0.01):
                endpoint.publish(np.array([k, k + 1]), np.array([[0.0, 0.0], [k, 0.25]]))
                k += 2

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            done = client(programs, endpoint.control)
        finally:
            stop.set()
            thread.join()
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["columns", "joint.position/a", "joint.position/b"]
    offset, bound = float(lines[1][1]), float(lines[1][3])
    assert abs(offset) <= bound
    assert lines[2] == ["events", "ready"]
    samples = [line for line in lines if line[0] == "sample"]
    assert len(samples) == 10
    for _, seq, stamp, _, lost, a, b in samples:
        assert int(seq) == int(stamp) == float(a) + 1
        assert (int(lost), float(b)) == (0, 0.25)


def test_that_the_pages_programs_understand_each_other(programs):
    with bridge(programs) as address:
        done = client(programs, address)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("lost 0") == 10
