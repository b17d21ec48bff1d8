"""What is shown of a run: results, log, provenance, comparison, and the scene's patches."""

from collections.abc import Iterator, Sequence
from typing import Self

import msgspec
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QPlainTextEdit,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.docks.rows import button, tip, words
from twinstudio.gui.results import ResultsView, value_text
from twinstudio.gui.theme import GRID, Theme, code_font, number_font
from twinstudio.jobs import calibration
from twinstudio.jobs.calibration import Calibration
from twinstudio.jobs.compare import Comparison, environment
from twinstudio.jobs.fitreport import HTML
from twinstudio.jobs.record import ENDED, Run
from twinstudio.jobs.store import Store
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.patches import Origin
from twinstudio.model.results import Result

_MOST_LOG = 200_000
_MOST_DIFFERENCES = 500
_WIDEST = 20 * GRID


class RunShown(msgspec.Struct, frozen=True, kw_only=True):
    """A run with all that is shown of it.

    calibration: findings and trials of a calibrator's run. report: path of its page, or
    "". problem: why its results cannot be read, or "".
    """

    run: Run
    results: tuple[Result, ...] = ()
    log: str = ""
    problem: str = ""
    calibration: Calibration | None = None
    report: str = ""

    @classmethod
    def read(cls, store: Store, run: str) -> Self:
        """Read it from disk; raises JobError where there is not even a record."""
        record, problem = store.load(run), ""
        results: tuple[Result, ...] = ()
        found: Calibration | None = None
        report = ""
        try:
            results = store.results(run)
            found = calibration.read(store, run)
            report = str(store.path(run) / HTML) if HTML in record.files else ""
        except TwinstudioError as error:
            problem = str(error)
        log = store.log(run)
        if len(log) > _MOST_LOG:
            log = f"(the last {fmt.size(_MOST_LOG)} of {fmt.size(len(log))})\n{log[-_MOST_LOG:]}"
        return cls(
            run=record,
            results=results,
            log=log,
            problem=problem,
            calibration=found,
            report=report,
        )


class Facts(QTreeWidget):
    """Names and values in groups, in two or three columns."""

    def __init__(self, heads: tuple[str, ...], name: str) -> None:
        super().__init__()
        self.setHeaderLabels(list(heads))
        self.setFont(number_font(self.font()))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformRowHeights(True)
        self.setAccessibleName(name)
        head = self.header()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        head.setStretchLastSection(True)
        for column in range(len(heads) - 1):
            head.resizeSection(column, 200)

    def fill(self, groups: Sequence[tuple[str, Sequence[tuple[str, ...]]]]) -> None:
        """Show `groups` of rows; empty ones are left out."""
        self.clear()
        for title, rows in groups:
            if not rows:
                continue
            top = QTreeWidgetItem([title])
            for row in rows:
                item = QTreeWidgetItem(list(row))
                item.setToolTip(len(row) - 1, tip(row[-1]))
                top.addChild(item)
            self.addTopLevelItem(top)
            top.setFirstColumnSpanned(True)
        self.expandAll()


