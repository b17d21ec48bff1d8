"""What plugins there are, how they do, and the form that runs one."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.docks.installpane import InstallPane
from twinstudio.gui.docks.plugindetails import Details, package_of
from twinstudio.gui.docks.rows import Column, Panel, Rows, RowTable, button
from twinstudio.gui.forms.form import Form, FormSource
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import GRID, Theme
from twinstudio.jobs.record import Run
from twinstudio.jobs.spec import RUNNABLE
from twinstudio.jobs.store import RunFilter
from twinstudio.plugin.catalog import Entry
from twinstudio.plugin.kinds import KINDS

_EVERY = "All kinds"
_MOST_RUNS = 20
_COLUMNS = (
    Column("Plugin", lambda e: e.title or e.id, 200, tip=lambda e: f"{e.id}: {e.help}"),
    Column("Kind", lambda e: e.kind or "unknown", 88),
    Column(
        "State",
        lambda e: f"{e.state}, restart" if e.restart else e.state,
        124,
        mark=lambda e: e.state,
        tip=lambda e: "; ".join(filter(None, (e.reason, e.restart))),
    ),
    Column("Version", lambda e: e.version, 72),
    Column("From", lambda e: e.origin),
)


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
        self._ended: frozenset[str] = frozenset()  # jobs that the list knows of
        self.reader = Reader(bridge.notices, self)
        self.model = Rows(_COLUMNS, lambda entry: (entry.id, entry.origin), theme)
        self.table = RowTable(self.model, "Plugins")
        self.table.picked.connect(self._show_picked)
        self.table.opened.connect(self.open_picked)
        self.details = Details(self._act, self.open_picked)
        self.details.show_entry(None)
        self.form: Form | None = None
        self._checker: Reader | None = None
        self.side = QStackedWidget()
        self.side.addWidget(self.details)
        self.installs = InstallPane(bridge, self.reader, theme)
        self.installs.appeared.connect(self._show_installs)
        self.installs.ended.connect(self._list)
        self.installs.left.connect(self._leave_form)
        self.side.addWidget(self.installs)
        self.empty = Empty("Plugins are being read", "")
        self.empty.text.setTextFormat(Qt.TextFormat.PlainText)
        self.empty.offer("Read again", "Look again for plugins", self.refresh)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self._split())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.pages)
        bridge.add(self, self._notice, every=3)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self.model.restyle(theme)
        self.table.viewport().update()
        self.installs.restyle(theme)
        if self.form is not None:
            self.form.restyle(theme)

    def stop(self) -> None:
        """Read and check nothing more."""
        self.reader.close()
        if self._checker is not None:
            self._checker.close()

    def refresh(self) -> None:
        """Look anew at all places where plugins are."""
        shop = self._bridge.session.workshop

        def read() -> tuple[Entry, ...]:
            shop.catalog.refresh()
            return shop.plugins()

        self.reader.ask("plugins", read, self._take, self._refused)

    def seen(self) -> None:
        """Read the catalog when it is first seen."""
        if not self._read:
            self._read = True
            self._list()
        self._notice()

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
        row.addWidget(
            button(
                "Install…",
                "Install a wheel, a folder or a package; shows first what will change",
                self.ask_install,
            )
        )
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
        self._entries = self.installs.entries = tuple(entries)
        at_work = self.side.currentWidget() is self.installs
        self.pages.setCurrentIndex(1 if entries or at_work else 0)
        self._explain(
            "No plugin is there",
            "Install one ('Install plugin' in the command palette, or twinstudio plugins install),"
            " or put a single-file plugin into the folder of plugins.",
        )
        self._drop_stale_form()
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

    def ask_install(self) -> None:
        """Ask which package to install."""
        if not self._read:
            self.seen()
        self._show_installs()
        self.installs.ask()

    def _show_installs(self) -> None:
        self.pages.setCurrentIndex(1)
        self.side.setCurrentWidget(self.installs)

    def _notice(self, frame: Frame | None = None) -> None:
        """Show how an installation gets on, and mark the plugin whose run has just ended."""
        if frame is not None and not self.in_sight:
            return
        self.installs.poll()
        jobs = self._bridge.session.workshop.jobs()
        ended = frozenset(job.id for job in jobs if job.over)
        if ended != self._ended:
            self._ended = ended
            self._list()

    def _act(self, command: str) -> None:
        chosen = self.table.chosen()
        if chosen and command == "plugin.uninstall":
            self.installs.order(command, package=package_of(chosen[0]))
        elif chosen:
            future = self._bridge.runner.run(command, plugin=chosen[0].id)
            # A refusal stands in the log as an alarm; the list tells how things are now.
            self.reader.follow(future, lambda _: self._list(), lambda _: self._list())

    def _show_form(self, found: tuple[FormSource, Run | None]) -> None:
        source, run = found
        self._drop_form()
        self._checker = Reader(self._bridge.notices, self)
        form = Form(source, self._theme, self._checker)
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

    def _drop_stale_form(self) -> None:
        """A form of a plugin that was replaced or removed holds the old one's parameters."""
        if self.form is None:
            return
        made = self.form.source.entry
        same = (made.id, made.origin, made.version, made.restart)
        if same not in ((e.id, e.origin, e.version, e.restart) for e in self._entries):
            self._drop_form()
            text = f"the form of '{made.id}' was closed: its package was replaced or removed"
            self._bridge.notices.say("info", "plugin", text)

    def _drop_form(self) -> None:
        if self.form is not None:
            self.side.removeWidget(self.form)
            self.form.deleteLater()
            self.form = None
        if self._checker is not None:
            self._checker.close()

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
