"""The rows of a form: name, control, help with bounds, and what core says underneath."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QWidget

from twinstudio.gui.docks.rows import tip, words
from twinstudio.gui.forms.checking import has_own_check, own_complaint, problems, without_own_check
from twinstudio.gui.forms.editors import UNSET, Editor, editor_of
from twinstudio.gui.icons import icon
from twinstudio.gui.theme import GRID, Theme
from twinstudio.model.params import Field, Params
from twinstudio.model.quantity import from_si, unit
from twinstudio.model.words import one_line

_ICON = 12


_SHORT, _LONG = 100, 300


class Complaint(QWidget):
    """A cross and words that say what is wrong; hidden while nothing is.

    They are kept short; all of what was said is the tooltip.
    """

    def __init__(self, theme: Theme, *, brief: bool = True) -> None:
        """brief: only what is wrong, without the advice that follows."""
        super().__init__()
        self._brief = brief
        self._mark = QLabel()
        self.text = words(role="alarm")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GRID // 2)
        row.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.text, 1)
        self.restyle(theme)
        self.hide()

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._mark.setPixmap(icon("cross", theme.alarm).pixmap(_ICON, _ICON))

    def say(self, text: str) -> None:
        """Say `text`; nothing hides it."""
        short = text.partition("; ")[0] if self._brief else text
        self.text.setText(one_line(short, _SHORT if self._brief else _LONG))
        self.setToolTip(tip(text) if text != self.text.text() else "")
        self.setVisible(bool(text))


class Fields(QWidget):
    """A control for each parameter of `kind`.

    changed: a value was edited. `complaints` hold what core says, by parameter.
    """

    changed = Signal()

    def __init__(
        self,
        kind: type[Params],
        fields: list[Field],
        theme: Theme,
        special: Mapping[str, Callable[[Field], Editor]] | None = None,
    ) -> None:
        """special: controls of parameters that need another than their type says."""
        super().__init__()
        self._own = kind if has_own_check(kind) else None
        self._kind = without_own_check(kind)
        self._fields = fields
        self.editors: dict[str, Editor] = {}
        self.complaints: dict[str, Complaint] = {}
        self.bounds: dict[str, QLabel] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(2 * GRID)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(2, 1)
        for k, field in enumerate(fields):
            make = (special or {}).get(field.name, editor_of)
            self._add(2 * k, field, make(field), Complaint(theme))
        self.restore()

    def _add(self, row: int, field: Field, editor: Editor, complaint: Complaint) -> None:
        name = QLabel(field.name.replace("_", " ") + (" *" if field.required else ""))
        name.setTextFormat(Qt.TextFormat.PlainText)
        name.setBuddy(editor)
        bounds = words(role="faint")
        for widget in (name, editor, bounds):
            widget.setToolTip(tip(field.help + (" (required)" if field.required else "")))
        editor.setMinimumWidth(22 * GRID)
        editor.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._grid.addWidget(name, row, 0)
        self._grid.addWidget(editor, row, 1)
        self._grid.addWidget(bounds, row, 2)
        self._grid.addWidget(complaint, row + 1, 1, 1, 2)
        self.editors[field.name] = editor
        self.complaints[field.name] = complaint
        self.bounds[field.name] = bounds
        editor.changed.connect(lambda: self._edited(field))

    def _edited(self, field: Field) -> None:
        self.bounds[field.name].setText(explained(field, self.editors[field.name].shown_unit()))
        self.changed.emit()

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        for complaint in self.complaints.values():
            complaint.restyle(theme)

    def restore(self) -> None:
        """Show the defaults; what is required is empty."""
        blocked = self.blockSignals(True)  # one check will do
        for field in self._fields:
            self.editors[field.name].show_value(field.default)
            self._edited(field)
        self.blockSignals(blocked)
        self.changed.emit()

    def show_values(self, values: Mapping[str, Any]) -> list[str]:
        """Show `values`, plain data in SI; returns the names that there are no controls for."""
        blocked = self.blockSignals(True)
        for name in values.keys() & self.editors.keys():
            self.editors[name].show_value(values[name])
        self.blockSignals(blocked)
        self.changed.emit()
        return sorted(values.keys() - self.editors.keys())

    def given(self) -> dict[str, Any]:
        """What is in the controls, as core takes it; what was left empty is absent."""
        pairs = ((name, editor.given()) for name, editor in self.editors.items())
        return {name: value for name, value in pairs if value is not UNSET}

    def check(self) -> tuple[bool, str]:
        """Ask core, and say under each control what it answers.

        Returns whether all is well, and what concerns no single control.
        """
        found = problems(self._kind, self.given())
        for name, complaint in self.complaints.items():
            complaint.say(found.get(name, ""))
        rest = [text for name, text in found.items() if name not in self.complaints]
        return not found, "; ".join(rest)

    def own_check(self) -> Callable[[], str] | None:
        """The check of the plugin's author on what is given now, None where there is none.

        It is a stranger's code and may take its time: keep it off the window's thread.
        It returns what is wrong.
        """
        return partial(own_complaint, self._own, self.given()) if self._own else None


def explained(field: Field, shown: str) -> str:
    """Help of a parameter, and its bounds in the unit `shown`."""
    low, high = (_bound(bound, field, shown) for bound in (field.low, field.high))
    name = "" if shown in ("", "1") else f"\u00a0{shown}"
    if low and high:
        span = f"{low} to {high}{name}"
    elif low or high:
        span = f"{low}{name} and more" if low else f"at most {high}{name}"
    else:
        return field.help
    return f"{field.help} ({span})"


def _bound(bound: float | None, field: Field, shown: str) -> str:
    if bound is None:
        return ""
    kinds = {unit(name).kind for name in field.unit.split("|") if name}
    if shown and unit(shown).kind in kinds:
        bound = from_si(bound, shown)
    return f"{bound:.6g}".replace("-", "−")
