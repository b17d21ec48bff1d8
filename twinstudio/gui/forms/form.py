"""The form that runs a plugin as a job."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from twinstudio.gui.docks.rows import Panel, button, words
from twinstudio.gui.forms.editors import SeedEditor
from twinstudio.gui.forms.fields import Complaint, Fields
from twinstudio.gui.forms.inputs import (
    inputs_of,
    options_of,
    run_editors,
    run_params,
    values_of,
)
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import GRID, Theme
from twinstudio.jobs.record import RunHead
from twinstudio.jobs.spec import JobSpec
from twinstudio.model.params import Field, Params, fields, make, plain
from twinstudio.plugin.catalog import Entry
from twinstudio.plugin.slots import InputSlot

RELOAD = "Reload from a run…"
_OWN = "the check of a plugin"
_SLOW_MS = 500


class FormSource(msgspec.Struct, frozen=True, kw_only=True):
    """What a form is made from. slots: inputs; runs: earlier ones, newest first."""

    entry: Entry
    kind: type[Params]
    fields: list[Field]
    slots: tuple[InputSlot, ...] = ()
    runs: tuple[RunHead, ...] = ()


class Form(Panel):
    """Parameters, seed and inputs of one plugin; `Run` is there once core finds no fault.

    submitted: the arguments of ``job.start``. reload_wanted: id of a run. left: no more.
    """

    submitted = Signal(dict)
    reload_wanted = Signal(str)
    left = Signal()

    def __init__(self, source: FormSource, theme: Theme, checker: Reader) -> None:
        """checker: makes the check that the plugin's author wrote, beside the window."""
        super().__init__()
        self._checker = checker
        self.source = source
        self._asked = run_params(source.entry.kind, source.slots)
        self.params = Fields(source.kind, source.fields, theme)
        self.rest = Fields(self._asked, fields(self._asked), theme, run_editors(source.slots))
        self.complaint = Complaint(theme, brief=False)
        self.said = words(role="faint")
        self.said.hide()
        self._slow = QTimer(self)
        self._slow.setSingleShot(True)
        self._slow.setInterval(_SLOW_MS)
        self._slow.timeout.connect(lambda: self.complaint.say("the plugin is still checking this"))
        self.run = QPushButton("Run")
        self.run.setToolTip("Queue the job (job.start)")
        self.run.clicked.connect(lambda _checked: self._submit())
        self.reload = self._reload_box(source.runs)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._scrolled(), 1)
        box.addLayout(self._footer())
        for part in (self.params, self.rest):
            part.changed.connect(self.check)
        self.new_seed()
        self.check()

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        for part in (self.params, self.rest, self.complaint):
            part.restyle(theme)

    def new_seed(self) -> None:
        """Draw another seed, which can be seen and edited."""
        seed = self.rest.editors["seed"]
        assert isinstance(seed, SeedEditor)
        seed.draw()

    def restore(self) -> None:
        """Show the defaults of the parameters; seed and inputs stay."""
        self.params.restore()
        self.tell("")

    def load(self, spec: JobSpec) -> None:
        """Show what a run was made with: parameters, seed, inputs and the like."""
        self.params.restore()
        unknown = self.params.show_values(spec.params)
        named = values_of(spec, self.source.slots)
        unknown += self.rest.show_values(named)
        lost = f"; this version has no {', '.join(unknown)}" if unknown else ""
        self.check()
        self.tell(f"Loaded from a run of {spec.plugin}{lost}")

    def check(self) -> None:
        """Ask core about every value; without a fault the job can be run."""
        fine, words_ = self.params.check()
        fine_too, more = self.rest.check()
        self.complaint.say("; ".join(filter(None, (words_, more))))
        own = self.params.own_check() if fine else None
        self.run.setEnabled(fine and fine_too and own is None)
        self._checker.forget(_OWN)
        self._slow.stop()
        if own is not None:
            self._slow.start()
            self._checker.ask(_OWN, own, lambda said: self._judged(said, more), self._judged)

    def _judged(self, said: str, more: str = "") -> None:
        """The check of the plugin's author has answered."""
        self._slow.stop()
        self.complaint.say("; ".join(filter(None, (said, more))))
        self.run.setEnabled(not said and not more and self.rest.check()[0])

    def refuse(self, text: str) -> None:
        """Say why the job was not queued."""
        self.tell("")
        self.complaint.say(text)
        self.run.setEnabled(True)

    def tell(self, text: str) -> None:
        """Say quietly what was done."""
        self.said.setText(text)
        self.said.setVisible(bool(text))

    def _submit(self) -> None:
        rest = plain(make(self._asked, self.rest.given()))  # a duration typed as "2 s" is a number
        inputs = inputs_of(rest, self.source.slots)
        self.complaint.say("")
        self.tell("Being queued…")
        self.run.setEnabled(False)
        self.submitted.emit(
            {
                "plugin": self.source.entry.id,
                "params": self.params.given(),
                "seed": rest["seed"],
                "inputs": inputs,
                **options_of(rest, inputs, self.source.slots),
            }
        )

    def _scrolled(self) -> QScrollArea:
        inner = QWidget()
        box = QVBoxLayout(inner)
        box.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        box.setSpacing(GRID)
        entry = self.source.entry
        box.addWidget(words(f"Run {entry.title or entry.id}", "title"))
        if self.source.fields:
            box.addWidget(self.params)
        else:
            box.addWidget(_faint("This plugin has no parameters of its own."))
        box.addWidget(_line())
        box.addWidget(self.rest)
        box.addStretch()
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setAccessibleName("Parameters")
        scroll.setWidget(inner)
        return scroll

    def _footer(self) -> QVBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(GRID)
        row.addWidget(self.run)
        row.addWidget(button("Defaults", "Restore the defaults of the parameters", self.restore))
        row.addWidget(self.reload)
        row.addStretch()
        row.addWidget(button("Back", "Back to what is known of the plugin", self.left.emit))
        box = QVBoxLayout()
        box.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        box.addWidget(self.complaint)
        box.addWidget(self.said)
        box.addLayout(row)
        return box

    def _reload_box(self, runs: Sequence[RunHead]) -> QComboBox:
        box = QComboBox()
        box.addItem(RELOAD if runs else "No earlier run")
        box.setEnabled(bool(runs))
        for head in runs:
            box.addItem(f"{head.created.astimezone():%d %b %H:%M:%S} {head.state}", head.id)
        box.setToolTip("Take parameters, seed and inputs from an earlier run of this plugin")
        box.setAccessibleName("Reload from a run")
        box.activated.connect(self._reload)
        return box

    def _reload(self, index: int) -> None:
        if index > 0:
            self.reload_wanted.emit(str(self.reload.itemData(index)))


def _faint(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "faint")
    return label


def _line() -> QFrame:
    line = QFrame()
    line.setFrameShape(QFrame.Shape.HLine)
    return line
