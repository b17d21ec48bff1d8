"""Forms: what was typed goes to core as it was meant, and core's words stand under it."""

import threading
from typing import Annotated

import pytest
from gui.fake_workshop import Everything, Plain, entry, head_of, run_of
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from twinstudio.gui.forms.editors import NumberEditor, TextEditor
from twinstudio.gui.forms.fields import explained
from twinstudio.gui.forms.form import Form, FormSource
from twinstudio.gui.forms.inputs import run_params
from twinstudio.gui.notices import Notices
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import DARK, LIGHT
from twinstudio.jobs.spec import RUNNABLE, Input
from twinstudio.model.params import Field, Params, about, fields, make
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.slots import InputSlot

SLOTS = {"command": (InputSlot("log", "What it reads", required=False),)}


@pytest.fixture
def form(qtbot: QtBot) -> Form:
    return form_of(qtbot, Everything)


def form_of(qtbot: QtBot, kind: type[Params], plugin_kind: str = "command") -> Form:
    heads = (head_of(run_of("20260504-120000-aaaaaa")),)
    source = FormSource(
        entry=entry("acme.everything", plugin_kind),
        kind=kind,
        fields=fields(kind),
        slots=SLOTS.get(plugin_kind, KINDS[plugin_kind].inputs),
        runs=heads,
    )
    checker = Reader(Notices())
    made = Form(source, LIGHT, checker)
    checker.setParent(made)
    qtbot.addWidget(made, before_close_func=lambda _form: checker.close())
    return made


def type_in(form: Form, name: str, text: str) -> None:
    part = form.params if name in form.params.editors else form.rest
    editor = part.editors[name]
    assert isinstance(editor, TextEditor | NumberEditor)
    editor.line.setText(text)


def number(form: Form, name: str) -> NumberEditor:
    editor = form.params.editors[name]
    assert isinstance(editor, NumberEditor)
    return editor


def said(form: Form, name: str) -> str:
    return (form.params.complaints | form.rest.complaints)[name].text.text()


def test_that_every_kind_that_runs_has_its_run_form() -> None:
    for kind in RUNNABLE:
        names = [field.name for field in fields(run_params(kind, KINDS[kind].inputs))]
        assert names[0] == "seed"
        assert {slot.name for slot in KINDS[kind].inputs} <= set(names)


def test_that_a_required_parameter_must_be_given_before_the_job_can_be_run(form: Form) -> None:
    assert "is missing" in said(form, "mass")
    assert not form.run.isEnabled()
    type_in(form, "mass", "2")
    assert said(form, "mass") == ""
    assert form.run.isEnabled()


def test_that_core_is_given_the_number_with_its_unit(form: Form) -> None:
    type_in(form, "mass", "250")
    mass = number(form, "mass")
    mass.units.setCurrentIndex(mass.units.findData("kg"))
    assert form.params.given()["mass"] == "250 kg"
    assert "is out of range, allowed 0 to 50 kg" in said(form, "mass")
    assert "0 to 50 kg" in said(form, "mass")
    mass.units.setCurrentIndex(mass.units.findData("g"))
    mass.line.setText("250")
    assert make(Everything, form.params.given()).mass == 0.25


def test_that_another_unit_shows_the_same_quantity(form: Form) -> None:
    reach = number(form, "reach")
    assert reach.line.text() == "0.025"
    reach.units.setCurrentIndex(reach.units.findData("mm"))
    assert reach.line.text() == "25"
    assert form.params.given()["reach"] == 0.025
    reach.line.setText("30")
    reach.units.setCurrentIndex(reach.units.findData("cm"))
    assert reach.line.text() == "3"
    type_in(form, "mass", "1")
    assert make(Everything, form.params.given()).reach == pytest.approx(0.03)


def test_that_a_unit_may_be_typed(form: Form) -> None:
    type_in(form, "mass", "1")
    type_in(form, "reach", "25 cm")
    assert make(Everything, form.params.given()).reach == 0.25


def test_that_bounds_are_told_in_the_unit_that_is_shown(form: Form) -> None:
    reach = number(form, "reach")
    assert "0 to 2\u00a0m" in form.params.bounds["reach"].text()
    reach.units.setCurrentIndex(reach.units.findData("mm"))
    assert "0 to 2000\u00a0mm" in form.params.bounds["reach"].text()


@given(value=st.floats(-3.0, 3.0))
def test_that_a_value_that_nobody_edited_stays_exact_in_any_unit(
    qapp: object, value: float
) -> None:
    editor = NumberEditor(next(f for f in fields(Everything) if f.name == "angle"))
    editor.show_value(value)
    editor.units.setCurrentIndex(editor.units.findData("deg"))
    editor.units.setCurrentIndex(editor.units.findData("mrad"))
    assert editor.given() == value


@pytest.mark.parametrize("text", ["", "abc", "1,5", "nan", "1 2", "0x10"])
def test_that_what_is_no_number_is_refused_in_words(form: Form, text: str) -> None:
    type_in(form, "mass", "1")
    type_in(form, "reach", text)
    assert said(form, "reach").startswith(("expected a quantity", "unknown unit"))
    assert not form.run.isEnabled()


