"""Runs jobs, as many at once as there are cores, without keeping anybody waiting.

One thread does it all: it starts processes, hears them, escalates cancels and
writes records. Callers leave a wish and look at `jobs()` when they like.
"""

import getpass
import os
import selectors
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from twinstudio.jobs.child import Child
from twinstudio.jobs.job import JobView, Tracked
from twinstudio.jobs.record import Run, now, this_process
from twinstudio.jobs.spec import JobSpec
from twinstudio.jobs.store import Store, encode_run
from twinstudio.model.errors import JobError
from twinstudio.model.words import of_error, one_line

TEND_SECONDS = 0.02
REMEMBERED = 200
"""Jobs that are over and still listed; their runs stay in the store."""


class Job:
    """A handle on a submitted job."""

    def __init__(self, runner: "Runner", identity: str) -> None:
        self._runner = runner
        self.id = identity

    def view(self) -> JobView:
        """How it stands."""
        return self._runner.view(self.id)

    def cancel(self) -> None:
        """Ask it to end; see `Runner.cancel`."""
        self._runner.cancel(self.id)

    def wait(self, timeout: float | None = None) -> JobView:
        """How it ended; see `Runner.wait`."""
        return self._runner.wait(self.id, timeout)


class Runner:
    """A queue of jobs and the processes of those under way. Close it when done."""

    def __init__(self, store: Store, *, at_once: int = 0, who: str = "") -> None:
        """at_once: how many run together, 0 for the number of cores. who: user name."""
        self.store = store
        self.at_once = at_once or len(os.sched_getaffinity(0))
        self._who = who or _user()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._jobs: dict[str, Tracked] = {}
        self._wishes: list[Callable[[], None]] = []
        self._closing = False
        self._selector = selectors.DefaultSelector()
        self._bell, self._listener = socket.socketpair()
        for end in (self._bell, self._listener):
            end.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._heed_bell)
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()

    def submit(self, spec: JobSpec, *, of: str = "") -> Job:
        """Queue a job and return at once. of: id of the run it reproduces.

        Raises JobError for a specification that no record can hold.
        """
        run = Run(
            id=self.store.new_id(),
            spec=spec,
            state="queued",
            who=self._who,
            host=socket.gethostname(),
            created=now(),
            of=of,
            owner=this_process(),
        )
        try:
            encode_run(run)
        except (ValueError, OverflowError, RecursionError) as error:
            raise JobError(
                f"its parameters or the names of its inputs cannot be recorded: {of_error(error)}",
                where=one_line(spec.plugin),
                hint="use names in UTF-8 and values of plain types",
            ) from error
        tracked = Tracked(run, self.store)
        with self._lock:
            if self._closing:
                raise JobError("no more jobs are taken: the runner is closed")
            self._jobs[run.id] = tracked
            self._wishes.append(tracked.prepare)
        self._ring()
        return Job(self, run.id)

    def cancel(self, identity: str) -> None:
        """Ask a job to end: at its next check-in, else by force within 3 s. Returns at once."""
        tracked = self._tracked(identity)
        self._wish(lambda: None if tracked.settled else tracked.cancel())

    def jobs(self) -> tuple[JobView, ...]:
        """All jobs in the order they were submitted, which is that of the queue."""
        with self._lock:
            tracked = list(self._jobs.values())
        return tuple(job.view() for job in tracked)

    def view(self, identity: str) -> JobView:
        """How one job stands; raises JobError for an unknown id."""
        return self._tracked(identity).view()

    def ready_after(self, identity: str) -> float | None:
        """Seconds from the start of a job's process until it was ready, None before."""
        return self._tracked(identity).ready_after

    def recent_output(self, identity: str) -> str:
        """The end of what a job has printed and logged so far."""
        capture = self._tracked(identity).capture
        return "" if capture is None else capture.recent

    def wait(self, identity: str, timeout: float | None = None) -> JobView:
        """How a job ended; after `timeout` s, how it stands."""
        tracked = self._tracked(identity)
        with self._changed:
            self._changed.wait_for(lambda: tracked.settled, timeout)
        return tracked.view()

    def close(self) -> None:
        """Cancel what is left, wait until it is gone (at most about 3 s), end the thread."""
        with self._lock:
            self._closing = True
        self._ring()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _tracked(self, identity: str) -> Tracked:
        with self._lock:
            tracked = self._jobs.get(identity)
        if tracked is None:
            raise JobError(f"there is no job '{identity}'")
        return tracked

    def _wish(self, wish: Callable[[], None]) -> None:
        with self._lock:
            self._wishes.append(wish)
        self._ring()

    def _ring(self) -> None:
        try:
            self._bell.send(b"!")
        except BlockingIOError:
            return  # it rings already
        except OSError:
            return  # closed: nobody is left to hear

    def _heed_bell(self) -> None:
        try:
            self._listener.recv(4096)
        except BlockingIOError:
            return

    # What follows runs on the runner's thread alone.

    def _work(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as error:  # noqa: BLE001 - whoever waits for a job must be told
            self._give_up(error)
        finally:
            self._selector.close()
            self._bell.close()
            self._listener.close()

    def _turn(self) -> bool:
        """Do what there is to do, then wait for more; False when closed and all is over."""
        with self._lock:
            wishes, self._wishes = self._wishes, []
            jobs, closing = list(self._jobs.values()), self._closing
        for wish in wishes:
            wish()
        left = [job for job in jobs if not job.settled]
        if closing:
            for job in left:
                job.cancel()
        self._start(left)
        self._announce()
        if closing and not left:
            return False
        for key, _ in self._selector.select(TEND_SECONDS if left else None):
            key.data()
        self._tend(left)
        self._announce()
        return True

    def _give_up(self, error: Exception) -> None:
        """End every job after a fault of our own."""
        with self._lock:
            self._closing = True
            left = [job for job in self._jobs.values() if not job.settled]
        for job in left:
            job.abandon(f"the runner failed: {of_error(error)}")
        self._announce()

    def _announce(self) -> None:
        """Wake who waits, and forget the oldest of many that are over."""
        with self._changed:
            over = [key for key, job in self._jobs.items() if job.settled]
            for key in over[: max(0, len(over) - REMEMBERED)]:
                del self._jobs[key]
            self._changed.notify_all()

    def _start(self, jobs: list[Tracked]) -> None:
        """Start those at the head of the queue while there is room."""
        under_way = sum(job.child is not None for job in jobs if not job.settled)
        for job in jobs:
            if under_way >= self.at_once:
                return
            if job.child is None and not job.settled:
                child = job.start()
                if child is not None:
                    under_way += 1
                    self._attend(job, child)

    def _attend(self, job: Tracked, child: Child) -> None:
        """Hear a new process whenever it has something to say."""

        def hear() -> None:
            messages, got = child.hear()
            for message in messages:
                job.take(message)
            if got == 0:
                self._selector.unregister(child.events)

        def collect() -> None:
            if child.collect() == 0:
                self._selector.unregister(child.output)

        self._selector.register(child.events, selectors.EVENT_READ, hear)
        self._selector.register(child.output, selectors.EVENT_READ, collect)

    def _tend(self, jobs: list[Tracked]) -> None:
        for job in jobs:
            child = job.child
            if child is None or job.settled:
                continue
            if child.ended:
                for stream in (child.events, child.output):
                    if stream.fileno() in self._selector.get_map():
                        self._selector.unregister(stream)
                job.conclude()
            else:
                job.escalate()


def _user() -> str:
    """Name of the user of this process, or its number where that has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
