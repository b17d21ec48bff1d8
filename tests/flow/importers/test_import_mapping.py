"""CSV and MATLAB logs that a mapping file describes."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.flow.importers import read_log
from twinstudio.flow.importers.bounds import ABSURD
from twinstudio.flow.importers.mapping import si_unit
from twinstudio.flow.importers.text import FIELDS, NUMBER, TIME
from twinstudio.model.errors import LogError, QuantityError, TwinstudioError
from twinstudio.model.quantity import UNITS, to_si

MAPPING = """
[time]
column = "t"
unit = "ms"

[[signal]]
name = "joint.position"
labels = ["j1", "j2"]
columns = ["q1", "q2"]
unit = "deg"

[[signal]]
name = "joint.temperature"
columns = ["heat"]
unit = "degC"
"""


def files(folder: Path, mapping: str, log: str) -> tuple[Path, Path]:
    (folder / "map.toml").write_text(mapping, encoding="utf-8")
    (folder / "log.csv").write_text(log, encoding="utf-8")
    return folder / "log.csv", folder / "map.toml"


def test_that_csv_columns_become_signals_in_si(tmp_path: Path) -> None:
    log, mapping = files(tmp_path, MAPPING, "t,q2,q1,heat,other\n0.5,90,180,21,1\n1.5,0,,22,2\n")
    found = read_log("csv", log, mapping=mapping)
    block = found.sources["cell"].block
    assert block.layout.columns == (
        "joint.position/j1",
        "joint.position/j2",
        "joint.temperature/heat",
    )
    assert block.layout.units == ("rad", "rad", "degC")
    assert block.stamps.tolist() == [500_000, 1_500_000]
    assert np.allclose(block.values[0], [np.pi, np.pi / 2, 21], rtol=1e-15)
    assert np.isnan(block.values[1, 0])
    assert "left out, not in the mapping: other" in found.notes


def test_that_bad_csv_rows_are_counted_by_reason(tmp_path: Path) -> None:
    rows = ["0,0,0,20", "1,x,0,20", "2,0,0", "never,0,0,20", "4,1e300,0,20", "3,inf,0,20"]
    log, mapping = files(tmp_path, MAPPING, "\n".join(["t,q1,q2,heat", *rows]))
    table = read_log("csv", log, mapping=mapping).tables[0]
    assert (table.rows, table.kept) == (6, 1)
    assert dict(table.dropped) == {NUMBER: 1, FIELDS: 1, TIME: 1, ABSURD: 2}


def test_that_stamps_that_go_back_or_repeat_are_kept(tmp_path: Path) -> None:
    rows = "t,q1,q2,heat\n1,0,0,20\n1,0,0,20\n0,0,0,20\n"
    log, mapping = files(tmp_path, MAPPING, rows)
    stamps = read_log("csv", log, mapping=mapping).sources["cell"].block.stamps
    assert stamps.tolist() == [1_000_000, 1_000_000, 0]


def test_that_a_rate_stands_in_for_time_and_a_dropped_row_leaves_a_gap(tmp_path: Path) -> None:
    mapping = """
    rate = "100 Hz"
    header = false
    delimiter = ";"
    decimal = ","
    skip = 1
    source = "bench"
    [[signal]]
    name = "raw.load"
    columns = ["2"]
    unit = "1"
    scale = 0.5
    """
    log, path = files(tmp_path, mapping, "a comment\n7;1,5\n7;oops\n7;3\n")
    source = read_log("csv", log, mapping=path).sources["bench"]
    assert source.rate == 100.0
    assert source.block.stamps.tolist() == [0, 20_000_000]
    assert source.block.values[:, 0].tolist() == [0.75, 1.5]


def test_that_time_with_decimal_comma_is_exact(tmp_path: Path) -> None:
    mapping = MAPPING.replace("[time]", 'decimal = ","\ndelimiter = ";"\n[time]').replace(
        '"ms"', '"s"'
    )
    rows = "t;q1;q2;heat\n1438867240,474289961;0;0;20\n1.5;0;0;20\n"
    log, path = files(tmp_path, mapping, rows)
    found = read_log("csv", log, mapping=path)
    assert found.sources["cell"].block.stamps.tolist() == [1438867240474289961]
    assert dict(found.tables[0].dropped) == {TIME: 1}


def test_that_iso_times_are_read(tmp_path: Path) -> None:
    mapping = MAPPING.replace('"ms"', '"iso8601"')
    log, path = files(tmp_path, mapping, "t,q1,q2,heat\n1970-01-01T00:00:02.000000001Z,0,0,20\n")
    block = read_log("csv", log, mapping=path).sources["cell"].block
    assert block.stamps.tolist() == [2_000_000_001]


def test_that_times_a_recording_cannot_hold_are_counted(tmp_path: Path) -> None:
    log, path = files(tmp_path, MAPPING, "t,q1,q2,heat\n-1,0,0,20\n0,0,0,20\n3e12,0,0,20\n")
    found = read_log("csv", log, mapping=path)
    assert found.sources["cell"].block.stamps.tolist() == [0]
    assert dict(found.tables[0].dropped) == {"time before 0 or past 2^31 s": 2}
    log, path = files(tmp_path, MAPPING, "t,q1,q2,heat\n-1,0,0,20\n")
    with pytest.raises(LogError, match="every time of source 'cell'"):
        read_log("csv", log, mapping=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"q2"', '"q9"'), r"map\.toml.*names 'q9'.*it has t, q1, q2, heat"),
        (('column = "t"', 'column = "time"'), "names 'time'"),
        (('"deg"', '"degree"'), "unknown unit 'degree'"),
        (('"j2"', '"j1"'), "labels repeat"),
        (('labels = ["j1", "j2"]', 'labels = ["j1"]'), "2 columns but 1 labels"),
        (('"ms"', '"days"'), r"map\.toml: key 'time\.unit'"),
        (('unit = "deg"', 'unit = "deg"\nfoo = 1'), r"unknown key '.*foo'"),
        (("[time]", "rate = 10\n[time]"), r"either \[time\] or rate"),
        (('[time]\ncolumn = "t"\nunit = "ms"', ""), r"either \[time\] or rate"),
        (("[time]", 'delimiter = ";;"\n[time]'), "expected one character"),
        (("[time]", 'delimiter = "."\n[time]'), "expected one character"),
        (("[time]", "time ="), "no valid TOML"),
    ],
)
def test_that_a_wrong_mapping_is_one_clear_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    log, path = files(tmp_path, MAPPING.replace(*change), "t,q1,q2,heat\n0,0,0,20\n")
    with pytest.raises(TwinstudioError, match=message) as caught:
        read_log("csv", log, mapping=path)
    assert "\n" not in str(caught.value)


def test_that_a_csv_without_mapping_shows_its_columns(tmp_path: Path) -> None:
    log, _ = files(tmp_path, "", "t,q1\n0,1\n")
    with pytest.raises(LogError, match=r"needs a mapping file; its first line is 't,q1'"):
        read_log("csv", log)


def test_that_repeated_column_names_cannot_be_used(tmp_path: Path) -> None:
    log, path = files(tmp_path, MAPPING, "t,q1,q1,q2,heat\n0,0,0,0,20\n")
    with pytest.raises(LogError, match="column names repeat: q1"):
        read_log("csv", log, mapping=path)


@given(st.sampled_from(sorted(UNITS)), st.floats(-1e3, 1e3))
def test_that_every_unit_has_an_si_unit_of_its_kind(name: str, value: float) -> None:
    target = si_unit(name)
    assert UNITS[target].kind == UNITS[name].kind
    assert UNITS[target].factor == 1.0
    assert to_si(f"{value:f} {name}", target) == pytest.approx(
        float(f"{value:f}") * UNITS[name].factor, abs=1e-300
    )


def test_that_an_unknown_unit_is_refused() -> None:
    with pytest.raises(QuantityError, match="furlong"):
        si_unit("furlong")


MAT = """
[time]
column = "time"

