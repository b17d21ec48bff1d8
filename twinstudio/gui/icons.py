"""Icons drawn from shapes: sharp at every scale, coloured by the theme."""

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPainterPath, QPixmap, QPolygonF

from twinstudio.gui.theme import Theme

_SIDE = 16.0
Draw = Callable[[QPainterPath], None]


def state_icon(state: str, theme: Theme) -> QIcon:
    """The icon of a link state or log level: its shape alone tells the state.

    Disc: well. Ring: waiting. Triangle: trouble. Cross: refused. Square: closed.
    """
    name, colour = {
        "streaming": ("disc", theme.good),
        "connecting": ("ring", theme.accent),
        "silent": ("triangle", theme.warning),
        "incompatible": ("cross", theme.alarm),
        "closed": ("square", theme.faint),
        "paused": ("pause", theme.faint),
        "ended": ("square", theme.faint),
        "dead": ("cross", theme.alarm),
        "info": ("dot", theme.faint),
        "warning": ("triangle", theme.warning),
        "alarm": ("cross", theme.alarm),
    }[state]
    return icon(name, colour, selected=theme.base)


def icon(
    name: str, colour: str, *, disabled: str | None = None, selected: str | None = None
) -> QIcon:
    """The shape `name` in `colour`; raises KeyError for a shape that is not drawn.

    disabled, selected: its colour on a button that is off, and in a selected row.
    """
    made = QIcon()
    for ratio in (1, 2, 3):
        made.addPixmap(_pixmap(name, colour, ratio))
        if disabled:
            made.addPixmap(_pixmap(name, disabled, ratio), QIcon.Mode.Disabled)
        if selected:  # Qt would tint it with the colour that it then lies on
            made.addPixmap(_pixmap(name, selected, ratio), QIcon.Mode.Selected)
    return made


def _pixmap(name: str, colour: str, ratio: int) -> QPixmap:
    pixmap = QPixmap(int(_SIDE * ratio), int(_SIDE * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    path = QPainterPath()
    path.setFillRule(Qt.FillRule.OddEvenFill)
    _SHAPES[name](path)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillPath(path, QColor(colour))
    painter.end()
    return pixmap


def _disc(path: QPainterPath) -> None:
    path.addEllipse(QRectF(3, 3, 10, 10))


def _dot(path: QPainterPath) -> None:
    path.addEllipse(QRectF(5.5, 5.5, 5, 5))


def _ring(path: QPainterPath) -> None:
    path.addEllipse(QRectF(2.5, 2.5, 11, 11))
    path.addEllipse(QRectF(5, 5, 6, 6))


def _square(path: QPainterPath) -> None:
    path.addRect(QRectF(3, 3, 10, 10))
    path.addRect(QRectF(5, 5, 6, 6))


def _stop(path: QPainterPath) -> None:
    path.addRect(QRectF(3, 3, 10, 10))


def _polygon(path: QPainterPath, *points: tuple[float, float]) -> None:
    path.addPolygon(QPolygonF([QPointF(x, y) for x, y in points]))
    path.closeSubpath()


def _triangle(path: QPainterPath) -> None:
    _polygon(path, (8, 1.5), (15, 14.5), (1, 14.5))
    path.addRect(QRectF(7.2, 6, 1.6, 4.5))
    path.addRect(QRectF(7.2, 11.5, 1.6, 1.6))


def _cross(path: QPainterPath) -> None:
    _polygon(path, (2, 4), (4, 2), (8, 6), (12, 2), (14, 4), (10, 8), (14, 12), (12, 14), (8, 10),
             (4, 14), (2, 12), (6, 8))  # fmt: skip


def _play(path: QPainterPath) -> None:
    _polygon(path, (4, 2), (14, 8), (4, 14))


def _pause(path: QPainterPath) -> None:
    path.addRect(QRectF(3.5, 2.5, 3.2, 11))
    path.addRect(QRectF(9.3, 2.5, 3.2, 11))


def _start(path: QPainterPath) -> None:
    path.addRect(QRectF(2.5, 2.5, 2, 11))
    _polygon(path, (14, 2.5), (14, 13.5), (5.5, 8))


def _live(path: QPainterPath) -> None:
    _polygon(path, (2, 2.5), (2, 13.5), (10.5, 8))
    path.addRect(QRectF(11.5, 2.5, 2, 11))


def _plug(path: QPainterPath) -> None:
    path.addRect(QRectF(5, 1, 1.8, 4))
    path.addRect(QRectF(9.2, 1, 1.8, 4))
    path.addRoundedRect(QRectF(3, 5, 10, 6), 2, 2)
    path.addRect(QRectF(7.1, 11, 1.8, 4))


def _log(path: QPainterPath) -> None:
    path.addRoundedRect(QRectF(1.5, 2, 13, 12), 2, 2)
    _polygon(path, (6, 4.8), (11.5, 8), (6, 11.2))


def _half(path: QPainterPath) -> None:
    path.addEllipse(QRectF(2, 2, 12, 12))
    path.moveTo(8, 3.5)
    path.arcTo(QRectF(3.5, 3.5, 9, 9), 90, -180)
    path.closeSubpath()


def _cursors(path: QPainterPath) -> None:
    path.addRect(QRectF(4, 1, 1.6, 14))
    path.addRect(QRectF(10.4, 1, 1.6, 14))
    path.addRect(QRectF(6.2, 7.3, 3.6, 1.4))


_SHAPES: dict[str, Draw] = {
    "disc": _disc,
    "dot": _dot,
    "ring": _ring,
    "square": _square,
    "stop": _stop,
    "triangle": _triangle,
    "cross": _cross,
    "play": _play,
    "pause": _pause,
    "start": _start,
    "live": _live,
    "plug": _plug,
    "log": _log,
    "half": _half,
    "cursors": _cursors,
}
