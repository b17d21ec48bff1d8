"""Who plays cell and twin: starting, replacing, watching and ending the sources."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from twinstudio.flow.protocol import Description, Event
from twinstudio.model.errors import LinkError, ProcessError
from twinstudio.model.geometry import SceneGeometry
from twinstudio.model.scene import Scene
from twinstudio.model.views import SourceName
from twinstudio.session.child import Child
from twinstudio.session.journal import Journal
from twinstudio.session.source import Source

Listener = Callable[[Source], None]


@dataclass(frozen=True, slots=True)
class CellChoice:
    """What stands for the cell: a running endpoint, a log, or the scene's own choice."""

    endpoint: str = ""
    log: Path | None = None


class Cast:
    """The sources of a session by role. Changes are serialised; reading never waits."""

    def __init__(
        self,
        scene: Scene,
        journal: Journal,
        *,
        choice: CellChoice,
        budget: int,
        on_event: Callable[[SourceName, Event], None],
        joined: Listener,
        leaving: Listener,
    ) -> None:
        """`joined` and `leaving` hear of every source; `budget`: history bytes of each."""
        self._scene = scene
        self._journal = journal
        self.choice = choice
        self._budget = budget
        self._on_event = on_event
        self._joined = joined
        self._leaving = leaving
        self._changing = threading.RLock()
        self._ending = threading.Event()
        self._sources: Mapping[SourceName, Source] = {}
        self._notes: dict[SourceName, str] = {}
        self.geometry: SceneGeometry | None = None

    @property
    def sources(self) -> Mapping[SourceName, Source]:
        """The sources there are now; a snapshot that never changes."""
        return self._sources

    def note(self, role: SourceName) -> str:
        """What the process of `role` last said when it died, else empty."""
        return self._notes.get(role, "")

    def get(self, role: SourceName) -> Source:
        """The source of `role`; raises LinkError when there is none."""
        source = self._sources.get(role)
        if source is None:
            raise LinkError(f"there is no {role} now", hint=f"run {role}.restart")
        return source

    def start_cell(self, choice: CellChoice | None = None) -> None:
        """Start or connect what stands for the cell, the same as before without a `choice`.

        A failure is told in the log; the twin, and the cell there was, go on.
        Raises LinkError for an address that is none.
        """
        choice = choice or self.choice
        endpoint = choice.endpoint or ("" if choice.log else self._scene.cell.endpoint)
        if choice.log is not None:
            title, arguments = (
                f"replay of {choice.log.name}",
                ["replay", str(choice.log.absolute())],
            )
            done = self._replace("cell", title, arguments=arguments)
        elif endpoint:
            done = self._replace("cell", "cell", control=endpoint)
        elif self._scene.cell.emulated:
            arguments = ["cell", self._scene.folder]
            done = self._replace("cell", "emulated cell", arguments=arguments)
        else:
            self._journal.write(
                "warning", "cell", "the scene names no cell: connect to one, or replay a log"
            )
            return
        # What failed while another cell goes on is not what a restart means.
        if done or "cell" not in self._sources:
            self.choice = choice
        self._follow()

    def start_twin(self) -> None:
        """Start the twin process anew, let it follow the cell, learn what it looks like."""
        self._replace("twin", "twin", arguments=["twin", self._scene.folder])
        self._follow()
        self._learn_geometry()

    def watch(self) -> None:
        """Tell of processes that died since the last call."""
        for role, source in self._sources.items():
            child = source.child
            if child is not None and not child.running and not self._notes.get(role):
                self._notes[role] = f"{source.title} {child.obituary()}"
                self._journal.write("alarm", role, f"{self._notes[role]}; run {role}.restart")

    def interrupt(self) -> None:
        """Let a start that is under way give up, so that `close` need not wait for it."""
        self._ending.set()

    def close(self) -> None:
        """End every source and its process."""
        self.interrupt()
        with self._changing:
            for role in list(self._sources):
                self._remove(role)

    def _replace(
        self,
        role: SourceName,
        title: str,
        *,
        control: str = "",
        arguments: list[str] | None = None,
    ) -> bool:
        """Put another source in the place of `role`'s, as soon as it is ready; whether it is."""
        with self._changing:
            if self._ending.is_set():
                return False
            child = Child(title, arguments) if arguments is not None else None
            if child is not None:
                try:
                    control = str(child.ready(unless=self._ending)["control"])
                except ProcessError as error:
                    child.stop()
                    self._told_failure(role, str(error))
                    return False
            source = self._source(role, title, control, child)
            self._remove(role)
            self._notes[role] = ""
            self._sources = {**self._sources, role: source}
            self._journal.write("info", role, f"{title} at {control}")
            self._joined(source)
            return True

    def _told_failure(self, role: SourceName, text: str) -> None:
        before = self._sources.get(role)
        if before is None or (before.child is not None and not before.child.running):
            self._notes[role] = text
            self._journal.write("alarm", role, text)
        else:
            self._journal.write("alarm", role, f"{text}; the {before.title} there was goes on")

    def _source(self, role: SourceName, title: str, control: str, child: Child | None) -> Source:
        return Source(
            role,
            control,
            joints=self._scene.robot.joints,
            budget=self._budget,
            title=title,
            on_event=self._on_event,
            on_description=self._described,
            on_trouble=lambda role, text: self._journal.write("warning", role, text),
            child=child,
        )

    def _remove(self, role: SourceName) -> None:
        source = self._sources.get(role)
        if source is None:
            return
        self._sources = {other: s for other, s in self._sources.items() if other != role}
        self._leaving(source)
        source.close()

    def _follow(self) -> None:
        """Tell the twin which cell to follow."""
        twin, cell = self._sources.get("twin"), self._sources.get("cell")
        if twin is None or cell is None:
            return
        try:
            twin.link.request("follow", timeout=5.0, control=cell.control)
        except LinkError as error:
            self._journal.write("alarm", "twin", f"cannot follow the cell: {error}")

    def _learn_geometry(self) -> None:
        twin = self._sources.get("twin")
        if twin is None or self.geometry is not None:
            return
        try:
            raw = twin.link.request("geometry", timeout=15.0)
            self.geometry = msgspec.convert(raw, SceneGeometry)
        except (LinkError, msgspec.ValidationError) as error:
            self._journal.write("warning", "twin", f"cannot be drawn: {error}")

    def _described(self, role: SourceName, description: Description) -> None:
        joints = self._scene.robot.joints
        layout = description.layout
        told = layout.signal("joint.position").labels if "joint.position" in layout else ()
        self._journal.write(
            "info", role, f"{description.name}: {layout.width} columns, {description.rate:g} Hz"
        )
        absent = [joint for joint in joints if joint not in told]
        if absent:
            self._journal.write(
                "warning",
                role,
                f"reports no position of {', '.join(absent)}; is this the robot of scene"
                f" '{self._scene.name}'?",
            )
