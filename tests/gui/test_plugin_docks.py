"""Docks of plugins, jobs and runs: what they show, what they ask for, and one real job."""

import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from gui.fake_session import AnsweringSession, FakeSession
from gui.fake_workshop import RESULTS, FakeWorkshop, entry, job, run_of
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QTableWidget
from pytestqt.qtbot import QtBot

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.jobs import elapsed_text, left_text
from twinstudio.gui.docks.rows import MARKS, Rows, RowTable
from twinstudio.gui.docks.runs import RunsDock
from twinstudio.gui.docks.workbench import Workbench
from twinstudio.gui.forms.editors import NumberEditor, TextEditor
from twinstudio.gui.reader import Reader
from twinstudio.gui.results import ResultsView, picture, scalar_texts
from twinstudio.gui.theme import DARK, LIGHT
from twinstudio.gui.window import Window
from twinstudio.jobs.record import State
from twinstudio.model.errors import JobError, TwinstudioError
from twinstudio.model.patches import Origin
from twinstudio.model.results import Image, Scalar, Series
from twinstudio.model.scene import load_scene
from twinstudio.plugin.catalog import Places
from twinstudio.session.journal import Journal
from twinstudio.session.workshop import Workshop

SOME, OTHER = "20260504-120000-aaaaaa", "20260504-120001-bbbbbb"
PLUGIN = """
# /// twinstudio-plugin
# api = 1
# version = "1.0"
# [[plugins]]
# id = "here.gain"
# kind = "command"
# title = "Better gain"
# help = "Finds a position gain"
# ///
from typing import Annotated

from twinstudio.plugin import api


class Params(api.Params, frozen=True):
    gain: Annotated[float, api.si("1", low=0.0, high=5.0, about="What it finds")] = 0.3


class Gain(api.Command[Params]):
    id = "here.gain"
    params = Params

    def run(self, context: api.JobContext, params: Params) -> api.Results:
        context.progress(0.5, "half way")
        print("working on it")
        change = api.Change(key="twin.position_gain", value=params.gain)
        return [
            api.Scalar(name="gain found", value=params.gain, unit="1"),
            api.Patch(name="gain", changes=(change,), reason="it was asked for"),
        ]


@api.implements
def commands() -> list[type[api.Command[Params]]]:
    return [Gain]
"""


@dataclass
class Bench:
    """The three docks side by side, with ticks by hand."""

    session: AnsweringSession
    bridge: Bridge
    docks: Workbench

    @property
    def shop(self) -> FakeWorkshop:
        assert isinstance(self.session.workshop, FakeWorkshop)
        return self.session.workshop

    def ticks(self, count: int = 24) -> None:
        for _ in range(count):
            self.bridge.tick()


@pytest.fixture
def bench(qtbot: QtBot) -> Iterator[Bench]:
    session = AnsweringSession()
    bridge = Bridge(session)  # type: ignore[arg-type]
    docks = Workbench(bridge, LIGHT)
    for _, _, widget in docks.panels:
        qtbot.addWidget(widget)
    yield Bench(session, bridge, docks)
    docks.stop()


def seen(qtbot: QtBot, what: Callable[[], bool]) -> None:
    qtbot.waitUntil(what, timeout=20_000)


def show_plugins(bench: Bench, qtbot: QtBot) -> None:
    bench.docks.plugins.show()
    seen(qtbot, lambda: bool(bench.docks.plugins.model.rows))


def pick(bench: Bench, plugin: str) -> None:
    plugins = bench.docks.plugins
    keys = [plugins.model.key(row) for row in plugins.model.rows if row.id == plugin]
    assert keys
    plugins.table.select(keys)


def texts(widget: Any) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if not label.isHidden())


# --- nothing while hidden ---------------------------------------------------------------------


def test_that_hidden_docks_read_nothing(bench: Bench) -> None:
    bench.session.workshop = None  # type: ignore[assignment]
    bench.ticks(60)
    assert bench.docks.plugins.reader._thread is None
    assert bench.docks.runs.reader._thread is None


def test_that_the_catalog_is_read_once_however_often_the_window_ticks(
    bench: Bench, qtbot: QtBot
) -> None:
    show_plugins(bench, qtbot)
    reads = bench.shop.catalog.reads
    bench.ticks(120)
    bench.docks.plugins.hide()
    bench.docks.plugins.show()
    bench.ticks(120)
    assert bench.shop.catalog.reads == reads == 1
    bench.docks.plugins.refresh()
    seen(qtbot, lambda: bench.shop.catalog.reads == 2)


