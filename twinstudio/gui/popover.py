"""A small question beside a button: one line of text; it blocks nothing."""

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget

from twinstudio.gui.theme import GRID


class Ask(QFrame):
    """Asks for one text; Enter or the button answers, Escape leaves.

    answered: the text that was given, never empty.
    """

    answered = Signal(str)

    def __init__(self, window: QWidget, label: str, button: str, hint: str) -> None:
        super().__init__(window)
        self._window = window
        self.setProperty("role", "popover")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.line = QLineEdit()
        self.line.setPlaceholderText(hint)
        self.line.setAccessibleName(label)
        self.line.setMinimumWidth(260)
        self.line.installEventFilter(self)
        self.line.returnPressed.connect(self._answer)
        self.button = QPushButton(button)
        self.button.clicked.connect(lambda _on: self._answer())
        row = QHBoxLayout(self)
        row.setContentsMargins(GRID, GRID, GRID, GRID)
        row.setSpacing(GRID)
        row.addWidget(QLabel(label))
        row.addWidget(self.line)
        row.addWidget(self.button)
        self.hide()

    def open(self, near: QWidget | None, text: str = "") -> None:
        """Ask, under the widget `near`, with `text` to begin with."""
        window = self._window
        self.adjustSize()
        at = near.mapTo(window, QPoint(0, near.height() + 4)) if near else QPoint(64, 64)
        at.setX(max(GRID, min(at.x(), window.width() - self.width() - GRID)))
        self.move(at)
        self.line.setText(text)
        self.line.selectAll()
        self.show()
        self.raise_()
        self.line.setFocus(Qt.FocusReason.PopupFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape leaves."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            self.hide()
            return True
        return super().eventFilter(watched, event)

    def _answer(self) -> None:
        text = self.line.text().strip()
        if text:
            self.hide()
            self.answered.emit(text)
