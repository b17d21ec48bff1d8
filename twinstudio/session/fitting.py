"""What a person asks of a fit, turned into a job: short names, logs by slot."""

from collections.abc import Mapping, Sequence
from typing import Any

from twinstudio.jobs.spec import HELD_OUT
from twinstudio.model.errors import JobError, PluginError
from twinstudio.plugin.catalog import Catalog, Entry
from twinstudio.plugin.slots import MAPPING, Slots, in_words, slot_of

KIND = "calibrator"


def calibrator(catalog: Catalog, name: str) -> Entry:
    """The calibrator with the id `name`, or whose id ends in ``.name``.

    Raises PluginError, listing what there is, where none or several are meant.
    """
    known = [entry for entry in catalog.entries() if entry.kind == KIND]
    exact = [entry for entry in known if entry.id == name]
    found = exact or [entry for entry in known if entry.id.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    several = found or known
    ids = ", ".join(entry.id for entry in several) or "none; plugins list shows what is installed"
    what = "several calibrators are" if found else "no calibrator is"
    raise PluginError(f"{what} called '{name}'", hint=f"there are: {ids}")


def inputs_of(logs: Sequence[str], validate: Sequence[str], slots: Slots) -> dict[str, str]:
    """Name -> path of the logs to solve with and of those to validate on.

    logs: ``PATH`` or ``NAME=PATH``, where NAME fits one of `slots`; paths without a
    name become ``log``, ``log_2`` and so on, or take the first slot where there is no
    ``log``. validate: the same for ``held_out``. Raises JobError for a name twice, or
    for logs to validate on where the calibrator takes none.
    """
    inputs: dict[str, str] = {}
    names = [slot.name for slot in slots if slot.name != HELD_OUT]
    first = "log" if "log" in names or not names else names[0]
    for given in logs:
        _add(inputs, given, first, slots)
    if validate and HELD_OUT not in [slot.name for slot in slots]:
        raise JobError("this calibrator takes no log to validate on", hint=in_words(slots))
    for given in validate:
        _add(inputs, given, HELD_OUT, slots)
    return inputs


def _add(inputs: dict[str, str], given: str, default: str, slots: Slots) -> None:
    name, equals, path = given.partition("=")
    if not (equals and path and _is_name(name, slots)):
        name, path = _free(default, inputs), given
    if name in inputs:
        raise JobError(f"input '{name}' is given twice", hint=f"call one {_free(name, inputs)}")
    inputs[name] = path


def _is_name(name: str, slots: Slots) -> bool:
    """Whether `name` before an equals sign names an input, rather than being part of a path."""
    base, _, mapping = name.partition(".")
    own = slot_of(base, slots) is not None and mapping in ("", MAPPING)
    return own or name == MAPPING


def _free(name: str, taken: Mapping[str, Any]) -> str:
    if name not in taken:
        return name
    return next(f"{name}_{k}" for k in range(2, len(taken) + 3) if f"{name}_{k}" not in taken)
