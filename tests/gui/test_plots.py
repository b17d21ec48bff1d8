import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter, QPen
from PySide6.QtWidgets import QGraphicsScene
from pytestqt.qtbot import QtBot

from twinstudio.gui.plots.lines import Lines
from twinstudio.gui.plots.scale import Scale, round_step


def painted(lines: Lines) -> np.ndarray:
    """Which pixels a curve in white touches; 100 x 100, data space 0..1."""
    pen = QPen(QColor("white"))
    pen.setCosmetic(True)
    lines.set_pens({"cell": pen}, pen)
    lines.set_rect(QRectF(0, 0, 1, 1))
    scene = QGraphicsScene(0, 0, 1, 1)
    scene.addItem(lines)
    image = QImage(100, 100, QImage.Format.Format_Grayscale8)
    image.fill(0)
    painter = QPainter(image)
    scene.render(painter, QRectF(0, 0, 100, 100), QRectF(0, 0, 1, 1))
    painter.end()
    scene.removeItem(lines)
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(100, image.bytesPerLine())
    return pixels[:, :100] > 0


def test_that_missing_readings_leave_a_gap_in_the_line(qtbot: QtBot) -> None:
    x = np.linspace(0, 1, 101)
    y = np.full(101, 0.5)
    y[40:60] = np.nan
    lines = Lines()
    lines.set_data("cell", x, y)
    columns = painted(lines).any(axis=0)
    assert columns[5:35].all()
    assert columns[65:95].all()
    assert not columns[45:55].any()


@pytest.mark.parametrize("slope", [-50.0, -1.0, 0.0, 1.0, 50.0])
def test_that_the_cell_shows_beside_the_twin_at_any_slope(qtbot: QtBot, slope: float) -> None:
    x = np.linspace(0, 1, 101)
    y = 0.5 + slope * (x - 0.5)
    thin, thick = Lines(), Lines(thick=("cell",))
    for lines in (thin, thick):
        lines.set_data("cell", x, y)
    beside = painted(thick) & ~painted(thin)
    assert beside.sum() >= 90


@pytest.mark.parametrize("count", [0, 1])
def test_that_nothing_and_nothing_but_nan_draw_nothing(qtbot: QtBot, count: int) -> None:
    lines = Lines()
    lines.set_data("cell", np.zeros(count), np.full(count, np.nan))
    assert not painted(lines).any()


def test_that_a_constant_is_a_flat_line_and_not_under_a_magnifier() -> None:
    for value in (0.0, -1.5707963, 250.0):
        scale = Scale()
        scale.fit(value - 1e-7, value + 1e-7)
        assert scale.high - scale.low >= 1e-3 * max(1.0, abs(value))
        assert not scale.fit(value - 2e-7, value + 1e-7)


def test_that_a_scale_grows_at_once_and_shrinks_late() -> None:
    scale = Scale()
    assert scale.fit(-1.0, 1.0)
    assert not scale.fit(-0.9, 0.9)
    assert scale.fit(-2.0, 2.0)
    assert not scale.fit(-1.5, 1.5)
    assert scale.fit(-0.5, 0.5)
    assert not scale.fit(float("inf"), float("-inf"))


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.booleans())
def test_that_data_is_always_inside_its_scale(low: float, height: float, symmetric: bool) -> None:
    scale = Scale(symmetric=symmetric)
    scale.fit(low, low + height)
    assert scale.low <= low
    assert low + height <= scale.high
    assert scale.high > scale.low
    if symmetric:
        assert scale.low == -scale.high


@given(st.floats(1e-9, 1e9))
def test_that_a_step_is_round_and_not_much_too_large(least: float) -> None:
    step = round_step(least)
    assert least * (1 - 1e-9) <= step <= 2.0 * least * (1 + 1e-9)
