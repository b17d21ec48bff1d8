"""What a glance at the window must tell: nothing cut off, nothing stale unmarked."""

import numpy as np
import pytest
from gui.fake_session import JOINTS, FakeSession, gap_table, health
from msgspec.structs import replace
from PySide6.QtCore import QRectF
from PySide6.QtGui import QFont, QIcon
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from twinstudio.gui.docks.gapmodel import short_names
from twinstudio.gui.docks.rows import MARKS, mark_icon
from twinstudio.gui.notices import Notices
from twinstudio.gui.plots.panel import NumberAxis
from twinstudio.gui.theme import DARK, LIGHT, Theme
from twinstudio.gui.window import Window
from twinstudio.model.views import Moment, Trace, TraceQuery

FLOOR = 3


def ticks(window: Window, count: int = 12) -> None:
    for _ in range(count):
        window.bridge.tick()


def elided(window: Window) -> list[str]:
    """Figures of the gap table, and names of totals, that are wider than their column."""
    table, model = window.gaps.table, window.gaps.sorted
    advance = table.fontMetrics().horizontalAdvance
    return [
        text
        for column in range(model.columnCount())
        if not table.isColumnHidden(column)
        for row in range(model.rowCount())
        if (column or row >= model.rowCount() - 2)
        if advance(text := model.index(row, column).data()) + 6 > table.columnWidth(column)
    ]


@pytest.mark.parametrize(
    "joints",
    [
        JOINTS,
        ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint"),
        ("axis",),
        tuple(f"arm_{'long' * k}_name_{k}" for k in range(5)),
    ],
)
def test_that_the_gap_table_is_whole_on_a_small_screen(
    make_window, joints: tuple[str, ...]
) -> None:
    window = make_window(FakeSession(joints=joints))
    window.resize(1366, 768)
    window.arrange_watch()
    window._size_watch()
    ticks(window)
    assert elided(window) == []
    names = [window.gaps.sorted.index(row, 0).data() for row in range(len(joints))]
    if max(map(len, names)) <= len("shoulder_lift"):
        advance = window.gaps.table.fontMetrics().horizontalAdvance
        assert max(map(advance, names)) + 6 <= window.gaps.table.columnWidth(0)


def test_that_the_floor_is_shown_only_where_it_is_known(
    window: Window, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks(window)
    assert not window.gaps.table.isColumnHidden(FLOOR)
    whole = session.snapshot()
    table = gap_table(1e-3)
    bare = replace(table, joints=tuple(replace(joint, floor={}) for joint in table.joints))
    object.__setattr__(whole, "window", bare)
    monkeypatch.setattr(session, "snapshot", lambda: whole)
    ticks(window)
    assert window.gaps.table.isColumnHidden(FLOOR)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (("panda_joint1", "panda_joint2"), ("joint1", "joint2")),
        (("shoulder_pan_joint", "elbow_joint"), ("shoulder_pan", "elbow")),
        (("left/arm/j1", "left/arm/j2"), ("j1", "j2")),
        (("a_b_c", "a_c"), ("a_b_c", "a_c")),
        (("x_joint",), ("x_joint",)),
        ((), ()),
    ],
)
def test_that_common_words_are_left_out(names: tuple[str, ...], short: tuple[str, ...]) -> None:
    assert short_names(names) == short


def test_that_figures_from_a_while_ago_are_marked(window: Window, session: FakeSession) -> None:
    ticks(window)
    # The figures of the fake end at 1 s; the clock stands at 100 s.
    assert window.gaps.span.text() == "! over 1.00\u00a0s, 99\u00a0s ago"
    session.now = 2 * 10**9
    ticks(window)
    assert window.gaps.span.text() == "over 1.00\u00a0s"


def test_that_a_picture_of_a_silent_cell_says_so(window: Window, session: FakeSession) -> None:
    ticks(window)
    assert window.viewer.when.text() == ""
    session.cell_health = health(state="silent", text="no samples", age=3.0)
    ticks(window)
    assert window.viewer.when.text() == "cell silent"


