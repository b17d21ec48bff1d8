"""Words over the 3D picture: legend, error scale, names of frames, messages."""

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QLinearGradient, QPainter, QPen

from twinstudio.gui.scene3d.drawing import Drawing, RenderState
from twinstudio.gui.scene3d.palette import CELL, RGB, TWIN, ErrorScale, Look

_STEP = 8.0
_BAR = 128.0


@dataclass(frozen=True, slots=True)
class ErrorUnit:
    """What a relative error of 1 stands for, e.g. 2.0 "mm"."""

    full: float
    unit: str

    def label(self) -> str:
        """The figure at the upper end of the scale."""
        return f"{self.full:.3g} {self.unit}"


class Overlay:
    """Paints onto the widget, in logical pixels."""

    def __init__(self, font: QFont) -> None:
        self._font = QFont(font)
        self._metrics = QFontMetricsF(self._font)
        scale = ErrorScale()
        self._stops = [(k / 8.0, _color(scale.color(k / 8.0))) for k in range(9)]

    def legend(self, painter: QPainter, state: RenderState) -> None:
        """Which colour is whom, and who has no reading, top left."""
        known = state.errors is not None and any(np.isfinite(e) for e in state.errors.values())
        twin = "twin, by error" if known and state.twin is not None else "twin"
        cell = "cell, ghost"
        plain, ghost = QBrush(_color(TWIN)), QBrush(_color(CELL, 100))
        if known and state.twin is not None:
            plain = self._gradient(QPointF(2 * _STEP, 0.0), QPointF(4 * _STEP, 0.0))
        rows: list[tuple[QBrush, QPen | None, str]] = [
            (plain, None, twin if state.twin is not None else "twin: no reading")
        ]
        if not state.ghost_visible:
            cell = "cell: hidden"
        elif state.cell is None:
            cell = "cell: no reading"
        rows.append((ghost, QPen(_color(CELL), 1.5), cell))
        line = self._metrics.height() + 4.0
        width = max(self._metrics.horizontalAdvance(text) for _, _, text in rows) + 40.0
        box = QRectF(_STEP, _STEP, width, line * len(rows) + _STEP)
        self._card(painter, box, state.look)
        for k, (brush, pen, text) in enumerate(rows):
            middle = box.top() + _STEP / 2 + line * (k + 0.5)
            painter.setBrush(brush)
            painter.setPen(pen or QPen(Qt.PenStyle.NoPen))
            painter.drawRoundedRect(QRectF(2 * _STEP, middle - 6.0, 16.0, 12.0), 2.0, 2.0)
            self._text(painter, QPointF(box.left() + 32.0, middle), text, state.look)

    def error_scale(
        self, painter: QPainter, state: RenderState, unit: ErrorUnit | None, height: float
    ) -> None:
        """The scale of error colours, bottom left."""
        high = unit.label() if unit else "full scale"
        line = self._metrics.height()
        room = self._metrics.horizontalAdvance(high) + _BAR / 2
        box = QRectF(_STEP, height - _STEP - line - 30.0, max(_BAR, room) + 2 * _STEP, line + 30.0)
        self._card(painter, box, state.look)
        bar = QRectF(box.left() + _STEP, box.top() + _STEP, box.width() - 2 * _STEP, 10.0)
        painter.fillRect(bar, self._gradient(bar.topLeft(), bar.topRight()))
        middle = bar.bottom() + 4.0 + line / 2
        self._text(painter, QPointF(bar.left(), middle), "0", state.look)
        end = bar.right() - self._metrics.horizontalAdvance(high)
        self._text(painter, QPointF(end, middle), high, state.look)
        title = "error"
        centre = bar.center().x() - self._metrics.horizontalAdvance(title) / 2
        if centre + self._metrics.horizontalAdvance(title) < end - _STEP:
            self._text(painter, QPointF(centre, middle), title, state.look)

    def frames(
        self, painter: QPainter, drawing: Drawing, state: RenderState, size: tuple[float, float]
    ) -> None:
        """The words "base" and "tool" where their axes start."""
        joints = state.twin if state.twin is not None else state.ghost
        if joints is None:
            return
        links = drawing.kinematics.links(joints)
        taken = QRectF()
        for name, k in (("base", 0), ("tool", drawing.kinematics.tip)):
            x, y, _ = state.camera.project(links[k, :3, 3], state.aspect)
            if np.isfinite(x) and abs(x) < 1.0 and abs(y) < 1.0:
                at = QPointF((x + 1.0) / 2.0 * size[0] + _STEP, (1.0 - y) / 2.0 * size[1] + 12.0)
                width = self._metrics.horizontalAdvance(name) + _STEP
                height = self._metrics.height()
                card = QRectF(at.x() - _STEP / 2, at.y() - height / 2, width, height)
                if card.intersects(taken):
                    card.translate(0.0, height + 2.0)
                    at += QPointF(0.0, height + 2.0)
                taken = card
                self._card(painter, card, state.look)
                self._text(painter, at, name, state.look)

    def message(self, painter: QPainter, text: str, look: Look, area: QRectF) -> None:
        """A few plain lines in the middle."""
        lines = text.split("\n")
        width = max(self._metrics.horizontalAdvance(line) for line in lines) + 4 * _STEP
        height = self._metrics.lineSpacing() * len(lines) + 2 * _STEP
        box = QRectF(0.0, 0.0, min(width, area.width()), height)
        box.moveCenter(area.center())
        self._card(painter, box, look)
        painter.setFont(self._font)
        painter.setPen(_color(look.ink))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text)

    def _gradient(self, start: QPointF, end: QPointF) -> QBrush:
        gradient = QLinearGradient(start, end)
        for place, color in self._stops:
            gradient.setColorAt(place, color)
        return QBrush(gradient)

    def _card(self, painter: QPainter, box: QRectF, look: Look) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_color(look.horizon, 200))
        painter.drawRoundedRect(box, 4.0, 4.0)

    def _text(self, painter: QPainter, at: QPointF, text: str, look: Look) -> None:
        """Text that starts at `at`, vertically centred on it."""
        painter.setFont(self._font)
        painter.setPen(_color(look.ink))
        rise = (self._metrics.ascent() - self._metrics.descent()) / 2
        painter.drawText(QPointF(at.x(), at.y() + rise), text)


def _color(rgb: RGB, alpha: int = 255) -> QColor:
    red, green, blue = (round(255 * part) for part in rgb)
    return QColor(red, green, blue, alpha)
