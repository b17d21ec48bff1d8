"""A recording survives kill -9, a full disk and a careless copy."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from record_helpers import LAYOUT, SMALL, announced, block, same_bits

from twinstudio.flow.record import RecordingWriter, read_recording
from twinstudio.model.block import Block
from twinstudio.model.errors import RecordingError

TESTS = Path(__file__).resolve().parents[1]
HEAD = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
import resource, signal, time
from pathlib import Path
from record_helpers import LAYOUT, announced, block
from twinstudio.flow.record import Recorder, SourceDescription
path = Path(sys.argv[1])
"""


def _child(code: str, path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(code), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_that_after_kill_9_the_file_opens_and_lacks_the_last_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    child = _child(
        """
        writer = announced(path, "cell")
        recorder = Recorder(writer)
        sink = recorder.sink("cell")
        first = 0
        while True:
            now = time.monotonic_ns()
            sink(block(count=10, first=first, start=now, received=now))
            first += 10
            print(now, flush=True)
            time.sleep(0.01)
        """,
        path,
    )
    assert child.stdout is not None
    lines = [int(child.stdout.readline())]
    while lines[-1] - lines[0] < 3 * 10**9:
        lines.append(int(child.stdout.readline()))
    child.send_signal(signal.SIGKILL)
    lines += [int(line) for line in child.stdout.read().splitlines()]
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL

    with path.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count == sum(1 for _ in reader.iter_messages())
    recording = read_recording(path)
    assert recording.problems == ()
    source = recording.sources["cell"]
    assert np.array_equal(source.sequence, np.arange(len(source.block)))
    assert source.received is not None
    assert lines[-1] - source.received[-1] < 10**9


def test_that_a_file_size_limit_stops_the_recording_and_keeps_it_valid(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    child = _child(
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        recorder = Recorder(announced(path, "cell"))
        sink = recorder.sink("cell")
        first = 0
        deadline = time.monotonic() + 30
        while recorder.status().active and time.monotonic() < deadline:
            at = first * 1_000_000
            sink(block(count=1000, first=first, start=at, received=at))
            first += 1000
            time.sleep(0.02)
        sink(block())
        recorder.stop()
        print(recorder.status().alarm)
        """,
        path,
    )
    told, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    source = read_recording(path).sources["cell"]
    assert read_recording(path).problems == ()
    assert len(source.block) > 1000
    assert same_bits(source.block.values[:1000], block(count=1000).values)
    assert "disk full" in told
    assert "recording stopped, kept" in told
    assert str(path) in told
    with path.open("rb") as stream:
        assert sum(1 for _ in make_reader(stream).iter_messages()) == 3 * len(source.block)
    assert path.stat().st_size <= 3_000_000


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting a small disk needs root"
)
def test_that_a_full_disk_stops_the_recording_and_keeps_it_valid(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        path = tmp_path / "a.mcap"
        writer = announced(path, "cell")
        written = []
        with pytest.raises(RecordingError, match=r"disk full: recording stopped, kept [1-9]"):
            _fill(writer, written)
        kept = 1000 * len(written)
        assert not writer.is_open
        recording = read_recording(path)
        assert recording.problems == ()
        assert len(recording.sources["cell"].block) == kept
        writer.close()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def _fill(writer: RecordingWriter, written: list[Block]) -> None:
    for first in range(0, 10**6, 1000):
        each = block(count=1000, first=first, start=first * 1_000_000)
        writer.write("cell", each)
        writer.checkpoint()
        written.append(each)


def _recorded(path: Path, checkpoints: int = 4) -> list[int]:
    """A recording of 100 samples a checkpoint; the file's size after each."""
    sizes = []
    with announced(path, "cell") as writer:
        for k in range(checkpoints):
            writer.write("cell", block(count=100, first=100 * k, start=10**8 * k))
            writer.checkpoint()
            sizes.append(path.stat().st_size)
    return sizes


def test_that_a_file_is_complete_after_every_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with announced(path, "cell") as writer:
        for k in range(4):
            writer.write("cell", block(count=100, first=100 * k, start=10**8 * k))
            writer.checkpoint()
            copy = tmp_path / f"{k}.mcap"
            copy.write_bytes(path.read_bytes())
            recording = read_recording(copy)
            assert recording.problems == ()
            assert len(recording.sources["cell"].block) == 100 * (k + 1)


def test_that_a_file_cut_anywhere_gives_what_lies_before_the_cut(tmp_path: Path) -> None:
    path, cut = tmp_path / "a.mcap", tmp_path / "cut.mcap"
    _recorded(path)
    data = path.read_bytes()
    whole = read_recording(path).sources["cell"].block
    last = 0
    for size in range(1000, len(data), 997):
        cut.write_bytes(data[:size])
        recording = read_recording(cut)
        assert any("no footer" in line for line in recording.problems)
        told = recording.sources["cell"].block
        assert len(told) >= last
        assert same_bits(told.values, whole.values[: len(told)])
        last = len(told)
    assert last == 400


def test_that_a_damaged_chunk_costs_its_samples_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    _recorded(path)
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    index = [c for c in summary.chunk_indexes if c.message_index_offsets][1]
    data = bytearray(path.read_bytes())
    middle = index.chunk_start_offset + index.chunk_length // 2
    data[middle : middle + 8] = bytes(byte ^ 0xFF for byte in data[middle : middle + 8])
    path.write_bytes(data)
    recording = read_recording(path)
    assert recording.sources["cell"].sequence.tolist() == [*range(100), *range(200, 400)]
    assert any("a chunk is damaged" in line for line in recording.problems)
    assert any("100 samples lost" in line for line in recording.problems)


def test_that_random_damage_never_passes_unseen_or_crashes(tmp_path: Path) -> None:
    path, bad = tmp_path / "a.mcap", tmp_path / "bad.mcap"
    _recorded(path, checkpoints=2)
    data = path.read_bytes()
    whole = read_recording(path).sources["cell"].block
    random = np.random.default_rng(5)
    for _ in range(300):
        spoilt = bytearray(data)
        start = int(random.integers(8, len(data) - 8))
        spoilt[start : start + 4] = random.bytes(4)
        bad.write_bytes(spoilt)
        try:
            recording = read_recording(bad)
        except RecordingError:
            continue
        source = recording.sources.get("cell")
        if source is not None and source.layout == LAYOUT and not recording.problems:
            assert same_bits(source.block.values, whole.values)


def test_that_an_untouched_writer_leaves_a_file_that_opens(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    writer = announced(path, "cell", layout=SMALL)
    copy = tmp_path / "copy.mcap"
    copy.write_bytes(path.read_bytes())
    writer.close()
    assert read_recording(copy).sources == {}
    assert "cell" in read_recording(path).sources


def test_that_a_checkpoint_torn_in_the_middle_costs_what_it_was_to_add(tmp_path: Path) -> None:
    path, torn = tmp_path / "a.mcap", tmp_path / "torn.mcap"
    states = []
    with announced(path, "cell") as writer:
        for k in range(3):
            writer.write("cell", block(count=100, first=100 * k, start=10**8 * k))
            writer.checkpoint()
            states.append(path.read_bytes())
    whole = read_recording(path).sources["cell"].block
    before, after = states[-2:]
    start = next(k for k, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    for size in range(start, len(after), 499):
        torn.write_bytes(after[:size] + before[size:])
        told = read_recording(torn).sources["cell"].block
        assert len(told) in (200, 300)
        assert same_bits(told.values, whole.values[: len(told)])
