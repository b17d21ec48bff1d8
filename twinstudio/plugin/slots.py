"""The inputs of a plugin by name: which it declares, and whether what is given fits."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from twinstudio.model.errors import JobError, PluginError

NAME = re.compile(r"^[a-z][a-z0-9_]*\Z")
MORE = re.compile(r"^[A-Za-z0-9_]+\Z")
MAPPING = "mapping"
RESERVED = (MAPPING, "seed", "draws", "split", "duration")
"""Names that mean something else where a job is set up."""
Kind = Literal["log", "file", "folder"]


@dataclass(frozen=True, slots=True)
class InputSlot:
    """One input that a plugin reads.

    kind: *log* is whatever ``twinstudio import`` reads, a file or a folder; *file*
    and *folder* are what they say. several: ``NAME_2``, ``NAME_fast`` and the like
    may be given beside ``NAME``.
    """

    name: str
    help: str
    required: bool = True
    kind: Kind = "log"
    several: bool = False

    def takes(self, name: str) -> bool:
        """Whether an input called `name` belongs here."""
        rest = name.removeprefix(f"{self.name}_")
        return name == self.name or (self.several and rest != name and bool(MORE.match(rest)))


Slots = Sequence[InputSlot]


def slot_of(name: str, slots: Slots) -> InputSlot | None:
    """The slot that the input `name` belongs to; of several, the one with the longest name."""
    fitting = [slot for slot in slots if slot.takes(name)]
    return max(fitting, key=lambda slot: len(slot.name), default=None)


def belonging(names: Iterable[str], slot: str, slots: Slots) -> list[str]:
    """Those of the input `names` that belong to `slot`, in the order given."""
    return [n for n in names if (found := slot_of(n, slots)) is not None and found.name == slot]


def mapping_for(name: str, given: Iterable[str]) -> str:
    """The input that is the mapping file of the log `name`: its own, or that of all, or ""."""
    names = set(given)
    return next((m for m in (f"{name}.{MAPPING}", MAPPING) if m in names), "")


def check_inputs(given: Mapping[str, Path], slots: Slots, where: str) -> None:
    """Raise JobError, in one line, for an input that is unknown, missing or of the wrong kind."""
    for name, path in given.items():
        slot = slot_of(name, slots)
        if slot is None:
            if _is_mapping(name, given, slots):
                continue
            raise JobError(f"there is no input '{name}'", where=where, hint=in_words(slots))
        if slot.kind == "file" and path.is_dir():
            raise JobError(f"input '{name}' is a file, and {path} is a folder", where=where)
        if slot.kind == "folder" and path.is_file():
            raise JobError(f"input '{name}' is a folder, and {path} is a file", where=where)
    for slot in slots:
        if slot.required and not belonging(given, slot.name, slots):
            what = f"the input '{slot.name}' is missing ({slot.help})"
            raise JobError(what, where=where, hint=in_words(slots))


def in_words(slots: Slots) -> str:
    """What may be given, in one line."""
    if not slots:
        return "it takes no inputs"
    words = []
    for slot in slots:
        more = f", {slot.name}_2 ..." if slot.several else ""
        words.append(f"{slot.name}{more}" + ("" if slot.required else " (optional)"))
    return f"its inputs: {', '.join(words)}"


def problems(slots: object) -> list[str]:
    """What is wrong with `slots` as the ``inputs`` of a plugin class; [] if nothing is."""
    if not isinstance(slots, tuple) or not all(isinstance(slot, InputSlot) for slot in slots):
        return ["inputs must be a tuple of InputSlot"]
    names = [slot.name for slot in slots]
    found = [
        f"input '{name}': a name is lower-case words joined by '_', none of {', '.join(RESERVED)}"
        for name in names
        if not NAME.match(name) or name in RESERVED
    ]
    twice = sorted({name for name in names if names.count(name) > 1})
    found += [f"two inputs are called '{name}'" for name in twice]
    found += [f"input '{slot.name}' has no help" for slot in slots if not slot.help.strip()]
    return found


def declared(slots: object, where: str) -> tuple[InputSlot, ...]:
    """`slots` as they are declared; raises PluginError for a wrong declaration."""
    if found := problems(slots):
        raise PluginError(found[0], where=where)
    assert isinstance(slots, tuple)
    return slots


def _is_mapping(name: str, given: Iterable[str], slots: Slots) -> bool:
    """Whether `name` is a mapping file of a log that is given."""
    logs = [n for n in given if (slot := slot_of(n, slots)) is not None and slot.kind == "log"]
    return bool(logs) and (name == MAPPING or any(name == f"{log}.{MAPPING}" for log in logs))
