"""From a log to a recording on disk."""

from pathlib import Path

import numpy as np
import pytest

from twinstudio.flow.importers import FORMATS, convert, import_log
from twinstudio.flow.record.reader import read_recording
from twinstudio.model.errors import LogError, RecordingError

MAPPING = """
[time]
column = "t"
[[signal]]
name = "joint.position"
columns = ["q"]
unit = "rad"
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = ["t,q", "0,1", "0.01,2", "0.02,x", "0.02,3", "0.02,", "0.01,5", "0.5,6"]
    (tmp_path / "log.csv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "map.toml").write_text(MAPPING, encoding="utf-8")
    return tmp_path / "log.csv"


def convert_(log: Path, out: Path, **options: bool) -> object:
    return import_log("csv", log, out, mapping=log.with_name("map.toml"), **options)


def test_that_every_kept_row_is_in_the_recording_as_it_was(log: Path) -> None:
    out = log.with_name("out.mcap")
    report = import_log("csv", log, out, mapping=log.with_name("map.toml"))
    recording = read_recording(out)
    block = recording.source("cell").block
    assert block.stamps.tolist() == [k * 10**7 for k in (0, 1, 2, 2, 1, 50)]
    assert np.array_equal(block.values[:, 0], [1, 2, 3, np.nan, 5, 6], equal_nan=True)
    assert (report.rows, report.kept, report.nan) == (7, 6, 1)
    assert report.dropped == {"not a number": 1}
    source = report.sources[0]
    assert (source.duplicated, source.backward, source.gaps) == (1, 1, 1)
    texts = [event.event.text for event in recording.events]
    assert all(text in texts for text in (*report.notes, *report.problems))
    assert recording.provenance is not None
    assert list(recording.provenance.inputs) == ["log.csv"]


def test_that_the_report_speaks_to_people_and_programs(log: Path) -> None:
    report = import_log("csv", log, log.with_name("o.mcap"), mapping=log.with_name("map.toml"))
    text = report.as_text()
    assert "6 of 7 rows kept" in text
    assert "1 row dropped, not a number (rows 3)" in text
    assert "stamps that go back (kept): 1" in text
    plain = report.as_json()
    assert plain["dropped"] == {"not a number": 1}
    assert plain["tables"][0]["where"] == {"not a number": [3]}
    assert plain["rows"] == plain["kept"] + sum(plain["dropped"].values())


def test_that_an_existing_recording_is_replaced_or_kept(log: Path) -> None:
    out = log.with_name("out.mcap")
    out.write_bytes(b"")
    with pytest.raises(LogError, match="exists already"):
        convert_(log, out, overwrite=False)
    assert out.read_bytes() == b""
    convert_(log, out)
    assert len(read_recording(out).source("cell").block) == 6


def test_that_a_failed_import_leaves_the_old_file_and_nothing_else(log: Path) -> None:
    out = log.with_name("out.mcap")
    out.write_bytes(b"old")
    log.write_text("t,q\nx,y\n", encoding="utf-8")
    with pytest.raises(LogError, match="none of 1 rows is usable"):
        convert_(log, out)
    assert out.read_bytes() == b"old"
    assert {p.name for p in log.parent.iterdir()} == {"log.csv", "map.toml", "out.mcap"}


def test_that_a_log_is_never_replaced_by_its_recording(log: Path) -> None:
    before = log.read_bytes()
    with pytest.raises(LogError, match="would replace the log itself"):
        convert_(log, log)
    assert log.read_bytes() == before


def test_that_a_folder_that_does_not_exist_is_named(log: Path) -> None:
    with pytest.raises(RecordingError, match="nowhere"):
        convert_(log, log.parent / "nowhere" / "out.mcap")


def test_that_unknown_formats_and_needless_mappings_are_refused(log: Path) -> None:
    with pytest.raises(LogError, match="unknown format 'xls'; known: panda_gaz, emps"):
        import_log("xls", log, log.with_name("o.mcap"))
    with pytest.raises(LogError, match="emps takes no mapping file"):
        import_log("emps", log, log.with_name("o.mcap"), mapping=log)


def test_that_every_format_has_one_reader() -> None:
    assert set(FORMATS) == set(convert.FIXED) | set(convert.MAPPED)
    assert len(FORMATS) == len(convert.FIXED) + len(convert.MAPPED) == 12
