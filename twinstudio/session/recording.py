"""Recording a session: the sources of the moment, their clocks and events, one file."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from twinstudio.flow.link import Link
from twinstudio.flow.protocol import Event
from twinstudio.flow.record import Recorder, RecordingWriter
from twinstudio.model.block import Block
from twinstudio.model.errors import LinkError, RecordingError
from twinstudio.model.health import Health
from twinstudio.model.provenance import provenance
from twinstudio.model.scene import FILE, Scene
from twinstudio.model.views import RecordingView, SourceName
from twinstudio.session.journal import Journal
from twinstudio.session.places import new_file, places
from twinstudio.session.source import Source

CLOCK_EVERY = 1.0
Sink = Callable[[Block], None]


class Recording:
    """At most one recording at a time; sources may come and go while it runs."""

    def __init__(self, scene: Scene, journal: Journal) -> None:
        self._scene = scene
        self._journal = journal
        self._lock = threading.RLock()
        self._recorder: Recorder | None = None
        self._sinks: dict[SourceName, tuple[Source, Sink]] = {}
        self._last: RecordingView | None = None
        self._clocks_due = 0.0

    def start(self, path: Path | None, sources: Mapping[SourceName, Source]) -> Path:
        """Begin a new file at `path`, or a fresh one in the user's folder.

        Raises RecordingError when one is running or the file cannot be made.
        """
        with self._lock:
            if self._recorder is not None:
                raise RecordingError("a recording is running", hint="run record.stop first")
            name = Path(self._scene.folder).name
            path = path or new_file(places()["recordings"], name, ".mcap")
            scene_text = _text_of(self._scene)
            writer = RecordingWriter(path, scene_text=scene_text, provenance=provenance())
            self._recorder = Recorder(writer)
            self._journal.write("info", "recording", f"recording to {path}")
            for source in sources.values():
                self.attach(source)
            return path

    def stop(self) -> RecordingView:
        """Write what waits and close the file; raises RecordingError when none runs."""
        with self._lock:
            if self._recorder is None:
                raise RecordingError("nothing is being recorded", hint="run record.start first")
            return self._finish()

    def close(self) -> None:
        """Stop if a recording runs."""
        with self._lock:
            if self._recorder is not None:
                self._finish()

    def attach(self, source: Source) -> None:
        """Record `source` from now on, if a recording runs."""
        with self._lock:
            if self._recorder is None:
                return
            sink = _announcing(self._recorder, source.role, source.link)
            self._sinks[source.role] = (source, sink)
            source.link.add_sink(sink)

    def detach(self, source: Source) -> None:
        """Record `source` no longer."""
        with self._lock:
            known = self._sinks.get(source.role)
            if known is not None and known[0] is source:
                del self._sinks[source.role]
                source.link.remove_sink(known[1])

    def event(self, role: SourceName, event: Event) -> None:
        """Record an event of a source, if a recording runs."""
        recorder = self._recorder
        if recorder is not None:
            recorder.event(role, event)

    def poll(self, sources: Mapping[SourceName, Source]) -> None:
        """Record clocks about once a second; notice a recording that stopped by itself."""
        with self._lock:
            recorder = self._recorder
            if recorder is None:
                return
            status = recorder.status()
            if not status.active:
                self._finish()
                return
            if time.monotonic() < self._clocks_due:
                return
            self._clocks_due = time.monotonic() + CLOCK_EVERY
            for role, source in sources.items():
                if source.clock is not None:
                    recorder.clock(role, source.clock)

    def view(self) -> RecordingView | None:
        """How the present or the last recording is doing; None before the first."""
        recorder = self._recorder
        return recorder.status() if recorder is not None else self._last

    def _finish(self) -> RecordingView:
        assert self._recorder is not None
        for source, sink in self._sinks.values():
            source.link.remove_sink(sink)
        self._sinks.clear()
        view = self._recorder.stop()
        self._recorder = None
        self._last = view
        if view.alarm:
            self._journal.write("alarm", "recording", view.alarm)
        self._journal.write(
            "info", "recording", f"{view.path}: {view.seconds:.1f} s, {view.bytes / 1e6:.1f} MB"
        )
        return view


def _text_of(scene: Scene) -> str:
    """The scene's file as it is now; raises RecordingError if it is gone."""
    path = Path(scene.folder) / FILE
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecordingError(
            f"cannot be read any more: {reason}",
            where=str(path),
            hint="a recording carries its scene: put the file back",
        ) from error


