"""Tables of plugins, jobs and runs: rows of one kind, chosen by key, states as shape and word."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QIcon, QShowEvent
from PySide6.QtWidgets import QHeaderView, QLabel, QSizePolicy, QTableView, QToolButton, QWidget

from twinstudio.gui.icons import icon
from twinstudio.gui.theme import Theme, number_font

Index = QModelIndex | QPersistentModelIndex
Tone = Literal["good", "accent", "warning", "alarm", "faint"]
Mark = tuple[str, Tone]
PROGRESS = Qt.ItemDataRole.UserRole + 1
_ROW_HEIGHT = 22

MARKS: dict[str, Mark] = {
    "enabled": ("disc", "good"),
    "unused": ("ring", "faint"),
    "disabled": ("square", "faint"),
    "queued": ("ring", "faint"),
    "preparing": ("ring", "accent"),
    "running": ("play", "accent"),
    "analysing": ("half", "accent"),
    "done": ("disc", "good"),
    "failed": ("cross", "alarm"),
    "cancelled": ("square", "faint"),
}
"""Shape and colour of the states of plugins and jobs; the word stands beside them."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. width: in pixels, 0 for what is left. mark: state whose icon is shown."""

    title: str
    text: Callable[[Any], str]
    width: int = 0
    mark: Callable[[Any], str] | None = None
    tip: Callable[[Any], str] | None = None
    right: bool = False
    progress: Callable[[Any], float] | None = None


class Rows(QAbstractTableModel):
    """Rows under `columns`; `key` tells one from another."""

    def __init__(
        self, columns: Sequence[Column], key: Callable[[Any], Hashable], theme: Theme
    ) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self.key = key
        self.rows: list[Any] = []
        self._icons: dict[str, QIcon] = {}
        self.restyle(theme)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._icons = {state: mark_icon(state, theme) for state in MARKS}

    def take(self, rows: Sequence[Any]) -> None:
        """Show `rows`; where only their content changed, the selection stays untouched."""
        fresh = list(rows)
        if [self.key(row) for row in fresh] != [self.key(row) for row in self.rows]:
            self.beginResetModel()
            self.rows = fresh
            self.endResetModel()
            return
        changed = [k for k, row in enumerate(fresh) if row != self.rows[k]]
        self.rows = fresh
        for k in changed:
            self.dataChanged.emit(self.index(k, 0), self.index(k, len(self.columns) - 1))

    def rowCount(self, parent: Index | None = None) -> int:  # noqa: D102
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:  # noqa: D102
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def headerData(  # noqa: D102
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section].title
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:  # noqa: D102
        column, row = self.columns[index.column()], self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip((column.tip or column.text)(row))
        if role == Qt.ItemDataRole.DecorationRole and column.mark is not None:
            return self._icons[column.mark(row)]
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == PROGRESS and column.progress is not None:
            return column.progress(row)
        return None


class RowTable(QTableView):
    """A table of `Rows` in which whole rows are picked.

    picked: other rows are selected. opened: a row was double-clicked.
    """

    picked = Signal()
    opened = Signal()

    def __init__(self, model: Rows, name: str, *, many: bool = False) -> None:
        super().__init__()
        self._model = model
        self._keys: tuple[Hashable, ...] = ()
        self.setModel(model)
        self.setAccessibleName(name)
        self.setFont(number_font(self.font()))
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        mode = QTableView.SelectionMode
        self.setSelectionMode(mode.ExtendedSelection if many else mode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for k, column in enumerate(model.columns):
            if column.width:
                head.resizeSection(k, column.width)
            else:
                head.setSectionResizeMode(k, QHeaderView.ResizeMode.Stretch)
        self.selectionModel().selectionChanged.connect(lambda *_: self._tell())
        self.doubleClicked.connect(lambda _index: self.opened.emit())

    def take(self, rows: Sequence[Any]) -> None:
        """Show `rows`; what was selected stays so as far as it is still there."""
        keys, blocked = self._keys, self.blockSignals(True)
        self._model.take(rows)
        if [row for row in self._picked_rows() if self._model.key(row) in keys] == []:
            self.select(keys)
        self.blockSignals(blocked)
        self._tell()

    def chosen(self) -> list[Any]:
        """The selected rows in their order."""
        return self._picked_rows()

    def select(self, keys: Sequence[Hashable]) -> None:
        """Select the rows with these keys, and show the first of them."""
        model, picked = self._model, QItemSelection()
        found = [k for k, row in enumerate(model.rows) if model.key(row) in keys]
        for k in found:
            picked.select(model.index(k, 0), model.index(k, len(model.columns) - 1))
        self.selectionModel().select(picked, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if found:
            self.scrollTo(model.index(found[0], 0))
        self._tell()

    def _picked_rows(self) -> list[Any]:
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self._model.rows[k] for k in rows]

    def _tell(self) -> None:
        keys = tuple(self._model.key(row) for row in self._picked_rows())
        if keys != self._keys and not self.signalsBlocked():
            self._keys = keys
            self.picked.emit()


class Panel(QWidget):
    """A dock's content that asks for little room, so that its neighbours keep theirs."""

    def minimumSizeHint(self) -> QSize:
        """Less than its parts would like: they scroll."""
        return QSize(240, 48)

    def showEvent(self, event: QShowEvent) -> None:
        """Shown, though perhaps on its way behind a tab."""
        super().showEvent(event)
        self.look()

    def look(self, _visible: bool = True) -> None:
        """Call `seen` if it can be seen when docks have found their places."""
        QTimer.singleShot(0, self, self._settle)

    @property
    def in_sight(self) -> bool:
        """Whether it can be seen; behind another tab Qt still calls it visible."""
        return self.isVisible() and not self.visibleRegion().isEmpty()

    def seen(self) -> None:
        """It came to sight; what is read then is read here."""

    def _settle(self) -> None:
        if self.in_sight:
            self.seen()


def mark_icon(state: str, theme: Theme) -> QIcon:
    """The icon of a plugin's or job's state."""
    shape, tone = MARKS[state]
    return icon(shape, getattr(theme, tone), selected=theme.base)


def tip(text: str) -> str:
    """`text`, which others wrote, as a tooltip that wraps and takes no markup from it."""
    return f"<p>{escape(text)}</p>" if text else ""


def words(text: str = "", role: str = "") -> QLabel:
    """A label for text that others wrote: it wraps, takes no markup, and can be copied."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setMinimumWidth(1)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if role:
        label.setProperty("role", role)
    return label


def button(text: str, about: str, action: Callable[[], object]) -> QToolButton:
    """A button with its tooltip."""
    made = QToolButton()
    made.setText(text)
    made.setToolTip(about)
    made.setAccessibleName(f"{text}: {about}")
    made.clicked.connect(lambda _checked=False: action())
    return made
