"""One control a parameter. A control hands on what was typed; core says whether it will do."""

import json
import secrets
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QToolButton,
    QWidget,
)

from twinstudio.gui.theme import GRID, number_font
from twinstudio.model.errors import QuantityError
from twinstudio.model.params import Field
from twinstudio.model.quantity import from_si, to_si, unit
from twinstudio.session.places import places

_NEW_SEEDS = 1_000_000


class Unset:
    """Nothing was given for a parameter."""


UNSET = Unset()


class Editor(QWidget):
    """The control of one parameter.

    changed: another value. Subclasses say what was `given` and `show_value` one.
    """

    changed = Signal()

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        self.row.setSpacing(GRID // 2)
        self.row.setAlignment(Qt.AlignmentFlag.AlignLeft)

    def given(self) -> Any:
        """The value as core takes it, or UNSET."""
        raise NotImplementedError

    def show_value(self, value: Any) -> None:
        """Show `value`, plain data in SI; None is nothing yet."""
        raise NotImplementedError

    def shown_unit(self) -> str:
        """The unit in which bounds are to be told."""
        return self.field.unit.split("|")[0]

    def _add(self, widget: QWidget, stretch: int = 0) -> None:
        widget.setAccessibleName(self.field.name)
        self.row.addWidget(widget, stretch)


class TextEditor(Editor):
    """A line of text; also for integers, lists and whatever else is plain data."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self._shown: tuple[str, Any] = ("", UNSET)
        self.line = QLineEdit()
        self.line.textChanged.connect(lambda _text: self.changed.emit())
        self.setFocusProxy(self.line)
        self._add(self.line, 1)
        if field.kind == "list":
            self.line.setPlaceholderText("separated by commas")

    def given(self) -> Any:
        """The exact value that was shown, unless the text was edited."""
        text = self.line.text()
        if text == self._shown[0] and self._shown[1] is not UNSET:
            return self._shown[1]
        if not text and (self.field.required or self.field.default is None):
            return UNSET
        if self.field.kind == "list":
            return _items(text, self.field.default)
        return text if self._is_text() else plain(text)

    def show_value(self, value: Any) -> None:
        """Lists with commas, other structures as JSON."""
        if value is None:
            text, value = "", UNSET
        elif isinstance(value, str):
            text = value
        elif isinstance(value, list | tuple) and all(
            isinstance(v, str | int | float) for v in value
        ):
            text, value = ", ".join(map(str, value)), list(value)
        else:
            text = _json(value)
        self._shown = (text, value)
        self.line.setText(text)

    def _is_text(self) -> bool:
        return self.field.kind == "text" and isinstance(self.field.default, str | None)


class NumberEditor(Editor):
    """A number and the unit it is given in."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self._shown: tuple[str, str, Any] = ("", "", UNSET)
        self.line = QLineEdit()
        self.line.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.line.setFont(number_font(self.font()))
        self.line.setMaximumWidth(14 * GRID)
        self.units = QComboBox()
        for name in field.units:
            self.units.addItem("–" if name == "1" else name, name)
        self.units.setCurrentIndex(max(self.units.findData(field.unit.split("|")[0]), 0))
        self._unit = self.unit()
        self.setFocusProxy(self.line)
        self._add(self.line, 1)
        self._add(self.units)
        self.units.setAccessibleName(f"Unit of {field.name}")
        self.units.setToolTip(f"Unit in which {field.name} is given")
        self.units.setVisible(len(field.units) > 1 or self._unit not in ("", "1"))
        self.line.textChanged.connect(lambda _text: self.changed.emit())
        self.units.currentIndexChanged.connect(lambda _index: self._convert())

    def unit(self) -> str:
        """The unit chosen, "" where there is none."""
        return str(self.units.currentData() or "")

    def shown_unit(self) -> str:
        """The unit chosen."""
        return self.unit()

    def given(self) -> Any:
        """The exact value that was shown, unless edited; else number and unit as text."""
        text, name = self.line.text(), self.unit()
        if (text, name) == self._shown[:2] and self._shown[2] is not UNSET:
            return self._shown[2]
        if not text.strip() and self.field.required:
            return UNSET
        return self._typed(name) if name else plain(text)

    def show_value(self, value: Any) -> None:
        """Show an SI number in the unit chosen; text such as ``25 mm`` as it stands."""
        number: Any = value
        if isinstance(value, str) and self.field.unit:
            try:
                number = to_si(value, self.field.unit)
            except QuantityError:
                number = value  # shown as it is; core will say what is wrong
        if value is None:
            text, number = "", UNSET
        elif isinstance(number, int | float) and not isinstance(number, bool):
            name = self.unit()
            text = f"{from_si(number, name) if name else number:.10g}"
        else:
            text = str(number)
        self._shown = (text, self.unit(), number)
        self.line.setText(text)
        self.changed.emit()

    def _typed(self, name: str) -> str:
        """The text with the unit `name`, unless it is more than a number.

        Then it has a unit of its own, or a fault that core will name.
        """
        text = self.line.text()
        return f"{text} {name}" if _is_number(text) or not text.strip() else text

    def _convert(self) -> None:
        """Show the same quantity in the unit chosen now, where that can be done."""
        before, self._unit = self._unit, self.unit()
        text, name, value = self._shown
        if (self.line.text(), before) == (text, name) and isinstance(value, int | float):
            quantity = value
        else:
            try:
                quantity = to_si(self._typed(before), before)
            except QuantityError:
                self.changed.emit()
                return
        if unit(before).kind == unit(self._unit).kind:
            self.show_value(quantity)
        self.changed.emit()


class FlagEditor(Editor):
    """Yes or no."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.box = QCheckBox()
        self.box.toggled.connect(lambda _on: self.changed.emit())
        self.setFocusProxy(self.box)
        self._add(self.box)

    def given(self) -> bool:
        """Whether it is ticked."""
        return self.box.isChecked()

    def show_value(self, value: Any) -> None:
        """Tick it or not."""
        self.box.setChecked(bool(value))


class ChoiceEditor(Editor):
    """One of several words."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.box = QComboBox()
        self.box.addItems(list(field.choices))
        self.box.currentIndexChanged.connect(lambda _index: self.changed.emit())
        self.setFocusProxy(self.box)
        self._add(self.box)

    def given(self) -> Any:
        """The word chosen; UNSET while none is."""
        if self.box.currentIndex() < 0:
            return UNSET
        text = self.box.currentText()
        return text if isinstance(self.field.default, str | None) else plain(text)

    def show_value(self, value: Any) -> None:
        """Choose it; a word that is no choice leaves none chosen."""
        self.box.setCurrentIndex(self.box.findText(str(value)))


class FileEditor(TextEditor):
    """A path, and a button that lets one choose it."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.line.setPlaceholderText("path of a recording")
        self.choose = QToolButton()
        self.choose.setText("Choose…")
        self.choose.setToolTip(f"Choose a file: {field.help}")
        self.choose.clicked.connect(lambda _checked: self._ask())
        self._add(self.choose)
        self.choose.setAccessibleName(f"Choose the file for {field.name}")

    def _ask(self) -> None:
        known = Path(self.line.text()).parent if self.line.text() else places()["recordings"]
        dialog = QFileDialog(
            self.window(), "Choose a recording", str(known), "Recordings (*.mcap);;All files (*)"
        )
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.line.setText)
        dialog.open()


class SeedEditor(TextEditor):
    """A whole number, and a button for a new one."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.line.setMaximumWidth(20 * GRID)
        self.new = QToolButton()
        self.new.setText("New")
        self.new.setToolTip("Another seed, drawn at random")
        self.new.clicked.connect(lambda _checked: self.draw())
        self._add(self.new)
        self.new.setAccessibleName("New seed")

    def draw(self) -> None:
        """Show a seed drawn at random; it stands in the run's record."""
        self.line.setText(str(secrets.randbelow(_NEW_SEEDS)))


def editor_of(field: Field) -> Editor:
    """The control that fits a parameter."""
    kinds: dict[str, type[Editor]] = {
        "number": NumberEditor,
        "flag": FlagEditor,
        "choice": ChoiceEditor,
    }
    return kinds.get(field.kind, TextEditor)(field)


def plain(text: str) -> Any:
    """`text` as the plain value that it writes down, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _items(text: str, default: Any) -> Any:
    if text.lstrip().startswith("["):
        return plain(text)
    worded = bool(default) and all(isinstance(item, str) for item in default)
    items = [part.strip() for part in text.split(",") if part.strip()]
    return items if worded else [plain(item) for item in items]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_flat(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str | int | float) for v in value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
