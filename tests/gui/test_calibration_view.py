"""What the window shows of a calibration: verdict, check, parameters, and patches in force."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from gui.fake_workshop import RESULTS
from PySide6.QtWidgets import QLabel, QToolButton
from pytestqt.qtbot import QtBot

from twinstudio.gui.docks.scene_tree import SceneTree
from twinstudio.gui.results import ResultsView, curve
from twinstudio.gui.selection import Selection
from twinstudio.gui.theme import LIGHT
from twinstudio.jobs.calibration import Calibration, Found, Outcome, Trial
from twinstudio.model.patches import promote, take_back
from twinstudio.model.results import Change, Patch, Scalar, Series, grouped
from twinstudio.model.scene import load_scene

SCORE = Scalar(name="error", value=0.5, unit="1")


def found(outcome: Outcome) -> Calibration:
    trial = Trial(patch=5, name="payload", outcome=outcome, words="the twin is so: 2 to 1 N m")
    findings = (Found(text="little motion", hint="move faster"),)
    return Calibration(findings=findings, trials=(trial,), solved=len(RESULTS), scored=1)


@pytest.fixture
def view(qtbot: QtBot) -> ResultsView:
    made = ResultsView(LIGHT)
    qtbot.addWidget(made)
    return made


def texts(view: ResultsView) -> list[str]:
    return [label.text() for label in view.widget().findChildren(QLabel)]


def buttons(view: ResultsView) -> list[QToolButton]:
    every = view.widget().findChildren(QToolButton)
    return [one for one in every if "Promote" in one.text()]


def test_that_verdict_and_check_come_before_the_figures(view: ResultsView) -> None:
    view.show_results((*RESULTS, SCORE), calibration=found("better"))
    shown = texts(view)
    order = [
        shown.index(text)
        for text in (
            "Patch payload", "The twin is so: 2 to 1 N m", "Check", "little motion; move faster",
            "Parameters", "payload", "Scores", "error",
        )
    ]  # fmt: skip
    assert order == sorted(order)


def test_that_a_parameter_without_interval_is_not_identifiable_and_a_score_has_none(
    view: ResultsView,
) -> None:
    view.show_results((*RESULTS, SCORE), calibration=found("better"))
    shown = texts(view)
    assert shown.count("not identifiable") == 1
    assert shown.count("no interval") == 1


def test_that_a_better_patch_is_promoted_with_one_press(view: ResultsView, qtbot: QtBot) -> None:
    view.show_results(RESULTS, calibration=found("better"))
    with qtbot.waitSignal(view.promote) as told:
        buttons(view)[0].click()
    assert told.args == [5]


def test_that_a_patch_that_is_not_better_says_so_on_its_button(
    view: ResultsView, qtbot: QtBot
) -> None:
    view.show_results(RESULTS, calibration=found("worse"))
    assert {one.text() for one in buttons(view)} == {"Promote though not better"}
    with qtbot.waitSignal(view.force) as told:
        buttons(view)[0].click()
    assert told.args == [5]


def test_that_a_run_that_failed_offers_no_patch(view: ResultsView) -> None:
    view.show_results(RESULTS, promotable=False, calibration=found("better"))
    assert buttons(view) == []


def series(name: str, unit: str = "N") -> Series:
    return Series(name=name, x=(0.0, 1.0, 2.0), y=(0.0, 1.0, 0.5), x_unit="s", y_unit=unit)


def test_that_curves_of_one_title_share_a_plot(view: ResultsView, qtbot: QtBot) -> None:
    results = (series("gap: without"), series("gap: with"), series("gap: other", "A"))
    titles = [title for title, _ in grouped(results)]
    assert titles == ["gap", "gap: other"]
    view.show_results(results)
    assert texts(view).count("gap") == 1
    plot = curve({"without": results[0], "with": results[1]}, LIGHT)
    qtbot.addWidget(plot)
    assert len(plot.getPlotItem().listDataItems()) == 2


def test_that_the_tree_shows_patches_in_force_and_where_they_came_from(
    qtbot: QtBot, tmp_path: Path
) -> None:
    shutil.copytree(load_scene("emps_axis").folder, tmp_path / "scene")
    scene = load_scene(tmp_path / "scene")
    session = SimpleNamespace(scene=scene, geometry=None)
    bridge = SimpleNamespace(session=session, notices=None, add=lambda *_a, **_k: None)
    tree = SceneTree(bridge, Selection())  # type: ignore[arg-type]
    qtbot.addWidget(tree)

    def patches() -> list[list[str]]:
        top = tree.tree.topLevelItem(0)
        groups = [
            top.child(k) for k in range(top.childCount()) if top.child(k).text(0) == "Patches"
        ]
        every = [group.child(k) for group in groups for k in range(group.childCount())]
        return [[one.text(0), one.text(1), one.child(0).text(0)] for one in every]

    assert patches() == []
    change = Change(key="twin.position_gain", value=0.25)
    promote(scene, Patch(name="gain", changes=(change,), reason="better"), run="r1")
    tree.refresh(None)  # type: ignore[arg-type]
    assert patches() == [["gain", "of run r1", "twin.position_gain"]]
    take_back(scene)
    tree.refresh(None)  # type: ignore[arg-type]
    assert patches() == []
