"""Texts that others wrote: shown on one line, whatever they are."""

from hypothesis import given
from hypothesis import strategies as st

from twinstudio.model.words import is_printable, of_error, one_line, sayable, trace_of


class OddError(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@given(st.text(st.characters(exclude_categories=())))
def test_that_any_text_becomes_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert is_printable(line)
    line.encode()


@given(st.text(st.characters(exclude_categories=())))
def test_that_what_is_sayable_can_be_written(text: str) -> None:
    assert len(sayable(text).encode().decode()) == len(text)


def test_that_an_exception_is_told_with_its_type() -> None:
    assert of_error(ValueError("a\nb")) == "ValueError: a b"
    assert of_error(ValueError()) == "ValueError"


def test_that_an_exception_without_a_text_is_told_too() -> None:
    assert of_error(OddError()) == "OddError, whose text cannot be had"
    assert "OddError" in trace_of(OddError())
    trace_of(ValueError("\ud800")).encode()
