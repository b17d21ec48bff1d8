"""Curves of one plot as a single light item.

pyqtgraph's own curve asks for its bounds several times a frame and builds a
path; with 21 curves that took half of the time of a frame. Here the bounds are
those of the view, and a curve is one polyline in data coordinates.
"""

from collections.abc import Collection, Iterable

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QPainter, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

Floats = NDArray[np.float64]


class Lines(QGraphicsItem):
    """Draws named polylines, in the order in which they got their pens.

    baseline: also draw the line where the value is zero. thick: curves drawn
    two pixels thick, so that they show beside a thin one on top of them.
    """

    def __init__(self, *, baseline: bool = False, thick: Collection[str] = ()) -> None:
        super().__init__()
        self._thick = frozenset(thick)
        self._rect = QRectF(0.0, 0.0, 1.0, 1.0)
        self._pens: dict[str, QPen] = {}
        self._parts: dict[str, list[QPolygonF]] = {}
        self._data: dict[str, tuple[Floats, Floats]] = {}
        self._base: QPen | None = None
        self._baseline = baseline

    def set_pens(self, pens: dict[str, QPen], base: QPen) -> None:
        """Cosmetic pens by curve; `base` is for the line at zero."""
        self._pens = pens
        self._base = base if self._baseline else None
        self.update()

    def set_rect(self, rect: QRectF) -> None:
        """The part of data space that is in view."""
        if rect != self._rect:
            self.prepareGeometryChange()
            self._rect = rect

    def set_data(self, name: str, x: Floats, y: Floats) -> None:
        """The curve `name`: float64[m] each; NaN in y leaves a gap in the line."""
        self._data[name] = (x, y)
        whole = len(y) > 0 and bool(np.isfinite(y).all())
        self._parts[name] = [_polygon(x, y)] if whole else _pieces(x, y)
        self.update()

    def data_of(self, name: str) -> tuple[Floats, Floats]:
        """What is drawn as `name`; empty arrays before there is any."""
        return self._data.get(name, (np.empty(0), np.empty(0)))

    def boundingRect(self) -> QRectF:
        """What is in view: nothing beyond it is ever drawn."""
        return self._rect

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        """One call to Qt for a piece of a curve; two for a thick one.

        Qt draws thin lines more than ten times as fast as thick ones.
        """
        del option, widget
        if self._base is not None:
            painter.setPen(self._base)
            painter.drawLine(QLineF(self._rect.left(), 0.0, self._rect.right(), 0.0))
        for name, pen in self._pens.items():
            painter.setPen(pen)
            parts = self._parts.get(name, ())
            if name not in self._thick:
                _draw(painter, parts)
                continue
            place = painter.worldTransform()
            # To the right and down: beside its thin self at any slope.
            for right, down in ((1.0, 0.0), (0.0, 1.0)):
                painter.setWorldTransform(place * QTransform.fromTranslate(right, down))
                _draw(painter, parts)
            painter.setWorldTransform(place)


def _draw(painter: QPainter, parts: Iterable[QPolygonF]) -> None:
    for part in parts:
        painter.drawPolyline(part)


def _polygon(x: Floats, y: Floats) -> QPolygonF:
    polygon: QPolygonF = pg.functions.arrayToQPolygonF(x, y)
    return polygon


def _pieces(x: Floats, y: Floats) -> list[QPolygonF]:
    """The stretches between NaNs; a lone sample becomes a line of no length."""
    finite = np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], finite, [False])).astype(np.int8)))
    pieces = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        rows = slice(start, end) if end - start > 1 else np.array([start, start])
        pieces.append(_polygon(x[rows], y[rows]))
    return pieces
