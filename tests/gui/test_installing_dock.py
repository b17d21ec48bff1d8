"""Plugins in and out of the window: changes first, agreement, live lines, a plain outcome."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gui.fake_session import AnsweringSession, FakeSession
from gui.fake_workshop import FakeWorkshop, entry, job
from install_helpers import Bench as Pip
from install_helpers import children, slow_project, throw_away, wait_for, wheel_of
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.installpane import InstallPane
from twinstudio.gui.docks.workbench import Workbench
from twinstudio.gui.theme import DARK, LIGHT
from twinstudio.model.errors import PluginError, TwinstudioError
from twinstudio.plugin.catalog import Entry
from twinstudio.plugin.install import NOTE, PlannedChange
from twinstudio.plugin.scaffold import write_project
from twinstudio.session.installing import KEPT, InstallView, Wanted

ACME = Wanted(verb="install", what="/home/eve/acme-1.0.whl")
PLANNED = InstallView(
    number=1,
    wanted=ACME,
    state="planned",
    changes=(
        PlannedChange(name="acme", version="1.0"),
        PlannedChange(name="helper", version="2.0", before="1.5"),
    ),
    lines=("Processing acme",),
    count=1,
)


@dataclass
class Desk:
    """The docks on a session, with ticks by hand."""

    session: AnsweringSession
    bridge: Bridge
    docks: Workbench
    qtbot: QtBot

    @property
    def pane(self) -> InstallPane:
        return self.docks.plugins.installs

    def show(self, view: InstallView) -> None:
        self.session.workshop.installing.shown = view
        self.ticks()

    def ticks(self) -> None:
        for _ in range(6):
            self.bridge.tick()

    def until(self, what: Callable[[], bool]) -> None:
        def looked() -> bool:
            self.ticks()
            return what()

        self.qtbot.waitUntil(looked, timeout=60_000)

    def ids(self) -> list[str]:
        return [row.id for row in self.docks.plugins.model.rows]

    def pick(self, plugin: str) -> None:
        plugins = self.docks.plugins
        plugins.table.select([plugins.model.key(r) for r in plugins.model.rows if r.id == plugin])


def desk_on(session: AnsweringSession, qtbot: QtBot) -> Desk:
    bridge = Bridge(session)  # type: ignore[arg-type]
    docks = Workbench(bridge, LIGHT)
    for _, _, widget in docks.panels:
        qtbot.addWidget(widget)
    return Desk(session, bridge, docks, qtbot)


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[Desk]:
    made = desk_on(AnsweringSession(), qtbot)
    made.docks.plugins.resize(900, 320)
    made.docks.plugins.show()
    made.until(lambda: bool(made.docks.plugins.model.rows))
    yield made
    made.docks.stop()


def texts(widget: Any) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if not label.isHidden())


# --- drawn from a snapshot --------------------------------------------------------------------


def test_that_a_package_is_asked_for_by_text(desk: Desk) -> None:
    desk.docks.plugins.ask_install()
    pane = desk.pane
    assert desk.docks.plugins.side.currentWidget() is pane
    assert NOTE in texts(pane)
    assert not pane.go.isEnabled()
    desk.qtbot.keyClicks(pane.line, " acme-reach ")
    desk.qtbot.keyClick(pane.line, Qt.Key.Key_Return)
    assert desk.session.ran == [("plugin.install", {"what": "acme-reach"})]
    pane.ask()
    pane.offline.setChecked(True)
    pane.go.click()
    assert desk.session.ran[-1] == ("plugin.install", {"what": "acme-reach", "offline": True})


def test_that_a_wheel_or_a_folder_can_be_chosen(desk: Desk, tmp_path: Path) -> None:
    desk.docks.plugins.ask_install()
    for choose in (desk.pane._choose_wheel, desk.pane._choose_folder):
        choose()
        (dialog,) = desk.docks.plugins.findChildren(QFileDialog)
        assert not dialog.isModal() or dialog.windowModality() != Qt.WindowModality.ApplicationModal
        dialog.fileSelected.emit(str(tmp_path))
        dialog.reject()
        desk.until(lambda: not desk.docks.plugins.findChildren(QFileDialog))
        assert desk.pane.line.text() == str(tmp_path)
        desk.pane.line.clear()


def test_that_the_changes_are_shown_before_anything_is_agreed_to(desk: Desk) -> None:
    desk.show(PLANNED)
    pane = desk.pane
    assert desk.docks.plugins.side.currentWidget() is pane
    assert pane.changes.text() == "Install acme 1.0\nReplace helper 1.5 by 2.0"
    assert NOTE in texts(pane)
    assert not pane.agree.isHidden()
    assert desk.session.ran == []
    pane.agree.click()
    assert desk.session.ran == [("plugin.install", {"what": ACME.what, "agreed": True})]
    assert not pane.agree.isEnabled()


def test_that_lines_come_as_they_are_said(desk: Desk) -> None:
    desk.show(replace(PLANNED, state="working"))
    assert desk.pane.output.toPlainText() == "Processing acme"
    more = ("Processing acme", "<b>Installing</b>", "done")
    desk.show(replace(PLANNED, state="working", lines=more, count=3))
    assert desk.pane.output.toPlainText().splitlines() == list(more)
    many = tuple(f"line {k}" for k in range(KEPT))
    desk.show(replace(PLANNED, state="working", lines=many, count=5 * KEPT))
    assert desk.pane.output.toPlainText().splitlines()[-KEPT:] == list(many)
    assert desk.pane.output.blockCount() <= KEPT


def test_that_what_is_under_way_can_be_cancelled(desk: Desk) -> None:
    desk.show(replace(PLANNED, state="working"))
    assert desk.pane.agree.isHidden()
    desk.pane.cancel.click()
    assert desk.session.ran == [("plugin.cancel", {})]
    desk.show(replace(PLANNED, state="working", cancelling=True))
    assert "Being cancelled" in desk.pane.outcome.text()
    assert not desk.pane.cancel.isEnabled()
    desk.show(replace(PLANNED, state="cancelled", outcome="Cancelled; nothing was changed"))
    assert desk.pane.outcome.text() == "Cancelled; nothing was changed"
    assert desk.pane.cancel.isHidden()
    assert not desk.pane.question.isHidden()


def test_that_an_installation_begun_elsewhere_is_shown_where_it_can_be_agreed_to(
    make_window: Callable[[FakeSession], Any],
) -> None:
    session = FakeSession()
    window = make_window(session)
    session.workshop.installing.shown = PLANNED
    for _ in range(24):
        window.bridge.tick()
    assert not window.docks["plugins"].visibleRegion().isEmpty()


def test_that_the_palette_asks_which_plugin_to_install(
    make_window: Callable[[FakeSession], Any], qtbot: QtBot
) -> None:
    window = make_window(FakeSession())
    (action,) = [a for a in window.actions_.all if a.text() == "Install plugin…"]
    action.trigger()
    plugins = window.workbench.plugins
    qtbot.waitUntil(lambda: plugins.in_sight, timeout=20_000)
    assert plugins.side.currentWidget() is plugins.installs


def test_that_only_a_package_of_others_can_be_uninstalled(desk: Desk) -> None:
    desk.session.workshop.catalog.found = (
        entry("twinstudio.worst", "metric", first_party=True),
        entry("acme.one"),
        entry("acme.two"),
        entry("here.single", origin="/home/eve/plugins/single.py"),
    )
    desk.docks.plugins.refresh()
    desk.until(lambda: "here.single" in desk.ids())
    uninstall = desk.docks.plugins.details.uninstall
    for plugin, offered in (
        ("twinstudio.worst", False),
        ("here.single", False),
        ("acme.one", True),
    ):
        desk.pick(plugin)
        assert uninstall.isHidden() is not offered
    uninstall.click()
    assert desk.session.ran[-1] == ("plugin.uninstall", {"package": "acme-plugins"})
    gone = PlannedChange(name="acme-plugins", version="", before="1.2")
    wanted = Wanted(verb="uninstall", what="acme-plugins")
    desk.show(InstallView(number=1, wanted=wanted, state="planned", changes=(gone,)))
    assert desk.pane.changes.text() == "Uninstall acme-plugins 1.2"
    assert desk.pane.also.text() == "With it go One, Two"
    assert desk.pane.question.isHidden()
    desk.pane.agree.click()
    assert desk.session.ran[-1] == (
        "plugin.uninstall",
        {"package": "acme-plugins", "agreed": True},
    )


def test_that_a_refused_command_is_told_in_the_pane(desk: Desk) -> None:
    desk.session.answers["plugin.uninstall"] = PluginError("another one is not done")
    desk.pick("acme.worst")
    desk.docks.plugins.details.uninstall.click()
    desk.until(lambda: desk.pane.outcome.text() == "another one is not done")
    assert desk.docks.plugins.side.currentWidget() is desk.pane


def test_that_the_list_is_read_anew_when_an_installation_has_ended(desk: Desk) -> None:
    desk.show(replace(PLANNED, state="working"))
    found = (*desk.session.workshop.catalog.found, entry("acme.fresh"))
    desk.session.workshop.catalog.found = found
    desk.show(replace(PLANNED, state="done", outcome="Installed acme 1.0 (acme.fresh)"))
    desk.until(lambda: "acme.fresh" in desk.ids())


def test_that_a_plugin_that_needs_a_restart_says_so(desk: Desk) -> None:
    text = "version 1.0 was in use when it was replaced; restart Twinstudio"
    desk.session.workshop.catalog.found = (entry("acme.old", restart=text),)
    desk.docks.plugins.refresh()
    desk.until(lambda: desk.ids() == ["acme.old"])
    desk.pick("acme.old")
    assert text in texts(desk.docks.plugins.details)
    model = desk.docks.plugins.model
    assert model.index(0, 2).data() == "unused, restart"
    assert "restart Twinstudio" in model.index(0, 2).data(Qt.ItemDataRole.ToolTipRole)


def test_that_a_long_name_is_shown_whole(desk: Desk) -> None:
    name = "acme-" + "a-very-long-name-" * 20 + "end"
    desk.show(replace(PLANNED, changes=(PlannedChange(name=name, version="1.0"),)))
    label = desk.pane.changes
    assert label.text().replace("\u200b", "") == f"Install {name} 1.0"
    width = label.fontMetrics().horizontalAdvance(f"Install {name} 1.0")
    lines = -(-width // max(desk.pane.viewport().width(), 1))
    assert (
        label.heightForWidth(desk.pane.viewport().width()) >= lines * label.fontMetrics().height()
    )


def test_that_the_form_of_a_replaced_plugin_is_closed(desk: Desk) -> None:
    plugins = desk.docks.plugins
    plugins.open_form("acme.everything")
    desk.until(lambda: plugins.form is not None)
    found = desk.session.workshop.catalog.found
    desk.session.workshop.catalog.found = tuple(
        replace(e, version="1.3") if e.id == "acme.everything" else e for e in found
    )
    desk.show(replace(PLANNED, state="done", outcome="Installed"))
    desk.until(lambda: plugins.form is None)
    assert any("acme.everything" in line.text for line in desk.bridge.notices.lines)


def test_that_a_failed_run_marks_its_plugin_as_soon_as_it_is_known(desk: Desk) -> None:
    found = desk.session.workshop.catalog.found
    desk.session.workshop.queue = (job("a", "running"),)
    desk.ticks()
    reads = desk.session.workshop.catalog.reads
    desk.session.workshop.catalog.found = (replace(found[0], state="failed"), *found[1:])
    desk.session.workshop.queue = (job("a", "failed"),)
    desk.until(lambda: desk.docks.plugins.model.rows[0].state == "failed")
    assert desk.session.workshop.catalog.reads == reads + 1


def test_that_the_pane_takes_the_colours_of_a_theme(desk: Desk) -> None:
    desk.show(replace(PLANNED, state="failed", outcome="the package index cannot be reached"))
    before = desk.pane._mark.pixmap().toImage()
    desk.docks.restyle(DARK)
    assert not desk.pane._mark.isHidden()
    assert desk.pane._mark.pixmap().toImage().size() == before.size()


# --- with pip ---------------------------------------------------------------------------------


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pip]:
    with throw_away(tmp_path, monkeypatch) as made:
        yield made


class PipWorkshop(FakeWorkshop):
    """Plugins as they are in a throw-away environment."""

    def __init__(self, pip: Pip) -> None:
        super().__init__()
        self.catalog = pip.catalog  # type: ignore[assignment]
        self.installing = pip.installing  # type: ignore[assignment]

    def plugins(self) -> tuple[Entry, ...]:
        return self.catalog.entries()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def real(pip: Pip, qtbot: QtBot) -> Iterator[Desk]:
    session = AnsweringSession()
    session.workshop = PipWorkshop(pip)
    session.answers = {
        "plugin.install": pip.installing.install,
        "plugin.uninstall": pip.installing.uninstall,
        "plugin.cancel": pip.installing.cancel,
    }
    made = desk_on(session, qtbot)
    made.docks.plugins.show()
    yield made
    made.docks.stop()


def ask_for(desk: Desk, what: object) -> None:
    desk.docks.plugins.ask_install()
    desk.pane.line.setText(str(what))
    desk.pane.offline.setChecked(True)
    desk.pane.go.click()


def test_that_a_plugin_comes_and_goes_without_a_restart(real: Desk, tmp_path: Path) -> None:
    wheel = wheel_of(write_project("acme-settling", "metric", tmp_path), tmp_path / "dist")
    ask_for(real, wheel)
    real.until(lambda: not real.pane.agree.isHidden())
    assert real.pane.changes.text() == "Install acme-settling 0.1.0"
    assert real.ids() == []
    real.pane.agree.click()
    real.until(lambda: real.ids() == ["acme.settling"])
    assert real.pane.outcome.text() == "Installed acme-settling 0.1.0 (acme.settling)"
    assert "Successfully installed" in real.pane.output.toPlainText()
    real.pick("acme.settling")
    real.docks.plugins.details.uninstall.click()
    real.until(lambda: not real.pane.agree.isHidden())
    assert real.pane.changes.text() == "Uninstall acme-settling 0.1.0"
    real.pane.agree.click()
    real.until(lambda: real.ids() == [] and real.pane.cancel.isHidden())
    assert real.pane.outcome.text() == "acme-settling 0.1.0 is uninstalled"


def test_that_a_build_is_cancelled_from_the_pane(real: Desk, tmp_path: Path) -> None:
    project = slow_project(tmp_path / "slow")
    ask_for(real, project)
    wait_for(project / "begun")
    real.until(lambda: "Processing" in real.pane.output.toPlainText())
    real.pane.cancel.click()
    real.until(lambda: real.pane.outcome.text() == "Cancelled; nothing was changed")
    assert children() == []


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("acme-1.0-py3-none-any.whl", b"no zip at all", "pip could not handle"),
        ("notes.txt", b"no plugin", "pip could not handle"),
        ("empty", None, "pyproject.toml"),
    ],
)
def test_that_what_is_no_plugin_is_refused_in_one_line(
    real: Desk, tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    ask_for(real, tmp_path / name)
    real.until(lambda: complaint in real.pane.outcome.text().replace("\u200b", ""))
    assert real.pane.outcome.text().endswith("nothing was changed")
    assert real.pane.agree.isHidden()
    assert real.pane.line.text() == str(tmp_path / name)


def test_that_a_name_that_does_not_exist_is_told(real: Desk) -> None:
    ask_for(real, "acme-nowhere")
    real.until(lambda: "not to be found" in real.pane.outcome.text())


def test_that_being_offline_is_told_plainly(real: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    real.docks.plugins.ask_install()
    real.pane.line.setText("acme-from-afar")
    real.pane.go.click()
    real.until(lambda: "the package index cannot be reached" in real.pane.outcome.text())


def test_that_an_environment_is_the_throw_away_one(pip: Pip) -> None:
    assert str(pip.site).startswith(sys.executable.removesuffix("bin/python"))
    with pytest.raises(TwinstudioError, match="nothing is being installed"):
        pip.installing.cancel()
