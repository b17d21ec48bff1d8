"""Results of a plugin as the terminal shows them."""

import pytest

from twinstudio.cli import show
from twinstudio.model.results import Change, Image, Patch, Scalar, Series, Table

PLAIN = Scalar(name="share", value=0.93887, unit="1")


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed."""
    return capsys.readouterr().out


def test_that_a_figure_without_an_interval_is_not_given_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show.results([PLAIN])
    text = printed(capsys)
    assert "0.9389" in text
    assert not any(word in text for word in ("inf", "interval", "note", "0.9389 1"))


def test_that_what_a_fit_cannot_tell_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show.results([PLAIN], unknown="no interval")
    assert "no interval" in printed(capsys)


def test_that_an_interval_and_a_note_have_columns_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = Scalar(name="mass", value=1.0, unit="kg", low=0.9, high=1.1, note="held out")
    show.results([PLAIN, known])
    text = printed(capsys)
    assert "95 % interval" in text
    assert "0.900 to 1.10" in text
    assert "held out" in text


def test_that_a_table_of_many_columns_is_turned_and_keeps_every_heading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = tuple(f"before panda_joint{k}" for k in range(20))
    row = tuple(float(k) + 0.123456789 for k in range(20))
    show.results([Table(name="by time", columns=names, units=("N m",) * 20, rows=(row, row))])
    text = printed(capsys)
    assert all(f"{name} [N m]" in text for name in names)
    assert "…" not in text


def test_that_a_table_that_fits_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show.results(
        [Table(name="t", columns=("a", "b", "c"), units=("s", "1", ""), rows=((1, 2, "x"),))]
    )
    text = printed(capsys)
    assert "row" not in text
    assert "[s]" in text
    assert "[1]" not in text


def test_that_what_a_terminal_cannot_draw_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    curve = Series(name="torque", x=(0.0, 1.0), y=(1.0, 2.0), x_unit="s", y_unit="N m")
    picture = Image(name="map", data=b"\x89PNG\r\n\x1a\n", format="png")
    show.results([curve, picture], elsewhere=", see --html")
    text = printed(capsys)
    assert "torque: a curve of 2 points, N m over s, see --html" in text
    assert "map: a picture, png, 8 bytes, see --html" in text


def test_that_a_patch_is_told_with_the_number_that_promotes_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    patch = Patch(name="masses", changes=(Change(key="objects.cube.mass", value=0.2),), reason="r")
    show.results([PLAIN, patch])
    assert "masses (result 2): r\n  objects.cube.mass = 0.2" in printed(capsys)
