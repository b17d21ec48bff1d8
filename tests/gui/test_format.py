import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.gui import format as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.2345, "1.23"),
        (12.345, "12.3"),
        (123.45, "123"),
        (0.012345, "0.0123"),
        (9.996, "10.0"),
        (99.96, "100"),
        (-1.5, "−1.50"),
        (0.0, "0"),
        (-0.0, "0"),
        (12345.0, "12\u00a0345"),
        (1.5e-6, "1.5e-6"),
        (float("nan"), "–"),
        (float("inf"), "–"),
        (None, "–"),
    ],
)
def test_that_numbers_have_three_significant_digits(value: float | None, text: str) -> None:
    assert fmt.number(value) == text


def test_that_a_unit_stays_with_its_number_and_a_dash_stands_alone() -> None:
    assert fmt.figure(1.5, "mm") == "1.50\u00a0mm"
    assert fmt.figure(float("nan"), "mm") == "–"


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (0.0012, 0.0001, "+1.2 ±0.1\u00a0ms"),
        (-0.0012, 0.00012, "−1.2 ±0.2\u00a0ms"),
        (0.0012, float("inf"), "+1.20 ±?\u00a0ms"),
        (float("nan"), 0.1, "–"),
        (5.0, 0.02, "+5\u00a0000 ±20\u00a0ms"),
    ],
)
def test_that_an_offset_has_the_decimals_its_bound_is_good_for(
    value: float, bound: float, text: str
) -> None:
    assert fmt.plus_minus(value, bound, 1e3, "ms") == text


def test_that_views_show_millimetres_and_degrees() -> None:
    assert fmt.shown("m") == ("mm", 1e3)
    assert fmt.shown("rad", small=True) == ("mrad", 1e3)
    unit, factor = fmt.shown("rad", degrees=True)
    assert (unit, math.pi * factor) == ("°", pytest.approx(180.0))
    assert fmt.shown("A") == ("A", 1.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0:00.0"), (59.96, "1:00.0"), (61.5, "1:01.5"), (3700.0, "1:01:40")],
)
def test_that_a_position_reads_like_a_clock(seconds: float, text: str) -> None:
    assert fmt.clock(seconds) == text


@given(st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf, -math.inf]))
def test_that_any_number_is_close_to_what_is_shown(value: float) -> None:
    text = fmt.number(value)
    if math.isfinite(value):
        back = float(text.replace("−", "-").replace("\u00a0", ""))
        assert back == pytest.approx(value, rel=0.06)
    else:
        assert text == "–"