def _announcing(recorder: Recorder, role: str, link: Link) -> Sink:
    """A sink that announces the source whenever its layout is new to the file."""
    take = recorder.sink(role)
    announced: list[Any] = [None]

    def sink(block: Block) -> None:
        if block.layout != announced[0] and link.description is not None:
            recorder.source(role, link.description)
            announced[0] = block.layout
        take(block)

    return sink


def record_endpoints(
    out: Path, *, cell: str, twin: str, seconds: float, scene: Scene | None = None
) -> dict[str, Any]:
    """Record running endpoints until `seconds` are over (0: until interrupted).

    Raises LinkError when no endpoint is named or one does not answer, and
    RecordingError when the file cannot be written.
    """
    controls = {role: control for role, control in (("cell", cell), ("twin", twin)) if control}
    if not controls:
        raise LinkError("nothing to record", hint="name a running endpoint with --cell or --twin")
    text = _text_of(scene) if scene is not None else ""
    early = _Early()
    links = {
        role: Link(control, on_event=partial(early.hear, role))
        for role, control in controls.items()
    }
    try:
        for link in links.values():
            link.wait(5.0)
        writer = RecordingWriter(out, scene_text=text, provenance=provenance())
        with Recorder(writer) as recorder:
            early.open(recorder)
            _record(recorder, links, seconds)
            status = recorder.stop()
        health = {role: link.health() for role, link in links.items()}
    finally:
        for link in links.values():
            link.close()
    if status.alarm:
        raise RecordingError(status.alarm, where=str(out))
    troubles = {role: _trouble(health[role]) for role in links}
    if all(one.received == 0 for one in health.values()):
        told = "; ".join(f"{role}: {text}" for role, text in troubles.items())
        raise RecordingError("not a single sample was recorded", where=str(out), hint=told)
    return {
        "path": status.path,
        "seconds": status.seconds,
        "bytes": status.bytes,
        "dropped": status.dropped,
        "lost": {role: one.lost for role, one in health.items()},
        "troubles": {role: text for role, text in troubles.items() if text},
    }


def _trouble(health: Health) -> str:
    """What was wrong with a link when its recording ended, in words; else empty."""
    texts = [] if health.state == "streaming" else [health.text]
    texts += [f"{health.lost} samples lost"] * bool(health.lost)
    return "; ".join(texts)


class _Early:
    """Keeps the events that come before the file is open; then hands all on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, Event]] = []
        self._recorder: Recorder | None = None

    def hear(self, role: str, event: Event) -> None:
        """An event of `role`; called on the threads of the links."""
        with self._lock:
            if self._recorder is None:
                self._waiting.append((role, event))
            else:
                self._recorder.event(role, event)

    def open(self, recorder: Recorder) -> None:
        """From now on events go to `recorder`."""
        with self._lock:
            for role, event in self._waiting:
                recorder.event(role, event)
            self._recorder = recorder


def _record(recorder: Recorder, links: Mapping[str, Link], seconds: float) -> None:
    for role, link in links.items():
        assert link.description is not None
        recorder.source(role, link.description)
        link.add_sink(_announcing(recorder, role, link))
    end = time.monotonic() + seconds if seconds > 0 else float("inf")
    with _asked_to_end() as asked:
        while not asked.is_set() and time.monotonic() < end and recorder.status().active:
            for role, link in links.items():
                if link.clock is not None:
                    recorder.clock(role, link.clock)
            asked.wait(max(0.0, min(CLOCK_EVERY, end - time.monotonic())))


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """SIGINT (Ctrl+C), SIGTERM and a closed terminal set the event.

    They are the usual ways to end a recording.

    Elsewhere than on the main thread, which alone may listen to signals, nothing does.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")  # not every system has the last
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
