"""The gap as a table: one row a joint, then all joints together, then the tool point."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)

from twinstudio.gui import format as fmt
from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag

Part = Literal["rmse", "maximum", "bias", "relative"]
PARTS: dict[str, Part] = {
    "RMS": "rmse",
    "Maximum": "maximum",
    "Bias": "bias",
    "Relative": "relative",
}
SORT = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_SEPARATORS = "_-./: "
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


def short_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """`names` without the words they all begin and all end with.

    ``panda_joint1``, ``panda_joint2`` become ``joint1``, ``joint2``.
    """
    if len(names) < 2:
        return names
    ahead = _common_words(names)
    behind = _common_words([name[::-1] for name in names])
    short = tuple(name[ahead : len(name) - behind] for name in names)
    return short if all(short) and len(set(short)) == len(set(names)) else names


def _common_words(names: Sequence[str]) -> int:
    """How many letters of whole words, with what parts them, all of `names` begin with."""
    first, last = min(names), max(names)  # what these two share, all share
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    prefix = first[: sum(1 for _ in alike)]
    return max(prefix.rfind(separator) for separator in _SEPARATORS) + 1


class GapModel(QAbstractTableModel):
    """Rows of the newest tables; units go to the heading where all rows agree."""

    def __init__(self) -> None:
        super().__init__()
        self._window: GapTable | None = None
        self._run: GapTable | None = None
        self._units: dict[tuple[str, str], str] = {}
        self._names: tuple[str, ...] = ()
        self._short: tuple[str, ...] = ()
        self._texts: list[list[str]] = []
        self._heads: list[str] = []
        self.part: Part = "rmse"
        self.degrees = False
        self._compute()

    def show_tables(
        self, window: GapTable | None, run: GapTable | None, units: dict[tuple[str, str], str]
    ) -> None:
        """Take new figures; rows stay where they are unless the joints changed."""
        names = tuple(joint.name for joint in (window or run or _NONE).joints)
        if (names, units) != (self._names, self._units):
            self.beginResetModel()
            self._names, self._units = names, units
            self._short = short_names(names)
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

    def texts(self, column: int) -> list[str]:
        """Every line of text in `column`, those of the heading first."""
        if column == 0:
            return ["Joint", *self._short, OVERALL, TOOL]
        return [*self._heads[column - 1].split("\n"), *(row[column - 1] for row in self._texts)]

    @property
    def has_floor(self) -> bool:
        """Whether a floor is known of any joint."""
        return any(joint.floor for joint in (self._window or _NONE).joints)

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
            return _RIGHT if section else _LEFT
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
            if role == Qt.ItemDataRole.DisplayRole:
                return (*self._short, OVERALL, TOOL)[row]
            named = (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole, SORT)
            return self.name(row) if role in named else None
        column = COLUMNS[index.column() - 1]
        if role == SORT:
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
            return None if lag is None else round(lag.seconds, 6)  # no lag is 0, not 6e-14
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


_NONE = GapTable(joints=(), overall=JointGap(name=OVERALL), samples=0, start=0, end=0)