# --- plugins ----------------------------------------------------------------------------------


def test_that_a_state_is_told_by_shape_and_word(bench: Bench, qtbot: QtBot) -> None:
    show_plugins(bench, qtbot)
    model = bench.docks.plugins.model
    words = {model.index(k, 2).data() for k in range(model.rowCount())}
    assert words == {"unused", "enabled", "disabled", "failed"}
    shapes = {MARKS[word] for word in words}
    assert len(shapes) == len(words)
    icons = [
        model.index(k, 2).data(Qt.ItemDataRole.DecorationRole) for k in range(model.rowCount())
    ]
    assert all(not icon.isNull() for icon in icons)


def test_that_every_state_of_a_job_has_a_mark_of_its_own() -> None:
    states = State.__args__  # type: ignore[attr-defined]
    assert len({MARKS[state] for state in states}) == len(states)


def test_that_plugins_are_narrowed_down_by_kind_and_words(bench: Bench, qtbot: QtBot) -> None:
    show_plugins(bench, qtbot)
    plugins = bench.docks.plugins
    plugins.kind.setCurrentText("metric")
    assert [row.id for row in plugins.model.rows] == ["acme.worst"]
    plugins.kind.setCurrentIndex(0)
    plugins.search.setText("BAD")
    assert [row.id for row in plugins.model.rows] == ["bad.import"]


def test_that_a_failed_plugin_tells_why_and_its_traceback_can_be_copied(
    bench: Bench, qtbot: QtBot
) -> None:
    show_plugins(bench, qtbot)
    pick(bench, "bad.import")
    details = bench.docks.plugins.details
    assert "No module named 'nowhere'" in details.reason.text()
    details.copy.click()
    assert "ModuleNotFoundError" in QGuiApplication.clipboard().text()
    assert not details.retry.isHidden()
    assert "with your rights" in texts(details)


def test_that_a_button_is_a_command_of_the_session(bench: Bench, qtbot: QtBot) -> None:
    show_plugins(bench, qtbot)
    details = bench.docks.plugins.details
    for plugin, button, command in (
        ("acme.friction", details.enable, "plugin.enable"),
        ("acme.worst", details.disable, "plugin.disable"),
        ("bad.import", details.retry, "plugin.retry"),
    ):
        pick(bench, plugin)
        reads = bench.shop.catalog.reads
        button.click()
        assert bench.session.ran[-1] == (command, {"plugin": plugin})
        seen(qtbot, lambda reads=reads: bench.shop.catalog.reads > reads)


def test_that_only_plugins_that_run_as_jobs_have_a_form(bench: Bench, qtbot: QtBot) -> None:
    show_plugins(bench, qtbot)
    details = bench.docks.plugins.details
    pick(bench, "acme.driver")
    assert details.run.isHidden()
    pick(bench, "acme.everything")
    assert not details.run.isHidden()


def test_that_a_plugin_that_cannot_be_imported_opens_no_form(bench: Bench, qtbot: QtBot) -> None:
    show_plugins(bench, qtbot)
    pick(bench, "bad.import")
    bench.docks.plugins.details.run.click()
    lines = bench.bridge.notices.lines
    seen(qtbot, lambda: any("nowhere" in line.text for line in lines))
    assert bench.docks.plugins.form is None


def test_that_markup_in_a_plugin_s_words_is_shown_as_it_is(bench: Bench, qtbot: QtBot) -> None:
    bench.session.workshop = FakeWorkshop((entry("acme.sly", help="<img src=x> <b>bold</b>"),))
    show_plugins(bench, qtbot)
    pick(bench, "acme.sly")
    about = bench.docks.plugins.details.about
    assert about.textFormat() == Qt.TextFormat.PlainText
    tip = bench.docks.plugins.model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "<img" not in tip


def test_that_no_plugin_at_all_is_told_with_a_way_out(bench: Bench, qtbot: QtBot) -> None:
    bench.session.workshop = FakeWorkshop(())
    bench.docks.plugins.show()
    empty = bench.docks.plugins.empty
    seen(qtbot, lambda: empty.title.text() == "No plugin is there")
    assert "plugins install" in empty.text.text()
    assert not empty.button.isHidden()


