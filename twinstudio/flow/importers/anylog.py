"""Any log as a recording in memory: one of Twinstudio, or whatever `import_log` reads."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinstudio.flow.importers.convert import FORMATS, MAPPED, read_log
from twinstudio.flow.importers.log import ImportedLog, ImportedSource
from twinstudio.flow.importers.report import report_of
from twinstudio.flow.importers.ros import is_ours
from twinstudio.flow.importers.sniff import looks_like
from twinstudio.flow.record import RecordedSource, Recording, Stretch, read_recording
from twinstudio.model.block import Block
from twinstudio.model.errors import LogError

RECORDING = "recording"
"""The format of Twinstudio's own files."""


@dataclass(frozen=True, slots=True, eq=False)
class AnyLog:
    """A log that was read.

    format: one of `FORMATS`, or `RECORDING`. files: all that were read. notes:
    decisions of the importer. Defects are in `recording.problems`.
    """

    format: str
    recording: Recording
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def read_any(path: Path, *, format: str = "", mapping: Path | None = None) -> AnyLog:  # noqa: A002
    """The log at `path`, a file or a folder.

    format: one of `FORMATS`; "" recognises it by content. mapping: what the columns
    mean, for csv and mat alone. Raises LogError where the format cannot be told,
    and whatever `read_log` and `read_recording` raise.
    """
    if not path.exists():
        raise LogError("there is no such log", where=str(path))
    chosen = format or format_of(path)
    if chosen in ("mcap", RECORDING) and path.is_file() and is_ours(path):
        recording = read_recording(path)
        return AnyLog(RECORDING, recording, (path,))
    log = read_log(chosen, path, mapping=mapping if chosen in MAPPED else None)
    report = report_of(chosen, path, path, log)
    sources = {name: _recorded(name, source) for name, source in log.sources.items()}
    recording = Recording(path=path, sources=sources, problems=report.problems)
    return AnyLog(chosen, recording, _files(log), report.notes)


def format_of(path: Path) -> str:
    """The one format that the content of `path` fits; raises LogError for none or several.

    A folder is what its files are, at any depth.
    """
    found = looks_like(path)
    if not found and path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        seen = {looks_like(file) for file in files} - {""}
        # Tables of words, such as a licence, may pass for a csv beside the log itself.
        kinds = sorted(seen - {"csv"} or seen)
        if len(kinds) > 1:
            raise LogError(
                f"holds logs of {', '.join(kinds)}",
                where=str(path),
                hint=f"name the log itself, or its format, e.g. {kinds[0]}:{path}",
            )
        found = kinds[0] if kinds else ""
    if not found:
        raise LogError(
            "is no log that can be recognised",
            where=str(path),
            hint=f"write FORMAT:PATH with one of {', '.join(FORMATS)}",
        )
    return found


def cell_in(log: AnyLog) -> Block:
    """Samples of the cell: the source ``cell``, or the only one whose role that is.

    Raises LogError where it cannot be told, or has no samples.
    """
    sources = log.recording.sources
    cells = [name for name, source in sources.items() if source.role == "cell"]
    if "cell" not in sources and len(cells) != 1:
        raise LogError(
            "does not tell which of its sources is the cell",
            where=str(log.recording.path),
            hint=f"it has {', '.join(sources) or 'none'}; one must be called 'cell'",
        )
    block = sources["cell" if "cell" in sources else cells[0]].block
    if not len(block):
        raise LogError("holds no samples of the cell", where=str(log.recording.path))
    return block


def _recorded(name: str, source: ImportedSource) -> RecordedSource:
    stretch = Stretch(source.block, np.arange(len(source.block), dtype=np.int64), None)
    return RecordedSource(
        role=source.role, name=name, rate=source.rate, layout=source.layout, stretches=(stretch,)
    )


def _files(log: ImportedLog) -> tuple[Path, ...]:
    return tuple(log.files)
