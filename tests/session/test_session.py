"""A whole session with its real processes: twin, emulated cell, recording, replay."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from twinstudio.flow.record import read_recording
from twinstudio.model.errors import LinkError, RecordingError
from twinstudio.model.views import TraceQuery
from twinstudio.session.session import Session

PATIENCE = 30.0


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


def streaming(session: Session, role: str) -> bool:
    source = session.snapshot().source(role)  # type: ignore[arg-type]
    return source is not None and source.health.state == "streaming"


def texts(session: Session, level: str) -> str:
    return "\n".join(entry.text for entry in session.entries(0) if entry.level == level)


@pytest.fixture(scope="module")
def live() -> Iterator[Session]:
    """One session on the demo scene that has paired twin and cell."""
    with Session.open("panda_cell") as session:
        until(lambda: session.snapshot().window is not None, "a gap")
        yield session


@pytest.fixture
def mortal() -> Iterator[Session]:
    """A session of one's own, whose processes may be killed."""
    with Session.open("panda_cell") as session:
        until(lambda: session.snapshot().window is not None, "a gap")
        yield session


@pytest.fixture(scope="module")
def recording(live: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of both sources."""
    path = tmp_path_factory.mktemp("recording") / "demo.mcap"
    assert live.run("record.start", path=str(path)) == str(path)
    time.sleep(2.0)
    live.run("record.stop")
    return path


def test_that_twin_and_cell_stream_and_their_gap_is_told(live: Session) -> None:
    until(lambda: live.snapshot().real_time > 0.5, "the twin's pace")
    snapshot = live.snapshot()
    assert {source.role for source in snapshot.sources} == {"cell", "twin"}
    for source in snapshot.sources:
        assert np.isfinite(source.joints).all()
        assert source.health.offset_bound < 0.01
    assert snapshot.run is not None
    assert [joint.name for joint in snapshot.run.joints] == list(live.scene.robot.joints)
    assert all(joint.position.n > 0 for joint in snapshot.run.joints if joint.position)
    assert live.geometry is not None


def test_that_traces_have_twin_cell_and_gap_on_one_axis(live: Session) -> None:
    start, end = live.extent()
    assert end > start
    query = TraceQuery("joint.position", ("panda_joint2",), end - 10**9, end, 300)
    until(
        lambda: {trace.source for trace in live.traces(query)} == {"cell", "twin", "gap"},
        "all three lines",
    )
    for trace in live.traces(query):
        assert len(trace.time) == len(trace.value) <= 600 + 4
        assert trace.unit == "rad"


def test_that_traces_can_be_drawn_by_arrival(live: Session) -> None:
    now = time.monotonic_ns()
    query = TraceQuery("joint.position", ("panda_joint1",), now - 10**9, now, 300, by_arrival=True)
    assert {trace.source for trace in live.traces(query)} == {"cell", "twin"}


def test_that_a_past_moment_can_be_looked_at(live: Session) -> None:
    _, end = live.extent()
    moment = live.moment(end - 200_000_000)
    assert moment.cell is not None
    assert moment.twin is not None
    assert np.abs(moment.cell - moment.twin).max() < 0.5
    assert "cube" in moment.objects


def test_that_every_signal_says_which_sources_have_it(live: Session) -> None:
    choices = {choice.name: choice for choice in live.signals()}
    assert set(choices["joint.position"].sources) == {"cell", "twin"}
    assert choices["joint.current"].sources == ("cell",)


def test_that_a_recording_holds_both_sources_clocks_and_the_scene(recording: Path) -> None:
    found = read_recording(recording)
    assert set(found.sources) == {"cell", "twin"}
    assert found.sources["cell"].lost == 0
    assert len(found.sources["cell"].block) > 1000
    assert set(found.clocks) == {"cell", "twin"}
    assert "panda" in found.scene_text
    assert found.problems == ()


def test_that_recording_twice_or_stopping_nothing_is_refused(live: Session) -> None:
    with pytest.raises(RecordingError, match="nothing is being recorded"):
        live.run("record.stop")


def test_that_a_submitted_command_that_fails_is_an_alarm_in_the_log(live: Session) -> None:
    with pytest.raises(LinkError):
        live.submit("replay.pause").result(10)
    assert "the cell is no replay" in texts(live, "alarm")
    assert "replay.pause()" in texts(live, "info")


def test_that_readings_that_are_nan_are_counted_and_survived(live: Session) -> None:
    cell = live._cast.get("cell")
    before = cell.link.health().missing
    cell.link.request("fault", name="nan", on=True)
    until(lambda: cell.link.health().missing > before, "NaN counted")
    cell.link.request("fault", name="nan", on=False)
    until(lambda: streaming(live, "cell"), "the cell streams on")


def test_that_a_metric_is_added_to_the_window_and_removed_by_command(live: Session) -> None:
    assert {"metric.add", "metric.remove"} <= {info.name for info in live.commands()}
    key = live.run("metric.add", plugin="twinstudio.error_band", params={"share": "90 %"})
    until(lambda: live.snapshot().metrics[0].state == "measuring", "figures")
    (view,) = live.snapshot().metrics
    assert (view.key, view.measured.params["share"]) == (key, 0.9)
    assert len(view.measured.results) == 7
    assert 0 < view.end - view.start < 12 * 10**9
    live.run("metric.remove", key=key)
    assert live.snapshot().metrics == ()
    assert "metric.add(plugin='twinstudio.error_band', params={'share': '90 %'})" in texts(
        live, "info"
    )


def test_that_a_killed_twin_is_told_and_can_be_restarted(mortal: Session, tmp_path: Path) -> None:
    mortal.run("record.start", path=str(tmp_path / "through.mcap"))
    child = mortal._cast.get("twin").child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: "SIGKILL" in texts(mortal, "alarm"), "the death is told")
    dead = mortal.snapshot().source("twin")
    assert dead is not None
    assert not dead.running
    assert "SIGKILL" in dead.note
    assert streaming(mortal, "cell")
    mortal.run("twin.restart")
    until(lambda: streaming(mortal, "twin"), "the twin is back")
    until(lambda: (mortal.snapshot().source("twin") or dead).running, "it runs")
    mortal.run("record.stop")
    found = read_recording(tmp_path / "through.mcap")
    assert found.sources["cell"].lost == 0
    assert len(found.sources["twin"].block) > 0


def test_that_a_killed_cell_leaves_the_twin_running(mortal: Session) -> None:
    child = mortal._cast.get("cell").child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not streaming(mortal, "cell"), "the cell is seen to be gone")
    received = mortal._cast.get("twin").link.health().received
    until(lambda: mortal._cast.get("twin").link.health().received > received + 100, "twin goes on")
    mortal.run("cell.restart")
    until(lambda: streaming(mortal, "cell"), "the cell is back")


def test_that_a_recording_is_replayed_as_the_cell(recording: Path) -> None:
    with Session.open("panda_cell", log=recording) as session:
        until(lambda: session.snapshot().replay is not None, "the transport")
        until(lambda: streaming(session, "cell"), "the replay streams")
        session.run("replay.pause")
        session.run("replay.seek", seconds=0.5)
        view = session.snapshot().replay
        assert view is not None
        assert view.paused
        assert view.position == pytest.approx(0.5, abs=0.05)
        assert view.duration == pytest.approx(2.0, abs=0.5)
        session.run("replay.loop", on=True)
        session.run("replay.rate", factor=2.0)
        session.run("replay.resume")
        view = session.snapshot().replay
        assert view is not None
        assert (view.rate, view.loop, view.paused) == (2.0, True, False)


def test_that_closing_while_starting_leaves_nothing_behind() -> None:
    session = Session.open("panda_cell")
    session.start()
    session.close()


def test_that_a_cell_of_another_robot_is_named(recording: Path) -> None:
    with Session.open("emps_axis", log=recording) as session:
        until(lambda: "reports no position of axis" in texts(session, "warning"), "the warning")
