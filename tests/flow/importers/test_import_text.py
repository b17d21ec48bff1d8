"""Text to numbers and times, with an account of every row."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.flow.importers.clocktext import to_ns
from twinstudio.flow.importers.log import Tally
from twinstudio.flow.importers.text import (
    BLANK,
    FIELDS,
    NUMBER,
    TIME,
    Dialect,
    Rows,
    numbers,
    read_lines,
    split,
    times,
)
from twinstudio.model.errors import LogError

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_that_seconds_with_nine_digits_are_exact(ns: int) -> None:
    text = f"{'-' if ns < 0 else ''}{abs(ns) // 10**9}.{abs(ns) % 10**9:09d}"
    assert to_ns(text, "s") == ns


@given(st.integers(0, 2**31 * 10**9), st.sampled_from(["ns", "us", "ms", "s", "min", "h"]))
def test_that_every_unit_agrees_with_exact_arithmetic(ns: int, unit: str) -> None:
    per = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
    whole = ns // per[unit] * per[unit]
    assert to_ns(str(whole // per[unit]), unit) == whole


@given(
    st.datetimes(datetime.fromisoformat("1970-01-02"), datetime.fromisoformat("2200-01-01")),
    st.integers(-720, 720),
)
def test_that_iso_times_with_zones_are_exact(moment: datetime, minutes: int) -> None:
    sign = "+" if minutes >= 0 else "-"
    zone = f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    wanted = moment.replace(tzinfo=UTC) - timedelta(minutes=minutes)
    since = wanted - datetime(1970, 1, 1, tzinfo=UTC)
    ns = (since // timedelta(microseconds=1)) * 1000
    text = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}"
    assert to_ns(text + zone, "iso8601") == ns
    assert to_ns(text + "123" + zone, "iso8601") == ns + 123


def test_that_an_iso_time_without_zone_is_utc() -> None:
    assert to_ns("1970-01-01T00:00:01.5", "iso8601") == 1_500_000_000
    assert to_ns("1970-01-01 00:00:01Z", "iso8601") == 10**9


@pytest.mark.parametrize(
    "text",
    ["", "nan", "inf", "1_0", "1e300", "1e9999", "1e99999", "0x10", "1,5", "12:00", "١", "-"],
)
def test_that_what_is_no_time_in_range_is_none(text: str) -> None:
    assert to_ns(text, "s") is None


@pytest.mark.parametrize("text", ["", "2022-13-01T00:00:00", "12.5", "9999-12-31T00:00:00Z"])
def test_that_what_is_no_iso_time_is_none(text: str) -> None:
    assert to_ns(text, "iso8601") is None


@given(st.text())
def test_that_no_text_breaks_the_time_parser(text: str) -> None:
    for unit in ("s", "iso8601"):
        result = to_ns(text, unit)
        assert result is None or isinstance(result, int)


@given(st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1), st.sampled_from(".,"))
def test_that_written_floats_come_back_bit_for_bit(table: list[list[float]], decimal: str) -> None:
    lines = [";".join(repr(v).replace(".", decimal) for v in row) for row in table]
    tally = Tally("t")
    rows = split(lines, Dialect(";", decimal), tally)
    found = numbers(rows, range(3), tally, decimal)
    assert tally.kept == len(table)
    assert np.array_equal(found.values, np.array(table))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n")), max_size=30))
def test_that_every_row_of_any_text_is_kept_or_counted(lines: list[str]) -> None:
    tally = Tally("t")
    rows = split(lines, Dialect(), tally, width=2)
    found = numbers(rows, range(2), tally)
    assert tally.rows == len(lines)
    assert len(found.values) == tally.kept == len(lines) - tally.dropped.total()
    assert found.keep.sum() == len(found.values)


def test_that_each_kind_of_bad_row_has_its_own_count() -> None:
    lines = ["1,2", "1,2,3", "", "1,x", "1,", "1_0,2", "5,nan", "1"]
    tally = Tally("t")
    found = numbers(split(lines, Dialect(), tally, width=2), range(2), tally)
    assert dict(tally.dropped) == {FIELDS: 2, BLANK: 1, NUMBER: 2}
    assert tally.where == {FIELDS: [2, 8], BLANK: [3], NUMBER: [4, 6]}
    assert found.numbers.tolist() == [1, 5, 7]
    assert np.isnan(found.values[1:, 1]).all()


def test_that_a_point_in_a_decimal_comma_file_is_not_guessed_at() -> None:
    tally = Tally("t")
    rows = split(["1,5;2", "1.500;2", "-7,39E-30;1"], Dialect(";", ","), tally)
    found = numbers(rows, range(2), tally, ",")
    assert found.values.tolist() == [[1.5, 2.0], [-7.39e-30, 1.0]]
    assert dict(tally.dropped) == {NUMBER: 1}


def test_that_a_damaged_first_row_does_not_set_the_width() -> None:
    tally = Tally("t")
    rows = split(["1,2,3,4", "1,2", "3,4", "5,6"], Dialect(), tally)
    assert rows.numbers == [2, 3, 4]


def test_that_a_stray_quote_costs_one_row_only() -> None:
    tally = Tally("t")
    found = numbers(split(['"1,2', "3,4", "5,6"], Dialect(), tally, width=2), range(2), tally)
    assert found.values.tolist() == [[3.0, 4.0], [5.0, 6.0]]


def test_that_quoted_fields_are_read_when_asked() -> None:
    tally = Tally("t")
    rows = split(['"a,b",c', '"1","2"'], Dialect(quoted=True), tally, header=True)
    assert rows.header == ("a,b", "c")
    assert rows.rows == [["1", "2"]]


def test_that_rows_without_a_time_are_counted() -> None:
    tally = Tally("t", rows=3)
    rows = Rows((), [["0.1", "1"], ["never", "2"], ["1e300", "3"]], [1, 2, 3])
    stamps, kept = times(rows, 0, "s", tally)
    assert stamps.tolist() == [100_000_000]
    assert kept.numbers == [1]
    assert dict(tally.dropped) == {TIME: 2}


@pytest.mark.parametrize(
    ("content", "what"), [(b"", "is empty"), (b" \n", "is empty"), (b"\0\1\2", "no text file")]
)
def test_that_a_file_without_text_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(LogError, match=what):
        read_lines(path)


def test_that_bytes_that_are_no_text_spoil_one_row_only(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"1,2\r\n\xff\xfe,3\r\n4,5\r\n")
    tally = Tally("t")
    found = numbers(split(read_lines(path), Dialect(), tally, width=2), range(2), tally)
    assert found.values.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert dict(tally.dropped) == {NUMBER: 1}


def test_that_a_decimal_unix_time_does_not_go_through_a_float() -> None:
    text = "1438867240.474289961"
    assert to_ns(text, "s") == int(Decimal(text) * 10**9)
    assert to_ns(text, "s") != round(float(text) * 1e9)
