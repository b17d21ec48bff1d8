"""The gap dock: where twin and cell disagree, in figures."""

from PySide6.QtCore import QModelIndex, QSize, QSortFilterProxyModel, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QStackedWidget,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.addmetric import AddMetric
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.docks.gapmodel import COLUMNS, OVERALL, PARTS, SORT, TOOL, GapModel, Index
from twinstudio.gui.docks.metrics import MetricsPanel
from twinstudio.gui.selection import Selection
from twinstudio.gui.theme import GRID, Theme, number_font, show_role
from twinstudio.model.gaps import GapTable

_FLOOR = 1 + next(k for k, column in enumerate(COLUMNS) if column.over == "floor")
_STALE_SECONDS = 2.0
_WIDEST_MINIMUM = 520
_PADDING = 2 * GRID - 4
# Room for a figure and its unit, before there are any: the table need not jump later.
_TYPICAL = (TOOL, "0.000 mm", "0.000 mm", "0.000", "mrad/s", "0.0000", "00.0")


class _Sorted(QSortFilterProxyModel):
    """Sorts joints by size; all joints and the tool point stay at the bottom."""

    def __init__(self, model: GapModel) -> None:
        super().__init__()
        self._model = model
        self.setSourceModel(model)

    def lessThan(self, left: Index, right: Index) -> bool:
        """Nothing is least; the two last rows stand last in either order."""
        joints = self._model.rowCount() - 2
        if left.row() >= joints or right.row() >= joints:
            ascending = self.sortOrder() == Qt.SortOrder.AscendingOrder
            return (left.row() < right.row()) == ascending
        a, b = left.data(SORT), right.data(SORT)
        if isinstance(a, str):
            return a < str(b)
        return (-1.0 if a is None else abs(a)) < (-1.0 if b is None else abs(b))


