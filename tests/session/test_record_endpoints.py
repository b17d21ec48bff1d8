"""Recording running endpoints without a session."""

import threading
import time
from pathlib import Path

import pytest
from wire_helpers import WIDER, RawBridge, plain

from twinstudio.flow.record import read_recording
from twinstudio.model.errors import RecordingError
from twinstudio.session.recording import record_endpoints


def test_that_events_and_new_layouts_are_recorded_and_silence_is_told(tmp_path: Path) -> None:
    out = tmp_path / "a.mcap"
    with RawBridge() as bridge:
        bridge.event(0, published=False)

        def play() -> None:
            bridge.subscribed()
            for k in range(10):
                bridge.send(k, [time.monotonic_ns()])
                time.sleep(0.05)
            bridge.event(1)
            bridge.description |= {"revision": 2, "layout": plain(WIDER)}
            bridge.send(10, [time.monotonic_ns()], width=4)

        player = threading.Thread(target=play)
        player.start()
        outcome = record_endpoints(out, cell=bridge.control, twin="", seconds=3.0)
        player.join()
    found = read_recording(out)
    assert [event.event.text for event in found.events] == ["event 0", "event 1"]
    assert [s.block.layout.width for s in found.source("cell").stretches] == [2, 4]
    assert "no samples" in outcome["troubles"]["cell"]


def test_that_a_recording_without_a_sample_has_failed(tmp_path: Path) -> None:
    with RawBridge() as bridge, pytest.raises(RecordingError, match="not a single sample"):
        record_endpoints(tmp_path / "a.mcap", cell=bridge.control, twin="", seconds=0.5)
