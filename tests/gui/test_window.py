from pathlib import Path

import numpy as np
import pytest
from gui.fake_session import JOINTS, FakeSession, health, position
from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QLabel,
    QLineEdit,
    QSlider,
)
from pytestqt.qtbot import QtBot

from twinstudio.gui.docks.help import pages
from twinstudio.gui.docks.viewer import link_errors
from twinstudio.gui.settings import open_settings, restore_layout, save_layout
from twinstudio.gui.window import Window
from twinstudio.model.gaps import Lag
from twinstudio.model.geometry import SceneGeometry
from twinstudio.model.views import RecordingView, ReplayView


def ticks(window: Window, count: int = 6) -> None:
    """As many ticks as it takes for every view to have its turn."""
    for _ in range(count):
        window.bridge.tick()


def finish(window: Window, qtbot: QtBot) -> None:
    ticks(window)
    qtbot.waitUntil(lambda: not window.bridge.runner.busy)


def curve(window: Window, joint: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    return window.plots.panels[joint].data_of(source)


def test_that_twin_cell_and_gap_of_every_joint_are_drawn(window: Window) -> None:
    ticks(window)
    assert [panel.label for panel in window.plots.panels] == list(JOINTS)
    for source, factor in (("cell", 1.0), ("twin", 1.0), ("gap", 1e3)):
        x, y = curve(window, 2, source)
        np.testing.assert_allclose(y, factor * position(source, 2, 100.0 + x), atol=1e-9)
        assert x[-1] == pytest.approx(0.0)
        assert x[0] == pytest.approx(-10.0)


def test_that_pause_freezes_and_live_resumes(
    window: Window, session: FakeSession, qtbot: QtBot
) -> None:
    qtbot.keyClick(window, Qt.Key.Key_Space)
    ticks(window)
    _, before = curve(window, 0, "cell")
    session.advance(3.0)
    ticks(window)
    _, after = curve(window, 0, "cell")
    np.testing.assert_array_equal(before, after)
    assert window.plots.bar.time.age.text() == "3.000\u00a0s ago"
    qtbot.keyClick(window, Qt.Key.Key_Space)
    ticks(window)
    x, live = curve(window, 0, "cell")
    np.testing.assert_allclose(live, position("cell", 0, 103.0 + x), atol=1e-9)
    assert window.plots.bar.time.age.text() == "live"


def test_that_scrubbing_shows_old_data_while_new_comes_in(
    window: Window, session: FakeSession
) -> None:
    window.plots.bar.time.slider.setValue(500)
    ticks(window)
    assert window.bridge.timeline.age == pytest.approx(45.0)
    session.advance(5.0)
    ticks(window)
    assert window.bridge.timeline.age == pytest.approx(50.0)
    x, y = curve(window, 1, "twin")
    np.testing.assert_allclose(y, position("twin", 1, 55.0 + x), atol=1e-9)
    window.plots.bar.time.slider.setValue(1000)
    assert window.bridge.timeline.live


def test_that_cursor_differences_are_those_of_the_signals(window: Window) -> None:
    window.bridge.timeline.pause()
    window.plots.bar.cursors.setChecked(True)
    window.plots.cursors.move("a", -6.0)
    window.plots.cursors.move("b", -2.0)
    readings = window.plots.cursors.read(window.bridge.session, "joint.position", JOINTS)
    assert len(readings) == 21
    for reading in readings:
        k = JOINTS.index(reading.label)
        a, b = (float(position(reading.source, k, t)) for t in (94.0, 98.0))
        assert reading.a == pytest.approx(a, abs=1e-5)
        assert reading.delta == pytest.approx(b - a, abs=2e-5)
    assert "Δt 4.00\u00a0s" in window.plots.readout._spans.text()


def test_that_cursors_stay_on_the_data_while_one_scrubs(window: Window) -> None:
    window.bridge.timeline.pause()
    window.plots.bar.cursors.setChecked(True)
    window.plots.cursors.move("a", -6.0)
    window.bridge.timeline.look_back(2.0)
    assert window.plots.cursors.a == pytest.approx(-4.0)


def test_that_a_cursor_without_data_reads_nothing(window: Window) -> None:
    window.bridge.timeline.pause()
    window.plots.bar.cursors.setChecked(True)
    window.plots.cursors.move("a", -95.0)
    readings = window.plots.cursors.read(window.bridge.session, "joint.position", JOINTS)
    assert all(np.isnan(reading.a) and np.isnan(reading.delta) for reading in readings)


SHORT = [name.removeprefix("panda_") for name in JOINTS]


def table(window: Window) -> list[list[str]]:
    model = window.gaps.sorted
    return [
        [model.index(r, c).data() for c in range(model.columnCount())]
        for r in range(model.rowCount())
    ]


def test_that_the_gap_table_shows_figures_and_a_dash_for_none(make_window, qtbot: QtBot) -> None:
    window = make_window(FakeSession(effort=False))
    ticks(window)
    rows = table(window)
    assert rows[0] == ["joint1", "1.23", "2.00", "0.100", "2.47", "–", "20.5"]
    assert rows[1] == ["joint2", "2.47", "4.00", "–", "4.94", "–", "20.5"]
    assert rows[-2][0] == "all joints"
    assert rows[-1] == ["tool point", "1.23\u00a0mm", "2.00\u00a0mm", "–", "–", "–", "–"]
    assert window.gaps.model.headerData(1, Qt.Orientation.Horizontal) == "now\nmrad"


def test_that_no_lag_is_a_plain_zero(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    none = Lag(seconds=6.1e-14, correlation=1.0, signal="position")
    monkeypatch.setattr(window.gaps.model, "_lag", lambda _row, _which: none)
    ticks(window)
    assert float(table(window)[0][-1]) == 0.0
    assert "e" not in table(window)[0][-1]


def test_that_a_recording_is_first_looked_for_where_they_are_written(
    window: Window, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("twinstudio.gui.window.places", lambda: {"recordings": tmp_path})
    window.ask_recording()
    dialog = window.findChild(QFileDialog)
    assert dialog.directory().absolutePath() == str(tmp_path)
    dialog.reject()


def test_that_a_link_of_a_help_page_leads_to_the_other_page(window: Window) -> None:
    window.show_help(pages()["Twinstudio"])
    window.help.browser.setSource(QUrl("scenes.md"))
    assert window.help.browser.toPlainText().startswith("Scenes")
    window.show_help(None)
    assert window.help.browser.toPlainText().startswith("The window")


def test_that_sorting_by_gap_keeps_the_totals_last(window: Window) -> None:
    ticks(window)
    window.gaps.table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    names = [row[0] for row in table(window)]
    assert names == [*reversed(SHORT), "all joints", "tool point"]
    window.gaps.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert [row[0] for row in table(window)] == [*SHORT, "all joints", "tool point"]


def test_that_another_figure_can_be_chosen(window: Window) -> None:
    window.gaps.part.setCurrentText("Bias")
    ticks(window)
    assert table(window)[0][1] == "−0.123"
    window.gaps.part.setCurrentText("Relative")
    assert table(window)[0][1] == "5.00"
    assert window.gaps.model.headerData(1, Qt.Orientation.Horizontal) == "now\n%"


def test_that_selecting_a_joint_selects_its_plot_and_its_row(window: Window) -> None:
    ticks(window)
    window.gaps.table.selectRow(3)
    assert window.selection.joint == JOINTS[3]
    assert window.plots.panels[3]._selected
    assert not window.plots.panels[2]._selected
    window.selection.select(JOINTS[5])
    assert window.gaps.table.currentIndex().row() == 5
    assert [i.text(0) for i in window.tree.tree.selectedItems()] == [JOINTS[5]]


def test_that_a_double_click_shows_one_joint_and_another_all(window: Window) -> None:
    ticks(window)
    window.selection.activated.emit(JOINTS[2])
    assert [panel.label for panel in window.plots.panels] == [JOINTS[2]]
    window.selection.activated.emit(JOINTS[2])
    assert len(window.plots.panels) == 7


def test_that_trouble_with_a_source_stands_there_in_words(
    window: Window, session: FakeSession
) -> None:
    session.cell_health = health(
        state="silent", text="no sample for 3.2 s", age=3.2, rate=0.0, lost=12, garbage=2
    )
    session.twin_alive, session.twin_note = False, "signal 11: bad URDF"
    ticks(window)
    labels = window.sources.labels
    assert "silent" in labels["cell", "state"].text()
    assert "died" in labels["twin", "state"].text()
    assert window.sources.words.text() == "cell: no sample for 3.2 s\ntwin: signal 11: bad URDF"
    assert labels["cell", "lost"].text() == "! 12"
    assert labels["cell", "garbage"].isVisible()
    assert not labels["cell", "foreign"].isVisible()
    assert window.sources.restart["twin"].isVisible()
    assert window.status.cell.text() == "cell silent"


def test_that_health_is_shown_in_figures(window: Window) -> None:
    ticks(window)
    labels = window.sources.labels
    assert labels["cell", "latency_p99"].text() == "3.20\u00a0ms"
    assert labels["cell", "offset"].text() == "+1.2 ±0.1\u00a0ms"
    assert "1\u00a0000\u00a0Hz" in window.status.cell.text()


def test_that_the_record_key_starts_and_stops(
    window: Window, session: FakeSession, qtbot: QtBot
) -> None:
    window.actions_.record.trigger()
    finish(window, qtbot)
    assert session.ran == [("record.start", {})]
    assert window.actions_.record.isChecked()
    assert window.status.record.text().startswith("● REC")
    assert "/recordings/run-1.mcap" in window.status.record.toolTip()
    window.actions_.record.trigger()
    finish(window, qtbot)
    assert session.ran[-1] == ("record.stop", {})
    assert not window.actions_.record.isChecked()
    assert not window.status.record.isVisible()


def test_that_a_recording_that_stopped_by_itself_raises_an_alarm(
    window: Window, session: FakeSession
) -> None:
    session.recording = RecordingView("/r.mcap", 1.0, 10, 0, active=False, alarm="the disk is full")
    ticks(window)
    assert "stopped" in window.status.record.text()
    assert "the disk is full" in window.status.record.toolTip()


def test_that_a_refused_command_is_a_quiet_line_and_nothing_modal(
    window: Window, session: FakeSession, qtbot: QtBot
) -> None:
    session.refuse = "cell: does not answer at tcp://127.0.0.1:9"
    window.endpoint.answered.emit("tcp://127.0.0.1:9")
    finish(window, qtbot)
    assert session.ran == [("cell.connect", {"endpoint": "tcp://127.0.0.1:9"})]
    assert window.bridge.notices.lines[-1].text == session.refuse
    assert "does not answer" in window.status.badge.toolTip()
    assert QApplication.activeModalWidget() is None
    window.status.badge.click()
    assert window.bridge.notices.unread == 0


def test_that_the_transport_drives_the_replay(
    window: Window, session: FakeSession, qtbot: QtBot
) -> None:
    transport = window.toolbar.transport
    assert transport.pages.currentWidget() is transport.hint
    session.replay = ReplayView("/l.mcap", 15.0, 60.0, 1.0, paused=False, loop=False)
    ticks(window)
    assert transport.place.text() == "0:15.0 / 1:00.0"
    transport.play.click()
    transport.loop.click()
    transport.seek.setSliderDown(True)
    transport.seek.setSliderPosition(1000)
    transport.seek.setSliderDown(False)
    finish(window, qtbot)
    assert session.ran == [
        ("replay.pause", {}),
        ("replay.loop", {"on": True}),
        ("replay.seek", {"seconds": 30.0}),
    ]


def test_that_empty_panels_say_what_fills_them_and_offer_the_button(
    make_window, qtbot: QtBot
) -> None:
    window = make_window(FakeSession(empty=True))
    ticks(window)
    for part in (window.plots, window.gaps, window.sources, window.viewer):
        assert part.pages.currentWidget() is part.empty
        assert part.empty.text.text()
        assert part.empty.button.isVisible()
    window.plots.empty.button.click()
    assert window.endpoint.isVisible()


def test_that_a_hidden_dock_costs_nothing_but_the_log_drains(
    window: Window, session: FakeSession
) -> None:
    window.docks["plots"].hide()
    window.docks["log"].hide()
    _, before = curve(window, 0, "cell")
    session.advance(2.0)
    session.say("warning", "cell", "hiccup")
    ticks(window)
    _, after = curve(window, 0, "cell")
    assert before is after or np.array_equal(before, after)
    assert window.bridge.notices.lines[-1].text == "hiccup"
    assert window.log.model.rowCount() == 0


def test_that_the_log_filters_and_copies(window: Window, session: FakeSession) -> None:
    session.say("info", "cell", "hello")
    session.say("alarm", "twin", "crashed")
    ticks(window)
    window.log.level.setCurrentText("Alarms")
    assert window.log.filtered.rowCount() == 1
    window.log.copy()
    assert QApplication.clipboard().text().endswith("alarm\ttwin\tcrashed")
    window.log.level.setCurrentText("All")
    window.log.search.setText("HELLO")
    assert window.log.filtered.rowCount() == 1


def test_that_the_palette_runs_commands_with_arguments(
    window: Window, session: FakeSession, qtbot: QtBot
) -> None:
    palette = window.palette_
    palette.open()
    qtbot.keyClicks(palette.line, "gwin")
    assert palette.list.item(0).text().startswith("gap.window")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert palette.line.text() == "gap.window "
    qtbot.keyClicks(palette.line, "12.5")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    finish(window, qtbot)
    assert session.ran == [("gap.window", {"seconds": 12.5})]
    assert not palette.isVisible()


def test_that_the_palette_offers_what_the_window_can_do(window: Window, qtbot: QtBot) -> None:
    ticks(window)
    window.palette_.open()
    qtbot.keyClicks(window.palette_.line, "degr")
    qtbot.keyClick(window.palette_.line, Qt.Key.Key_Return)
    assert window.actions_.degrees.isChecked()
    assert window.gaps.model.headerData(1, Qt.Orientation.Horizontal) == "now\n°"


def test_that_signals_that_appear_later_can_be_plotted(make_window, qtbot: QtBot) -> None:
    session = FakeSession(empty=True)
    window = make_window(session)
    session.empty = False
    ticks(window, 16)
    window.plots.bar.choose("joint.effort")
    ticks(window)
    assert len(window.plots.panels) == 7
    assert window.plots.panels[0].caption_texts[0] == f"{JOINTS[0]}  N·m"


def test_that_the_theme_is_changed_and_remembered(make_window, qtbot: QtBot) -> None:
    session = FakeSession()
    window = make_window(session)
    window.choose_theme("dark")
    assert window.palette().window().color().lightness() < 64
    window.choose_theme("light")
    assert window.palette().window().color().lightness() > 192
    window.close()
    again = make_window(FakeSession())
    assert again._settings.value("theme") == "light"


def test_that_layouts_are_saved_and_restored(window: Window) -> None:
    window.docks["log"].hide()
    window.layout_name.answered.emit("no log")
    window.arrange_watch()
    assert window.docks["log"].isVisible()
    window.use_layout("no log")
    assert not window.docks["log"].isVisible()


def test_that_a_window_from_another_screen_is_brought_back(window: Window) -> None:
    from twinstudio.gui.settings import rescue

    dock = window.docks["log"]
    dock.setFloating(True)
    dock.move(50_000, 50_000)
    window.move(-40_000, -40_000)
    rescue(window)
    area = window.screen().availableGeometry()
    assert area.intersects(window.frameGeometry())
    assert area.intersects(dock.frameGeometry())
    dock.setFloating(False)


def test_that_closing_stops_everything(window: Window, session: FakeSession) -> None:
    window.bridge.start()
    window.bridge.probe(on=True)
    window.close()
    assert session.closed
    assert not window.isVisible()
    assert not [timer for timer in window.findChildren(QTimer) if timer.isActive()]


def test_that_every_control_has_a_name_and_says_what_it_does(
    window: Window, session: FakeSession
) -> None:
    session.replay = ReplayView("/l.mcap", 15.0, 60.0, 1.0, paused=False, loop=False)
    window.plots.bar.cursors.setChecked(True)
    ticks(window, 12)
    controls = [
        control
        for kind in (QAbstractButton, QComboBox, QLineEdit, QSlider)
        for control in window.findChildren(kind)
        if control.isVisible()
    ]
    assert len(controls) > 30
    nameless = [
        (type(c).__name__, type(c.parent()).__name__, c.accessibleName())
        for c in controls
        if not (c.toolTip() and (c.accessibleName() or getattr(c, "text", str)()))
    ]
    assert nameless == []


def test_that_the_tool_bar_names_commands_and_keys(window: Window) -> None:
    ticks(window)
    tips = [
        window.toolbar.widget_of(action).toolTip()
        for action in (window.actions_.connect, window.actions_.record, window.actions_.replay)
    ]
    for tip, ending in zip(
        tips, ("(cell.connect, Ctrl+K)", "(record.start, R)", "(cell.replay, Ctrl+O)"), strict=True
    ):
        assert tip.endswith(ending)


def test_that_the_keyboard_goes_through_the_panels_one_after_the_other(window: Window) -> None:
    stops: list[str] = []
    control = window.nextInFocusChain()
    while control is not window:
        if control.isVisible() and control.focusPolicy() & Qt.FocusPolicy.TabFocus:
            place = [name for name, dock in window.docks.items() if dock.isAncestorOf(control)]
            if place and place[0] not in stops[-1:]:
                stops.append(place[0])
        control = control.nextInFocusChain()
    assert sorted(stops) == sorted(set(stops))


def test_that_help_pages_open_in_a_dock(window: Window) -> None:
    window.show_help("# Title\n\nWords")
    assert window.docks["help"].isVisible()
    assert "Words" in window.help.browser.toPlainText()
    window.actions_.help.trigger()
    assert "Ctrl+Shift+P" in window.help.browser.toPlainText()


def test_that_a_long_scene_name_is_shortened_and_whole_in_the_tooltip(make_window) -> None:
    session = FakeSession()
    name = "a_robot_cell_with_an_unreasonably_long_name_of_many_words"
    session.scene = type(session.scene)(name=name, robot=session.scene.robot)
    window = make_window(session)
    label = window.toolbar.findChild(QLabel)
    assert "…" in label.text()
    assert name in label.toolTip()


def test_that_the_window_fits_a_small_screen(window: Window) -> None:
    hint = window.minimumSizeHint()
    assert hint.width() <= 1366
    assert hint.height() <= 768 - 32
    assert all(
        dock.isVisible()
        for dock in window.findChildren(QDockWidget)
        if dock.objectName() in ("plots", "log", "gaps")
    )


def test_that_link_errors_saturate_and_are_unknown_without_readings() -> None:
    geometry: SceneGeometry = FakeSession().geometry  # type: ignore[assignment]
    twin, cell = np.zeros(7), np.zeros(7)
    twin[0], twin[1] = 0.01, 1.0
    errors = link_errors(geometry.tree, twin, cell)
    assert errors["link1"] == pytest.approx(0.5)
    assert errors["link2"] == 1.0
    assert errors["base"] == 0.0
    assert np.isnan(link_errors(geometry.tree, None, cell)["link1"])


def test_that_a_source_that_went_away_leaves_the_plots_running(
    window: Window, session: FakeSession
) -> None:
    ticks(window)
    whole = session.traces
    session.traces = lambda query: [t for t in whole(query) if t.source == "cell"]  # type: ignore[method-assign]
    session.advance(1.0)
    ticks(window)
    assert len(curve(window, 0, "twin")[0]) == 0
    assert len(curve(window, 0, "cell")[0]) > 0
    assert window.plots.curves == 7


def test_that_a_source_that_comes_back_has_its_state_again(
    window: Window, session: FakeSession
) -> None:
    ticks(window)
    session.empty = True
    ticks(window)
    assert window.status.cell.text() == "no cell"
    session.empty = False
    ticks(window)
    assert "streaming" in window.sources.labels["cell", "state"].text()
    assert window.sources.labels["cell", "title"].text() == "Cell"


def test_that_notes_of_the_gap_stand_in_one_line_and_whole_in_the_tooltip(
    window: Window, session: FakeSession
) -> None:
    from msgspec.structs import replace

    notes = tuple(f"no delay of joint {k}: the response does not follow" for k in range(5))
    model = session.snapshot()
    assert model.window is not None
    noted = replace(model.window, notes=notes)
    window.gaps._note(noted.notes)
    assert window.gaps.notes.text().startswith("5 notes: ")
    assert "…" in window.gaps.notes.text()
    assert window.gaps.notes.toolTip() == "\n".join(notes)


def test_that_a_click_on_a_plot_selects_its_joint(window: Window, qtbot: QtBot) -> None:
    ticks(window)
    panel = window.plots.panels[4]
    place = panel.main.vb.mapToScene(panel.main.vb.rect().center())
    view = window.plots.view
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.mapFromScene(place))
    assert window.selection.joint == JOINTS[4]


def test_that_the_keys_move_through_time_and_change_the_window(window: Window) -> None:
    timeline = window.bridge.timeline
    window.actions_.back.trigger()
    assert timeline.age == pytest.approx(1.0)
    window.actions_.forward.trigger()
    assert timeline.live
    window.actions_.longer.trigger()
    ticks(window)
    assert curve(window, 0, "cell")[0][0] == pytest.approx(-20.0)
    window.actions_.shorter.trigger()
    assert timeline.window == 10.0


def test_that_a_replay_that_rests_is_no_trouble(window: Window, session: FakeSession) -> None:
    session.cell_health = health(state="silent", text="no samples", age=3.0)
    session.replay = ReplayView("/l.mcap", 15.0, 60.0, 1.0, paused=True, loop=False)
    ticks(window)
    assert window.status.cell.text() == "cell paused"
    assert not window.sources.words.isVisible()
    session.replay = ReplayView("/l.mcap", 60.0, 60.0, 1.0, paused=False, loop=False)
    ticks(window)
    assert window.status.cell.text() == "cell at its end"
    session.replay = ReplayView("/l.mcap", 20.0, 60.0, 1.0, paused=False, loop=False)
    ticks(window)
    assert window.status.cell.text() == "cell silent"
    assert window.sources.words.text() == "cell: no samples"


def test_that_an_arrangement_of_other_docks_is_left_unused(window: Window, tmp_path: Path) -> None:
    settings = open_settings(tmp_path)
    save_layout(settings, "mine", window)
    assert restore_layout(settings, "mine", window)
    extra = QDockWidget("Extra", window)
    extra.setObjectName("extra")
    window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, extra)
    assert not restore_layout(settings, "mine", window)
