"""Plugins in and out: what is wanted, what it will change, and how the installer gets on."""

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.rows import button, mark_icon, tip, words
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import GRID, Theme, code_font
from twinstudio.plugin.catalog import Entry
from twinstudio.plugin.install import NOTE
from twinstudio.session.installing import KEPT, InstallView

_ICON = 12
_LONG_WORD = re.compile(r"\S{32,}")
_TITLES = {
    "planning": "Finding out what it takes to {verb} {what}",
    "planned": "This will change if you {verb} {what}",
    "working": "{verb}ing {what}",
    "done": "{verb} {what}",
    "failed": "{verb} {what}",
    "cancelled": "{verb} {what}",
}


class InstallPane(QScrollArea):
    """Asks for a package, shows the plan, then the installer's lines as they come.

    All it does is commands of the session; it draws what the session says of them.
    appeared: another one has begun, here or elsewhere. ended: the list may be another
    now. left: no more of this.
    """

    appeared = Signal()
    ended = Signal()
    left = Signal()

    def __init__(self, bridge: Bridge, reader: Reader, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._reader = reader
        self.entries: tuple[Entry, ...] = ()
        self._state = ""
        self._theme = theme
        self._view: InstallView | None = None
        self._seen = 0  # number of the newest one that was shown
        self._shown = 0  # how many of its lines
        self.title = words("", "title")
        self.changes = words()
        self.also = words("", "faint")
        self.note = words(NOTE)
        self.outcome = words()
        for label in (self.title, self.changes, self.outcome):  # log and output can be copied
            label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        self._mark = QLabel()
        self.output = QPlainTextEdit()
        self.output.setReadOnly(True)
        self.output.setFont(code_font())
        self.output.setMaximumBlockCount(KEPT)
        self.output.setMinimumHeight(7 * GRID)
        self.output.setAccessibleName("Output of the installer")
        self.question = self._question()
        inner = QWidget()
        box = QVBoxLayout(inner)
        box.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        box.setSpacing(GRID // 2)
        for part in (self.title, self.question, self.changes, self.also, self.note):
            box.addWidget(part)
        box.addLayout(self._footer())
        box.addWidget(self.output, 100)
        box.addStretch(1)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Installing plugins")
        self.setWidget(inner)
        self.ask()

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self._show_mark()

    def ask(self) -> None:
        """Ask for a package anew, unless something is under way."""
        if self._view is not None and not self._view.over:
            return
        self._view = None
        self.title.setText("Install plugins")
        self.changes.setText("A wheel, the folder of a project, or the name of a package.")
        for part in (self.question, self.changes, self.note):
            part.show()
        for part in (self.also, self.agree, self.cancel, self.output):
            part.hide()
        self.tell("")
        self._enable(asking=True)
        self.line.setFocus()
        self.line.selectAll()

    def tell(self, text: str, state: str = "") -> None:
        """Say in one line how it ended; `state` gives the mark."""
        self.outcome.setText(_breakable(text))
        self.outcome.setVisible(bool(text))
        self._state = state
        self._show_mark()

    def poll(self) -> None:
        """Show how the newest one stands, if it has moved since."""
        view = self._bridge.session.workshop.installing.view()
        before = self._view
        if view is None or view == before or (before is None and view.number <= self._seen):
            return
        self._show_view(view)
        if view.number > self._seen:
            self._seen = view.number
            self.appeared.emit()
        if view.over:
            self.ended.emit()

    def order(self, command: str, **args: object) -> None:
        """Give a command, and show what comes of it."""

        def refused(text: str) -> None:
            self.poll()
            self.tell(text, "failed")
            self._enable(asking=self._view is None or self._view.over)
            self.appeared.emit()

        self._busy()
        future = self._bridge.runner.run(command, **args)
        self._reader.follow(future, lambda _: self.poll(), refused)

    def _show_view(self, view: InstallView) -> None:
        if self._view is None or self._view.number != view.number:
            self.output.clear()
            self._shown = 0
            if view.wanted.verb == "install":
                self.line.setText(view.wanted.what)
        self._view = view
        verb, what = view.wanted.verb, view.wanted.what
        title = _TITLES[view.state].format(verb=verb, what=_short(what))
        self.title.setText(_breakable(_sentence(title)))
        self.title.setToolTip(tip(what))
        self.question.setVisible(verb == "install" and view.over)
        changes = "\n".join(_sentence(str(change)) for change in view.changes)
        self.changes.setText(_breakable(changes))
        self.changes.setVisible(bool(view.changes))
        self._show_also(view)
        self.note.setVisible(verb == "install")
        self._show_lines(view)
        self.tell(view.outcome or _under_way(view), view.state if view.over else "")
        self.agree.setText(verb.capitalize())
        self.agree.setToolTip(f"Do what is shown above (plugin.{verb})")
        self.agree.setVisible(view.state == "planned")
        self.cancel.setVisible(not view.over)
        self._enable(asking=view.over)

    def _show_also(self, view: InstallView) -> None:
        """Other plugins that go with the package."""
        going = [
            entry.title or entry.id for entry in self.entries if entry.origin == view.wanted.what
        ]
        told = view.wanted.verb == "uninstall" and not view.over and len(going) > 1
        self.also.setText(f"With it go {', '.join(going)}" if told else "")
        self.also.setVisible(told)

    def _busy(self) -> None:
        """A wish was handed on; nothing more until it is answered."""
        for part in (self.agree, self.cancel, self.go):
            part.setEnabled(False)

    def _question(self) -> QWidget:
        self.line = QLineEdit()
        self.line.setPlaceholderText("acme_reach-1.0-py3-none-any.whl, ./acme-reach or acme-reach")
        self.line.setAccessibleName("Wheel, folder or package to install")
        self.line.textChanged.connect(lambda _text: self._enable(asking=True))
        self.line.returnPressed.connect(self._go)
        self.offline = QCheckBox("Offline")
        self.offline.setToolTip("Ask no package index, and build with what is installed")
        self.go = QPushButton("Show changes")
        self.go.setToolTip("Find out what would change; nothing is installed yet (plugin.install)")
        self.go.clicked.connect(lambda _checked: self._go())
        made = QWidget()
        row = QHBoxLayout(made)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.line, 1)
        row.addWidget(button("Wheel…", "Choose a wheel", self._choose_wheel))
        row.addWidget(button("Folder…", "Choose the folder of a project", self._choose_folder))
        row.addWidget(self.offline)
        row.addWidget(self.go)
        return made

    def _footer(self) -> QHBoxLayout:
        """How it ended, and what can be done now."""
        self.agree = QPushButton("Install")
        self.agree.clicked.connect(lambda _checked: self._agree())
        self.cancel = button(
            "Cancel", "End it; files that are being changed are finished (plugin.cancel)", self._end
        )
        self.back = button("Back", "Back to the selected plugin", self.left.emit)
        row = QHBoxLayout()
        row.setSpacing(GRID // 2)
        for one in (self.agree, self.cancel):
            row.addWidget(one, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._mark)
        row.addWidget(self.outcome, 100)
        row.addStretch(1)
        row.addWidget(self.back, 0, Qt.AlignmentFlag.AlignTop)
        return row

    def _show_lines(self, view: InstallView) -> None:
        fresh = view.count - self._shown
        if fresh > 0:
            self.output.appendPlainText("\n".join(view.lines[-fresh:]))
            self._shown = view.count
        self.output.setVisible(view.count > 0)

    def _show_mark(self) -> None:
        self._mark.setVisible(bool(self._state))
        if self._state:
            self._mark.setPixmap(mark_icon(self._state, self._theme).pixmap(_ICON, _ICON))

    def _enable(self, *, asking: bool) -> None:
        self.go.setEnabled(asking and bool(self.line.text().strip()))
        self.agree.setEnabled(True)
        self.cancel.setEnabled(self._view is None or not self._view.cancelling)

    def _go(self) -> None:
        if self.go.isEnabled():
            self._install(self.line.text().strip(), offline=self.offline.isChecked())

    def _agree(self) -> None:
        if self._view is None:
            return
        wanted = self._view.wanted
        if wanted.verb == "uninstall":
            self.order("plugin.uninstall", package=wanted.what, agreed=True)
        else:
            self._install(wanted.what, offline=wanted.offline, agreed=True)

    def _install(self, what: str, **flags: bool) -> None:
        """Flags that are not set are left out of the line in the log."""
        self.order("plugin.install", what=what, **{key: on for key, on in flags.items() if on})

    def _end(self) -> None:
        self.order("plugin.cancel")

    def _choose_wheel(self) -> None:
        dialog = QFileDialog(self.window(), "Choose a wheel", "", "Wheels (*.whl);;All files (*)")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._open(dialog)

    def _choose_folder(self) -> None:
        dialog = QFileDialog(self.window(), "Choose the folder of a project")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        self._open(dialog)

    def _open(self, dialog: QFileDialog) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.line.setText)
        dialog.open()


def _short(what: str) -> str:
    """A path by its last part; the whole is the tooltip."""
    return what.rstrip("/").rpartition("/")[2] or what


def _breakable(text: str) -> str:
    """`text`, whose long words may be broken, so that no part of a name is out of sight."""
    return _LONG_WORD.sub(lambda word: "\u200b".join(word.group()), text)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _under_way(view: InstallView) -> str:
    if view.cancelling:
        return "Being cancelled; files that are being changed are finished first"
    return ""