def test_that_the_form_starts_the_job_and_leads_to_it(bench: Bench, qtbot: QtBot) -> None:
    bench.session.answers["job.start"] = SOME
    show_plugins(bench, qtbot)
    pick(bench, "acme.everything")
    plugins = bench.docks.plugins
    plugins.details.run.click()
    seen(qtbot, lambda: plugins.form is not None)
    form = plugins.form
    assert form is not None
    assert plugins.side.currentWidget() is form
    mass = form.params.editors["mass"]
    assert isinstance(mass, NumberEditor)
    mass.line.setText("2")
    with qtbot.waitSignal(plugins.started) as started:
        form.run.click()
    assert started.args == [SOME]
    command, args = bench.session.ran[-1]
    assert (command, args["plugin"], args["params"]["mass"]) == (
        "job.start",
        "acme.everything",
        "2 kg",
    )
    assert SOME in form.said.text()


def test_that_a_refused_job_is_told_in_the_form(bench: Bench, qtbot: QtBot) -> None:
    bench.session.answers["job.start"] = JobError("input 'log' is missing")
    bench.docks.plugins.show()
    bench.docks.plugins.open_form("acme.worst")
    seen(qtbot, lambda: bench.docks.plugins.form is not None)
    form = bench.docks.plugins.form
    assert form is not None
    form.rest.show_values({"log": "/none.mcap"})
    form.run.click()
    seen(qtbot, lambda: "is missing" in form.complaint.text.text())
    assert form.run.isEnabled()


# --- jobs -------------------------------------------------------------------------------------


def test_that_jobs_show_queue_progress_and_last_words(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.queue = (
        job("a", "failed", error="killed by signal 9, last output: allocating"),
        job("b", "running", progress=0.37, message="iteration 37", left=42.0),
        job("c", "queued"),
        job("d", "queued"),
    )
    jobs = bench.docks.jobs
    jobs.show()
    bench.ticks()
    model = jobs.model
    rows = [[model.index(r, c).data() for c in range(model.columnCount())] for r in range(4)]
    assert [row[0] for row in rows] == ["", "", "next 1", "next 2"]
    assert rows[0][6].endswith("allocating")
    assert rows[1][6] == "iteration 37"
    assert rows[1][3] == "37\u00a0%"
    assert rows[1][5] == "≈ 42\u00a0s"


def test_that_a_job_that_is_done_no_longer_says_what_it_is_doing(bench: Bench) -> None:
    bench.shop.queue = (job("a", "done", message="draw 1 of 3"),)
    jobs = bench.docks.jobs
    jobs.show()
    bench.ticks()
    assert jobs.model.index(0, 6).data() == ""


def test_that_a_mechanism_says_why_it_cannot_be_run(bench: Bench, qtbot: QtBot) -> None:
    bench.session.workshop = FakeWorkshop((entry("acme.slip", kind="mechanism"),))
    show_plugins(bench, qtbot)
    pick(bench, "acme.slip")
    details = bench.docks.plugins.details
    assert details.run.isHidden()
    assert "does not run as a job: it is checked by" in details.about.text()


def test_that_a_job_is_cancelled_by_command(bench: Bench) -> None:
    bench.shop.queue = (job("a", "done"), job("b", "running"))
    jobs = bench.docks.jobs
    jobs.show()
    bench.ticks()
    jobs.table.select(("a",))
    assert (jobs.cancel.isEnabled(), jobs.open.isEnabled()) == (False, True)
    jobs.table.select(("b",))
    assert (jobs.cancel.isEnabled(), jobs.open.isEnabled()) == (True, False)
    jobs.cancel.click()
    assert bench.session.ran == [("job.cancel", {"run": "b"})]


def test_that_a_selected_job_stays_selected_while_it_goes_on(bench: Bench) -> None:
    bench.shop.queue = (job("a", "running", message="one"), job("b", "running"))
    jobs = bench.docks.jobs
    jobs.show()
    bench.ticks()
    jobs.table.select(("a",))
    bench.shop.queue = (
        job("a", "running", message="two", progress=0.5),
        job("b", "running"),
        job("c", "queued"),
    )
    bench.ticks()
    assert [row.id for row in jobs.table.chosen()] == ["a"]
    assert jobs.said.text() == "two"


def test_that_no_job_is_told_with_a_way_to_one(bench: Bench, qtbot: QtBot) -> None:
    jobs = bench.docks.jobs
    jobs.show()
    bench.ticks()
    assert jobs.pages.currentWidget() is jobs.empty
    with qtbot.waitSignal(jobs.plugins_wanted):
        jobs.empty.button.click()


def test_that_times_of_jobs_are_words() -> None:
    assert elapsed_text(job("a", "queued")) == "–"
    assert elapsed_text(job("a", "done")) == "1:15.0"
    begun = datetime.now(UTC) - timedelta(hours=2)
    assert elapsed_text(job("a", "running", started=begun)).startswith("2:00")
    assert left_text(job("a", "running", left=0.01)) == "≈ 1\u00a0s"
    assert left_text(job("a", "running", left=600.0)) == "≈ 10:00.0"


# --- runs -------------------------------------------------------------------------------------


def show_runs(bench: Bench, qtbot: QtBot) -> RunsDock:
    runs = bench.docks.runs
    runs.show()
    seen(qtbot, lambda: bool(runs.model.rows))
    return runs


def test_that_a_run_shows_results_log_and_provenance(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME))
    runs = show_runs(bench, qtbot)
    runs.table.select((SOME,))
    seen(qtbot, lambda: SOME in runs.shown.title.text())
    assert "1.210 to 1.260" in texts(runs.shown.results)
    assert runs.shown.log.toPlainText() == f"log of {SOME}"
    tree = runs.shown.facts
    groups = [tree.topLevelItem(k).text(0) for k in range(tree.topLevelItemCount())]
    assert groups == ["Run", "Parameters (SI)", "Versions and hashes"]


