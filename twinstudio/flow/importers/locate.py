"""Which file is meant: one is never chosen silently among several."""

from dataclasses import dataclass
from pathlib import Path

from twinstudio.model.errors import LogError

SHOWN = 30


@dataclass(frozen=True)
class Found:
    """The log to read; `note` says how it was chosen, empty when it was named."""

    path: Path
    note: str = ""


def existing(source: Path) -> Path:
    """`source` itself; raises LogError when there is nothing there."""
    if not source.exists():
        raise LogError("no such file or folder", where=str(source))
    return source


def one_file(source: Path, pattern: str, default: str = "") -> Found:
    """The file `source`, or the one file in the folder that fits `pattern`.

    pattern: a glob below the folder. default: a path below the folder to take
    when it is there and others are too; the choice is said in the note.
    Raises LogError listing the logs when several could be meant.
    """
    existing(source)
    if source.is_file():
        return Found(source)
    logs = sorted(path for path in source.glob(pattern) if path.is_file())
    return choose(source, logs, default)


def choose(source: Path, logs: list[Path], default: str) -> Found:
    """One of `logs` below the folder `source`: the only one, or the default."""
    if not logs:
        inside = ", ".join(sorted(p.name for p in source.iterdir())[:SHOWN]) or "nothing"
        raise LogError("holds no log of this format", where=str(source), hint=f"it has {inside}")
    if len(logs) == 1:
        return Found(logs[0], f"took {_name(source, logs[0])}, the only log in the folder")
    if default and source / default in logs:
        return Found(
            source / default,
            f"took {default}, the default of this data set, of {len(logs)} logs there;"
            " name the path of another to import that",
        )
    names = [_name(source, path) for path in logs]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    raise LogError(
        f"holds {len(logs)} logs and one must be named",
        where=str(source),
        hint=f"choose from {', '.join(names[:SHOWN])}{more}",
    )


def _name(source: Path, path: Path) -> str:
    return path.relative_to(source).as_posix()
