"""Metrics of plugins in the gap dock: rows, marks, the way to add one and to take it out."""

import math

import pytest
from gui.fake_session import FakeSession
from gui.fake_workshop import Everything, FakeWorkshop, entry
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from twinstudio.gui.docks.addmetric import NONE
from twinstudio.gui.docks.metrics import NONE_CHOSEN, lines
from twinstudio.gui.window import Window
from twinstudio.model.measured import Measured
from twinstudio.model.results import Result, Scalar, Table
from twinstudio.model.views import MetricView

NOW = 100 * 10**9
GAP = Scalar(name="gap of joint1", value=0.0012, unit="rad", low=0.001, high=0.002, note="<b>odd")
OTHER = Scalar(name="gap of joint2", value=0.5, unit="m")


def view(
    key: str = "acme.worst",
    state: str = "measuring",
    results: tuple[Result, ...] = (GAP, OTHER),
    error: str = "",
    end: int = NOW,
) -> MetricView:
    said = Measured(
        plugin="acme.worst", version="1.2", title="Worst", params={"share": 0.9},
        results=results, error=error,
    )  # fmt: skip
    return MetricView(key, "Worst", state, said, end - 10 * 10**9, end)  # type: ignore[arg-type]


def ticks(window: Window) -> None:
    for _ in range(12):
        window.bridge.tick()


def shown(window: Window) -> list[list[str]]:
    model = window.gaps.metrics.model
    return [[model.index(r, c).data() for c in range(3)] for r in range(model.rowCount())]


def test_that_without_a_metric_the_dock_says_what_would_fill_it(window: Window) -> None:
    ticks(window)
    panel = window.gaps.metrics
    assert panel.empty.isVisible()
    assert panel.empty.text() == NONE_CHOSEN
    assert not panel.table.isVisible()
    assert not panel.remove.isVisible()
    assert panel.add.isVisible()


def test_that_a_metric_shows_name_value_with_unit_and_interval(
    window: Window, session: FakeSession
) -> None:
    session.metrics = (view(),)
    ticks(window)
    assert not window.gaps.metrics.empty.isVisible()
    assert window.gaps.metrics.table.isVisible()
    head, first, second = shown(window)
    assert head == ["Worst", "", "over 10.0\u00a0s"]
    assert first == ["\u2003joint1", "1.20\u00a0mrad", "1.00 to 2.00"]
    assert second == ["\u2003joint2", "500\u00a0mm", "–"]
    model = window.gaps.metrics.model
    tip = model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "acme.worst 1.2 with share = 0.9" in tip
    assert "&lt;b&gt;odd" in model.index(1, 0).data(Qt.ItemDataRole.ToolTipRole)
    icons = [model.index(r, 0).data(Qt.ItemDataRole.DecorationRole).isNull() for r in range(3)]
    assert icons == [False, True, True]


def test_that_angles_follow_the_choice_of_degrees(window: Window, session: FakeSession) -> None:
    session.metrics = (view(results=(Scalar(name="a", value=math.pi / 180, unit="rad"),)),)
    window.actions_.degrees.trigger()
    ticks(window)
    assert shown(window)[1][1] == "1.00\u00a0°"


@pytest.mark.parametrize(
    ("one", "row"),
    [
        (view(state="waiting", results=()), ["Worst", "waiting", ""]),
        (view(state="failed", results=(), error="raised X"), ["Worst", "failed", "raised X"]),
        (view(results=()), ["Worst", "no figure", "over 10.0\u00a0s"]),
        (
            view(end=NOW - 12 * 10**9),
            ["Worst", "", "! over 10.0\u00a0s, 12\u00a0s ago"],
        ),
    ],
)
def test_that_a_head_tells_how_its_metric_does(one: MetricView, row: list[str]) -> None:
    head = lines((one,), NOW, degrees=False)[0]
    assert [head.name, head.value, head.interval] == row
    assert head.mark