def test_that_twin_and_cell_are_compared_at_one_instant(
    window: Window, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.twin_health = health(latency_p50=0.05)
    asked: list[int] = []

    def moment(stamp: int) -> Moment:
        asked.append(stamp)
        return Moment(stamp, np.zeros(7), np.zeros(7), {})

    assert window.bridge.frame is not None
    snapshot = session.snapshot()
    monkeypatch.setattr(session, "moment", moment)
    frame = type(window.bridge.frame)(snapshot, window.bridge.timeline, 0)
    for _ in range(100):
        window.viewer._state(frame)
    assert session.now - asked[-1] == pytest.approx(0.065e9, rel=0.01)


def test_that_where_the_twin_stood_before_it_was_set_does_not_set_the_scale(
    window: Window, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gap begins 4 s before now; until then the twin stood 100 rad away."""

    def traces(query: TraceQuery) -> list[Trace]:
        time = np.linspace(0.0, 10.0, 200)
        cell = 0.1 * np.sin(time)
        late = time >= 6.0
        twin = np.where(late, cell, 100.0)
        found = []
        for label in query.labels:
            found += [
                Trace("cell", label, "rad", time, cell),
                Trace("twin", label, "rad", time, twin),
                Trace("gap", label, "rad", time[late], (twin - cell)[late]),
            ]
        return found

    monkeypatch.setattr(session, "traces", traces)
    for _ in range(40):
        session.advance(0.03)
        ticks(window, 1)
    for panel in window.plots.panels:
        low, high = panel.main.vb.viewRange()[1]
        assert -0.5 < low < -0.1
        assert 0.1 < high < 0.5


def test_that_captions_stand_beside_the_curves_and_not_on_them(window: Window) -> None:
    ticks(window)
    for panel in window.plots.panels:
        caption, *plots = (
            item.mapRectToScene(QRectF(item.rect()))
            for item in (panel._caption, panel.main.vb, panel.strip.vb)
        )
        assert caption.height() >= 12
        assert not any(caption.intersects(plot.adjusted(1, 1, -1, -1)) for plot in plots)
        title, note = panel.caption_texts
        assert title.startswith(panel.label)
        assert note.startswith("gap ±")


def test_that_only_the_lowest_plots_of_a_column_have_a_time_axis(window: Window) -> None:
    ticks(window)
    columns = window.plots._columns
    timed = [panel.strip.getAxis("bottom").isVisible() for panel in window.plots.panels]
    assert timed == [k + columns >= len(timed) for k in range(len(timed))]


def test_that_a_time_axis_says_its_unit_once(qtbot: QtBot) -> None:
    axis = NumberAxis("bottom", QFont())
    texts = axis.tickStrings([-4.0, -2.0, 0.0], 1.0, 2.0)
    assert texts == ["−4", "−2", "0\u00a0s"]


@pytest.mark.parametrize(("low", "high"), [(-2.47, -1.83), (0.0, 1e-3), (-1.0, 9.0), (5.2, 6.7)])
def test_that_a_value_axis_has_at_least_two_numbers(qtbot: QtBot, low: float, high: float) -> None:
    axis = NumberAxis("left", QFont())
    for size in (28.0, 60.0, 300.0):
        [(step, values)] = axis.tickValues(low, high, size)
        assert len(values) >= 2
        assert values[0] >= low - 1e-12
        assert values[-1] <= high + 1e-12
        assert len(set(axis.tickStrings(list(values), 1.0, step))) == len(values)
        assert np.diff(values).min() * size / (high - low) >= 12.0


def test_that_the_log_follows_the_newest_unless_one_has_scrolled_up(
    window: Window, session: FakeSession, qtbot: QtBot
) -> None:
    bar = window.log.table.verticalScrollBar()

    def say(count: int) -> None:
        for k in range(count):
            session.say("info", "cell", f"line {len(session.log)} {k}")
        ticks(window)
        qtbot.wait(10)

    say(50)
    assert bar.value() == bar.maximum() > 0
    bar.setValue(5)
    say(10)
    assert bar.value() == 5
    bar.setValue(bar.maximum())
    say(10)
    assert bar.value() == bar.maximum()


def test_that_the_log_lets_go_of_its_oldest_lines_under_the_eyes_of_the_reader(
    window: Window, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from collections import deque

    notices = window.bridge.notices
    monkeypatch.setattr("twinstudio.gui.notices.KEPT", 20)
    notices.lines = deque(notices.lines, maxlen=20)
    for k in range(50):
        session.say("info", "cell", f"line {k}")
        ticks(window, 1 + k % 4)
    ticks(window)
    shown = [window.log.model.line(row).text for row in range(window.log.model.rowCount())]
    assert shown == [line.text for line in notices.lines]


def test_that_an_alarm_is_not_hidden_by_a_later_warning() -> None:
    notices = Notices()
    notices.say("warning", "cell", "slow")
    notices.say("alarm", "cell", "died")
    notices.say("warning", "twin", "nothing comes from the cell")
    assert notices.latest is not None
    assert notices.latest.text == "died"
    assert notices.unread == 3
    notices.read()
    notices.say("warning", "twin", "slow")
    assert notices.latest.text == "slow"


def test_that_lost_samples_and_a_dead_twin_show_in_the_status_bar(
    window: Window, session: FakeSession
) -> None:
    session.cell_health = health(lost=12)
    session.twin_alive = False
    ticks(window)
    assert "! lost 12" in window.status.cell.text()
    assert window.status.twin.text() == "twin died"


@pytest.mark.parametrize(("behind", "after_one"), [(1e9, ["early"]), (-1.0, ["early", "late"])])
def test_that_a_frame_takes_two_ticks_unless_the_window_is_behind(
    window: Window, monkeypatch: pytest.MonkeyPatch, behind: float, after_one: list[str]
) -> None:
    ticks(window, 1)
    monkeypatch.setattr("twinstudio.gui.bridge._BEHIND", behind)
    bridge, given = window.bridge, []
    bridge.add(window, lambda _frame: given.append("early"), late=False)
    bridge.add(window, lambda _frame: given.append("late"))
    bridge._half()
    assert given == after_one
    bridge._half()
    assert given[:2] == ["early", "late"]
    assert given.count("early") == len(after_one)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.1)."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_that_the_edge_of_a_field_is_seen_against_the_window(theme: Theme) -> None:
    dim, bright = sorted((luminance(theme.edge), luminance(theme.window)))
    assert (bright + 0.05) / (dim + 0.05) >= 3.0


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("state", list(MARKS))
def test_that_the_mark_of_a_state_is_seen_in_a_selected_row(
    qapp: QApplication, theme: Theme, state: str
) -> None:
    picture = mark_icon(state, theme).pixmap(16, QIcon.Mode.Selected).toImage()
    drawn = [
        colour
        for x in range(picture.width())
        for y in range(picture.height())
        if (colour := picture.pixelColor(x, y)).alpha() == 255
    ]
    assert drawn
    assert {colour.name() for colour in drawn} == {theme.base.lower()}
