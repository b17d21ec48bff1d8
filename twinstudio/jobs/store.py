"""Runs on disk: a folder each, with the record, the log and the files of the results."""

import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import structs

from twinstudio.jobs import bundle, inputs, stored
from twinstudio.jobs.compare import Comparison, compared
from twinstudio.jobs.files import write_atomically
from twinstudio.jobs.record import (
    ENDED,
    FILE,
    FORMAT,
    LOG,
    VANISHED,
    Run,
    RunHead,
    SpecHead,
    State,
    now,
)
from twinstudio.model.errors import JobError
from twinstudio.model.results import Result
from twinstudio.model.words import is_printable, one_line

_ID = re.compile(r"^\d{8}-\d{6}-[0-9a-f]{6}\Z")
_run = msgspec.json.Decoder(Run)
_head = msgspec.json.Decoder(RunHead)
_MALFORMED = (msgspec.MsgspecError, RecursionError)
R = TypeVar("R", Run, RunHead)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted; an empty field lets all pass.

    text: part of id, title, plugin, user or error, in any case.
    """

    text: str = ""
    plugin: str = ""
    kind: str = ""
    state: State | None = None
    since: datetime | None = None

    def passes(self, head: RunHead) -> bool:
        """Whether `head` is wanted."""
        spec = head.spec
        words = f"{head.id} {spec.title} {spec.plugin} {head.who} {head.error}".lower()
        return (
            self.text.lower() in words
            and self.plugin in ("", spec.plugin)
            and self.kind in ("", spec.kind)
            and self.state in (None, head.state)
            and (self.since is None or head.created >= self.since)
        )


ALL = RunFilter()


class Store:
    """The runs in a folder, which is made when the first one is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def new_id(self) -> str:
        """An id that no run has: the time, and six random digits."""
        return f"{now().astimezone():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"

    def path(self, run: str) -> Path:
        """Folder of the run with id `run`, whether it is there or not."""
        if not _ID.match(run):
            raise JobError(f"'{run}' is no id of a run", hint="see: twinstudio runs list")
        return self.folder / run

    def list(self, wanted: RunFilter = ALL) -> tuple[RunHead, ...]:
        """Heads of the runs that are `wanted`, newest first.

        A record that cannot be read is listed as failed, with the reason.
        """
        if not self.folder.is_dir():
            return ()
        names = sorted((p.name for p in self.folder.iterdir() if _ID.match(p.name)), reverse=True)
        heads = (self._head(name) for name in names)
        return tuple(head for head in heads if wanted.passes(head))

    def load(self, run: str) -> Run:
        """The record of a run; raises JobError if there is none or it cannot be read."""
        path = self.path(run) / FILE
        if not path.is_file():
            raise JobError(f"there is no run '{run}' in {self.folder}")
        return _as_seen(read_run(path))

    def results(self, run: str) -> tuple[Result, ...]:
        """Results of a run, exactly as they were returned; raises JobError."""
        return stored.read(self.path(run), self.load(run).stored)

    def log(self, run: str) -> str:
        """What the run printed and logged."""
        path = self.path(run) / LOG
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def save(self, run: Run, *, durable: bool = True) -> None:
        """Write the record; raises OSError, and then the former record stays.

        durable: whether it must outlive a power cut from now on.
        """
        write_atomically(self.path(run.id) / FILE, encode_run(run), durable=durable)

    def delete(self, run: str) -> None:
        """Remove a run; raises JobError while it is under way."""
        if self.path(run).is_dir() and self._head(run).state not in ENDED:
            raise JobError(f"run '{run}' is under way", hint="cancel it first")
        if not self.path(run).is_dir():
            raise JobError(f"there is no run '{run}' in {self.folder}")
        # Renamed first, so that what is half removed is never listed.
        grave = Path(tempfile.mkdtemp(prefix=".deleted-", dir=self.folder))
        self.path(run).rename(grave / run)
        shutil.rmtree(grave)

    def export(self, run: str, file: Path, *, with_inputs: bool = False) -> Path:
        """Put a finished run into one zip, which `import_` takes elsewhere; raises JobError.

        with_inputs: the files it read too, which must be what it read then.
        """
        record = self.load(run)
        if record.state not in ENDED:
            raise JobError(f"run '{run}' is under way", hint="wait until it has ended")
        if with_inputs and record.format < FORMAT:
            raise JobError(
                f"run '{run}' is of format {record.format}, whose hashes cannot be checked",
                hint="export without the inputs",
            )
        more = inputs.parts_of(record.spec.inputs, self.path(run)) if with_inputs else {}
        return bundle.pack(self.path(run), Path(file), more)

    def import_(self, file: Path) -> str:
        """Take in a run that was exported; its id. Raises JobError and then takes in nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=self.folder) as place:
            bundle.unpack(Path(file), Path(place))
            try:
                run = _checked(Path(place))
            except JobError as error:  # the place where it lay is gone
                raise JobError(error.what, where=str(file), hint=error.hint) from error
            if self.path(run.id).exists():
                raise JobError(f"run '{run.id}' is here already", where=str(file))
            Path(place).rename(self.path(run.id))
            Path(place).mkdir()  # for its removal
        self.path(run.id).chmod(0o755)
        return run.id

    def compare(self, one: str, other: str) -> Comparison:
        """What two runs differ in."""
        runs = (self.load(one), self.load(other))
        return compared(*runs, self.results(one), self.results(other))

    def _head(self, run: str) -> RunHead:
        path = self.folder / run / FILE
        try:
            return _as_seen(_head.decode(path.read_bytes()))
        except (OSError, *_MALFORMED) as error:
            return RunHead(
                id=run,
                spec=SpecHead(title=run),
                state="failed",
                error=f"its record cannot be read: {error}",
                created=_moment_in(run),
            )


def read_run(path: Path) -> Run:
    """The record in the file `path` as it stands there; raises JobError."""
    try:
        run = _run.decode(path.read_bytes())
        params = stored.unworded(run.spec.params)
    except (OSError, ValueError, *_MALFORMED) as error:
        raise JobError(f"its record cannot be read: {error}", where=str(path)) from error
    if run.format > FORMAT:
        raise JobError(
            f"its record is of format {run.format}, this version reads up to {FORMAT}",
            where=str(path),
            hint="install a newer Twinstudio",
        )
    return structs.replace(run, spec=structs.replace(run.spec, params=params))


def _checked(folder: Path) -> Run:
    """The record of the run that lies in `folder`, if it is sound; raises JobError."""
    run = read_run(folder / FILE)
    if run.state not in ENDED:
        raise JobError("is no run that has ended")
    if not _ID.match(run.id):
        raise JobError(f"its id {run.id!r:.60} is no id of a run")
    spec = run.spec
    shown = (spec.plugin, spec.title, spec.version, spec.source, run.who, run.host, run.error)
    if not all(map(is_printable, (*shown, *run.notes))):
        raise JobError("its record holds control characters where a run has none")
    for result in stored.read(folder, run.stored):
        if problem := stored.bad_text(result):
            raise JobError(f"result '{one_line(result.name, 60)}': {problem}")
    inputs.check_kept(spec.inputs, folder)
    return run


def _moment_in(run: str) -> datetime:
    """When a run began, by its id; the beginning of all time if that is no date."""
    try:
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").astimezone()
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)


def encode_run(run: Run) -> bytes:
    """The record as text that people can read too."""
    params = stored.worded(run.spec.params)
    run = structs.replace(run, spec=structs.replace(run.spec, params=params))
    return msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"


def _as_seen(run: R) -> R:
    """A run whose process died before it ended is a failed one."""
    if run.state in ENDED or (run.owner is not None and run.owner.alive()):
        return run
    return structs.replace(run, state="failed", error=VANISHED)
