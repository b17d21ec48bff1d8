"""What plugins give back."""

import math

import msgspec
import pytest

from twinstudio.model.errors import QuantityError
from twinstudio.model.results import Change, Patch, Result, Scalar, Series, Table

GOOD = (
    Scalar(name="mass", value=1.2, unit="kg", low=1.1, high=1.3),
    Series(name="error", x=(0.0, 1.0), y=(0.0, math.nan), x_unit="s", y_unit="rad"),
    Table(name="joints", columns=("joint", "rms"), units=("", "rad"), rows=(("a", 1.0),)),
    Patch(name="gains", changes=(Change(key="twin.position_gain", value=0.2),), reason="fits"),
)


def test_that_results_survive_being_written() -> None:
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(GOOD), type=tuple[Result, ...])
    assert repr(again) == repr(GOOD)  # NaN is not equal to itself


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Scalar(name="m", value=math.nan, unit="kg"), "no figure"),
        (lambda: Scalar(name="m", value=2.0, unit="kg", low=0.0, high=1.0), "outside its interval"),
        (lambda: Scalar(name="m", value=2.0, unit="stone"), "unknown unit"),
        (lambda: Series(name="s", x=(0.0,), y=(), x_unit="s", y_unit="1"), "1 x but 0 y"),
        (lambda: Table(name="t", columns=("a",), units=(), rows=()), "1 columns but 0 units"),
        (lambda: Table(name="t", columns=("a",), units=("",), rows=(("x", 1),)), "row 0 has 2"),
    ],
)
def test_that_a_senseless_result_is_refused(make, complaint) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(QuantityError, match=complaint):
        make()
