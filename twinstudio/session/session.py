"""The composition root: one scene, its twin, its cell, and everything between."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np

from twinstudio.flow.protocol import Event
from twinstudio.model.errors import LinkError, RecordingError, TwinstudioError
from twinstudio.model.geometry import SceneGeometry
from twinstudio.model.kinematics import Kinematics
from twinstudio.model.pair import Pair
from twinstudio.model.scene import Scene, load_scene
from twinstudio.model.signals import Layout
from twinstudio.model.views import (
    CommandInfo,
    Entry,
    Moment,
    ReplayView,
    SignalChoice,
    Snapshot,
    SourceName,
    Trace,
    TraceQuery,
)
from twinstudio.session import traces
from twinstudio.session.cast import Cast, CellChoice
from twinstudio.session.commands import CommandSet, as_line
from twinstudio.session.gapline import GapLine
from twinstudio.session.hearsay import Hearsay
from twinstudio.session.journal import Journal
from twinstudio.session.metrics import LiveMetrics
from twinstudio.session.orders import Orders
from twinstudio.session.recording import Recording
from twinstudio.session.source import Source
from twinstudio.session.workshop import Workshop

TICK_SECONDS = 0.05
TABLES_EVERY = 0.5
DELAYS_EVERY = 4.0
STATUS_EVERY = 0.2
HISTORY_BYTES = 256 * 2**20
WINDOW_SECONDS = 10.0


class Session:
    """Everything a face (window, console, script) needs; thread-safe; knows no Qt.

    Views are pulled; nothing calls back into a face.
    """

    def __init__(
        self, scene: Scene, *, choice: CellChoice | None = None, budget: int = HISTORY_BYTES
    ) -> None:
        """A session on `scene`; nothing runs before `start`.

        choice: what stands for the cell; without one, what the scene names.
        budget: bytes of memory for the history of each source.
        """
        self.scene = scene
        self.journal = Journal()
        self._hearsay = Hearsay(self.journal)
        self._gap = GapLine(budget=budget // 2, window=WINDOW_SECONDS)
        self._recording = Recording(scene, self.journal)
        self.workshop = Workshop(scene, self.journal)
        self._cast = Cast(
            scene,
            self.journal,
            choice=choice or CellChoice(),
            budget=budget,
            on_event=self._on_event,
            joined=self._recording.attach,
            leaving=self._recording.detach,
        )
        self._metrics = LiveMetrics(lambda: self.workshop.catalog, self._compared, self.journal)
        self._tables: traces.Tables = (None, None)
        self._twin_status: Mapping[str, Any] = {}
        self._replay: ReplayView | None = None
        self._stop = threading.Event()
        self._worker = threading.Thread(target=self._work, name="session-worker", daemon=True)
        self._clerk = ThreadPoolExecutor(1, thread_name_prefix="session-commands")
        orders = Orders(self._cast, self._gap, self._recording, self.workshop, self._metrics)
        self._commands = CommandSet(orders.table())

    @classmethod
    def open(cls, scene: str | Path, *, cell: str = "", log: Path | None = None) -> "Session":
        """A session on the scene at (or called) `scene`; raises SceneError."""
        if log is not None and not log.is_file():
            raise RecordingError(f"there is no recording {log}")
        return cls(load_scene(scene), choice=CellChoice(cell, log))

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start twin and cell in the background; returns at once."""
        self._worker.start()
        self._clerk.submit(self._told, "cell", self._cast.start_cell)
        self._clerk.submit(self._told, "twin", self._cast.start_twin)

    def close(self) -> None:
        """Stop everything and wait until no thread and no process is left."""
        self._stop.set()
        self._cast.interrupt()
        self._metrics.close()
        self._clerk.shutdown(wait=True, cancel_futures=True)
        if self._worker.is_alive():
            self._worker.join()
        self.workshop.close()
        self._recording.close()
        self._cast.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- views --------------------------------------------------------------------------------

    @property
    def geometry(self) -> SceneGeometry | None:
        """What to draw, as soon as the twin has told; None until then."""
        return self._cast.geometry

    def snapshot(self) -> Snapshot:
        """The newest picture; cheap (under 1 ms), call it once a frame."""
        window, run = self._tables
        return Snapshot(
            now=time.monotonic_ns(),
            sources=tuple(
                source.view(self._cast.note(role))
                for role, source in sorted(self._cast.sources.items())
            ),
            window=window,
            run=run,
            recording=self._recording.view(),
            replay=self._replay,
            real_time=float(self._twin_status.get("real_time", np.nan)),
            lateness=float(self._twin_status.get("lateness", np.nan)),
            metrics=self._metrics.views(),
        )

    def traces(self, query: TraceQuery) -> list[Trace]:
        """Decimated lines of cell, twin and gap for one signal; cheap."""
        return traces.traces(query, self._cast.sources, self._gap.history)

    @property
    def gap_layout(self) -> Layout | None:
        """Signals that are compared; None before the first pair."""
        history = self._gap.history
        return history.layout if history is not None else None

    def signals(self) -> list[SignalChoice]:
        """What can be plotted now."""
        return traces.choices(self._cast.sources)

    def moment(self, stamp: int) -> Moment:
        """Twin and cell at a past instant [ns, session clock], for scrubbing."""
        return traces.moment(stamp, self._cast.sources)

    def extent(self) -> tuple[int, int]:
        """First and last instant that history still holds [ns, session clock]."""
        return traces.extent(self._cast.sources)

    def entries(self, since: int) -> list[Entry]:
        """Log entries with seq >= since, oldest first."""
        return self.journal.since(since)

    # --- commands -----------------------------------------------------------------------------

    def commands(self) -> list[CommandInfo]:
        """Every named command; a face offers them, `run` carries them out."""
        return self._commands.infos()

    def run(self, command: str, **args: object) -> object:
        """Carry out a command by name and wait; raises TwinstudioError in plain words.

        Also written to the session log as a line that can be replayed.
        """
        self.journal.write("info", "command", as_line(command, args))
        answer = self._commands.run(command, args)
        self._poll_replay()  # what a command changed shows at once
        return answer

    def submit(self, command: str, **args: object) -> "Future[object]":
        """Carry out a command in the background, in order; a failure is an alarm in the log."""
        return self._clerk.submit(self._told, command, lambda: self.run(command, **args))

    # --- what happens by itself ---------------------------------------------------------------

    def _told(self, kind: str, order: Any) -> object:
        """Carry out `order`; nobody waits for it, so a failure goes into the log."""
        try:
            return order()
        except TwinstudioError as error:
            self.journal.write("alarm", kind, str(error).removeprefix(f"{kind}: "))
            raise
        except Exception as error:
            self.journal.write("alarm", kind, f"a fault of Twinstudio: {error!r}")
            raise

    def _on_event(self, role: SourceName, event: Event) -> None:
        self._hearsay.tell(role, event)
        self._gap.heard(role, event)
        self._recording.event(role, event)

    def _work(self) -> None:
        """The worker: pairs, figures, status, deaths; the same failure is told once."""
        due_tables = due_delays = due_status = 0.0
        told = ""
        while not self._stop.wait(TICK_SECONDS):
            now = time.monotonic()
            try:
                self._pair()
                if now >= due_tables:
                    due_tables = now + TABLES_EVERY
                    self._tabulate(delays=now >= due_delays)
                    due_delays = now + DELAYS_EVERY if now >= due_delays else due_delays
                if now >= due_status:
                    due_status = now + STATUS_EVERY
                    self._poll()
            except TwinstudioError as error:
                if str(error) != told:
                    told = str(error)
                    self.journal.write("alarm", "session", told)
            except Exception as error:  # noqa: BLE001 - the worker goes on, whatever a source sent
                if repr(error) != told:
                    told = repr(error)
                    self.journal.write("alarm", "session", f"a fault of Twinstudio: {told}")

    def _pair(self) -> None:
        twin, cell = self._cast.sources.get("twin"), self._cast.sources.get("cell")
        if twin is None or cell is None:
            return
        if self._gap.kinematics is None and self.geometry is not None:
            self._gap.learn(Kinematics(self.geometry.tree))
        self._gap.advance(twin, cell)

    def _tabulate(self, *, delays: bool) -> None:
        twin, cell = self._cast.sources.get("twin"), self._cast.sources.get("cell")
        if twin is not None and cell is not None:
            self._tables = self._gap.tables(twin, cell, delays=delays)

    def _compared(self) -> Pair | None:
        """What metrics measure: the samples of the sliding window."""
        twin, cell = self._cast.sources.get("twin"), self._cast.sources.get("cell")
        return None if twin is None or cell is None else self._gap.pair(twin, cell)

    def _poll(self) -> None:
        """Deaths of children, the twin's pace, the replay's position, the disk."""
        self._cast.watch()
        self.workshop.poll()
        for role in self._cast.sources:
            self._hearsay.catch_up(role)
        self._recording.poll(self._cast.sources)
        self._twin_status = _asked(self._cast.sources.get("twin"), "status") or {}
        self._poll_replay()

    def _poll_replay(self) -> None:
        log = self._cast.choice.log
        status = _asked(self._cast.sources.get("cell"), "status") if log is not None else None
        if log is None:
            self._replay = None
        elif status is not None and "duration" in status:
            self._replay = ReplayView(
                log=str(log),
                position=float(status["position"]),
                duration=float(status["duration"]),
                rate=float(status["rate"]),
                paused=bool(status["paused"]),
                loop=bool(status["loop"]),
            )


def _asked(source: Source | None, operation: str) -> Mapping[str, Any] | None:
    """The answer to a quick question, None from one that is not there to answer."""
    if source is None or source.link.health().state not in {"streaming", "silent"}:
        return None
    try:
        answer = source.link.request(operation, timeout=0.5)
    except LinkError:
        return None  # its silence shows in the link's health
    return answer if isinstance(answer, dict) else None
