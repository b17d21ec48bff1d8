"""Jobs of this session: the queue, how far each is, and what the failed ones said last."""

from datetime import UTC, datetime

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.empty import Empty
from twinstudio.gui.docks.rows import PROGRESS, Column, Panel, Rows, RowTable, button, words
from twinstudio.gui.theme import GRID, Theme
from twinstudio.jobs.job import JobView

_BAR = 2


class ProgressBar(QStyledItemDelegate):
    """A bar with its percentage written over it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        """The bar, then the cell's text."""
        fraction = index.data(PROGRESS)
        area: QRect = option.rect.adjusted(4, 4, -4, -4)
        painter.save()
        painter.fillRect(area, QColor(self.theme.raised))
        done = QRect(area)
        done.setWidth(round(area.width() * min(max(float(fraction or 0.0), 0.0), 1.0)))
        bar = QRect(done.left(), done.bottom() - _BAR, done.width(), _BAR + 1)
        painter.fillRect(done, QColor(self.theme.line))
        painter.fillRect(bar, QColor(self.theme.accent))
        painter.setPen(QColor(self.theme.text))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, index.data())
        painter.restore()


class JobsDock(Panel):
    """A row a job in order of the queue.

    run_wanted: id of the run to show. plugins_wanted: the empty panel's button.
    """

    run_wanted = Signal(str)
    plugins_wanted = Signal()

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        super().__init__()
        self._bridge = bridge
        self._places: dict[str, str] = {}
        self.model = Rows(self._columns(), lambda job: job.id, theme)
        self.table = RowTable(self.model, "Jobs")
        self._bar = ProgressBar(theme)
        self.table.setItemDelegateForColumn(3, self._bar)
        self.table.picked.connect(self._show_picked)
        self.table.opened.connect(self._open)
        self.said = words()
        self.cancel = button("Cancel", "End the selected job (job.cancel)", self._cancel)
        self.open = button("Show run", "Results, log and provenance of the run", self._open)
        self.empty = Empty(
            "No job yet", "A plugin that is run appears here, with its progress until it has ended."
        )
        self.empty.offer("Choose a plugin…", "Show the plugins", self.plugins_wanted.emit)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self._page())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.pages)
        self._show_picked()
        bridge.add(self, self.refresh, every=6)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._bar.theme = theme
        self.model.restyle(theme)
        self.table.viewport().update()

    def seen(self) -> None:
        """Show how the jobs stand now."""
        self.refresh()

    def refresh(self, frame: Frame | None = None) -> None:
        """Show how the jobs stand; called a few times a second while it can be seen."""
        if frame is not None and not self.in_sight:
            return
        jobs = self._bridge.session.workshop.jobs()
        waiting = [job.id for job in jobs if job.state == "queued"]
        self._places = {name: f"next {k}" for k, name in enumerate(waiting, start=1)}
        self.pages.setCurrentIndex(1 if jobs else 0)
        self.table.take(jobs)
        self._show_picked()

    def select(self, run: str) -> None:
        """Select the job that makes `run`."""
        self.refresh()
        self.table.select((run,))

    def _columns(self) -> tuple[Column, ...]:
        return (
            Column("Queue", lambda job: self._places.get(job.id, ""), 64),
            Column("Job", lambda job: job.title, 200, tip=lambda job: f"{job.title}, {job.id}"),
            Column("State", lambda job: job.state, 104, mark=lambda job: job.state),
            Column("Progress", progress_text, 128, progress=lambda job: job.progress),
            Column("Elapsed", elapsed_text, 80, right=True),
            Column("Left", left_text, 80, right=True),
            Column("Message", last_words),
        )

    def _page(self) -> QWidget:
        row = QHBoxLayout()
        row.setContentsMargins(GRID, 2, GRID, 2)
        row.setSpacing(GRID)
        for one in (self.cancel, self.open):
            row.addWidget(one, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.said, 1)
        page = QWidget()
        box = QVBoxLayout(page)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.table, 1)
        box.addLayout(row)
        return page

    def _chosen(self) -> JobView | None:
        chosen = self.table.chosen()
        return chosen[0] if chosen else None

    def _show_picked(self) -> None:
        job = self._chosen()
        self.cancel.setEnabled(job is not None and not job.over)
        self.open.setEnabled(job is not None and job.over)
        text = "Select a job" if job is None else last_words(job)
        if text != self.said.text():
            self.said.setText(text)

    def _cancel(self) -> None:
        job = self._chosen()
        if job is not None:
            self._bridge.runner.run("job.cancel", run=job.id)

    def _open(self) -> None:
        job = self._chosen()
        if job is not None:
            self.run_wanted.emit(job.id)


def progress_text(job: JobView) -> str:
    """The share that is done, in whole percent."""
    return f"{job.progress * 100:.0f}\u00a0%"


def elapsed_text(job: JobView) -> str:
    """From start to end, or to now."""
    if job.started is None:
        return fmt.NOTHING
    return fmt.clock(((job.ended or datetime.now(UTC)) - job.started).total_seconds())


def left_text(job: JobView) -> str:
    """The estimate of the time left, roughly as exact as it is."""
    if job.left is None:
        return fmt.NOTHING
    if job.left < 60:
        return f"≈ {max(round(job.left), 1)}\u00a0s"
    return f"≈ {fmt.clock(round(job.left))}"


def last_words(job: JobView) -> str:
    """Why it failed or was cancelled, else what it says it is doing."""
    return job.error or ("" if job.state == "done" else job.message)