def test_that_each_wrong_value_has_its_own_words(form: Form) -> None:
    type_in(form, "mass", "-1")
    type_in(form, "count", "99")
    type_in(form, "weights", "1, two")
    for name in ("mass", "count", "weights"):
        assert said(form, name), name
    assert said(form, "reach") == ""
    assert "two" not in form.complaint.text.text()


def test_that_values_are_what_was_typed(form: Form) -> None:
    for name, text in {"mass": "1", "count": "5", "label": "42", "weights": "2, 3.5"}.items():
        type_in(form, name, text)
    made = make(Everything, form.params.given())
    assert (made.mass, made.count, made.label, made.weights) == (1.0, 5, "42", (2.0, 3.5))


def test_that_the_seed_is_required_and_new_ones_can_be_had(form: Form) -> None:
    type_in(form, "mass", "1")
    type_in(form, "seed", "")
    assert not form.run.isEnabled()
    assert "is missing" in said(form, "seed")
    form.new_seed()
    assert form.run.isEnabled()
    for text in ("-1", "1.5", "abc"):
        type_in(form, "seed", text)
        assert not form.run.isEnabled(), text


@pytest.mark.parametrize(("kind", "needs"), [("metric", True), ("calibrator", True)])
def test_that_a_plugin_that_needs_a_log_asks_for_it(qtbot: QtBot, kind: str, needs: bool) -> None:
    form = form_of(qtbot, Plain, kind)
    assert form.run.isEnabled() is not needs
    type_in(form, "log", "a.mcap")
    assert form.run.isEnabled()


def test_that_what_is_submitted_fits_the_command(form: Form, qtbot: QtBot) -> None:
    type_in(form, "mass", "1")
    type_in(form, "seed", "7")
    type_in(form, "log", "/logs/a.mcap")
    with qtbot.waitSignal(form.submitted) as sent:
        form.run.click()
    (args,) = sent.args
    assert (args["plugin"], args["seed"], args["draws"]) == ("acme.everything", 7, 1)
    assert args["inputs"] == {"log": "/logs/a.mcap"}
    assert make(Everything, args["params"]).mass == 1.0
    assert not form.run.isEnabled()
    form.refuse("there is no /logs/a.mcap")
    assert form.complaint.text.text() == "there is no /logs/a.mcap"


def test_that_a_slot_of_several_logs_takes_several_paths(qtbot: QtBot) -> None:
    form = form_of(qtbot, Plain, "calibrator")
    type_in(form, "log", "emps:/logs/a; /logs/b.csv")
    type_in(form, "mapping", "map.toml")
    with qtbot.waitSignal(form.submitted) as sent:
        form.run.click()
    (args,) = sent.args
    inputs = {"log": "emps:/logs/a", "log_2": "/logs/b.csv", "mapping": "map.toml"}
    assert (args["inputs"], args["split"]) == (inputs, 0.75)
    type_in(form, "held_out", "/logs/c")
    with qtbot.waitSignal(form.submitted) as sent:
        form.run.click()
    assert "split" not in sent.args[0]


@pytest.mark.parametrize(
    ("kind", "name", "text", "value"),
    [
        ("bridge", "duration", "2", 2.0),
        ("bridge", "duration", "1.5 s", 1.5),
        ("residual", "split", "0.6", 0.6),
        ("calibrator", "split", "60 %", 0.6),
        ("randomizer", "draws", "3", 3),
    ],
)
def test_that_what_is_typed_of_the_run_is_sent_as_a_number(
    qtbot: QtBot, kind: str, name: str, text: str, value: float
) -> None:
    form = form_of(qtbot, Plain, kind)
    if kind in ("residual", "calibrator"):
        type_in(form, "log", "a.mcap")
    type_in(form, name, text)
    with qtbot.waitSignal(form.submitted) as sent:
        form.run.click()
    assert sent.args[0][name] == value
    assert type(sent.args[0][name]) is type(value)


def test_that_the_inputs_of_a_run_are_shown_in_their_slots(qtbot: QtBot) -> None:
    form = form_of(qtbot, Plain, "calibrator")
    inputs = {
        "log": Input(path="/a", digest="", format="emps"),
        "log_2": Input(path="/b", digest=""),
        "mapping": Input(path="/m", digest=""),
        "log_2.mapping": Input(path="/n", digest=""),
    }
    form.load(replace(run_of("20260504-120000-aaaaaa").spec, inputs=inputs, split=0.6, params={}))
    rest = form.rest.given()
    assert (rest["log"], rest["mapping"], rest["split"]) == ("emps:/a;/b", "/m", 0.6)
    assert "this version has no log_2.mapping" in form.said.text()


