"""The gap table: one row a joint, then all joints together, then the tool point."""

from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QStackedWidget,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.selection import Selection
from twinstudio.gui.theme import GRID, number_font
from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag

Part = Literal["rmse", "maximum", "bias", "relative"]
PARTS: dict[str, Part] = {
    "RMS": "rmse",
    "Maximum": "maximum",
    "Bias": "bias",
    "Relative": "relative",
}
_SORT = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_WIDTHS = (86, 68, 68, 46, 54, 52, 40)
OVERALL, TOOL = "all joints", "tool point"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a signal over the sliding window or the run, its floor, or the lag."""

    title: str
    signal: str
    over: Literal["window", "run", "floor"]
    tip: str


COLUMNS = (
    Column("now", "position", "window", "Position gap over the sliding window"),
    Column("run", "position", "run", "Position gap since the start, or since it was reset"),
    Column("floor", "position", "floor", "Spread of the cell's own repeats, where known"),
    Column("vel.", "velocity", "window", "Velocity gap over the sliding window"),
    Column("effort", "effort", "window", "Effort gap over the sliding window"),
    Column("lag", "lag", "window", "Command to motion of the cell (twin in the tooltip), ms"),
)


class GapModel(QAbstractTableModel):
    """Rows of the newest tables; units go to the heading where all rows agree."""

    def __init__(self) -> None:
        super().__init__()
        self._window: GapTable | None = None
        self._run: GapTable | None = None
        self._units: dict[tuple[str, str], str] = {}
        self._names: tuple[str, ...] = ()
        self._texts: list[list[str]] = []
        self._heads: list[str] = []
        self.part: Part = "rmse"
        self.degrees = False

    def show_tables(
        self, window: GapTable | None, run: GapTable | None, units: dict[tuple[str, str], str]
    ) -> None:
        """Take new figures; rows stay where they are unless the joints changed."""
        names = tuple(joint.name for joint in (window or run or _NONE).joints)
        if (names, units) != (self._names, self._units):
            self.beginResetModel()
            self._names, self._units = names, units
            self._window, self._run = window, run
            self._compute()
            self.endResetModel()
        else:
            self._window, self._run = window, run
            self.refresh()

    def refresh(self) -> None:
        """Compute every text anew, and tell the view which rows look different."""
        before, heads = self._texts, self._heads
        self._compute()
        for row, texts in enumerate(self._texts):
            if row >= len(before) or texts != before[row]:
                self.dataChanged.emit(self.index(row, 0), self.index(row, len(COLUMNS)))
        if heads != self._heads:
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(COLUMNS))

    def _compute(self) -> None:
        """Texts are made once a refresh, not once a question of the view."""
        common = [self._common_unit(column) for column in COLUMNS]
        self._heads = [f"{c.title}\n{unit or ' '}" for c, unit in zip(COLUMNS, common, strict=True)]
        self._texts = [
            [self._text(row, c, unit) for c, unit in zip(COLUMNS, common, strict=True)]
            for row in range(self.rowCount())
        ]

    def name(self, row: int) -> str:
        """What row `row` is about; the last two are all joints and the tool point."""
        return (*self._names, OVERALL, TOOL)[row]

    def rowCount(self, parent: Index | None = None) -> int:  # noqa: D102
        return 0 if parent is not None and parent.isValid() else len(self._names) + 2

    def columnCount(self, parent: Index | None = None) -> int:  # noqa: D102
        return 0 if parent is not None and parent.isValid() else len(COLUMNS) + 1

    def headerData(  # noqa: D102
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if section else Qt.AlignmentFlag.AlignLeft
        if section == 0:
            return "Joint" if role == Qt.ItemDataRole.DisplayRole else None
        column = COLUMNS[section - 1]
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip
        if role == Qt.ItemDataRole.DisplayRole:
            return self._heads[section - 1] if self._heads else column.title
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:  # noqa: D102
        row = index.row()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if index.column() else _LEFT
        if index.column() == 0:
            named = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, _SORT)
            return self.name(row) if role in named else None
        column = COLUMNS[index.column() - 1]
        if role == _SORT:
            return self._value(row, column)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._texts[row][index.column() - 1]
        return self._tip(row, column) if role == Qt.ItemDataRole.ToolTipRole else None

    def _row(self, row: int, over: str) -> JointGap | None:
        table = self._run if over == "run" else self._window
        if table is None or row > len(self._names):
            return None
        return table.overall if row == len(self._names) else table.joints[row]

    def _figures(self, row: int, column: Column) -> Figures | None:
        if row == len(self._names) + 1:
            table = self._run if column.over == "run" else self._window
            return table.tcp if table and column.signal == "position" else None
        joint = self._row(row, column.over)
        found: Figures | None = getattr(joint, column.signal, None) if joint else None
        return found

    def _value(self, row: int, column: Column) -> float | None:
        """The figure in SI (relative: in 1), or None where there is none."""
        if column.signal == "lag":
            lag = self._lag(row, "command_to_motion")
            return None if lag is None else lag.seconds
        if column.over == "floor":
            joint = self._row(row, "window")
            return joint.floor.get("joint.position") if joint else None
        figures = self._figures(row, column)
        return None if figures is None else getattr(figures, self.part)

    def _lag(self, row: int, which: str) -> Lag | None:
        joint = self._row(row, "window")
        found: Lag | None = getattr(joint, which, None) if joint else None
        return found

    def _unit(self, row: int, column: Column) -> tuple[str, float]:
        """Shown unit and factor of one cell."""
        if column.signal == "lag":
            return "ms", 1e3
        if self.part == "relative" and column.over != "floor":
            return "%", 100.0
        if row == len(self._names) + 1:
            return fmt.shown("m")
        name = self._names[row] if row < len(self._names) else ""
        unit = self._units.get((column.signal, name)) or self._shared(column.signal)
        return fmt.shown(unit, degrees=self.degrees, small=True)

    def _shared(self, signal: str) -> str:
        found = {unit for (name, _), unit in self._units.items() if name == signal}
        return found.pop() if len(found) == 1 else ""

    def _common_unit(self, column: Column) -> str:
        units = {self._unit(row, column)[0] for row in range(len(self._names))}
        return units.pop() if len(units) == 1 else ""

    def _text(self, row: int, column: Column, common: str) -> str:
        value = self._value(row, column)
        if value is None:
            return fmt.NOTHING
        unit, factor = self._unit(row, column)
        return fmt.figure(value * factor, "" if unit == common else unit)

    def _tip(self, row: int, column: Column) -> str:
        if column.signal == "lag":
            twin = self._lag(row, "twin_command_to_motion")
            return f"twin: {fmt.milliseconds(twin.seconds if twin else None)}"
        figures = self._figures(row, column)
        if figures is None:
            return f"{column.tip}: twin or cell has no such reading"
        unit, factor = self._unit(row, column)
        if self.part == "relative":
            return f"{fmt.count(figures.n)} samples"
        return (
            f"RMS {fmt.figure(figures.rmse * factor, unit)}, "
            f"maximum {fmt.figure(figures.maximum * factor, unit)}, "
            f"bias {fmt.figure(figures.bias * factor, unit, sign=True)}, "
            f"{fmt.count(figures.n)} samples"
        )


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
        a, b = left.data(_SORT), right.data(_SORT)
        if isinstance(a, str):
            return a < str(b)
        return (-1.0 if a is None else abs(a)) < (-1.0 if b is None else abs(b))


class GapDock(QWidget):
    """Where do twin and cell disagree, now? Selecting a row selects its plots."""

    def __init__(self, bridge: Bridge, selection: Selection) -> None:
        super().__init__()
        self._bridge = bridge
        self._selection = selection
        self.model = GapModel()
        self.sorted = _Sorted(self.model)
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
        box.addWidget(self.pages, stretch=1)
        box.addWidget(self.notes)

    def refresh(self, frame: Frame) -> None:
        """Take the newest figures."""
        window, run = frame.snapshot.window, frame.snapshot.run
        some = window or run
        self.pages.setCurrentWidget(self.table if some else self.empty)
        self.notes.setVisible(bool(some and some.notes))
        if some is None:
            return
        self._note(some.notes)
        table = window or some
        self.span.setText(f"over {fmt.figure((table.end - table.start) / 1e9, 's')}")
        self.model.show_tables(window, run, self._units(frame))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Columns share the width, so that none is out of sight."""
        super().resizeEvent(event)
        room = self.width() - self.table.verticalScrollBar().sizeHint().width()
        for column, width in enumerate(_WIDTHS):
            self.table.horizontalHeader().resizeSection(column, width * room // sum(_WIDTHS))

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
        self.model.degrees = on
        self.model.refresh()

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
        self.model.refresh()

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


_NONE = GapTable(joints=(), overall=JointGap(name=OVERALL), samples=0, start=0, end=0)