def test_that_results_that_are_no_figures_are_mentioned() -> None:
    table = Table(name="t", columns=("a",), units=("",), rows=(("x",),))
    found = lines((view(results=(GAP, table)),), NOW, degrees=False)
    assert len(found) == 2
    assert "1 more results are no figures" in found[0].about


def test_that_the_selection_stays_while_figures_change(
    window: Window, session: FakeSession
) -> None:
    session.metrics = (view("a"), view("b"))
    ticks(window)
    table = window.gaps.metrics.table
    table.selectRow(4)
    session.metrics = (view("a", results=(OTHER,)), view("b"))
    ticks(window)
    (row,) = table.chosen()
    assert (row.metric, row.number) == ("b", 1)


@pytest.mark.parametrize("way", ["button", "key"])
def test_that_the_selected_metric_is_taken_out(
    window: Window, session: FakeSession, qtbot: QtBot, way: str
) -> None:
    session.metrics = (view("a"), view("b"))
    ticks(window)
    panel = window.gaps.metrics
    assert not panel.remove.isEnabled()
    panel.table.selectRow(3)
    if way == "button":
        panel.remove.click()
    else:
        qtbot.keyClick(panel.table, Qt.Key.Key_Delete)
    assert session.ran == [("metric.remove", {"key": "b"})]


def asked(window: Window, qtbot: QtBot) -> None:
    window.gaps.metrics.add.click()
    qtbot.waitUntil(lambda: window.gaps.adding.fields is not None)


def test_that_a_metric_is_added_with_its_parameters(make_window: object, qtbot: QtBot) -> None:
    session = FakeSession(workshop=FakeWorkshop((entry("acme.worst", "metric"), entry("acme.do"))))
    window = make_window(session)  # type: ignore[operator]
    asked(window, qtbot)
    dialog = window.gaps.adding
    assert [dialog.which.itemText(k) for k in range(dialog.which.count())] == ["Worst"]
    assert dialog.isVisible()
    dialog.add.click()
    qtbot.waitUntil(lambda: not dialog.isVisible())
    assert session.ran == [("metric.add", {"plugin": "acme.worst", "params": {"gain": 0.3}})]


def test_that_wrong_parameters_cannot_be_added(make_window: object, qtbot: QtBot) -> None:
    session = FakeSession(workshop=FakeWorkshop((entry("acme.everything", "metric"),)))
    assert session.workshop.catalog.load("acme.everything").params is Everything
    window = make_window(session)  # type: ignore[operator]
    asked(window, qtbot)
    dialog = window.gaps.adding
    assert not dialog.add.isEnabled()  # its mass is required
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert session.ran == []
    dialog.fields.editors["mass"].show_value(1.5)
    dialog.fields.changed.emit()
    assert dialog.add.isEnabled()
    dialog.leave.click()
    assert not dialog.isVisible()


def test_that_a_refusal_stands_in_the_dialog(make_window: object, qtbot: QtBot) -> None:
    session = FakeSession(workshop=FakeWorkshop((entry("acme.worst", "metric"),)))
    window = make_window(session)  # type: ignore[operator]
    asked(window, qtbot)
    session.refuse = "is measured already"
    window.gaps.adding.add.click()
    qtbot.waitUntil(lambda: "is measured already" in window.gaps.adding.complaint.text.text())
    assert window.gaps.adding.isVisible()
    assert window.gaps.adding.add.isEnabled()
    window.gaps.adding.reject()


def test_that_without_a_metric_to_add_the_dialog_says_where_they_come_from(
    make_window: object, qtbot: QtBot
) -> None:
    session = FakeSession(workshop=FakeWorkshop((entry("acme.do"),)))
    window = make_window(session)  # type: ignore[operator]
    window.gaps.metrics.add.click()
    qtbot.waitUntil(lambda: window.gaps.adding.about.text() == NONE)
    assert not window.gaps.adding.add.isEnabled()
    window.gaps.adding.reject()