class GapDock(QWidget):
    """Where do twin and cell disagree, now? Selecting a row selects its plots."""

    def __init__(self, bridge: Bridge, selection: Selection, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._selection = selection
        self.model = GapModel()
        self.sorted = _Sorted(self.model)
        self._needed = [0] * len(_TYPICAL)
        self.table = self._table()
        self.part = QComboBox()
        self.part.addItems(list(PARTS))
        self.part.setAccessibleName("Which figure")
        self.part.setToolTip("Which figure of the gap is shown")
        self.part.currentTextChanged.connect(self._choose_part)
        self.notes = QLabel()
        self.notes.setProperty("role", "faint")
        self.notes.setContentsMargins(GRID, 0, GRID, GRID // 2)
        self.notes.setMinimumWidth(1)
        self.pages = QStackedWidget()
        self.empty = Empty(
            "No gap yet", "It is computed as soon as twin and cell both stream the same joints."
        )
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.table)
        self.metrics = MetricsPanel(bridge, theme)
        self.adding = AddMetric(bridge, theme, self)
        self.metrics.add_wanted.connect(self.adding.ask)
        self._build()
        selection.changed.connect(self._mark)
        bridge.add(self, self.refresh, every=6)

    def _table(self) -> QTableView:
        table = QTableView()
        table.setModel(self.sorted)
        table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        table.horizontalHeader().setSortIndicatorClearable(True)
        table.setSortingEnabled(True)
        table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(20)
        table.horizontalHeader().setMinimumSectionSize(36)
        table.setFont(number_font(table.font()))
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.setShowGrid(False)
        table.setColumnHidden(_FLOOR, True)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setWordWrap(False)
        table.setAccessibleName("Gap per joint")
        table.selectionModel().currentRowChanged.connect(self._picked)
        table.doubleClicked.connect(self._activate)
        return table

    def _build(self) -> None:
        reset = QToolButton()
        reset.setText("Reset run")
        reset.setToolTip("Start the figures over the run anew (gap.reset)")
        reset.setAccessibleName("Reset the figures over the run")
        reset.clicked.connect(lambda: self._bridge.runner.run("gap.reset"))
        self.span = QLabel()
        self.span.setProperty("role", "faint")
        row = QHBoxLayout()
        row.setContentsMargins(GRID, GRID // 2, GRID, 0)
        row.addWidget(self.part)
        row.addWidget(self.span, stretch=1)
        row.addWidget(reset)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(GRID // 2)
        box.addLayout(row)
        split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.addWidget(self.pages)
        split.addWidget(self.metrics.table)
        split.setSizes([3, 2])
        box.addWidget(split, stretch=1)
        box.addWidget(self.notes)
        box.addWidget(self.metrics)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.metrics.restyle(theme)
        self.adding.restyle(theme)

    def stop(self) -> None:
        """Read nothing more."""
        self.adding.reader.close()

    def refresh(self, frame: Frame) -> None:
        """Take the newest figures."""
        self.metrics.refresh(frame)
        window, run = frame.snapshot.window, frame.snapshot.run
        some = window or run
        self.pages.setCurrentWidget(self.table if some else self.empty)
        self.notes.setVisible(bool(some and some.notes))
        if some is None:
            return
        self._note(some.notes)
        table = window or some
        self._tell_span(table, (frame.snapshot.now - table.end) / 1e9)
        self.model.show_tables(window, run, self._units(frame))
        self.table.setColumnHidden(_FLOOR, not self.model.has_floor)
        self._fit_columns()

    def sizeHint(self) -> QSize:
        """Wide enough to read every figure."""
        return QSize(sum(self._widths()), 10 * self.table.verticalHeader().defaultSectionSize())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Columns share the width, so that none is out of sight."""
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Figures get what they need, so the dock may not be too narrow; names get the rest."""
        beside = self.table.verticalScrollBar().sizeHint().width()
        widths = self._widths()
        least = self.table.fontMetrics().horizontalAdvance(TOOL) + _PADDING
        self.setMinimumWidth(min(sum(widths[1:]) + least + beside, _WIDEST_MINIMUM))
        room = self.width() - beside
        widths[0] = max(room - sum(widths[1:]), least)
        wanted = sum(widths)
        head = self.table.horizontalHeader()
        for column, width in enumerate(widths):
            size = min(width, width * room // wanted)
            if size > 0 and head.sectionSize(column) != size:
                head.resizeSection(column, size)

    def _widths(self) -> list[int]:
        """What every column needs; never less than before, or columns would jitter."""
        width = self.table.fontMetrics().horizontalAdvance
        for column, typical in enumerate(_TYPICAL):
            longest = max(map(width, [typical, *self.model.texts(column)]))
            self._needed[column] = max(self._needed[column], longest + _PADDING)
        hidden = self.table.isColumnHidden(_FLOOR)
        return [0 if k == _FLOOR and hidden else needed for k, needed in enumerate(self._needed)]

    def _tell_span(self, table: GapTable, age: float) -> None:
        """Over which time the figures are taken; a mark when that was a while ago."""
        text = f"over {fmt.figure((table.end - table.start) / 1e9, 's')}"
        role = "faint"
        if age > _STALE_SECONDS:
            text, role = f"! {text}, {fmt.figure(age, 's', 2)} ago", "warning"
        self.span.setText(text)
        show_role(self.span, role)

    def _note(self, notes: tuple[str, ...]) -> None:
        """Caveats in one line; whole in the tooltip."""
        more = f"{len(notes)} notes: " if len(notes) > 1 else ""
        room = max(self.width() - 3 * GRID, GRID)
        text = self.notes.fontMetrics().elidedText(
            more + " · ".join(notes), Qt.TextElideMode.ElideRight, room
        )
        if text != self.notes.text():
            self.notes.setText(text)
            self.notes.setToolTip("\n".join(notes))

    def set_degrees(self, *, on: bool) -> None:
        """Show angles in degrees, or in mrad."""
        self.model.degrees = self.metrics.degrees = on
        self._forget_widths()

    def _units(self, frame: Frame) -> dict[tuple[str, str], str]:
        """SI unit by (quantity, joint), from what can be plotted; asked for seldom."""
        if not hasattr(self, "_known") or frame.number % 30 < 6:
            self._known = {
                (choice.name.removeprefix("joint."), label): unit
                for choice in self._bridge.session.signals()
                if choice.name.startswith("joint.")
                for label, unit in zip(choice.labels, choice.units, strict=True)
            }
        return self._known

    def _choose_part(self, name: str) -> None:
        self.model.part = PARTS[name]
        self._forget_widths()

    def _forget_widths(self) -> None:
        self.model.refresh()
        self._needed = [0] * len(_TYPICAL)
        self._fit_columns()

    def _picked(self, index: QModelIndex) -> None:
        name = self._name(index)
        if name:
            self._selection.select(name)

    def _activate(self, index: QModelIndex) -> None:
        name = self._name(index)
        if name:
            self._selection.activated.emit(name)

    def _name(self, index: QModelIndex) -> str:
        if not index.isValid():
            return ""
        name = self.model.name(self.sorted.mapToSource(index).row())
        return "" if name in (OVERALL, TOOL) else name

    def _mark(self) -> None:
        for row in range(self.sorted.rowCount()):
            index = self.sorted.index(row, 0)
            if self._name(index) == self._selection.joint != "":
                self.table.selectRow(row)
                return
        self.table.clearSelection()