def test_that_runs_are_narrowed_down(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME), run_of(OTHER, "failed", plugin="acme.payload"))
    runs = show_runs(bench, qtbot)
    assert [row.id for row in runs.model.rows] == [OTHER, SOME]
    for choose, found in (
        (lambda: runs.plugin.setCurrentText("acme.payload"), [OTHER]),
        (lambda: runs.plugin.setCurrentIndex(0), [OTHER, SOME]),
        (lambda: runs.state.setCurrentText("done"), [SOME]),
        (lambda: runs.state.setCurrentIndex(0), [OTHER, SOME]),
        (lambda: runs.search.setText("MEMORY"), [OTHER]),
    ):
        choose()
        assert [row.id for row in runs.model.rows] == found
    assert runs.said.text() == "1 of 2 runs"


def test_that_two_runs_are_compared_side_by_side(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME, gain=0.25))
    bench.shop.keep(run_of(OTHER, gain=0.1 + 0.2), results=RESULTS[1:])
    runs = show_runs(bench, qtbot)
    runs.table.select((SOME, OTHER))
    tree = runs.shown.compare
    seen(qtbot, lambda: tree.topLevelItemCount() == 3)
    params = tree.topLevelItem(0)
    assert params.text(0) == "Parameters: 1 difference"
    row = params.child(0)
    assert [row.text(k) for k in range(3)] == ["gain", "0.25", "0.30000000000000004"]
    assert "no differences" in tree.topLevelItem(1).text(0)
    assert tree.topLevelItem(2).child(0).text(2) == "absent"


def test_that_a_thousand_runs_are_listed_without_a_widget_each(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(*(run_of(f"20260504-12{k // 60:02d}{k % 60:02d}-aaaaaa") for k in range(1000)))
    runs = show_runs(bench, qtbot)
    assert runs.model.rowCount() == 1000
    assert len(runs.table.findChildren(QLabel)) < 10
    runs.search.setText("20260504-120101")
    assert runs.model.rowCount() == 1


def test_that_a_patch_is_promoted_and_undone_by_command(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME))
    runs = show_runs(bench, qtbot)
    runs.table.select((SOME,))
    seen(qtbot, lambda: SOME in runs.shown.title.text())
    bench.shop.patched = (
        Origin(key="twin.position_gain", nominal=0.3, value=0.4, run=SOME, reason="better"),
    )
    runs.shown.results.promote.emit(4)
    assert bench.session.ran[-1] == ("patch.apply", {"run": SOME, "result": 4})
    origins = runs.shown.origins
    seen(qtbot, lambda: origins.topLevelItemCount() == 1)
    item = origins.topLevelItem(0)
    assert [item.text(k) for k in range(4)] == ["twin.position_gain", "0.3", "0.4", SOME]
    seen(qtbot, lambda: runs.shown.tabs.currentIndex() == 4)
    bench.shop.patched = ()
    runs.shown.undo.click()
    assert bench.session.ran[-1] == ("patch.undo", {})
    seen(qtbot, lambda: origins.topLevelItemCount() == 0)
    assert not runs.shown.undo.isEnabled()


