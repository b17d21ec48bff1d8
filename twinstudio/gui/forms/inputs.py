"""What a job needs beside the parameters of its plugin: seed, inputs, and what its kind asks."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from twinstudio.gui.forms.editors import Editor, FileEditor, SeedEditor
from twinstudio.jobs.spec import DEFAULT_SPLIT, HELD_OUT, SPLITS, JobSpec
from twinstudio.model.config import si
from twinstudio.model.params import Field, Params, about
from twinstudio.plugin.slots import MAPPING, InputSlot, Slots, belonging
from twinstudio.session.places import places

SEVERAL = ";"
"""Between the paths of a slot that takes several."""
Seed = Annotated[int, about("Of all random numbers; the same one gives the same run", low=0)]
Draws = Annotated[int, about("How many draws are made", low=1)]
Split = Annotated[
    float, si("1", low=0.0, high=1.0, about="Share of each log to solve with, the rest held out")
]
Duration = Annotated[float, si("s", low=0.0, about="How long; 0 until it is cancelled")]
_MAPPING = InputSlot(
    MAPPING, "What the columns of a csv or mat log mean (TOML)", required=False, kind="file"
)


def shown_slots(slots: Slots) -> tuple[InputSlot, ...]:
    """The slots that a form has rows for: those declared, and the mapping file of logs."""
    logs = any(slot.kind == "log" for slot in slots)
    return (*slots, _MAPPING) if logs else tuple(slots)


def run_params(kind: str, slots: Slots) -> type[Params]:
    """What a job of a plugin of `kind` is asked for, as a class of parameters."""
    fields: list[Any] = [("seed", Seed)]
    for slot in shown_slots(slots):
        more = f"; several with '{SEVERAL}' between them" if slot.several else ""
        text = Annotated[str, about(f"{slot.help}{more}")]
        fields.append((slot.name, text) if slot.required else (slot.name, text, ""))
    if kind == "randomizer":
        fields.append(("draws", Draws, 1))
    if kind == "bridge":
        fields.append(("duration", Duration, 0.0))
    if kind in SPLITS:
        fields.append(("split", Split, DEFAULT_SPLIT))
    made = msgspec.defstruct(
        f"{kind.title()}Run", fields, bases=(Params,), frozen=True, module=__name__
    )
    assert issubclass(made, Params)
    return made


def run_editors(slots: Slots) -> dict[str, Callable[[Field], Editor]]:
    """Controls of `run_params` that need another than their type says."""
    inputs = {slot.name: partial(InputEditor, slot=slot) for slot in shown_slots(slots)}
    return {"seed": SeedEditor, **inputs}


def inputs_of(rest: Mapping[str, Any], slots: Slots) -> dict[str, str]:
    """Name -> path of what was given; the second of a slot is ``NAME_2``."""
    found = {}
    for slot in shown_slots(slots):
        text = rest.get(slot.name) or ""
        paths = [p.strip() for p in text.split(SEVERAL)] if slot.several else [text]
        for k, path in enumerate(p for p in paths if p):
            found[slot.name if k == 0 else f"{slot.name}_{k + 1}"] = path
    return found


def options_of(rest: Mapping[str, Any], inputs: Mapping[str, str], slots: Slots) -> dict[str, Any]:
    """Arguments of ``job.start`` beside plugin, parameters, seed and inputs.

    rest: plain values of `run_params`, in SI.
    """
    options: dict[str, Any] = {"draws": rest.get("draws", 1)}
    if "split" in rest and not belonging(inputs, HELD_OUT, slots):
        options["split"] = rest["split"]
    if "duration" in rest:
        options["duration"] = rest["duration"]
    return options


def values_of(spec: JobSpec, slots: Slots) -> dict[str, Any]:
    """What the rows of a form show of a run."""
    values: dict[str, Any] = {"seed": spec.seed}
    values |= {"draws": spec.draws} if spec.kind == "randomizer" else {}
    values |= {"duration": spec.duration} if spec.kind == "bridge" else {}
    left = {name: given.given for name, given in spec.inputs.items()}
    for slot in shown_slots(slots):
        names = belonging(left, slot.name, shown_slots(slots))
        if names:
            values[slot.name] = SEVERAL.join(left.pop(name) for name in names)
    if spec.split is not None:
        values["split"] = spec.split
    return {**values, **left}


class InputEditor(FileEditor):
    """The path of an input, with a button that lets one choose it."""

    def __init__(self, field: Field, *, slot: InputSlot) -> None:
        super().__init__(field)
        self._slot = slot
        kind = "folder" if slot.kind == "folder" else "file"
        self.line.setPlaceholderText("file or folder" if slot.kind == "log" else kind)
        self.choose.setToolTip(f"Choose a {kind}: {field.help}")

    def _ask(self) -> None:
        first = self.line.text().partition(SEVERAL)[0]
        known = Path(first).parent if first else places()["recordings"]
        dialog = QFileDialog(self.window(), f"Choose {self._slot.name}", str(known))
        several = self._slot.several
        if self._slot.kind == "folder":
            dialog.setFileMode(QFileDialog.FileMode.Directory)
        elif several:
            dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        else:
            dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda paths: self.line.setText(SEVERAL.join(paths)))
        dialog.open()
