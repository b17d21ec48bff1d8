"""Metrics of plugins under the gap table: what the user chose, and what each says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.gapmodel import short_names
from twinstudio.gui.docks.rows import Column, Rows, RowTable, button
from twinstudio.gui.results import scalar_texts
from twinstudio.gui.theme import GRID, Theme
from twinstudio.model.results import Scalar
from twinstudio.model.views import MetricView

NONE_CHOSEN = "Add a plugin's metric to see its figures here"
_MARKS = {"waiting": "queued", "measuring": "enabled", "failed": "failed"}
_STALE_SECONDS = 5.0
_ROW_HEIGHT = 20
_INDENT = "\u2003"


@dataclass(frozen=True, slots=True)
class Line:
    """A row: the head of a metric (`mark`), or one of its figures."""

    metric: str
    number: int
    name: str
    value: str
    interval: str
    about: str
    mark: str = ""


_COLUMNS = (
    Column("Metric", lambda r: r.name, mark=lambda r: r.mark, tip=lambda r: r.about),
    Column("value", lambda r: r.value, 92, tip=lambda r: r.about, right=True),
    Column("interval", lambda r: r.interval, 140, tip=lambda r: r.about, right=True),
)


def lines(views: Sequence[MetricView], now: int, *, degrees: bool) -> list[Line]:
    """A head for each metric, and its figures beneath; `now` on the session clock [ns]."""
    return [line for view in views for line in _lines_of(view, now, degrees=degrees)]


def _lines_of(view: MetricView, now: int, *, degrees: bool) -> list[Line]:
    said = view.measured
    params = ", ".join(f"{name} = {value}" for name, value in said.params.items())
    who = f"{said.name}{f' with {params}' if params else ''}"
    title = view.title or said.plugin
    mark = _MARKS[view.state]
    if view.state == "failed":
        about = f"{who}: {said.error}. It is measured no more; add it again to retry."
        return [Line(view.key, 0, title, "failed", said.error, about, mark)]
    if view.state == "waiting":
        about = f"{who}: waits for a gap, or for its first answer"
        return [Line(view.key, 0, title, "waiting", "", about, mark)]
    figures = [result for result in said.results if isinstance(result, Scalar)]
    more = len(said.results) - len(figures)
    if more:
        who += f"; {more} more results are no figures: run it as a job to see them"
    state = "" if figures else "no figure"
    out = [Line(view.key, 0, title, state, _span(view, now), who, mark)]
    names = short_names(tuple(scalar.name for scalar in figures))
    for k, (name, scalar) in enumerate(zip(names, figures, strict=True), 1):
        value, interval = scalar_texts(
            scalar, fmt.shown(scalar.unit, degrees=degrees, small=True), unknown=fmt.NOTHING
        )
        about = ": ".join(filter(None, (scalar.name, scalar.note)))
        out.append(Line(view.key, k, _INDENT + name, value, interval, about))
    return out


def _span(view: MetricView, now: int) -> str:
    """Over which time the figures are; with a mark and its age where that is a while ago."""
    text = f"over {fmt.figure((view.end - view.start) / 1e9, 's')}"
    age = (now - view.end) / 1e9
    return f"! {text}, {fmt.figure(age, 's', 2)} ago" if age > _STALE_SECONDS else text


class _Rows(Rows):
    """Rows of which only heads bear a mark; headings stand over their figures."""

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if role == Qt.ItemDataRole.TextAlignmentRole and self.columns[section].right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return super().headerData(section, orientation, role)

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self._icons[""] = QIcon()


class _Table(RowTable):
    """Delete takes the selected metric out."""

    deleted = Signal()

    def minimumSizeHint(self) -> QSize:
        return QSize(100, 3 * _ROW_HEIGHT + self.horizontalHeader().sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.deleted.emit()
        else:
            super().keyPressEvent(event)


class MetricsPanel(QWidget):
    """What the chosen metrics say of the sliding window: a `table`, and this row of buttons.

    The table is put elsewhere, so that it can share the height with another.
    add_wanted: the user wants another.
    """

    add_wanted = Signal()

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self.degrees = False
        self.model = _Rows(_COLUMNS, lambda row: (row.metric, row.number), theme)
        self.table = _Table(self.model, "Metrics of plugins")
        self.table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.picked.connect(self._mind_selection)
        self.table.deleted.connect(self._remove)
        self.empty = QLabel(NONE_CHOSEN)
        self.empty.setProperty("role", "faint")
        self.empty.setToolTip(NONE_CHOSEN)
        self.empty.setMinimumWidth(1)
        self.add = button(
            "Add metric…", "Measure the sliding window with a plugin (metric.add)", self._want
        )
        self.remove = button(
            "Remove",
            "Measure with the selected metric no longer (metric.remove), Delete",
            self._remove,
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(GRID, 0, GRID, 2)
        row.addWidget(self.empty, stretch=1)
        row.addStretch()
        row.addWidget(self.remove)
        row.addWidget(self.add)
        self._show([])

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.model.restyle(theme)
        self.table.viewport().update()

    def refresh(self, frame: Frame) -> None:
        """Take the newest figures."""
        snapshot = frame.snapshot
        self._show(lines(snapshot.metrics, snapshot.now, degrees=self.degrees))

    def _show(self, rows: list[Line]) -> None:
        self.table.take(rows)
        self.table.setVisible(bool(rows))
        self.empty.setVisible(not rows)
        self.remove.setVisible(bool(rows))
        self._mind_selection()

    def _mind_selection(self) -> None:
        self.remove.setEnabled(bool(self.table.chosen()))

    def _want(self) -> None:
        self.add_wanted.emit()

    def _remove(self) -> None:
        for row in self.table.chosen():
            self._bridge.runner.run("metric.remove", key=row.metric)