def test_that_a_failed_run_offers_no_patch_and_says_why(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME, "failed"))
    runs = show_runs(bench, qtbot)
    runs.table.select((SOME,))
    seen(qtbot, lambda: SOME in runs.shown.title.text())
    assert "out of memory" in runs.shown.trouble.text()
    assert "Promote" not in " ".join(
        b.text() for b in runs.shown.results.widget().findChildren(type(runs.reload))
    )


def test_that_a_run_fills_the_form_of_its_plugin(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME, mass=3.25))
    runs = show_runs(bench, qtbot)
    bench.docks.plugins.show()
    runs.table.select((SOME,))
    runs.reload.click()
    seen(qtbot, lambda: bench.docks.plugins.form is not None)
    form = bench.docks.plugins.form
    assert form is not None
    assert form.params.given()["mass"] == 3.25
    assert form.rest.given()["seed"] == 41


def test_that_a_run_that_cannot_be_read_says_so(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME))
    runs = show_runs(bench, qtbot)
    del bench.shop.store.records[SOME]
    runs.table.select((SOME,))
    seen(qtbot, lambda: "there is no run" in runs.shown.title.text())


def test_that_a_job_that_ends_brings_its_run_into_the_list(bench: Bench, qtbot: QtBot) -> None:
    bench.shop.keep(run_of(SOME))
    runs = show_runs(bench, qtbot)
    bench.ticks()
    bench.shop.keep(run_of(OTHER))
    bench.shop.queue = (job(OTHER, "done"),)
    bench.ticks()
    seen(qtbot, lambda: len(runs.model.rows) == 2)


# --- results ----------------------------------------------------------------------------------


def test_that_every_type_of_result_is_drawn(qtbot: QtBot) -> None:
    view = ResultsView(LIGHT)
    qtbot.addWidget(view)
    images = (
        Image(name="dot", format="png", data=_png()),
        Image(name="box", format="svg", data=_SVG),
        Image(name="torn", format="svg", data=b"<svg"),
    )
    view.show_results([*RESULTS, *images])
    view.resize(600, 400)
    view.show()
    said = texts(view)
    for words in ("payload", "residual", "joints", "dot", "the residual halves"):
        assert words in said
    assert "This svg cannot be drawn." in said
    heads = [
        table.horizontalHeaderItem(1).text() for table in view.widget().findChildren(QTableWidget)
    ]
    assert heads == ["gap [rad]", "Would become"]
    view.restyle(DARK)
    assert "payload" in texts(view)


def test_that_an_interval_tells_how_many_digits_are_good() -> None:
    narrow = Scalar(name="x", value=1.23456, unit="kg", low=1.234, high=1.235)
    assert scalar_texts(narrow) == ("1.2346\u00a0kg", "1.2340 to 1.2350")
    unknown = Scalar(name="x", value=0.0123, unit="m")
    assert scalar_texts(unknown) == ("12.3\u00a0mm", "no interval")
    half = Scalar(name="x", value=2.0, unit="kg", low=1.0)
    assert scalar_texts(half)[1] == "≥\u00a01.00"
    assert scalar_texts(Scalar(name="x", value=0.0, unit="kg", low=0.0, high=0.0))[0] == "0\u00a0kg"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_that_a_short_curve_is_drawn_too(qtbot: QtBot, count: int) -> None:
    view = ResultsView(LIGHT)
    qtbot.addWidget(view)
    x = tuple(map(float, range(count)))
    view.show_results([Series(name="few", x=x, y=x, x_unit="s", y_unit="1")])
    view.show()
    assert "few" in texts(view)


def test_that_a_picture_is_no_larger_than_its_place() -> None:
    shown = picture(Image(name="box", format="svg", data=_SVG.replace(b"'40'", b"'40000'")))
    assert isinstance(shown, QLabel)
    assert shown.pixmap().width() <= 720


# --- parts ------------------------------------------------------------------------------------


