"""The record of a run, as ``run.json`` has it."""

import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import psutil

from twinstudio.jobs.spec import JobSpec
from twinstudio.jobs.stored import Stored
from twinstudio.model.provenance import Provenance

_YEARS = range(1970, 9000)
"""Others are no times of a run, and cannot be told in every time zone."""
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
State = Literal["queued", "preparing", "running", "analysing", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("done", "failed", "cancelled")
FILE = "run.json"
LOG = "log.txt"
FORMAT = 2
"""1 had hashes of another rule, which say nothing about files of today; else it is the same."""
VANISHED = "its process ended without a word"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that looks after a run; born: its start, s since 1970."""

    host: str
    pid: int
    born: float

    def alive(self) -> bool:
        """Whether that process is still there; one on another machine counts as alive."""
        if self.host != socket.gethostname():
            return True
        try:
            born: float = psutil.Process(self.pid).create_time()
        except psutil.Error:
            return False
        return abs(born - self.born) < 1.0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One job with all that led to its results.

    who: user name. durations: s spent in each state. plugin_digest: SHA-256 of the
    plugin's code. error: one line, "" unless failed or cancelled. trace: where it
    was raised. notes: what is worth knowing, one line each. results, results_file,
    files: see `stored.Stored`. of: the run that this one reproduces, or "".
    """

    id: str
    spec: JobSpec
    state: State
    error: str = ""
    who: str = ""
    host: str = ""
    created: Moment
    started: Moment | None = None
    ended: Moment | None = None
    durations: dict[str, float] = {}
    of: str = ""
    owner: Owner | None = None
    provenance: Provenance | None = None
    plugin_digest: str = ""
    trace: str = ""
    notes: tuple[str, ...] = ()
    results: list[dict[str, Any]] = []
    results_file: str = ""
    files: dict[str, str] = {}
    format: int = FORMAT

    def __post_init__(self) -> None:
        _check_moments(self.created, self.started, self.ended)

    @property
    def stored(self) -> Stored:
        """Its results as they are on disk."""
        return Stored(list(self.results), self.results_file, dict(self.files))


class SpecHead(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a specification."""

    plugin: str = ""
    kind: str = ""
    title: str = ""
    seed: int = 0
    scene: str = ""


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a run; fields as in `Run`."""

    id: str
    spec: SpecHead
    state: State
    error: str = ""
    who: str = ""
    created: Moment
    started: Moment | None = None
    ended: Moment | None = None
    of: str = ""
    owner: Owner | None = None

    def __post_init__(self) -> None:
        _check_moments(self.created, self.started, self.ended)

    @property
    def seconds(self) -> float | None:
        """From start to end, s; None if it did not both start and end."""
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()


def _check_moments(*moments: datetime | None) -> None:
    for moment in moments:
        if moment is not None and moment.year not in _YEARS:
            raise ValueError(f"{moment.isoformat()} is no time of a run")


def this_process() -> Owner:
    """The owner of runs that this process looks after."""
    born = psutil.Process().create_time()
    return Owner(host=socket.gethostname(), pid=os.getpid(), born=born)


def now() -> datetime:
    """The time of day, in UTC."""
    return datetime.now(UTC)


def command() -> str:
    """The command line of this process."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
