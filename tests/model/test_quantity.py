"""Units and quantities."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.model.errors import QuantityError
from twinstudio.model.quantity import UNITS, from_si, same_kind, to_si, unit

FINITE = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "expected", "value"),
    [
        ("25 mm", "m", 0.025),
        ("-90 deg", "rad", -math.pi / 2),
        ("1 h", "s", 3600.0),
        ("2 MiB", "B", 2 * 2**20),
        ("1e-3 kg", "kg", 1e-3),
        (".5 N m", "N m", 0.5),
        ("25 mm", "rad|m", 0.025),
        ("180 deg", "rad|m", math.pi),
        (7, "N", 7.0),
    ],
)
def test_that_a_quantity_becomes_si(text: str, expected: str, value: float) -> None:
    assert to_si(text, expected) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 kg", "expected a length (m, cm, mm, um), got '1 kg', a mass"),
        ("1 rad", "expected a length (m, cm, mm, um), got '1 rad', an angle"),
        ("one mm", "expected a quantity such as '1.5 m', got 'one mm'"),
        ("1", "expected a quantity such as"),
        ("1 parsec", "unknown unit 'parsec'"),
        ("1e999 m", "finite"),
    ],
)
def test_that_a_wrong_quantity_is_explained(text: str, complaint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        to_si(text, "m")
    assert complaint in str(caught.value)


@given(FINITE, st.sampled_from(sorted(UNITS)))
def test_that_conversion_there_and_back_is_the_identity(value: float, name: str) -> None:
    si = value * unit(name).factor + unit(name).offset
    assert from_si(si, name) == pytest.approx(value, rel=1e-12, abs=1e-12)


@given(st.text(max_size=30))
def test_that_any_text_is_a_number_or_a_clear_error(text: str) -> None:
    try:
        number = to_si(text, "m")
    except QuantityError:
        return
    assert math.isfinite(number)


def test_that_every_unit_is_among_its_own_kind() -> None:
    assert all(name in same_kind(name) for name in UNITS)
