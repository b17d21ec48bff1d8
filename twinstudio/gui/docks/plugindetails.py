"""What is known of one plugin, and what can be done with it."""

from collections.abc import Callable

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from twinstudio.gui.docks.rows import button, words
from twinstudio.gui.theme import GRID, code_font
from twinstudio.jobs.spec import NOT_RUN, RUNNABLE
from twinstudio.plugin.catalog import Entry

RIGHTS = "Plugins run with your rights: what you can read or delete, they can. Use those you trust."


class Details(QScrollArea):
    """All that is known of one plugin, its reason and traceback, and what can be done."""

    def __init__(self, act: Callable[[str], None], run: Callable[[], None]) -> None:
        super().__init__()
        self.title = words("", "title")
        self.about = words()
        self.origin = words("", "faint")
        self.reason = words("", "alarm")
        self.restart = words("", "warning")
        self.trace = QPlainTextEdit()
        self.trace.setReadOnly(True)
        self.trace.setFont(code_font())
        self.trace.setMinimumHeight(12 * GRID)
        self.trace.setAccessibleName("Traceback")
        self.run = button("Run…", "Fill in its form and run it as a job", run)
        self.enable = button(
            "Enable", "Switch it on, and remember it (plugin.enable)", lambda: act("plugin.enable")
        )
        self.disable = button(
            "Disable",
            "Switch it off, and remember it (plugin.disable)",
            lambda: act("plugin.disable"),
        )
        self.retry = button(
            "Retry", "Read and import it anew (plugin.retry)", lambda: act("plugin.retry")
        )
        self.uninstall = button(
            "Uninstall…",
            "Remove the package it came in; shows first what goes (plugin.uninstall)",
            lambda: act("plugin.uninstall"),
        )
        self.copy = button("Copy traceback", "Copy the traceback", self._copy)
        row = QHBoxLayout()
        for one in (self.run, self.enable, self.disable, self.retry, self.uninstall, self.copy):
            row.addWidget(one)
        row.addStretch()
        inner = QWidget()
        box = QVBoxLayout(inner)
        box.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        box.setSpacing(GRID // 2)
        for label in (self.title, self.about):
            box.addWidget(label)
        box.addLayout(row)
        for label in (self.restart, self.reason):
            box.addWidget(label)
        box.addWidget(self.trace)
        for label in (self.origin, words(RIGHTS, "faint")):
            box.addWidget(label)
        box.addStretch()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("The selected plugin")
        self.setWidget(inner)

    def show_entry(self, entry: Entry | None) -> None:
        """Show `entry`; without one, only how to get one."""
        for one in (self.run, self.enable, self.disable, self.retry, self.uninstall, self.copy):
            one.hide()
        for text in (self.reason, self.restart):
            text.hide()
        self.trace.hide()
        if entry is None:
            self.title.setText("No plugin selected")
            self.about.setText("Select one to see what it does.")
            self.origin.setText("")
            return
        self.title.setText(entry.title or entry.id)
        idle = NOT_RUN.get(entry.kind, "")
        no_job = f"A {entry.kind} does not run as a job: {idle}." if idle else ""
        self.about.setText("\n".join(filter(None, (entry.help, entry.docs, no_job))))
        version = f" {entry.version}" if entry.version else ""
        self.origin.setText(f"{entry.id}{version}, {entry.kind or 'kind unknown'}, {entry.origin}")
        self.reason.setText(entry.reason)
        self.reason.setVisible(bool(entry.reason))
        self.restart.setText(entry.restart)
        self.restart.setVisible(bool(entry.restart))
        self.trace.setPlainText(entry.trace)
        self.trace.setVisible(bool(entry.trace))
        self.copy.setVisible(bool(entry.trace))
        self.run.setVisible(entry.kind in RUNNABLE)
        self.run.setEnabled(entry.state != "disabled")
        self.enable.setVisible(entry.state == "disabled")
        self.disable.setVisible(entry.state != "disabled")
        self.retry.setVisible(entry.state == "failed")
        self.uninstall.setVisible(bool(package_of(entry)))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.trace.toPlainText())


def package_of(entry: Entry) -> str:
    """The package that can be uninstalled; "" for a single file or what comes with Twinstudio."""
    single = "/" in entry.origin or entry.origin.endswith(".py")
    return "" if entry.first_party or single else entry.origin
