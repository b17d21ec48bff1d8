"""Typed results of a run as widgets: a plugin returns data, and here it is drawn."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QByteArray, Qt, Signal
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.docks.rows import button, words
from twinstudio.gui.theme import GRID, Theme, number_font
from twinstudio.jobs.calibration import Calibration
from twinstudio.model.results import (
    Image,
    Patch,
    Result,
    Scalar,
    Series,
    Table,
    grouped,
    name_in,
)

_PLOT_HEIGHT = 200
_PICTURE = (720, 480)
_ROW_HEIGHT = 22
_WIDEST = 48 * GRID
_MOST_ROWS = 500
_MOST_SHOWN = 12
_MOST_BLOCKS = 60
_INKS = ("#009E73", "#CC79A7", "#56B4E9", "#D55E00")


class ResultsView(QScrollArea):
    """Results beneath each other, figures first.

    promote: number of a patch, from 1. force: of one that is promoted though its trial
    speaks against it.
    """

    promote = Signal(int)
    force = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._results: tuple[Result, ...] | None = None
        self._promotable = False
        self._calibration: Calibration | None = None
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Results of the run")

    def restyle(self, theme: Theme) -> None:
        """Draw again in the colours of `theme`."""
        self._theme = theme
        if self._results is not None:
            self.show_results(
                self._results, promotable=self._promotable, calibration=self._calibration
            )

    def clear(self) -> None:
        """Show nothing."""
        self._results = None
        self.setWidget(QWidget())

    def show_results(
        self,
        results: Sequence[Result],
        *,
        promotable: bool = True,
        calibration: Calibration | None = None,
    ) -> None:
        """Draw `results`; promotable: offer to put patches onto the scene.

        calibration: what a calibrator's run found beside them, shown before them.
        """
        self._results, self._promotable = tuple(results), promotable
        self._calibration = calibration
        inner = QWidget()
        box = QVBoxLayout(inner)
        box.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        box.setSpacing(GRID)
        if calibration is not None:
            self._add_calibration(box, calibration)
        self._add_figures(box, results)
        self._add_rest(box, results)
        if not results:
            box.addWidget(words("This run has no results.", "faint"))
        box.addStretch()
        self.setWidget(inner)

    def _add_calibration(self, box: QVBoxLayout, found: Calibration) -> None:
        """The verdict with its button, then what the check found."""
        for trial in found.trials:
            box.addWidget(words(f"Patch {trial.name}", "title"))
            box.addWidget(words(_sentence(trial.words), "alarm" if trial.refused else ""))
            if self._promotable:
                box.addLayout(self._promotion(trial.patch))
        if found.findings:
            box.addWidget(words("Check", "title"))
        for finding in found.findings:
            advice = f"; {finding.hint}" if finding.hint else ""
            box.addWidget(words(f"{finding.text}{advice}", "alarm" if finding.fatal else ""))

    def _add_figures(self, box: QVBoxLayout, results: Sequence[Result]) -> None:
        """Scalars; those that a calibrator solved for stand apart from its scores."""
        solved = self._calibration.solved if self._calibration is not None else 0
        parts = ((results[:solved], "Parameters", "not identifiable"),
                 (results[solved:], "Scores" if solved else "", "no interval"))  # fmt: skip
        for part, title, unknown in parts:
            scalars = [result for result in part if isinstance(result, Scalar)]
            if scalars and title:
                box.addWidget(words(title, "title"))
            if scalars:
                box.addWidget(figures(scalars, unknown=unknown))

    def _add_rest(self, box: QVBoxLayout, results: Sequence[Result]) -> None:
        numbers = {id(result): k for k, result in enumerate(results, 1)}
        rest = grouped([result for result in results if not isinstance(result, Scalar)])
        names = [title for title, _ in rest]
        for title, group in rest[:_MOST_BLOCKS]:
            number = numbers[id(group[0])]
            one_of_many = names.count(title) > 1
            box.addWidget(words(f"{title}{f' ({number})' if one_of_many else ''}", "title"))
            box.addWidget(self._drawn(number, title, group))
        if len(rest) > _MOST_BLOCKS:
            more = f"and {fmt.count(len(rest) - _MOST_BLOCKS)} more; export the run to see them all"
            box.addWidget(words(more, "faint"))

    def _drawn(self, number: int, title: str, group: Sequence[Result]) -> QWidget:
        result = group[0]
        if isinstance(result, Series):
            curves = {name_in(one.name, title): one for one in group if isinstance(one, Series)}
            return curve(curves, self._theme)
        if isinstance(result, Table):
            return table(result)
        if isinstance(result, Image):
            return picture(result)
        assert isinstance(result, Patch)
        return self._patch(number, result)

    def _patch(self, number: int, patch: Patch) -> QWidget:
        holder = QWidget()
        box = QVBoxLayout(holder)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(GRID // 2)
        box.addWidget(words(patch.reason, "faint"))
        cells = [(change.key, value_text(change.value)) for change in patch.changes]
        box.addWidget(grid(("Key of the scene (SI)", "Would become"), cells))
        if self._promotable:
            box.addLayout(self._promotion(number))
        return holder

    def _promotion(self, number: int) -> QHBoxLayout:
        """The button that puts a patch onto the scene; its words say if that is unwise."""
        trial = self._calibration.trial(number) if self._calibration is not None else None
        row = QHBoxLayout()
        if trial is not None and trial.refused:
            about = "Put it onto the scene though its trial speaks against it (patch.apply, force)"
            made = button("Promote though not better", about, lambda: self.force.emit(number))
        else:
            about = "Put this patch onto the scene and restart the twin (patch.apply)"
            made = button("Promote patch", about, lambda: self.promote.emit(number))
        row.addWidget(made)
        row.addStretch()
        return row


def figures(scalars: Sequence[Scalar], *, unknown: str = "no interval") -> QWidget:
    """A row a figure: name, value with unit, 95 % interval, note; one note for all stands below.

    unknown: said where there is no interval.
    """
    holder = QWidget()
    rows = QGridLayout(holder)
    rows.setContentsMargins(0, 0, 0, 0)
    rows.setHorizontalSpacing(2 * GRID)
    rows.setVerticalSpacing(2)
    rows.setColumnStretch(3, 1)
    font = number_font(holder.font())
    notes = {scalar.note for scalar in scalars}
    shared = notes.pop() if len(scalars) > 1 and len(notes) == 1 else ""
    if shared:
        rows.addWidget(words(shared, "faint"), len(scalars), 0, 1, 4)
    for k, scalar in enumerate(scalars):
        value, interval = scalar_texts(scalar, unknown=unknown)
        name = QLabel(scalar.name)
        name.setTextFormat(Qt.TextFormat.PlainText)
        rows.addWidget(name, k, 0)
        for column, text in ((1, value), (2, interval)):
            label = QLabel(text)
            label.setFont(font)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setToolTip(f"{scalar.value!r} {scalar.unit}" if column == 1 else "95 % interval")
            rows.addWidget(label, k, column)
        rows.addWidget(words("" if shared else scalar.note, "faint"), k, 3)
    return holder


def scalar_texts(
    scalar: Scalar, shown: tuple[str, float] | None = None, *, unknown: str = "no interval"
) -> tuple[str, str]:
    """The value with its unit, and its interval: as many digits as that is good for.

    shown: unit and factor from SI, by default as for any quantity. unknown: said
    where the interval cannot be told.
    """
    unit, factor = shown or fmt.shown(scalar.unit)
    value, low, high = (x * factor for x in (scalar.value, scalar.low, scalar.high))
    if not (math.isfinite(low) and math.isfinite(high)):
        known = [
            f"{sign}\u00a0{fmt.number(bound)}"
            for sign, bound in (("≥", low), ("≤", high))
            if math.isfinite(bound)
        ]
        return fmt.figure(value, unit), known[0] if known else unknown
    width = high - low
    digits = 3
    if width > 0:
        largest = max(abs(value), abs(low), abs(high))
        digits = min(max(_decade(largest) - _decade(width) + 2, 3), 12)
    return (
        fmt.figure(value, unit, digits),
        f"{fmt.number(low, digits)} to {fmt.number(high, digits)}",
    )


def curve(curves: Mapping[str, Series], theme: Theme) -> QWidget:
    """A plot of curves of the same units, with gaps where there is no reading.

    curves: name -> curve; with several there is a key, and ``cell`` has its own colour.
    """
    first = next(iter(curves.values()))
    plot = pg.PlotWidget(background=theme.base)
    plot.setFixedHeight(_PLOT_HEIGHT)
    plot.setAccessibleName(f"Plot of {', '.join(one.name for one in curves.values())}")
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMouseEnabled(x=False, y=False)
    units = [fmt.shown(name) for name in (first.x_unit, first.y_unit)]
    for side, (unit, _) in zip(("bottom", "left"), units, strict=True):
        axis = plot.getAxis(side)
        axis.enableAutoSIPrefix(False)
        axis.setPen(theme.line)
        axis.setTextPen(theme.faint)
        axis.setLabel(unit, color=theme.faint)
    plot.showGrid(x=True, y=True, alpha=0.15)
    if len(curves) > 1:
        plot.addLegend(offset=(-8, 4), labelTextColor=theme.text)
    for k, (name, series) in enumerate(curves.items()):
        x, y = (
            np.array(values, dtype=float) * factor
            for values, (_, factor) in zip((series.x, series.y), units, strict=True)
        )
        # A line needs two readings beside each other; fewer are dots.
        dots = len(x) < 3
        ink = _ink(name, k, theme) if len(curves) > 1 else theme.accent
        plot.plot(
            x,
            y,
            name=name,
            pen=pg.mkPen(ink, width=1),
            connect="finite",
            symbol="o" if dots else None,
            symbolBrush=ink,
        )
    # The wheel scrolls the page, not the axes.
    plot.wheelEvent = lambda event: event.ignore()
    return plot  # type: ignore[no-any-return]


def _ink(name: str, order: int, theme: Theme) -> str:
    """The colour of one curve among several: that of the cell, or of the twin as it would be."""
    known = {"cell": theme.cell, "twin": theme.twin, "with": theme.twin}
    return known.get(name, _INKS[order % len(_INKS)])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def table(result: Table) -> QWidget:
    """A table with units in its headings; numbers to the right."""
    heads, factors = [], []
    for column, unit in zip(result.columns, result.units, strict=True):
        shown, factor = fmt.shown(unit) if unit else ("", 1.0)
        heads.append(f"{column} [{shown}]" if shown else column)
        factors.append(factor)
    cells = [
        tuple(_cell(value, factor) for value, factor in zip(row, factors, strict=True))
        for row in result.rows[:_MOST_ROWS]
    ]
    made = grid(tuple(heads), cells)
    if len(result.rows) <= _MOST_ROWS:
        return made
    holder = QWidget()
    box = QVBoxLayout(holder)
    box.setContentsMargins(0, 0, 0, 0)
    box.addWidget(made)
    box.addWidget(words(f"the first {_MOST_ROWS} of {fmt.count(len(result.rows))} rows", "faint"))
    return holder


def picture(image: Image) -> QWidget:
    """A picture, no larger than it is and than a plot may be."""
    label = QLabel()
    pixmap = _svg(image.data) if image.format == "svg" else _png(image.data)
    if pixmap is None:
        label.setText(f"This {image.format} cannot be drawn.")
        return label
    wide, high = _PICTURE
    if pixmap.width() > wide or pixmap.height() > high:
        keep, smooth = (
            Qt.AspectRatioMode.KeepAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
        pixmap = pixmap.scaled(wide, high, keep, smooth)
    label.setPixmap(pixmap)
    label.setAccessibleName(f"Picture {image.name}")
    return label


def grid(heads: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> QTableWidget:
    """A plain table of texts and numbers, as high as its rows, up to a dozen."""
    made = QTableWidget(len(rows), len(heads))
    made.setHorizontalHeaderLabels(list(heads))
    made.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    made.setFont(number_font(made.font()))
    made.setShowGrid(False)
    made.setWordWrap(False)
    made.setAccessibleName(", ".join(heads))
    made.verticalHeader().hide()
    made.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            item = QTableWidgetItem(_text(cell))
            item.setToolTip(item.text())
            if not isinstance(cell, str):
                right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                item.setTextAlignment(right)
            made.setItem(r, c, item)
    head = made.horizontalHeader()
    head.setHighlightSections(False)
    head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    made.resizeColumnsToContents()
    for c in range(len(heads)):
        made.setColumnWidth(c, min(made.columnWidth(c), _WIDEST))
    shown = min(len(rows), _MOST_SHOWN)
    made.setFixedHeight(_ROW_HEIGHT * shown + head.sizeHint().height() + 4)
    return made


def value_text(value: object) -> str:
    """A value of a scene or a parameter, exactly: two that differ must not look the same."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: fmt.NOTHING}[value]
    if isinstance(value, float):
        return repr(value).replace("-", "−")
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return str(value)


def _decade(value: float) -> int:
    return math.floor(math.log10(value) + 1e-9)


def _cell(value: float | str | None, factor: float) -> float | str:
    if value is None:
        return fmt.NOTHING
    if isinstance(value, str):
        return value
    return value if isinstance(value, int) and factor == 1.0 else value * factor


def _text(cell: float | str) -> str:
    if isinstance(cell, str):
        return cell
    return fmt.count(cell) if isinstance(cell, int) else fmt.number(cell)


def _png(data: bytes) -> QPixmap | None:
    pixmap = QPixmap()
    return pixmap if pixmap.loadFromData(QByteArray(data), "PNG") else None


def _svg(data: bytes) -> QPixmap | None:
    renderer = QSvgRenderer(QByteArray(data))
    size = renderer.defaultSize()
    if not renderer.isValid() or size.isEmpty():
        return None
    wide, high = _PICTURE
    pixmap = QPixmap(size.scaled(wide, high, Qt.AspectRatioMode.KeepAspectRatio))
    pixmap.fill(Qt.GlobalColor.white)
    painter = QPainter(pixmap)
    renderer.render(painter)
    painter.end()
    return pixmap
