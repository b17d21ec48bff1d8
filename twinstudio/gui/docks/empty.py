"""What a panel shows while it has nothing: what would fill it, and the button for that."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from twinstudio.gui.theme import GRID


class Empty(QWidget):
    """A title, a sentence, and the button that `offer` gives it."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.title = QLabel(title)
        self.title.setProperty("role", "title")
        self.text = QLabel(text)
        self.text.setProperty("role", "faint")
        self.text.setWordWrap(True)
        self.button = QPushButton()
        self.button.hide()
        box = QVBoxLayout(self)
        box.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        box.setSpacing(GRID)
        box.addStretch()
        for label in (self.title, self.text):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            box.addWidget(label)
        box.addWidget(self.button, alignment=Qt.AlignmentFlag.AlignCenter)
        box.addStretch()

    def offer(self, text: str, tip: str, action: Callable[[], object]) -> None:
        """Show a button that does what fills the panel."""
        self.button.setText(text)
        self.button.setToolTip(tip)
        self.button.clicked.connect(lambda _checked: action())
        self.button.show()
