"""What the user has picked, shared by tree, table, plots and the twin view."""

from PySide6.QtCore import QObject, Signal


class Selection(QObject):
    """The selected joint and body; empty strings when nothing is.

    changed: another selection. activated: a joint was double-clicked.
    """

    changed = Signal()
    activated = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.joint = ""
        self.body = ""

    def select(self, joint: str, body: str = "robot") -> None:
        """Select `joint` of `body`; an empty joint selects the body itself."""
        if (joint, body) != (self.joint, self.body):
            self.joint, self.body = joint, body
            self.changed.emit()