[[signal]]
name = "joint.position"
labels = ["a", "b"]
columns = ["rec.q[0]", "rec.q[1]"]
unit = "deg"
"""


def mat5(path: Path) -> None:
    q = np.array([[0.0, 90.0, 180.0], [1.0, 2.0, 3.0]])
    scipy.io.savemat(path, {"time": [0.0, 0.1, 0.2], "rec": {"q": q}, "name": "text"})


def mat73(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        # MATLAB's 2 x 3 array is stored transposed.
        file["rec/q"] = np.array([[0.0, 1.0], [90.0, 2.0], [180.0, 3.0]])
        file["time"] = np.array([[0.0], [0.1], [0.2]])
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124))


@pytest.mark.parametrize("make", [mat5, mat73])
def test_that_both_kinds_of_matlab_files_read_alike(tmp_path: Path, make: object) -> None:
    path, mapping = tmp_path / "log.mat", tmp_path / "map.toml"
    assert callable(make)
    make(path)
    mapping.write_text(MAT, encoding="utf-8")
    block = read_log("mat", path, mapping=mapping).sources["cell"].block
    assert block.stamps.tolist() == [0, 100_000_000, 200_000_000]
    assert np.allclose(np.degrees(block.values), [[0, 1], [90, 2], [180, 3]], rtol=1e-15)


def test_that_variables_are_listed_when_the_mapping_misses(tmp_path: Path) -> None:
    path, mapping = tmp_path / "log.mat", tmp_path / "map.toml"
    mat5(path)
    with pytest.raises(LogError, match=r"needs a mapping file; it has time \[1 x 3\], rec\.q"):
        read_log("mat", path)
    for wrong in ("rec.q[2]", "rec.p[0]", "rec.q"):
        mapping.write_text(MAT.replace("rec.q[1]", wrong), encoding="utf-8")
        with pytest.raises(LogError, match=r"which the log does not have; it has time \[1 x 3\]"):
            read_log("mat", path, mapping=mapping)


def test_that_matlab_columns_of_unequal_length_are_refused(tmp_path: Path) -> None:
    path, mapping = tmp_path / "log.mat", tmp_path / "map.toml"
    scipy.io.savemat(path, {"time": [0.0, 0.1], "rec": {"q": np.zeros((2, 3))}})
    mapping.write_text(MAT, encoding="utf-8")
    with pytest.raises(LogError, match=r"differ in length: rec\.q\[0\] 3, rec\.q\[1\] 3, time 2"):
        read_log("mat", path, mapping=mapping)


def test_that_a_matlab_log_may_have_a_rate_and_times_that_are_none(tmp_path: Path) -> None:
    path, mapping = tmp_path / "log.mat", tmp_path / "map.toml"
    scipy.io.savemat(path, {"time": [0.0, np.nan, np.inf], "rec": {"q": np.zeros((2, 3))}})
    mapping.write_text(MAT, encoding="utf-8")
    found = read_log("mat", path, mapping=mapping)
    assert dict(found.tables[0].dropped) == {TIME: 2}
    mapping.write_text(MAT.replace('[time]\ncolumn = "time"', "rate = 4"), encoding="utf-8")
    block = read_log("mat", path, mapping=mapping).sources["cell"].block
    assert block.stamps.tolist() == [0, 250_000_000, 500_000_000]


def test_that_a_truncated_matlab_file_is_called_damaged(tmp_path: Path) -> None:
    for name, make in (("5.mat", mat5), ("73.mat", mat73)):
        path = tmp_path / name
        make(path)
        path.write_bytes(path.read_bytes()[:-80] if make is mat5 else path.read_bytes()[:700])
        with pytest.raises(LogError, match="is damaged"):
            read_log("mat", path)