class RunPages(QWidget):
    """Tabs on the selected run or runs."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.title = words("", "title")
        self.report_path = ""
        self.report = button("Report", "Open the report of this run in the browser", self._open)
        self.report.hide()
        self.trouble = words("", "alarm")
        self.trouble.hide()
        self.results = ResultsView(theme)
        self.log = QPlainTextEdit()
        self.log.setReadOnly(True)
        self.log.setFont(code_font())
        self.log.setFrameShape(QFrame.Shape.NoFrame)
        self.log.setAccessibleName("Log of the run")
        self.facts = Facts(("What", "Value"), "Provenance of the run")
        self.compare = Facts(("What differs", "Older run", "Newer run"), "Comparison of two runs")
        self.origins = Facts(("Key", "Nominal", "In force", "Run", "Reason"), "Patches in force")
        self.origins.setRootIsDecorated(False)
        self.patch_words = words("", "faint")
        self.undo = button(
            "Undo newest patch", "Take it off and restart the twin (patch.undo)", int
        )
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        for page, name in (
            (self.results, "Results"),
            (self.log, "Log"),
            (self.facts, "Provenance"),
            (self.compare, "Compare"),
            (self._patches(), "Scene's patches"),
        ):
            self.tabs.addTab(page, name)
        box = QVBoxLayout(self)
        box.setContentsMargins(GRID, GRID // 2, 0, 0)
        box.setSpacing(2)
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.report, 0, Qt.AlignmentFlag.AlignTop)
        box.addLayout(top)
        box.addWidget(self.trouble)
        box.addWidget(self.tabs, 1)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.results.restyle(theme)

    def show_nothing(self, text: str) -> None:
        """Say `text` in place of a run."""
        self.title.setText(text)
        self.trouble.hide()
        self.report.hide()
        self.results.clear()
        self.log.clear()
        self.facts.clear()
        self.compare.clear()
        self.tabs.setTabEnabled(3, False)

    def show_run(self, shown: RunShown) -> None:
        """Show one run."""
        run = shown.run
        self.title.setText(f"{run.spec.title or run.spec.plugin}, {run.state}, {run.id}")
        self._say(run.error or shown.problem)
        self.results.show_results(
            shown.results, promotable=run.state == "done", calibration=shown.calibration
        )
        self.report_path = shown.report
        self.report.setVisible(bool(shown.report))
        self.log.setPlainText(shown.log if not run.trace else f"{shown.log}\n{run.trace}")
        self.facts.fill(list(facts(run)))
        self.compare.clear()
        self._leave_comparison(3, enabled=False)

    def show_comparison(self, found: Comparison) -> None:
        """Show what two runs differ in, side by side."""
        self.show_nothing(f"{found.one} and {found.other}")
        parts = (
            ("Parameters", found.params),
            ("Versions and inputs", found.environment),
            ("Results", found.results),
        )
        groups = [
            (
                f"{title}: {len(differences) or 'no'} difference{'s' * (len(differences) != 1)}",
                [
                    (d.name, value_text(d.one), value_text(d.other))
                    for d in differences[:_MOST_DIFFERENCES]
                ]
                or [("the same", "", "")],
            )
            for title, differences in parts
        ]
        self.compare.fill(groups)
        self.tabs.setTabEnabled(3, True)
        self.tabs.setCurrentIndex(3)

    def show_origins(self, origins: Sequence[Origin], *, show: bool) -> None:
        """Show the patched values of the scene; show: come to the front with them."""
        self.origins.clear()
        for origin in origins:
            texts = (value_text(origin.nominal), value_text(origin.value), origin.run)
            item = QTreeWidgetItem([origin.key, *texts, origin.reason])
            item.setToolTip(4, tip(origin.reason))
            for column, text in enumerate(texts, 1):
                item.setToolTip(column, tip(text))
            self.origins.addTopLevelItem(item)
        for column in range(4):
            self.origins.resizeColumnToContents(column)
            if self.origins.columnWidth(column) > _WIDEST:
                self.origins.setColumnWidth(column, _WIDEST)
        some = bool(origins)
        self.undo.setEnabled(some)
        self.patch_words.setText(
            "Values in SI. A patch lies beside the scene, which stays as it was written."
            if some
            else "No patch is in force; promote one from the results of a calibration."
        )
        if show:
            self.tabs.setCurrentIndex(4)

    def refuse_origins(self, text: str) -> None:
        """Say why the patches cannot be told."""
        self.origins.clear()
        self.undo.setEnabled(True)
        self.patch_words.setText(text)

    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self.report_path))

    def _say(self, text: str) -> None:
        self.trouble.setText(text)
        self.trouble.setVisible(bool(text))

    def _leave_comparison(self, tab: int, *, enabled: bool) -> None:
        if self.tabs.currentIndex() == tab:
            self.tabs.setCurrentIndex(0)
        self.tabs.setTabEnabled(tab, enabled)

    def _patches(self) -> QWidget:
        row = QHBoxLayout()
        row.addWidget(self.undo, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.patch_words, 1)
        page = QWidget()
        box = QVBoxLayout(page)
        box.setContentsMargins(0, GRID // 2, 0, 0)
        box.addWidget(self.origins, 1)
        box.addLayout(row)
        return page


def facts(run: Run) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What a run was made from, in groups."""
    spec = run.spec
    times = (("created", run.created), ("started", run.started), ("ended", run.ended))
    yield (
        "Run",
        [
            ("id", run.id),
            ("plugin", f"{spec.plugin} {spec.version}".strip()),
            ("state", run.state),
            ("by", f"{run.who} on {run.host}"),
            *((name, f"{t.astimezone():%Y-%m-%d %H:%M:%S}") for name, t in times if t is not None),
            *((f"{state} for", fmt.figure(s, "s")) for state, s in run.durations.items()),
            *((("reproduces", run.of),) if run.of else ()),
        ],
    )
    given = [("seed", str(spec.seed))]
    if spec.kind == "randomizer":
        given.append(("draws", str(spec.draws)))
    yield "Parameters (SI)", given + [(k, value_text(v)) for k, v in spec.params.items()]
    yield "Inputs", [(k, f"{i.path}, SHA-256 {i.digest[:16]}") for k, i in spec.inputs.items()]
    if run.state in ENDED or run.provenance is not None:
        scene = [("scene file", spec.scene)] if spec.scene else []
        yield "Versions and hashes", scene + [(k, v) for k, v in environment(run).items() if v]
    yield "Notes", [("", note) for note in run.notes]