def test_that_the_newest_question_alone_is_answered(bench: Bench, qtbot: QtBot) -> None:
    reader, gate, got = Reader(bench.bridge.notices), threading.Event(), []
    reader.ask("a", lambda: gate.wait(10.0), lambda _: got.append("first"), got.append)
    reader.ask("a", lambda: "never", got.append, got.append)
    reader.ask("a", lambda: "newest", got.append, got.append)
    gate.set()
    seen(qtbot, lambda: bool(got))
    reader.close()
    assert got == ["newest"]


def test_that_a_fault_is_told_and_the_next_question_is_answered(bench: Bench, qtbot: QtBot) -> None:
    reader, got = Reader(bench.bridge.notices), []
    reader.ask("a", lambda: 1 // 0, got.append, got.append)
    seen(qtbot, lambda: len(got) == 1)
    reader.ask("a", lambda: 2, got.append, got.append)
    seen(qtbot, lambda: len(got) == 2)
    reader.close()
    assert "ZeroDivisionError" in got[0]
    assert got[1] == 2
    assert any("ZeroDivisionError" in line.text for line in bench.bridge.notices.lines)


def test_that_a_command_that_is_refused_is_told(bench: Bench, qtbot: QtBot) -> None:
    reader, got = Reader(bench.bridge.notices), []
    future: Future[object] = Future()
    reader.follow(future, got.append, got.append)
    future.set_exception(TwinstudioError("no", hint="ask later"))
    seen(qtbot, lambda: got == ["no; ask later"])
    reader.close()


def test_that_rows_that_only_changed_keep_what_is_selected(qtbot: QtBot) -> None:
    from twinstudio.gui.docks.rows import Column

    model = Rows((Column("A", lambda row: row[1]),), lambda row: row[0], LIGHT)
    table = RowTable(model, "rows")
    qtbot.addWidget(table)
    table.take([(1, "a"), (2, "b")])
    table.select((2,))
    told = []
    table.picked.connect(lambda: told.append(table.chosen()))
    table.take([(1, "a"), (2, "c")])
    table.take([(0, "z"), (1, "a"), (2, "c")])
    assert table.chosen() == [(2, "c")]
    assert told == []
    table.take([(0, "z")])
    assert told == [[]]


# --- a real job -------------------------------------------------------------------------------


@pytest.fixture
def real(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "gain.py").write_text(PLUGIN)
    shutil.copytree(Path(load_scene("emps_axis").folder), tmp_path / "scene")
    session = AnsweringSession()
    shop = Workshop(
        load_scene(tmp_path / "scene"), Journal(), Places(folders=(str(folder),), installed=False)
    )
    session.workshop = shop

    def start(plugin: str, params: dict[str, Any], **more: Any) -> str:
        return shop.start(plugin, params, **more)

    session.answers = {
        "job.start": start,
        "patch.apply": shop.promote,
        "patch.undo": shop.take_back,
    }
    bridge = Bridge(session)  # type: ignore[arg-type]
    docks = Workbench(bridge, LIGHT)
    for _, _, widget in docks.panels:
        qtbot.addWidget(widget)
    yield Bench(session, bridge, docks)
    docks.stop()
    shop.close()


def test_that_a_real_plugin_runs_from_its_form_to_a_result_that_is_shown(
    real: Bench, qtbot: QtBot, tmp_path: Path
) -> None:
    docks = real.docks
    show_plugins(real, qtbot)
    pick(real, "here.gain")
    docks.plugins.details.run.click()
    seen(qtbot, lambda: docks.plugins.form is not None)
    form = docks.plugins.form
    assert form is not None
    gain = form.params.editors["gain"]
    assert isinstance(gain, NumberEditor)
    gain.line.setText("9")
    assert not form.run.isEnabled()
    gain.line.setText("40 %")
    with qtbot.waitSignal(docks.plugins.started, timeout=20_000) as started:
        form.run.click()
    (run,) = started.args
    docks.jobs.show()

    def over() -> bool:
        real.ticks(6)
        return bool(docks.jobs.model.rows) and docks.jobs.model.rows[0].over

    qtbot.waitUntil(over, timeout=40_000)
    assert docks.jobs.model.rows[0].state == "done"
    docks.jobs.table.select((run,))
    docks.runs.show()
    docks.jobs.open.click()
    seen(qtbot, lambda: run in docks.runs.shown.title.text())
    assert "gain found" in texts(docks.runs.shown.results)
    assert "0.400" in texts(docks.runs.shown.results)
    assert "working on it" in docks.runs.shown.log.toPlainText()
    docks.runs.shown.results.promote.emit(2)
    origins = docks.runs.shown.origins
    seen(qtbot, lambda: origins.topLevelItemCount() == 1)
    assert origins.topLevelItem(0).text(2) == "0.4"
    docks.runs.shown.undo.click()
    seen(qtbot, lambda: origins.topLevelItemCount() == 0)
    zipped = tmp_path / "run.zip"
    docks.runs.export_to(run, str(zipped))
    seen(qtbot, lambda: "Exported" in docks.runs.said.text())
    real.session.workshop.store.delete(run)
    docks.runs.import_from(str(zipped))
    seen(qtbot, lambda: [row.id for row in docks.runs.table.chosen()] == [run])


_SVG = (
    b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'>"
    b"<rect width='10' height='10'/></svg>"
)


def _png() -> bytes:
    """A picture of one black pixel."""

    def part(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", body) + part(b"IEND", b"")


# --- in the window ----------------------------------------------------------------------------


def test_that_the_docks_wait_behind_the_log_and_read_nothing(
    make_window: Callable[[FakeSession], Window], qtbot: QtBot
) -> None:
    session = FakeSession()
    window = make_window(session)
    qtbot.wait(50)
    for _ in range(24):
        window.bridge.tick()
    beside = set(window.tabifiedDockWidgets(window.docks["log"]))
    assert beside == {window.docks[name] for name in ("plugins", "jobs", "runs")}
    assert window.log.isVisible()
    assert not any(panel.in_sight for _, _, panel in window.workbench.panels)
    assert session.workshop.catalog.reads == 0
    assert window.workbench.plugins.reader._thread is None
    assert window.workbench.runs.reader._thread is None


def test_that_one_dock_leads_to_the_next(
    make_window: Callable[[FakeSession], Window], qtbot: QtBot
) -> None:
    session = FakeSession()
    session.workshop.keep(run_of(SOME))
    session.workshop.queue = (job(SOME, "done"),)
    window = make_window(session)
    work = window.workbench
    qtbot.wait(20)  # the arrangement finds its sizes
    work.show("jobs")
    seen(qtbot, lambda: work.jobs.in_sight)
    for _ in range(12):
        window.bridge.tick()
    work.jobs.table.select((SOME,))
    work.jobs.open.click()
    seen(qtbot, lambda: SOME in work.runs.shown.title.text())
    seen(qtbot, lambda: work.runs.in_sight)
    work.runs.reload.click()
    seen(qtbot, lambda: work.plugins.form is not None)
    seen(qtbot, lambda: work.plugins.in_sight)
    window.choose_theme("dark")
    window.arrange_watch()
    seen(qtbot, lambda: not any(panel.in_sight for _, _, panel in work.panels))


def test_that_a_layout_from_before_the_docks_still_fits(
    make_window: Callable[[FakeSession], Window], qtbot: QtBot
) -> None:
    window = make_window(FakeSession())
    older = {name: window.docks[name] for name in ("plugins", "jobs", "runs")}
    for dock in older.values():
        window.removeDockWidget(dock)
        dock.setObjectName(f"absent {dock.objectName()}")
    window._save_layout("older")
    for name, dock in older.items():
        dock.setObjectName(name)
    window.arrange_watch()
    window.use_layout("older")
    qtbot.wait(20)
    assert window.log.isVisible()
    window.workbench.show("runs")
    seen(qtbot, lambda: window.workbench.runs.in_sight)


def test_that_typing_into_a_form_is_no_shortcut(
    make_window: Callable[[FakeSession], Window], qtbot: QtBot
) -> None:
    session = FakeSession()
    window = make_window(session)
    qtbot.wait(20)
    window.workbench.plugins.open_form("acme.everything")
    seen(qtbot, lambda: window.workbench.plugins.form is not None)
    form = window.workbench.plugins.form
    assert form is not None
    editor = form.params.editors["label"]
    assert isinstance(editor, TextEditor)
    editor.line.clear()
    qtbot.keyClicks(editor.line, "r c d g [ + -")
    assert editor.line.text() == "r c d g [ + -"
    assert session.ran == []
    assert window.bridge.timeline.live
