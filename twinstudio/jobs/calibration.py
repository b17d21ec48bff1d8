"""What a calibrator's run keeps beside its results: findings, and the trial of its patches."""

from pathlib import Path
from typing import Literal

import msgspec

from twinstudio.jobs.store import Store
from twinstudio.jobs.stored import FOLDER
from twinstudio.model.errors import JobError
from twinstudio.model.provenance import sha256

FILE = f"{FOLDER}/calibration.json"
Outcome = Literal["better", "same", "worse", "not simulated", "not compared"]
REFUSED: tuple[Outcome, ...] = ("worse", "not simulated")
"""Such a patch goes onto a scene only by an explicit word."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of the check: `text`, and what to do; fatal ended the job."""

    text: str
    hint: str = ""
    fatal: bool = False


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How the twin did with a patch, on logs that the solver has not seen.

    patch: its number among the results of the run, from 1. name: of the patch.
    ratio: gap after over gap before, all signals together; None without figures.
    words: the verdict in one line, with the figures.
    """

    patch: int
    name: str
    outcome: Outcome
    words: str
    ratio: float | None = None

    @property
    def refused(self) -> bool:
        """Whether the patch needs an explicit word to be promoted."""
        return self.outcome in REFUSED


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Findings in the order of the check, and one trial a patch.

    under: runs whose patches lay on the scene during the trial. solved, scored: how
    many of the run's results came from solve, and from validate; trials gave the rest.
    """

    findings: tuple[Found, ...] = ()
    trials: tuple[Trial, ...] = ()
    under: tuple[str, ...] = ()
    solved: int = 0
    scored: int = 0

    def trial(self, patch: int) -> Trial | None:
        """The trial of the patch with that number; None if it was not tried."""
        return next((trial for trial in self.trials if trial.patch == patch), None)


def write(folder: Path, calibration: Calibration) -> None:
    """Keep `calibration` in the run `folder`; raises OSError."""
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")


def read(store: Store, run: str) -> Calibration | None:
    """What the run kept; None for one of another kind or of an older version.

    Raises JobError for a file that is not what the run wrote.
    """
    known = store.load(run).files.get(FILE)
    if known is None:
        return None
    path = store.path(run) / FILE
    try:
        if sha256(path) != known:
            raise JobError(f"{FILE} is not what the run wrote", where=str(path.parent))
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError) as error:
        raise JobError(f"{FILE} cannot be read: {error}", where=str(path.parent)) from error


def check_trial(store: Store, run: str, patch: int, *, force: bool, say: str) -> Trial | None:
    """The trial of a patch that is about to be promoted; None if there was none.

    say: how to go on all the same. Raises JobError, with the figures, for a patch
    that made the twin worse or could not be simulated, unless `force` is given.
    """
    calibration = read(store, run)
    trial = calibration.trial(patch) if calibration is not None else None
    if trial is not None and trial.refused and not force:
        raise JobError(f"the patch is not better: {trial.words}", where=run, hint=say)
    return trial
