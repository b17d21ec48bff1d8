"""Runs on disk: a list that can be narrowed down, and what the selected ones gave."""

from functools import partial
from pathlib import Path
from typing import Any, get_args

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.docks.rows import Column, Panel, Rows, RowTable, button, words
from twinstudio.gui.docks.runview import RunPages, RunShown
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import GRID, Theme
from twinstudio.jobs.record import ENDED, RunHead, State
from twinstudio.jobs.spec import RUNNABLE
from twinstudio.jobs.store import RunFilter
from twinstudio.session.places import places


def took(head: RunHead) -> str:
    """From start to end."""
    return fmt.NOTHING if head.seconds is None else fmt.clock(head.seconds)


_EVERY = "All plugins"
_ANY = "All states"
_COLUMNS = (
    Column(
        "When", lambda r: f"{r.created.astimezone():%Y-%m-%d %H:%M:%S}", 144, tip=lambda r: r.id
    ),
    Column("Run", lambda r: r.spec.title or r.spec.plugin, tip=lambda r: r.spec.plugin),
    Column("State", lambda r: r.state, 104, mark=lambda r: r.state, tip=lambda r: r.error),
    Column("Took", took, 72, right=True),
    Column("Seed", lambda r: str(r.spec.seed), 88, right=True),
)


