"""Inputs that a run keeps a copy of: taken along by an export, used by a reproduction."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from twinstudio.jobs.spec import Input
from twinstudio.model.errors import JobError
from twinstudio.model.provenance import digest

FOLDER = "inputs"
_NAME = re.compile(r"^[a-z][A-Za-z0-9_.]*\Z", re.ASCII)


def parts_of(inputs: Mapping[str, Input], run: Path) -> dict[str, Path]:
    """Name in a zip -> file, for all of `inputs`: ``inputs/NAME/FILE``.

    run: folder of the run, whose own copies are taken if it has them. Raises
    JobError for an input that is gone or is not what the run read.
    """
    parts: dict[str, Path] = {}
    for name, given in inputs.items():
        path = source_of(name, given, run)
        if not path.exists():
            raise JobError(f"input '{name}' is gone: {path}", hint="export without the inputs")
        if digest(path) != given.digest:
            raise JobError(
                f"input '{name}' is not what the run read: {path}",
                hint="export without the inputs",
            )
        files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
        for file in sorted(files):
            parts[f"{FOLDER}/{name}/{file.relative_to(path.parent).as_posix()}"] = file
    return parts


def is_part(name: str) -> bool:
    """Whether `name` in a zip may be a file of an input; never one that leaves its folder."""
    words = name.split("/")
    if len(words) < 3 or words[0] != FOLDER or not _NAME.match(words[1]):
        return False
    odd = any(word in ("", ".", "..") or "\\" in word or "\0" in word for word in words)
    return not odd and not PurePosixPath(name).is_absolute()


def kept(name: str, run: Path) -> Path | None:
    """The copy of the input `name` in the run folder `run`, None if there is none."""
    folder = run / FOLDER / name
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return found[0] if found else None


def source_of(name: str, given: Input, run: Path) -> Path:
    """Where the input is to be read from: the run's copy, or the path it was given by."""
    return kept(name, run) or Path(given.path)


def check_kept(inputs: Mapping[str, Input], run: Path) -> None:
    """Raise JobError for a copy in the run folder `run` that is not what the run read."""
    folder = run / FOLDER
    known = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    strange = sorted(known - set(inputs))
    if strange:
        raise JobError(f"it brings an input '{strange[0]}' that the run did not read")
    for name in sorted(known):
        if len(list((folder / name).iterdir())) != 1:
            raise JobError(f"it brings several files for input '{name}'")
        copy = kept(name, run)
        if copy is None or digest(copy) != inputs[name].digest:
            raise JobError(f"its copy of input '{name}' is not what the run read")
