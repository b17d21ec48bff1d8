"""The recorder never blocks its sources, and says what it could not keep."""

import threading
from pathlib import Path

import numpy as np
import pytest
from record_helpers import LAYOUT, SMALL, announced, block, same_bits
from wire_helpers import until

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.protocol import VERSION, Event
from twinstudio.flow.record import Recorder, RecordingWriter, SourceDescription, read_recording
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError
from twinstudio.model.views import Entry


def _event(number: int) -> Event:
    return Event(v=VERSION, instance="i", seq=number, stamp=1, level="info", code="c", text="t")


class _Stuck(RecordingWriter):
    """A writer whose disk does not answer until `go` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = threading.Event()
        self.busy = threading.Event()

    def write_all(self, name: str, blocks: list[Block]) -> None:
        self.busy.set()
        assert self.go.wait(30)
        super().write_all(name, blocks)


def test_that_blocks_of_two_sources_events_and_clocks_arrive_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    model = ClockModel(reference=1, shift=2)
    with Recorder(RecordingWriter(path)) as recorder:
        sinks = {}
        for name in ("cell", "twin"):
            recorder.source(name, SourceDescription(name, name, LAYOUT, 1000.0))
            sinks[name] = recorder.sink(name)
        for first in range(0, 100, 10):
            for name, sink in sinks.items():
                sink(block(first=first, start=first * 10**6, received=1, seed=len(name)))
            recorder.event("cell", _event(first))
        recorder.event("session", Entry(seq=0, stamp=1, level="info", kind="k", text="t"))
        recorder.clock("twin", model)
        status = recorder.stop()
    assert (status.active, status.dropped, status.alarm) == (False, 0, "")
    assert status.bytes == path.stat().st_size
    recording = read_recording(path)
    assert recording.problems == ()
    for source in recording.sources.values():
        assert np.array_equal(source.sequence, np.arange(100))
    assert [e.event.seq for e in recording.events if e.source == "cell"] == list(range(0, 100, 10))
    assert recording.clocks["twin"][0].model() == model


def test_that_a_full_queue_drops_samples_counts_them_and_keeps_events(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    writer = _Stuck(path)
    writer.source("cell", SourceDescription("cell", "cell", SMALL))
    each = block(SMALL, 100)
    recorder = Recorder(writer, queue=3 * (each.stamps.nbytes + each.values.nbytes))
    try:
        sink = recorder.sink("cell")
        sink(block(SMALL, 100))
        assert writer.busy.wait(10)
        for number in range(1, 6):  # two fit beside the one being written
            sink(block(SMALL, 100, first=100 * number))
            recorder.event("cell", _event(number))
        assert recorder.dropped == {"cell": 300}
        assert recorder.status().dropped == 300
        assert "300 samples of cell dropped" in recorder.status().alarm
    finally:
        writer.go.set()
        recorder.stop()
    recording = read_recording(path)
    assert len(recording.sources["cell"].block) == 300
    assert len([e for e in recording.events if e.source == "cell"]) == 5
    assert "300 samples of cell dropped" in recording.events[-1].event.text


def test_that_a_block_that_cannot_be_stored_is_counted_and_the_others_are_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.mcap"
    with Recorder(announced(path, "cell", layout=SMALL)) as recorder:
        sink = recorder.sink("cell")
        sink(block(SMALL, 10))
        sink(Block(SMALL, np.array([-5], dtype=np.int64), np.zeros((1, 1)), 10))
        sink(block(SMALL, 10, first=11))
        recorder.sink("nobody")(block(SMALL, 2))
    assert recorder.refused == {"cell": 1, "nobody": 2}
    assert "1 samples of cell not stored" in recorder.status().alarm
    assert read_recording(path).sources["cell"].sequence.tolist() == [*range(10), *range(11, 21)]


def test_that_a_failing_disk_stops_the_recording_with_an_alarm(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"

    class Failing(RecordingWriter):
        def checkpoint(self) -> None:
            super().close()
            raise RecordingError("disk full: recording stopped, kept 1.0 s")

    writer = Failing(path)
    recorder = Recorder(writer)
    try:
        until(lambda: not recorder.status().active)
        assert recorder.status().alarm == "disk full: recording stopped, kept 1.0 s"
        seconds = recorder.status().seconds
        recorder.sink("cell")(block())  # does nothing, and does not raise
        recorder.event("cell", _event(0))
        assert recorder.status().seconds == seconds
    finally:
        recorder.stop()
    assert read_recording(path).events == ()


def test_that_a_changed_layout_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with Recorder(RecordingWriter(path)) as recorder:
        sink = recorder.sink("cell")
        for first, layout in ((0, LAYOUT), (10, SMALL)):
            recorder.source("cell", SourceDescription("cell", "cell", layout))
            sink(block(layout, first=first))
    stretches = read_recording(path).sources["cell"].stretches
    assert [s.block.layout for s in stretches] == [LAYOUT, SMALL]
    assert same_bits(stretches[1].block.values, block(SMALL, first=10).values)


@pytest.mark.parametrize("times", [1, 3])
def test_that_stop_may_be_called_again(tmp_path: Path, times: int) -> None:
    recorder = Recorder(RecordingWriter(tmp_path / "a.mcap"))
    for _ in range(times):
        assert not recorder.stop().active
