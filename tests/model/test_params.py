"""Parameters of plugins: the one check that form, command line, console and runs share."""

from typing import Annotated, Literal

import pytest

from twinstudio.model import params
from twinstudio.model.config import si
from twinstudio.model.errors import ParamsError
from twinstudio.model.params import about


class Payload(params.Params, frozen=True, kw_only=True):
    mass: Annotated[float, si("kg", low=0.0, high=50.0, about="Mass at the tool")] = 1.0
    reach: Annotated[float, si("rad|m", about="How far it moves")] = 0.1
    repeats: Annotated[int, about("How often", low=1, high=9)]
    solver: Annotated[Literal["fast", "exact"], about("How it is solved")] = "exact"
    centre: Annotated[tuple[float, float, float], about("Centre of mass [m]")] = (0.0, 0.0, 0.0)
    verbose: Annotated[bool, about("Say more")] = False


class Silent(params.Params, frozen=True):
    gain: float = 1.0


def test_that_a_form_learns_all_it_needs_from_the_fields() -> None:
    mass, reach, repeats, solver, centre, verbose = params.fields(Payload)
    assert (mass.kind, mass.unit, mass.low, mass.high, mass.default) == ("number", "kg", 0, 50, 1)
    assert mass.units == ("kg", "g")
    assert {"deg", "mm"} <= set(reach.units)
    assert (repeats.kind, repeats.required, repeats.default) == ("integer", True, None)
    assert (solver.kind, solver.choices) == ("choice", ("fast", "exact"))
    assert (centre.kind, verbose.kind) == ("list", "flag")
    assert mass.help == "Mass at the tool"


def test_that_quantities_may_be_text_with_a_unit() -> None:
    made = params.make(Payload, {"mass": "250 g", "reach": "90 deg", "repeats": 2})
    assert made.mass == pytest.approx(0.25)
    assert made.reach == pytest.approx(1.5707963267948966)


def test_that_a_command_line_gives_the_same_parameters() -> None:
    words = ["mass=250 g", "repeats=2", "solver=fast", "centre=[0, 0, 0.1]", "verbose=true"]
    assert params.from_text(Payload, words) == params.make(
        Payload,
        {
            "mass": 0.25,
            "repeats": 2,
            "solver": "fast",
            "centre": [0.0, 0.0, 0.1],
            "verbose": True,
        },
    )


def test_that_plain_values_make_the_same_parameters_again() -> None:
    made = params.make(Payload, {"mass": "250 g", "repeats": 2})
    assert params.make(Payload, params.plain(made)) == made


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"mass": "60 kg", "repeats": 1}, "key 'mass': 60 kg is out of range, allowed 0 to 50 kg"),
        ({"mass": "1 mm", "repeats": 1}, "key 'mass': expected a mass (kg, g), got '1 mm'"),
        ({"mass": "nan", "repeats": 1}, "key 'mass'"),
        ({"mass": float("nan"), "repeats": 1}, "key 'mass'"),
        ({"repeats": 10}, "key 'repeats': 10 is out of range, allowed 1 to 9"),
        ({"repeats": 1.5}, "key 'repeats': expected int"),
        ({}, "key 'repeats' is missing"),
        ({"repeats": 1, "mas": 1}, "unknown key 'mas'; known keys here: mass, reach"),
        ({"repeats": 1, "solver": "slow"}, "key 'solver'"),
        ({"repeats": 1, "centre": [0.0]}, "key 'centre': expected array of length 3"),
        ({"repeats": None}, "key 'repeats': expected int"),
    ],
)
def test_that_a_wrong_value_is_one_line_with_name_and_range(
    values: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ParamsError) as caught:
        params.make(Payload, values, where="fit.payload")
    message = str(caught.value)
    assert complaint in message
    assert message.startswith("fit.payload: ")
    assert "\n" not in message


def test_that_a_word_without_a_value_is_refused() -> None:
    with pytest.raises(ParamsError, match="'mass' is no assignment; write name=value"):
        params.from_text(Payload, ["mass"])


def test_that_a_value_given_twice_is_refused() -> None:
    with pytest.raises(ParamsError, match="'mass' is given twice; give it once"):
        params.from_text(Payload, ["mass=1 kg", "mass=2 kg"])


def test_that_choices_are_texts() -> None:
    class Numbered(params.Params, frozen=True):
        mode: Annotated[Literal[1, 2], params.about("Mode")] = 1

    with pytest.raises(ParamsError, match=r"'mode' .* has choices that are no text; write each"):
        params.fields(Numbered)


def test_that_a_parameter_without_help_is_refused() -> None:
    with pytest.raises(ParamsError, match="parameter 'gain' of Silent has no help text"):
        params.fields(Silent)


def test_that_a_value_out_of_range_is_told_in_the_unit_of_its_range() -> None:
    class Bounds(params.Params, frozen=True):
        share: Annotated[float, si("%", low=0.0, high=0.9, about="Share")] = 0.1
        gap: Annotated[float, si("rad|m", low=0.0, about="Gap")] = 0.1

    for values, words in (
        ({"share": 8}, "key 'share': 800 % is out of range, allowed 0 to 90 %"),
        ({"share": "95 %"}, "key 'share': 95 % is out of range, allowed 0 to 90 %"),
        ({"gap": -1.0}, "key 'gap': -1 rad or m is out of range, allowed 0 rad or m and more"),
    ):
        with pytest.raises(ParamsError) as caught:
            params.make(Bounds, values)
        assert caught.value.what == words