def test_that_a_run_is_reloaded_to_the_last_bit(form: Form) -> None:
    values = {"mass": 1 / 3, "angle": 0.1 + 0.2, "mode": "fast", "weights": [0.1, 2.0]}
    run = run_of("20260504-120000-aaaaaa", **values, careful=False)
    inputs = {"log": Input(path="/logs/b.mcap", digest="")}
    form.load(replace(run.spec, inputs=inputs))
    made = make(Everything, form.params.given())
    assert (made.mass, made.angle, made.mode) == (1 / 3, 0.1 + 0.2, "fast")
    assert (made.weights, made.careful) == ((0.1, 2.0), False)
    assert form.rest.given() == {"seed": 41, "log": "/logs/b.mcap", "mapping": ""}
    assert form.run.isEnabled()


def test_that_a_parameter_that_is_gone_is_told_when_a_run_is_reloaded(form: Form) -> None:
    form.load(run_of("20260504-120000-aaaaaa", colour="red").spec)
    assert "this version has no colour" in form.said.text()


def test_that_the_defaults_come_back(form: Form) -> None:
    type_in(form, "reach", "1")
    form.restore()
    assert form.params.given()["reach"] == 0.025


def test_that_help_stands_beside_and_in_the_tip(form: Form) -> None:
    assert form.params.bounds["label"].text() == "What it is called"
    assert "What it is called" in form.params.editors["label"].toolTip()


def test_that_a_fault_of_several_values_stands_at_the_bottom(qtbot: QtBot) -> None:
    class Both(Plain, frozen=True):
        def __post_init__(self) -> None:
            if self.gain == 2.0:
                raise ValueError("gain is two")

    form = form_of(qtbot, Both)
    type_in(form, "gain", "2")
    qtbot.waitUntil(lambda: "gain is two" in form.complaint.text.text(), timeout=20_000)
    assert not form.run.isEnabled()


def test_that_the_theme_changes_under_a_form(form: Form) -> None:
    form.restyle(DARK)
    assert not form.run.isEnabled()


# --- what the author of a plugin checks -------------------------------------------------------


class UntoldError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a text")


def strict(fault: BaseException | None, gate: threading.Event | None = None) -> type[Params]:
    """Parameters whose check raises `fault` if low is above high, once `gate` is open."""

    class Strict(Params, frozen=True):
        low: Annotated[int, about("From")] = 1
        high: Annotated[int, about("To")] = 2

        def __post_init__(self) -> None:
            assert threading.current_thread() is not threading.main_thread()
            if gate is not None:
                gate.wait()
            if fault is not None and self.low > self.high:
                raise fault

    return Strict


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (ValueError("low is above high"), "low is above high"),
        (RuntimeError("no luck"), "the check of its author failed: RuntimeError: no luck"),
        (UntoldError(), "the check of its author failed: UntoldError, whose text cannot be had"),
        (SystemExit(3), "the check of its author failed: SystemExit: 3"),
        (KeyboardInterrupt(), "the check of its author raised KeyboardInterrupt"),
    ],
)
def test_that_whatever_an_author_s_check_raises_is_told_under_the_form(
    qtbot: QtBot, fault: BaseException, words: str
) -> None:
    form = form_of(qtbot, strict(fault))
    qtbot.waitUntil(form.run.isEnabled, timeout=20_000)
    type_in(form, "low", "9")
    assert not form.run.isEnabled()
    qtbot.waitUntil(lambda: form.complaint.text.text() == words, timeout=20_000)
    assert not form.run.isEnabled()
    type_in(form, "high", "10")
    qtbot.waitUntil(form.run.isEnabled, timeout=20_000)
    assert form.complaint.isHidden()


def test_that_a_slow_check_of_an_author_holds_up_nothing_but_the_run(qtbot: QtBot) -> None:
    gate = threading.Event()
    form = form_of(qtbot, strict(ValueError("low is above high"), gate))
    qtbot.waitUntil(lambda: "still checking" in form.complaint.text.text(), timeout=20_000)
    assert not form.run.isEnabled()
    type_in(form, "low", "abc")  # its type is told at once all the same
    assert "expected" in said(form, "low")
    type_in(form, "low", "0")
    gate.set()
    qtbot.waitUntil(form.run.isEnabled, timeout=20_000)
    assert form.complaint.isHidden()


def test_that_a_fault_is_told_briefly_and_in_full_as_a_tooltip(form: Form) -> None:
    type_in(form, "mass", "2 furlong")
    complaint = form.params.complaints["mass"]
    assert complaint.text.text() == "unknown unit 'furlong'"
    assert "known units: " in complaint.toolTip()
    type_in(form, "mass", "x" * 5000)
    assert len(complaint.text.text()) <= 100
    type_in(form, "mass", "2")
    assert complaint.toolTip() == ""


def test_that_a_bound_has_its_unit_beside_it() -> None:
    duration = Field(name="d", kind="number", help="How long", unit="s", low=0.0)
    assert explained(duration, "s") == "How long (0\u00a0s and more)"
    assert explained(replace(duration, high=2.0), "ms") == "How long (0 to 2000\u00a0ms)"
