"""The session log: levels by icon and word, a filter, copying."""

from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QDateTime,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QAction, QGuiApplication, QIcon, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.icons import state_icon
from twinstudio.gui.notices import Line, Notices
from twinstudio.gui.theme import GRID, Theme, code_font

_LEVELS = {
    "All": ("info", "warning", "alarm"),
    "Warnings": ("warning", "alarm"),
    "Alarms": ("alarm",),
}
Index = QModelIndex | QPersistentModelIndex
_HEADS = ("Time", "Level", "About", "Text")


class LogModel(QAbstractTableModel):
    """The newest lines of `notices`; as many as those keep."""

    def __init__(self, notices: Notices, theme: Theme) -> None:
        super().__init__()
        self._notices = notices
        self._lines: list[Line] = []
        self._state = (0, 0, 0)
        self._icons: dict[str, QIcon] = {}
        self.restyle(theme)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._icons = {level: state_icon(level, theme) for level in ("info", "warning", "alarm")}

    def catch_up(self) -> None:
        """Take in what is new; what the notices have dropped goes from the top."""
        notices = self._notices
        times = notices.lines[-1].times if notices.lines else 0
        state = (notices.total, notices.dropped, times)
        if state == self._state:
            return
        gone = min(notices.dropped - self._state[1], len(self._lines))
        if gone:
            self.beginRemoveRows(QModelIndex(), 0, gone - 1)
            del self._lines[:gone]
            self.endRemoveRows()
        count, lines = len(self._lines), list(notices.lines)
        if len(lines) > count:
            self.beginInsertRows(QModelIndex(), count, len(lines) - 1)
            self._lines = lines
            self.endInsertRows()
        self._state = state
        row = len(self._lines) - 1
        self.dataChanged.emit(self.index(row, 0), self.index(row, len(_HEADS) - 1))

    def line(self, row: int) -> Line:
        """The line in `row`."""
        return self._lines[row]

    def rowCount(self, parent: Index | None = None) -> int:  # noqa: D102
        return 0 if parent is not None and parent.isValid() else len(self._lines)

    def columnCount(self, parent: Index | None = None) -> int:  # noqa: D102
        return 0 if parent is not None and parent.isValid() else len(_HEADS)

    def headerData(  # noqa: D102
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _HEADS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:  # noqa: D102
        line = self._lines[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return texts(line)[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return line.text
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 1:
            return self._icons[line.level]
        return None


def texts(line: Line) -> tuple[str, str, str, str]:
    """The columns of one line."""
    time = QDateTime.fromMSecsSinceEpoch(line.stamp // 1_000_000).toString("HH:mm:ss.zzz")
    many = f"  (×{line.times})" if line.times > 1 else ""
    return time, line.level, line.kind, line.text + many


class _Filter(QSortFilterProxyModel):
    def __init__(self, model: LogModel) -> None:
        super().__init__()
        self._model = model
        self.levels = _LEVELS["All"]
        self.needle = ""
        self.setSourceModel(model)

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        """Whether the line is of a wanted level and contains the wanted text."""
        del parent
        line = self._model.line(row)
        return line.level in self.levels and self.needle in f"{line.kind} {line.text}".lower()


class LogDock(QWidget):
    """What happened, newest last; scrolls along unless one has scrolled up."""

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._notices = bridge.notices
        self.model = LogModel(bridge.notices, theme)
        self.filtered = _Filter(self.model)
        self.level = QComboBox()
        self.level.addItems(list(_LEVELS))
        self.level.setAccessibleName("Least level shown")
        self.level.setToolTip("Least level shown")
        self.level.currentTextChanged.connect(self._refilter)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Filter the log")
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName("Filter the log")
        self.search.setToolTip("Show only lines that contain these words")
        self.search.textChanged.connect(self._refilter)
        self._follows = True
        self.table = self._table()
        copy = QAction("Copy", self)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        copy.triggered.connect(self.copy)
        self.addAction(copy)
        button = QToolButton()
        button.setText("Copy")
        button.setToolTip("Copy the selected lines, or all that are shown (Ctrl+C)")
        button.setAccessibleName("Copy log lines")
        button.clicked.connect(lambda _checked: self.copy())
        row = QHBoxLayout()
        row.setContentsMargins(GRID, GRID // 2, GRID, 0)
        for widget in (self.level, self.search, button):
            row.addWidget(widget, stretch=widget is self.search)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2)
        box.addLayout(row)
        box.addWidget(self.table)
        bridge.add(self, self.refresh, every=3)

    def _table(self) -> QTableView:
        table = QTableView()
        table.setModel(self.filtered)
        table.setAccessibleName("Session log")
        table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setFont(code_font())
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(18)
        head = table.horizontalHeader()
        head.hide()
        head.setSectionResizeMode(3, QHeaderView.ResizeMode.Stretch)
        for column, width in enumerate((104, 92, 110)):
            head.resizeSection(column, width)
        bar = table.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._grown)
        return table

    def _scrolled(self, value: int) -> None:
        self._follows = value >= self.table.verticalScrollBar().maximum()

    def _grown(self, _low: int, high: int) -> None:
        """More lines, or less room: the newest stays in sight, unless one has scrolled up."""
        if self._follows:
            self.table.verticalScrollBar().setValue(high)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.model.restyle(theme)
        self.table.viewport().update()

    def refresh(self, frame: Frame) -> None:
        """Take in what is new."""
        del frame
        self.model.catch_up()

    def copy(self) -> None:
        """Put the selected lines, or all shown ones, on the clipboard."""
        rows = sorted({index.row() for index in self.table.selectedIndexes()})
        rows = rows or list(range(self.filtered.rowCount()))
        lines = (
            self.model.line(self.filtered.mapToSource(self.filtered.index(row, 0)).row())
            for row in rows
        )
        QGuiApplication.clipboard().setText("\n".join("\t".join(texts(line)) for line in lines))

    def showEvent(self, event: QShowEvent) -> None:
        """Seeing the log counts as having read it."""
        super().showEvent(event)
        self.model.catch_up()
        self._follows = True
        self.table.scrollToBottom()

    def _refilter(self) -> None:
        self.filtered.levels = _LEVELS[self.level.currentText()]
        self.filtered.needle = self.search.text().lower()
        self.filtered.invalidate()