class RunsDock(Panel):
    """Newest first. One selected run is shown, two are compared.

    reload_wanted: plugin and run, to fill its form. plugins_wanted: the empty panel's button.
    """

    reload_wanted = Signal(str, str)
    plugins_wanted = Signal()

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._heads: tuple[RunHead, ...] = ()
        self._jobs: tuple[tuple[str, str], ...] | None = None
        self._wanted = ""
        self.reader = Reader(bridge.notices, self)
        self.model = Rows(_COLUMNS, lambda head: head.id, theme)
        self.table = RowTable(self.model, "Runs", many=True)
        self.table.picked.connect(self._show_picked)
        self.shown = RunPages(theme)
        self.shown.results.promote.connect(self._promote)
        self.shown.results.force.connect(partial(self._promote, force=True))
        self.shown.undo.clicked.connect(lambda _checked: self._undo())
        self.said = words("", "faint")
        self._make_buttons()
        self.empty = Empty("Runs are being read", "")
        self.empty.text.setTextFormat(Qt.TextFormat.PlainText)
        self.empty.offer("Choose a plugin…", "Show the plugins", self.plugins_wanted.emit)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self._split())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.pages)
        self._show_picked()
        bridge.add(self, self._notice, every=12)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.model.restyle(theme)
        self.table.viewport().update()
        self.shown.restyle(theme)

    def refresh(self) -> None:
        """Read the list anew, in the background."""
        shop = self._bridge.session.workshop
        self.reader.ask("runs", shop.runs, self._take, self._refused)

    def show_run(self, run: str) -> None:
        """Select `run` and show it, as soon as the list has it."""
        self._wanted = run
        self.search.clear()
        self.plugin.setCurrentIndex(0)
        self.state.setCurrentIndex(0)
        self.refresh()

    def seen(self) -> None:
        """Read the list whenever it comes to sight: other programs may have added runs."""
        self.refresh()
        self._read_patches()

    def _notice(self, frame: Frame) -> None:
        """Read the list anew when a job of this session has begun or ended."""
        del frame
        if not self.in_sight:
            return
        jobs = tuple((job.id, job.state) for job in self._bridge.session.workshop.jobs())
        if self._jobs is not None and jobs != self._jobs:
            self.refresh()
        self._jobs = jobs

    # What it consists of

    def _make_buttons(self) -> None:
        self.reload = button(
            "Reload into form", "Fill the plugin's form as this run was", self._reload
        )
        self.export = button("Export…", "Put the run into one zip", self._ask_export)
        self.fetch = button("Import…", "Take in a run that was exported", self._ask_import)

    def _split(self) -> QSplitter:
        self.search = QLineEdit()
        self.search.setPlaceholderText("Filter runs")
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName("Filter runs")
        self.search.textChanged.connect(lambda _text: self._refilter())
        self.plugin, self.state = QComboBox(), QComboBox()
        self.plugin.addItem(_EVERY)
        self.plugin.setMaximumWidth(20 * GRID)
        self.state.addItems([_ANY, *get_args(State)])
        for box, name in ((self.plugin, "Plugin of the runs"), (self.state, "State of the runs")):
            box.setAccessibleName(name)
            box.setToolTip(name)
            box.currentIndexChanged.connect(lambda _index: self._refilter())
        top = QHBoxLayout()
        top.setContentsMargins(GRID, GRID // 2, GRID, 0)
        top.addWidget(self.plugin)
        top.addWidget(self.state)
        top.addWidget(self.search, 1)
        top.addWidget(button("Refresh", "Read the list anew", self.refresh))
        low = QHBoxLayout()
        low.setContentsMargins(GRID, 2, GRID, 2)
        low.setSpacing(GRID)
        for one in (self.reload, self.export, self.fetch):
            low.addWidget(one)
        low.addWidget(self.said, 1)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(top)
        column.addWidget(self.table, 1)
        column.addLayout(low)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(self.shown)
        split.setSizes([560, 640])
        split.setChildrenCollapsible(False)
        return split

    # The list

    def _take(self, heads: tuple[RunHead, ...]) -> None:
        self._heads = tuple(heads)
        self.pages.setCurrentIndex(1 if heads else 0)
        self.empty.title.setText("No run yet")
        self.empty.text.setText(
            "A plugin that has run leaves its results, log and provenance here."
        )
        names = [_EVERY, *sorted({head.spec.plugin for head in heads if head.spec.plugin})]
        if names != [self.plugin.itemText(k) for k in range(self.plugin.count())]:
            chosen = self.plugin.currentText()
            blocked = self.plugin.blockSignals(True)
            self.plugin.clear()
            self.plugin.addItems(names)
            self.plugin.setCurrentIndex(max(self.plugin.findText(chosen), 0))
            self.plugin.blockSignals(blocked)
        self._refilter()
        if self._wanted:
            self.table.select((self._wanted,))
            self._wanted = ""

    def _refused(self, text: str) -> None:
        self.pages.setCurrentIndex(0)
        self.empty.title.setText("The runs cannot be read")
        self.empty.text.setText(text)

    def _refilter(self) -> None:
        plugin, state = self.plugin.currentText(), self.state.currentText()
        wanted = RunFilter(
            text=self.search.text(),
            plugin="" if plugin == _EVERY else plugin,
            state=None if state == _ANY else state,  # type: ignore[arg-type]
        )
        rows = [head for head in self._heads if wanted.passes(head)]
        before = self.table.chosen()
        self.table.take(rows)
        if self.table.chosen() != before:
            self._show_picked()  # the same run, further on
        self.said.setText(f"{fmt.count(len(rows))} of {fmt.count(len(self._heads))} runs")

    # The selected ones

    def _chosen(self) -> RunHead | None:
        chosen = self.table.chosen()
        return chosen[0] if len(chosen) == 1 else None

    def _show_picked(self) -> None:
        chosen, one = self.table.chosen(), self._chosen()
        self.reload.setEnabled(one is not None and one.spec.kind in RUNNABLE)
        self.export.setEnabled(one is not None and one.state in ENDED)
        self.reader.forget("run")
        if one is not None:
            self._read_run(one.id)
        elif len(chosen) == 2:
            store = self._bridge.session.workshop.store
            older, newer = chosen[1].id, chosen[0].id
            self.reader.ask(
                "run",
                lambda: store.compare(older, newer),
                self.shown.show_comparison,
                self.shown.show_nothing,
            )
        elif chosen:
            self.shown.show_nothing(f"{len(chosen)} runs are selected; two can be compared.")
        else:
            self.shown.show_nothing("Select a run to see what it gave, or two to compare them.")

    def _read_run(self, run: str) -> None:
        store = self._bridge.session.workshop.store
        self.reader.ask(
            "run", lambda: RunShown.read(store, run), self.shown.show_run, self.shown.show_nothing
        )

    def _reload(self) -> None:
        head = self._chosen()
        if head is not None:
            self.reload_wanted.emit(head.spec.plugin, head.id)

    def _promote(self, result: int, *, force: bool = False) -> None:
        head = self._chosen()
        if head is not None:
            more = {"force": True} if force else {}
            self._command("patch.apply", run=head.id, result=result, **more)

    def _undo(self) -> None:
        self._command("patch.undo")

    def _command(self, command: str, **args: Any) -> None:
        """Run `command`; its refusal stands in the log and here, and the patches are read anew."""
        self.said.setText(f"{command}…")

        def done(_value: object) -> None:
            self.said.setText(f"{command} is done")
            self._read_patches(show=True)

        self.reader.follow(self._bridge.runner.run(command, **args), done, self.said.setText)

    def _read_patches(self, *, show: bool = False) -> None:
        shop = self._bridge.session.workshop

        def take(origins: Any) -> None:
            self.shown.show_origins(origins, show=show)

        self.reader.ask("patches", shop.origins, take, self.shown.refuse_origins)

    # Zips

    def _ask_export(self) -> None:
        head = self._chosen()
        if head is None:
            return
        file = str(places()["reports"].parent / f"run-{head.id}.zip")
        dialog = QFileDialog(self.window(), "Export the run", file, "Runs (*.zip)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(file)
        self._open(dialog, partial(self.export_to, head.id))

    def _ask_import(self) -> None:
        dialog = QFileDialog(self.window(), "Import a run", "", "Runs (*.zip)")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._open(dialog, self.import_from)

    def _open(self, dialog: QFileDialog, then: Any) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(then)
        dialog.open()

    def export_to(self, run: str, file: str) -> None:
        """Put `run` into the zip `file`, in the background."""
        store, path = self._bridge.session.workshop.store, Path(file)
        self.said.setText("Exporting…")
        self.reader.ask(
            "zip",
            lambda: store.export(run, path),
            lambda made: self.said.setText(f"Exported to {made}"),
            self.said.setText,
        )

    def import_from(self, file: str) -> None:
        """Take in the run in the zip `file`, in the background, and show it."""
        store, path = self._bridge.session.workshop.store, Path(file)
        self.said.setText("Importing…")
        self.reader.ask("zip", lambda: store.import_(path), self.show_run, self.said.setText)
