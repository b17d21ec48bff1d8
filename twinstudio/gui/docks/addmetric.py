"""The question which metric to add, and with which parameters."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.rows import words
from twinstudio.gui.forms.fields import Complaint, Fields
from twinstudio.gui.reader import Reader
from twinstudio.gui.theme import GRID, Theme
from twinstudio.model.params import Field, Params
from twinstudio.plugin.catalog import Entry

READING = "Plugins are being read…"
NONE = "There is no metric. Install a plugin with one, or write one: twinstudio plugins new."


class AddMetric(QDialog):
    """Which metric? It blocks nothing; what takes time is read beside the window."""

    def __init__(self, bridge: Bridge, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._theme = theme
        self._entries: tuple[Entry, ...] = ()
        self.reader = Reader(bridge.notices, self)
        self.fields: Fields | None = None
        self.setWindowTitle("Add metric")
        self.which = QComboBox()
        self.which.setAccessibleName("Metric")
        self.which.currentIndexChanged.connect(lambda _index: self._choose())
        self.about = words(READING, "faint")
        self.complaint = Complaint(theme)
        self.add = QPushButton("Add")
        self.add.setToolTip("Measure the sliding window with it (metric.add)")
        self.add.clicked.connect(lambda _on: self._submit())
        self.leave = QPushButton("Cancel")
        self.leave.setAutoDefault(False)
        self.add.setDefault(True)
        self.leave.clicked.connect(lambda _on: self.reject())
        self._build()

    def _build(self) -> None:
        self._place = QVBoxLayout()
        row = QHBoxLayout()
        row.addStretch()
        row.addWidget(self.leave)
        row.addWidget(self.add)
        box = QVBoxLayout(self)
        box.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        box.setSpacing(GRID)
        box.addWidget(self.which)
        box.addWidget(self.about)
        box.addLayout(self._place)
        box.addWidget(self.complaint)
        box.addLayout(row)
        self.setMinimumWidth(72 * GRID)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self.complaint.restyle(theme)
        if self.fields is not None:
            self.fields.restyle(theme)

    def ask(self) -> None:
        """Open, with the metrics that there are now."""
        self.complaint.say("")
        self.add.setEnabled(False)
        self.about.setText(READING)
        self.which.hide()
        self._drop_fields()
        self.open()
        shop = self._bridge.session.workshop
        self.reader.ask("metrics", shop.plugins, self._take, self._refused)

    def _take(self, entries: tuple[Entry, ...]) -> None:
        self._entries = tuple(e for e in entries if e.kind == "metric" and e.state != "disabled")
        blocked = self.which.blockSignals(True)
        self.which.clear()
        for entry in self._entries:
            failed = " (failed before)" if entry.state == "failed" else ""
            self.which.addItem(f"{entry.title or entry.id}{failed}", entry.id)
        self.which.blockSignals(blocked)
        self.which.setVisible(bool(self._entries))
        self.which.setFocus()
        if self._entries:
            self._choose()
        else:
            self.about.setText(NONE)

    def _choose(self) -> None:
        """Show help and parameters of the metric that is picked; imports it."""
        entry = self._entries[self.which.currentIndex()]
        shop, plugin = self._bridge.session.workshop, entry.id
        self.about.setText("\n".join(filter(None, (entry.help, f"{plugin} {entry.version}"))))
        self.complaint.say("")
        self.add.setEnabled(False)
        self._drop_fields()

        def read() -> tuple[type[Params], list[Field]]:
            found = shop.fields(plugin)
            return shop.catalog.load(plugin).params, found

        self.reader.ask("fields", read, self._show_fields, self._refused)

    def _show_fields(self, found: tuple[type[Params], list[Field]]) -> None:
        self.fields = Fields(*found, self._theme)
        self.fields.changed.connect(self._check)
        self._place.addWidget(self.fields)
        self._check()
        self._fit()

    def _fit(self) -> None:
        """As high as its texts, which wrap, need to be."""
        box = self.layout()
        assert box is not None
        box.activate()
        self.resize(self.width(), max(box.totalHeightForWidth(self.width()), self.minimumHeight()))

    def _drop_fields(self) -> None:
        if self.fields is not None:
            self._place.removeWidget(self.fields)
            self.fields.hide()
            self.fields.deleteLater()
            self.fields = None

    def _check(self) -> None:
        assert self.fields is not None
        fine, text = self.fields.check()
        self.complaint.say(text)
        self.add.setEnabled(fine)

    def _submit(self) -> None:
        if self.fields is None:
            return
        self.add.setEnabled(False)
        self.complaint.say("")
        plugin, given = self.which.currentData(), self.fields.given()
        future = self._bridge.runner.run("metric.add", plugin=plugin, params=given)
        self.reader.follow(future, lambda _key: self.accept(), self._refused)

    def _refused(self, text: str) -> None:
        self.complaint.say(text)
        self.add.setEnabled(self.fields is not None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter adds, as soon as it can be added."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.add.isEnabled():
                self._submit()
        else:
            super().keyPressEvent(event)
