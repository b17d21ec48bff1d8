"""What plugins there are, how they do, and the form that runs one."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.docks.rows import Column, Panel, Rows, RowTable, button, words
from twinstudio.gui.forms.form import Form, FormSource
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import GRID, Theme, code_font
from twinstudio.jobs.record import Run
from twinstudio.jobs.spec import RUNNABLE
from twinstudio.jobs.store import RunFilter
from twinstudio.plugin.catalog import Entry
from twinstudio.plugin.kinds import KINDS

RIGHTS = "Plugins run with your rights: what you can read or delete, they can. Use those you trust."
_EVERY = "All kinds"
_MOST_RUNS = 20
_COLUMNS = (
    Column("Plugin", lambda e: e.title or e.id, 200, tip=lambda e: f"{e.id}: {e.help}"),
    Column("Kind", lambda e: e.kind or "unknown", 88),
    Column("State", lambda e: e.state, 96, mark=lambda e: e.state, tip=lambda e: e.reason),
    Column("Version", lambda e: e.version, 72),
    Column("From", lambda e: e.origin),
)


class Details(QScrollArea):
    """All that is known of one plugin, its reason and traceback, and what can be done."""

    def __init__(self, act: Callable[[str], None], run: Callable[[], None]) -> None:
        super().__init__()
        self.title = words("", "title")
        self.about = words()
        self.origin = words("", "faint")
        self.reason = words("", "alarm")
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
        self.copy = button("Copy traceback", "Copy the traceback", self._copy)
        row = QHBoxLayout()
        for one in (self.run, self.enable, self.disable, self.retry, self.copy):
            row.addWidget(one)
        row.addStretch()
        inner = QWidget()
        box = QVBoxLayout(inner)
        box.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        box.setSpacing(GRID // 2)
        for part in (self.title, self.about):
            box.addWidget(part)
        box.addLayout(row)
        box.addWidget(self.reason)
        box.addWidget(self.trace)
        for part in (self.origin, words(RIGHTS, "faint")):
            box.addWidget(part)
        box.addStretch()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("The selected plugin")
        self.setWidget(inner)

    def show_entry(self, entry: Entry | None) -> None:
        """Show `entry`; without one, only how to get one."""
        for one in (self.run, self.enable, self.disable, self.retry, self.copy, self.trace):
            one.hide()
        self.reason.hide()
        if entry is None:
            self.title.setText("No plugin selected")
            self.about.setText("Select one to see what it does.")
            self.origin.setText("")
            return
        self.title.setText(entry.title or entry.id)
        self.about.setText("\n".join(filter(None, (entry.help, entry.docs))))
        version = f" {entry.version}" if entry.version else ""
        self.origin.setText(f"{entry.id}{version}, {entry.kind or 'kind unknown'}, {entry.origin}")
        self.reason.setText(entry.reason)
        self.reason.setVisible(bool(entry.reason))
        self.trace.setPlainText(entry.trace)
        for one in (self.trace, self.copy):
            one.setVisible(bool(entry.trace))
        self.run.setVisible(entry.kind in RUNNABLE)
        self.run.setEnabled(entry.state != "disabled")
        self.enable.setVisible(entry.state == "disabled")
        self.disable.setVisible(entry.state != "disabled")
        self.retry.setVisible(entry.state == "failed")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.trace.toPlainText())


class PluginsDock(Panel):
    """List at the left; at the right the selected plugin, or its form.

    started: id of a run that was queued from the form. form_shown: another form.
    """

    started = Signal(str)
    form_shown = Signal()

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._theme = theme
        self._entries: tuple[Entry, ...] = ()
        self._read = False
        self.reader = Reader(bridge.notices, self)
        self.model = Rows(_COLUMNS, lambda entry: (entry.id, entry.origin), theme)
        self.table = RowTable(self.model, "Plugins")
        self.table.picked.connect(self._show_picked)
        self.table.opened.connect(self.open_picked)
        self.details = Details(self._act, self.open_picked)
        self.details.show_entry(None)
        self.form: Form | None = None
        self.side = QStackedWidget()
        self.side.addWidget(self.details)
        self.empty = Empty("Plugins are being read", "")
        self.empty.text.setTextFormat(Qt.TextFormat.PlainText)
        self.empty.offer("Read again", "Look again for plugins", self.refresh)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self._split())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.pages)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self.model.restyle(theme)
        self.table.viewport().update()
        if self.form is not None:
            self.form.restyle(theme)

    def refresh(self) -> None:
        """Look anew at all places where plugins are."""
        shop = self._bridge.session.workshop

        def read() -> tuple[Entry, ...]:
            return shop.catalog.refresh()

        self.reader.ask("plugins", read, self._take, self._refused)

    def seen(self) -> None:
        """Read the catalog when it is first seen."""
        if not self._read:
            self._read = True
            self._list()

    def open_picked(self) -> None:
        """Show the form of the selected plugin."""
        chosen = self.table.chosen()
        if chosen and chosen[0].kind in RUNNABLE and chosen[0].state != "disabled":
            self.open_form(chosen[0].id)

    def open_form(self, plugin: str, run: str = "") -> None:
        """Show the form of `plugin`, filled as `run` was if one is named; imports the plugin."""
        shop = self._bridge.session.workshop

        def read() -> tuple[FormSource, Run | None]:
            source = FormSource(
                entry=shop.catalog.entry(plugin),
                kind=shop.catalog.load(plugin).params,
                fields=shop.fields(plugin),
                slots=shop.catalog.load(plugin).inputs,
                runs=shop.runs(RunFilter(plugin=plugin))[:_MOST_RUNS],
            )
            return source, shop.store.load(run) if run else None

        self._read = True
        self.reader.ask("form", read, self._show_form, self._form_refused)

    def _split(self) -> QSplitter:
        self.search = QLineEdit()
        self.search.setPlaceholderText("Filter plugins")
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName("Filter plugins")
        self.search.textChanged.connect(lambda _text: self._refilter())
        self.kind = QComboBox()
        self.kind.addItems([_EVERY, *KINDS])
        self.kind.setAccessibleName("Kind of plugin")
        self.kind.setToolTip("Kind of plugin")
        self.kind.currentIndexChanged.connect(lambda _index: self._refilter())
        row = QHBoxLayout()
        row.setContentsMargins(GRID, GRID // 2, GRID, 0)
        row.addWidget(self.kind)
        row.addWidget(self.search, 1)
        row.addWidget(button("Refresh", "Look again for plugins", self.refresh))
        left = QWidget()
        box = QVBoxLayout(left)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2)
        box.addLayout(row)
        box.addWidget(self.table)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(self.side)
        split.setSizes([600, 500])
        split.setChildrenCollapsible(False)
        return split

    def _list(self) -> None:
        shop = self._bridge.session.workshop
        self.reader.ask("plugins", shop.plugins, self._take, self._refused)

    def _take(self, entries: tuple[Entry, ...]) -> None:
        self._entries = tuple(entries)
        self.pages.setCurrentIndex(1 if entries else 0)
        self._explain(
            "No plugin is there",
            "Install one (twinstudio plugins install), or put a single-file plugin into the"
            " folder of plugins.",
        )
        self._refilter()

    def _refused(self, text: str) -> None:
        self.pages.setCurrentIndex(0)
        self._explain("The plugins cannot be read", text)

    def _explain(self, title: str, text: str) -> None:
        self.empty.title.setText(title)
        self.empty.text.setText(text)

    def _refilter(self) -> None:
        needle, kind = self.search.text().lower(), self.kind.currentText()
        self.table.take(
            [
                entry
                for entry in self._entries
                if kind in (_EVERY, entry.kind)
                and needle in f"{entry.id} {entry.title} {entry.help} {entry.origin}".lower()
            ]
        )
        self._show_entry()

    def _show_picked(self) -> None:
        if self.table.chosen():
            self.side.setCurrentWidget(self.details)
        self._show_entry()

    def _show_entry(self) -> None:
        chosen = self.table.chosen()
        self.details.show_entry(chosen[0] if chosen else None)

    def _act(self, command: str) -> None:
        chosen = self.table.chosen()
        if chosen:
            future = self._bridge.runner.run(command, plugin=chosen[0].id)
            # A refusal stands in the log as an alarm; the list tells how things are now.
            self.reader.follow(future, lambda _: self._list(), lambda _: self._list())

    def _show_form(self, found: tuple[FormSource, Run | None]) -> None:
        source, run = found
        self._drop_form()
        form = Form(source, self._theme)
        form.left.connect(self._leave_form)
        form.submitted.connect(self._submit)
        form.reload_wanted.connect(self._reload)
        if run is not None:
            form.load(run.spec)
        self.form = form
        self.side.addWidget(form)
        self.pages.setCurrentIndex(1)
        self.side.setCurrentWidget(form)
        self.form_shown.emit()
        next(iter((form.params.editors | form.rest.editors).values())).setFocus()
        self._list()  # what was unused is enabled now

    def _form_refused(self, text: str) -> None:
        self._bridge.notices.say("alarm", "plugin", text)
        self._list()

    def _leave_form(self) -> None:
        self.side.setCurrentWidget(self.details)

    def _drop_form(self) -> None:
        if self.form is not None:
            self.side.removeWidget(self.form)
            self.form.deleteLater()
            self.form = None

    def _submit(self, args: dict[str, Any]) -> None:
        form = self.form
        assert form is not None
        future = self._bridge.runner.run("job.start", **args)

        def queued(run: object) -> None:
            if form is self.form:
                form.check()
                form.tell(f"Queued as run {run}")
            self.started.emit(str(run))

        def refused(text: str) -> None:
            if form is self.form:
                form.refuse(text)

        self.reader.follow(future, queued, refused)

    def _reload(self, run: str) -> None:
        form, shop = self.form, self._bridge.session.workshop
        assert form is not None

        def loaded(found: Run) -> None:
            if form is self.form:
                form.load(found.spec)

        self.reader.ask("reload", lambda: shop.store.load(run), loaded, form.refuse)
