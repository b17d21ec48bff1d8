"""One job while it lasts: its record, its process, and how far it is."""

import shutil
import signal
import time
from datetime import datetime
from typing import Any

import msgspec
from msgspec import structs

from twinstudio.jobs import files
from twinstudio.jobs.capture import Capture
from twinstudio.jobs.child import Child
from twinstudio.jobs.memory import CHECK_SECONDS, exceeds, in_words
from twinstudio.jobs.messages import End, Entered, Message, Note, Prepared, Progress, Ready
from twinstudio.jobs.mishap import disk, one_line
from twinstudio.jobs.record import ENDED, LOG, Run, State, command, now
from twinstudio.jobs.store import Store
from twinstudio.jobs.stored import FOLDER, RECORDING
from twinstudio.jobs.worker import SCRATCH
from twinstudio.model.words import of_error

TERMINATE_SECONDS = 1.5
KILL_SECONDS = 2.5
"""After a cancel: terminate, then kill, so that a job is gone within 3 s."""
FIRST_ESTIMATE = 0.02
"""No estimate of the time left below this progress."""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to show of a job.

    progress: 0 to 1. left: estimate, s; None if there is none. folder: of its run.
    """

    id: str
    title: str
    plugin: str
    kind: str
    state: State
    progress: float
    message: str
    error: str
    left: float | None
    submitted: datetime
    started: datetime | None
    ended: datetime | None
    folder: str

    @property
    def over(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state in ENDED


class Tracked:
    """A job in the hands of its runner's thread, which alone calls what changes it.

    `settled` is True once the record tells how it ended.
    """

    def __init__(self, run: Run, store: Store) -> None:
        self.run = run
        self.settled = False
        self.ready_after: float | None = None
        self.child: Child | None = None
        self.capture: Capture | None = None
        self._store = store
        self._folder = store.path(run.id)
        self._end: End | None = None
        self._killed = ""
        self._progress = Progress(fraction=0.0)
        self._entered = time.monotonic()
        self._running_since: float | None = None
        self._started_at = 0.0
        self._cancelled_at: float | None = None
        self._escalation = 0
        self._weigh_at = 0.0

    def view(self) -> JobView:
        """A picture of it; may be taken from any thread."""
        run, progress = self.run, self._progress
        done = run.state == "done"
        return JobView(
            id=run.id,
            title=run.spec.title,
            plugin=run.spec.plugin,
            kind=run.spec.kind,
            state=run.state,
            progress=1.0 if done else progress.fraction,
            message=progress.message,
            error=run.error,
            left=self._left(progress.fraction),
            submitted=run.created,
            started=run.started,
            ended=run.ended,
            folder=str(self._folder),
        )

    def prepare(self) -> None:
        """Make its folder and first record."""
        try:
            self._folder.mkdir(parents=True)
            files.reserve(self._folder)
            self._store.save(self.run)
        except OSError as error:
            self._settle("failed", f"its run could not be kept: {disk(error)}")

    def start(self) -> Child | None:
        """Start its process; None, and it has failed, if that cannot be."""
        self._enter("preparing", started=now())
        self._started_at = time.monotonic()
        try:
            self._store.save(self.run)
            self.capture = Capture(self._folder / LOG)
            self.child = Child(self._folder, self.capture)
        except OSError as error:
            self._settle("failed", f"it could not be started: {error.strerror}")
        return self.child

    def take(self, message: Message) -> None:
        """Act on what its process says."""
        if isinstance(message, Progress):
            self._progress = message
        elif isinstance(message, Entered):
            self._enter(message.state)
            self._save_meanwhile()
        elif isinstance(message, Ready):
            self.ready_after = time.monotonic() - self._started_at
        elif isinstance(message, Prepared):
            # The command that matters is the one that asked for the job.
            where = structs.replace(message.provenance, command=command())
            self.run = structs.replace(
                self.run, provenance=where, plugin_digest=message.plugin_digest
            )
        elif isinstance(message, Note):
            self.run = structs.replace(self.run, notes=(*self.run.notes, message.text))
        else:
            self._end = message

    def cancel(self) -> None:
        """Ask it to end; one that waits ends at once."""
        if self.child is None:
            self._settle("cancelled", "it was cancelled before it started")
        elif self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
            self.child.ask_to_cancel()

    def escalate(self) -> None:
        """Hold it to its limit, and use force on one that does not heed a cancel."""
        child, now_s = self.child, time.monotonic()
        assert child is not None
        limit = self.run.spec.limit
        if limit and not self._killed and now_s - self._started_at > limit:
            self._killed = f"it did not end within its limit of {limit:g} s and was killed"
            child.signal(signal.SIGKILL)
        self._weigh(child, now_s)
        waited = 0.0 if self._cancelled_at is None else now_s - self._cancelled_at
        if self._escalation == 0 and waited >= TERMINATE_SECONDS:
            self._escalation = 1
            child.signal(signal.SIGTERM)
        elif self._escalation == 1 and waited >= KILL_SECONDS:
            self._escalation = 2
            child.signal(signal.SIGKILL)

    def _weigh(self, child: Child, now_s: float) -> None:
        """Kill it if it uses more memory than it may."""
        most = self.run.spec.memory
        if not most or self._killed or now_s < self._weigh_at:
            return
        self._weigh_at = now_s + CHECK_SECONDS
        size = exceeds(child.pid, most)
        if size:
            self._killed = (
                f"it used {in_words(size)} of memory, more than its limit of {in_words(most)},"
                " and was killed"
            )
            child.signal(signal.SIGKILL)

    def conclude(self) -> None:
        """Its process has ended: end what that left behind, and write how it went."""
        child = self.child
        assert child is not None
        for message in child.bury():
            self.take(message)
        end = self._end
        if self._killed:
            self._settle("failed", self._killed)
        elif end is not None:
            self.run = structs.replace(
                self.run,
                trace=end.trace,
                results=end.results,
                results_file=end.results_file,
                files=end.files,
            )
            self._settle(end.state, end.error)
        elif self._cancelled_at is not None:
            how = ("", ", did not heed it and was terminated", ", did not heed it and was killed")
            self._settle("cancelled", f"it was cancelled{how[self._escalation]}")
        else:
            self._settle("failed", child.obituary())

    def abandon(self, reason: str) -> None:
        """Kill it, and write that it failed for `reason`."""
        if self.child is not None:
            self.child.bury()
        self._settle("failed", reason)

    def _settle(self, state: State, error: str) -> None:
        """Tidy up and write how it ended; the state is set when all else is done."""
        notes = list(self.run.notes)
        if self.capture is not None:
            self.capture.close()
            notes += [self.capture.problem] if self.capture.problem else []
        shutil.rmtree(self._folder / SCRATCH, ignore_errors=True)
        if state != "done" and not self.run.files:
            notes += self._clear()
        spent = {**self.run.durations, **self._spent()}
        final = structs.replace(
            self.run,
            state=state,
            error=one_line(error),
            ended=now(),
            durations=spent,
            notes=tuple(notes),
            owner=None,
        )
        self.run = self._recorded(final)
        self.settled = True

    def _clear(self) -> list[str]:
        """Remove what an unfinished job left, but for a recording, which nothing brings back."""
        results = self._folder / FOLDER
        recording = results / RECORDING
        if recording.is_file() and recording.stat().st_size:
            return [f"{FOLDER}/{RECORDING} holds what came until then; it has no hash"]
        shutil.rmtree(results, ignore_errors=True)
        return []

    def _recorded(self, final: Run) -> Run:
        """`final` once it is on disk; failed, in memory at least, if it cannot be."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)  # a plugin may have removed it
            files.release(self._folder)
            self._store.save(final)
        except OSError as error:
            text = f"its record could not be written: {disk(error)}"
            words = "; ".join(filter(None, (final.error, text)))
            return structs.replace(final, state="failed", error=words)
        except ValueError as error:  # whoever waits must be told, whatever it was
            text = f"its record could not be written: {of_error(error)}"
            words = "; ".join(filter(None, (final.error, text)))
            return structs.replace(final, state="failed", error=one_line(words))
        return final

    def _enter(self, state: State, **changes: Any) -> None:
        spent = {**self.run.durations, **self._spent()}
        self._entered = time.monotonic()
        if state == "running":
            self._running_since = self._entered
        self.run = structs.replace(self.run, state=state, durations=spent, **changes)

    def _save_meanwhile(self) -> None:
        """Let others see the state; what counts is the last record."""
        try:
            self._store.save(self.run, durable=False)
        except OSError as error:
            note = f"its record could not be kept up to date: {error.strerror}"
            self.run = structs.replace(self.run, notes=(*self.run.notes, note))

    def _spent(self) -> dict[str, float]:
        return {self.run.state: round(time.monotonic() - self._entered, 6)}

    def _left(self, fraction: float) -> float | None:
        since = self._running_since
        if since is None or self.run.state != "running" or fraction < FIRST_ESTIMATE:
            return None
        return (time.monotonic() - since) * (1.0 - fraction) / fraction
