"""A replayed log is a live cell: same samples, same pace, its defects included."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from record_helpers import LAYOUT, SMALL, announced, block, same_bits
from wire_helpers import until

from twinstudio.flow.link import Link
from twinstudio.flow.protocol import Event
from twinstudio.flow.record import Recording, read_recording
from twinstudio.flow.replay import Replay, Timeline
from twinstudio.model.block import Block
from twinstudio.model.errors import LinkError, RecordingError
from twinstudio.model.signals import Layout

MS = 1_000_000


def _recording(tmp_path: Path, *blocks: Block, layout: Layout = LAYOUT) -> Recording:
    path = tmp_path / "log.mcap"
    with announced(path, "cell", layout=layout) as writer:
        for each in blocks:
            writer.write("cell", each)
    return read_recording(path)


class Listener:
    """What came from a replay."""

    def __init__(self, replay: Replay) -> None:
        self.blocks: list[Block] = []
        self.events: list[Event] = []
        self.link = Link(replay.control, sinks=[self.blocks.append], on_event=self.events.append)

    @property
    def count(self) -> int:
        return sum(map(len, list(self.blocks)))

    def stamps(self) -> np.ndarray:
        return np.concatenate([b.stamps for b in list(self.blocks)])

    def values(self) -> np.ndarray:
        return np.vstack([b.values for b in list(self.blocks)])

    def has(self, code: str) -> bool:
        return any(event.code == code for event in list(self.events))


@contextmanager
def playing(recording: Recording, **options: object) -> Iterator[tuple[Replay, Listener]]:
    """A replay that waits until somebody listens, and the one who does."""
    with Replay(recording, paused=True, **options) as replay:
        listener = Listener(replay)
        try:
            until(lambda: listener.link.description)
            # A subscription takes effect unseen: wait until an event gets through.
            number = iter(range(10**6))
            until(lambda: replay.endpoint.event("info", f"probe{next(number)}", "") and any(
                e.code.startswith("probe") for e in listener.events))  # fmt: skip
            replay.resume()
            yield replay, listener
        finally:
            listener.link.close()


def test_that_every_sample_is_replayed_bit_for_bit_at_its_own_distance(tmp_path: Path) -> None:
    wanted = block(count=300, start=10**12)
    values = wanted.values.copy()
    values[5:7] = np.nan
    stamps = wanted.stamps.copy()
    stamps[100:] += 70 * MS  # a hole
    stamps[50] = stamps[49]  # a repeated stamp
    stamps[60] = stamps[58]  # a reversed one
    with playing(_recording(tmp_path, Block(LAYOUT, stamps, values))) as (_, heard):
        until(lambda: heard.count == 300)
        until(lambda: heard.has("end of log"))
        assert heard.count == 300
        assert same_bits(heard.values(), values)
        told = heard.stamps()
        assert np.array_equal(np.diff(told), np.diff(stamps))
        assert [b.first for b in heard.blocks] == np.cumsum(
            [0, *map(len, heard.blocks[:-1])]
        ).tolist()


def test_that_stamps_tell_when_the_samples_left(tmp_path: Path) -> None:
    with playing(_recording(tmp_path, block(count=200, start=5))) as (_, heard):
        until(lambda: heard.count == 200)
    for each in heard.blocks:  # same clock here: nothing can arrive before it was due
        assert each.received is not None
        assert each.received >= each.stamps[-1]


@pytest.mark.parametrize("rate", [0.5, 4.0])
def test_that_a_rate_stretches_or_compresses_the_stamps(tmp_path: Path, rate: float) -> None:
    recording = _recording(tmp_path, block(count=100, step=2 * MS))
    with playing(recording, rate=rate) as (replay, heard):
        until(lambda: heard.count == 100)
        assert replay.status().rate == rate
        assert np.abs(np.diff(heard.stamps()) - 2 * MS / rate).max() <= 1


def test_that_the_end_of_the_log_is_told_and_a_seek_plays_it_again(tmp_path: Path) -> None:
    with playing(_recording(tmp_path, block(count=50))) as (replay, heard):
        until(lambda: heard.has("end of log"))
        assert replay.status().position == replay.status().duration == pytest.approx(0.05)
        assert heard.count == 50
        heard.link.request("seek", seconds=0.04)
        until(lambda: heard.count == 60)
        assert same_bits(heard.values()[50:], heard.values()[40:50])
        assert (np.diff(heard.stamps()) > 0).all()
        until(lambda: sum(e.code == "end of log" for e in heard.events) == 2)
        assert heard.has("seek")


def test_that_a_loop_starts_over_with_rising_stamps_and_says_so(tmp_path: Path) -> None:
    with playing(_recording(tmp_path, block(count=20)), loop=True) as (replay, heard):
        until(lambda: heard.count >= 70)
        heard.link.request("loop", on=False)
        until(lambda: heard.has("end of log"))
        assert heard.has("loop")
        assert not replay.status().loop
        told = heard.values()
        assert len(told) % 20 == 0
        assert all(same_bits(told[k : k + 20], told[:20]) for k in range(0, len(told), 20))
        assert (np.diff(heard.stamps()) > 0).all()


def test_that_a_loop_switched_on_at_the_end_starts_over(tmp_path: Path) -> None:
    with playing(_recording(tmp_path, block(count=5))) as (replay, heard):
        until(lambda: heard.has("end of log"))
        replay.loop(True)
        until(lambda: heard.count > 10)


def test_that_a_pause_holds_and_resume_goes_on_without_loss(tmp_path: Path) -> None:
    recording = _recording(tmp_path, block(count=400))
    with playing(recording) as (replay, heard):
        until(lambda: heard.count > 20)
        replay.pause()
        held = replay.status().position
        assert replay.status().paused
        before = time.monotonic_ns()
        until(lambda: time.monotonic_ns() - before > 50 * MS)
        assert replay.status().position == held
        replay.resume()
        until(lambda: heard.count == 400)
        assert same_bits(heard.values(), block(count=400).values)
        steps = np.diff(heard.stamps())
        assert (steps > 0).all()
        assert steps.max() > 50 * MS


def test_that_many_changes_of_rate_and_place_never_turn_stamps_back(tmp_path: Path) -> None:
    recording = _recording(tmp_path, block(count=2000))
    random = np.random.default_rng(3)
    with playing(recording, loop=True) as (replay, heard):
        for _ in range(60):
            choice = random.integers(4)
            if choice == 0:
                replay.seek(float(random.uniform(0, 2)))
            elif choice == 1:
                replay.rate(float(random.uniform(0.1, 10)))
            elif choice == 2:
                replay.pause()
            replay.resume()
            goal = heard.count + 3
            until(lambda: heard.count >= goal)  # noqa: B023
        assert (np.diff(heard.stamps()) > 0).all()


def test_that_a_change_of_layout_in_the_log_is_one_on_the_wire(tmp_path: Path) -> None:
    recording = _recording(tmp_path, block(count=30), block(SMALL, 30, first=30, start=30 * MS))
    with playing(recording) as (_, heard):
        until(lambda: heard.count >= 30 and heard.has("end of log"))
        replayed = [b for b in heard.blocks if b.layout == LAYOUT]
        assert same_bits(np.vstack([b.values for b in replayed]), block(count=30).values)
        until(lambda: heard.link.health().relayouts == 1)


def test_that_a_slow_log_is_not_held_back_by_batches(tmp_path: Path) -> None:
    recording = _recording(tmp_path, block(count=4, step=60 * MS))
    with playing(recording) as (_, heard):
        until(lambda: heard.count == 4)
        assert [len(b) for b in heard.blocks] == [1, 1, 1, 1]


def test_that_a_source_that_had_restarted_goes_on_and_an_event_says_so(tmp_path: Path) -> None:
    recording = _recording(tmp_path, block(count=30, start=10**15), block(count=30, first=0))
    timeline = Timeline(recording.sources["cell"])
    assert timeline.jumps == (30,)
    assert timeline.duration == 60 * MS
    with playing(recording) as (_, heard):
        until(lambda: heard.count == 60)
        assert (np.diff(heard.stamps()) == MS).all()
        until(lambda: heard.has("log-clock"))


def test_that_operations_answer_over_the_wire_and_refuse_nonsense(tmp_path: Path) -> None:
    with playing(_recording(tmp_path, block(count=5000))) as (_, heard):
        ask = heard.link.request
        ask("pause")
        ask("rate", factor=2)
        status = ask("status")
        assert (status["paused"], status["rate"], status["loop"]) == (True, 2.0, False)
        assert status["duration"] == pytest.approx(5.0)
        for op, args, words in (
            ("rate", {"factor": 100}, "runs at 0.1 to 10"),
            ("rate", {"factor": float("nan")}, "runs at 0.1 to 10"),
            ("seek", {"seconds": 6}, "has 0 to 5 s"),
            ("seek", {"seconds": "x"}, "must be a number"),
            ("loop", {"on": 1}, "must be true or false"),
        ):
            with pytest.raises(LinkError, match=words):
                ask(op, **args)


def test_that_a_source_without_samples_is_refused(tmp_path: Path) -> None:
    recording = _recording(tmp_path)
    with pytest.raises(RecordingError, match="has no samples"):
        Replay(recording)
    with pytest.raises(RecordingError, match="no source 'twin'"):
        Replay(recording, source="twin")


def test_that_a_wild_stamp_in_a_log_is_no_pause_of_years(tmp_path: Path) -> None:
    stamps = np.arange(10, dtype=np.int64) * MS + 10**9
    stamps[4] += 10 * 365 * 86_400 * 10**9
    values = np.zeros((10, SMALL.width))
    recording = _recording(tmp_path, Block(SMALL, stamps, values), layout=SMALL)
    timeline = Timeline(recording.source("cell"))
    assert timeline.wild == 1
    assert timeline.duration == 10 * MS
    assert timeline.offsets.tolist() == [k * MS for k in range(10)]
