"""A deterministic session: seven joints on sine waves, no process, no thread."""

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gui.fake_workshop import FakeWorkshop

from twinstudio.model.errors import LinkError, TwinstudioError
from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag, Spread
from twinstudio.model.geometry import ROBOT, Mesh, SceneGeometry
from twinstudio.model.health import Health
from twinstudio.model.kinematics import KinematicTree
from twinstudio.model.kinematics import Link as TreeLink
from twinstudio.model.scene import Object, Robot, Scene, Sphere
from twinstudio.model.views import (
    CommandInfo,
    Entry,
    MetricView,
    Moment,
    RecordingView,
    ReplayView,
    SignalChoice,
    Snapshot,
    SourceView,
    Trace,
    TraceQuery,
)

JOINTS = tuple(f"panda_joint{k}" for k in range(1, 8))
UNITS = {
    "joint.position": "rad",
    "joint.velocity": "rad/s",
    "joint.effort": "N m",
    "joint.temperature": "degC",
}
COMMANDS = {
    "record.start": {"path": "file to write; chosen when empty"},
    "record.stop": {},
    "replay.pause": {},
    "replay.resume": {},
    "replay.seek": {"seconds": "from the start of the log"},
    "replay.rate": {"factor": "1 is as recorded"},
    "replay.loop": {"on": "start again at the end"},
    "twin.mode": {"mode": "commanded, following or resynchronised"},
    "twin.restart": {},
    "cell.restart": {},
    "cell.connect": {"endpoint": "control address, tcp://host:port"},
    "cell.replay": {"log": "recording to publish"},
    "gap.reset": {},
    "gap.window": {"seconds": "length of the sliding window"},
    "metric.add": {"plugin": "its id", "params": "name -> value"},
    "metric.remove": {"key": "what metric.add returned"},
}


def amplitude(k: int) -> float:
    return 0.4 + 0.1 * k


def position(source: str, k: int, t: np.ndarray | float) -> np.ndarray:
    """Joint k of `source` at t [s], rad: the twin is 5 % large and 20 ms early."""
    t = np.asarray(t, dtype=np.float64)
    w = 1.0 + 0.3 * k
    if source == "twin":
        return 1.05 * amplitude(k) * np.sin(w * (t + 0.02))
    if source == "gap":
        return position("twin", k, t) - position("cell", k, t)
    return amplitude(k) * np.sin(w * t)


def figures(scale: float) -> Figures:
    return Figures(rmse=scale, maximum=3 * scale, bias=-0.1 * scale, relative=0.05, n=1000)


def gap_table(scale: float, joints: tuple[str, ...] = JOINTS, *, effort: bool = True) -> GapTable:
    rows = tuple(
        JointGap(
            name=name,
            position=figures(scale * (k + 1)),
            velocity=figures(2 * scale * (k + 1)),
            effort=figures(100 * scale) if effort else None,
            command_to_motion=Lag(seconds=0.0205, correlation=0.99, signal="velocity"),
            floor={"joint.position": 1e-4} if k == 0 else {},
        )
        for k, name in enumerate(joints)
    )
    return GapTable(
        joints=rows,
        overall=JointGap(name="overall", position=figures(scale * 4)),
        samples=1000,
        start=0,
        end=10**9,
        tcp=figures(scale),
        transport=Spread(p50=0.001, p99=0.003),
    )


def scene(joints: tuple[str, ...] = JOINTS) -> Scene:
    return Scene(
        name="panda_cell",
        description="A Panda at a table.",
        robot=Robot(model="panda.urdf", joints=joints, tcp="hand", home=(0.0,) * len(joints)),
        objects=(Object(name="cube", shape=Sphere(radius=0.03)),),
        folder="/scenes/panda_cell",
    )


def geometry(joints: tuple[str, ...] = JOINTS) -> SceneGeometry:
    links = [TreeLink(name="base")]
    for k, joint in enumerate(joints):
        links.append(
            TreeLink(
                name=f"link{k + 1}",
                joint=joint,
                parent=k,
                kind="revolute",
                origin=(0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0),
                axis=(0.0, 1.0, 0.0) if k % 2 else (0.0, 0.0, 1.0),
                coordinate=k,
            )
        )
    links.append(TreeLink(name="hand", parent=len(joints)))
    tree = KinematicTree(links=tuple(links), joints=joints, tip="hand")
    box = _box(0.04, 0.13)
    meshes = [
        Mesh.of(ROBOT, link.name, (0.8, 0.8, 0.82, 1.0), *box) for link in links if link.joint
    ]
    meshes.append(Mesh.of("cube", "", (0.9, 0.6, 0.2, 1.0), *_box(0.03, 0.06)))
    return SceneGeometry(
        tree=tree, meshes=tuple(meshes), objects={"cube": (0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)}
    )


def _box(half: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    corners = np.array(
        [[x, y, z] for x in (-half, half) for y in (-half, half) for z in (0.0, height)]
    )
    faces = np.array([
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ])  # fmt: skip
    return corners, faces


def health(**changes: object) -> Health:
    figures: dict[str, object] = {
        "state": "streaming",
        "text": "streaming",
        "rate": 1000.0,
        "latency_p50": 0.0011,
        "latency_p99": 0.0032,
        "offset": 0.0012,
        "offset_bound": 0.0001,
        "age": 0.001,
        "received": 123456,
    }
    return Health(**(figures | changes))  # type: ignore[arg-type]


@dataclass
class FakeSession:
    """Time stands still unless `advance` is called or `running` is set."""

    running: bool = False
    joints: tuple[str, ...] = JOINTS
    log: list[Entry] = field(default_factory=list)
    ran: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    refuse: str = ""
    empty: bool = False
    effort: bool = True
    recording: RecordingView | None = None
    replay: ReplayView | None = None
    cell_health: Health = field(default_factory=health)
    twin_health: Health = field(default_factory=lambda: health(latency_p99=0.0004))
    twin_alive: bool = True
    twin_note: str = ""
    started: bool = False
    closed: bool = False
    now: int = 100 * 10**9
    kept: float = 90.0
    metrics: tuple[MetricView, ...] = ()
    workshop: FakeWorkshop = field(default_factory=FakeWorkshop)

    def __post_init__(self) -> None:
        self.scene = scene(self.joints)
        self._origin = time.monotonic_ns() - self.now

    @property
    def geometry(self) -> SceneGeometry | None:
        return None if self.empty else geometry(self.joints)

    def start(self) -> None:
        self.started = True
        self.say("info", "session", "started")

    def close(self) -> None:
        self.closed = True

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)

    def say(self, level: str, kind: str, text: str) -> None:
        self.log.append(Entry(len(self.log), time.time_ns(), level, kind, text))  # type: ignore[arg-type]

    def _clock(self) -> int:
        return time.monotonic_ns() - self._origin if self.running else self.now

    def snapshot(self) -> Snapshot:
        now = self._clock()
        if self.empty:
            return Snapshot(now=now, sources=())
        moment = self.moment(now)
        return Snapshot(
            now=now,
            sources=(
                SourceView(
                    "cell",
                    "emulated cell",
                    "tcp://127.0.0.1:5600",
                    self.cell_health,
                    _filled(moment.cell),
                    moment.objects,
                    True,
                ),
                SourceView(
                    "twin",
                    "PyBullet twin",
                    "tcp://127.0.0.1:5601",
                    self.twin_health,
                    _filled(moment.twin),
                    {},
                    self.twin_alive,
                    self.twin_note,
                ),
            ),
            window=gap_table(1.234e-3, self.joints, effort=self.effort),
            run=gap_table(2e-3, self.joints, effort=self.effort),
            recording=self.recording,
            replay=self.replay,
            real_time=1.0,
            lateness=0.0003,
            metrics=self.metrics,
        )

    def traces(self, query: TraceQuery) -> list[Trace]:
        if self.empty or query.signal not in UNITS:
            return []
        first, last = self.extent()
        stamps = np.linspace(query.start, query.end, query.pixels)
        held = (stamps >= first) & (stamps <= last)
        out = []
        for label in query.labels:
            for source in ("cell", "twin", "gap"):
                value = position(source, self.joints.index(label), stamps / 1e9)
                out.append(
                    Trace(
                        source,  # type: ignore[arg-type]
                        label,
                        UNITS[query.signal],
                        (stamps[held] - query.start) / 1e9,
                        value[held],
                    )
                )
        return out

    def signals(self) -> list[SignalChoice]:
        if self.empty:
            return []
        return [
            SignalChoice(name, self.joints, (unit,) * len(self.joints), ("cell", "twin"))
            for name, unit in UNITS.items()
        ]

    def moment(self, stamp: int) -> Moment:
        t = stamp / 1e9
        twin, cell = (
            np.array([float(position(name, k, t)) for k in range(len(self.joints))])
            for name in ("twin", "cell")
        )
        return Moment(stamp, twin, cell, {"cube": np.array([0.4, 0, 0, 0, 0, 0, 1.0])})

    def extent(self) -> tuple[int, int]:
        now = self._clock()
        return now - round(self.kept * 1e9), now

    def entries(self, since: int) -> list[Entry]:
        return self.log[since:]

    def commands(self) -> list[CommandInfo]:
        return [CommandInfo(name, f"Help of {name}.", args) for name, args in COMMANDS.items()]

    def run(self, command: str, **args: object) -> object:
        self.ran.append((command, args))
        if self.refuse:
            raise LinkError(self.refuse)
        if command not in COMMANDS:
            raise TwinstudioError(f"there is no command '{command}'")
        if command == "record.start":
            self.recording = RecordingView("/recordings/run-1.mcap", 0.0, 0, 0, active=True)
        elif command == "record.stop":
            self.recording = None
        elif command == "cell.replay":
            self.replay = ReplayView(str(args["log"]), 12.0, 60.0, 1.0, paused=False, loop=False)
        return None

    def submit(self, command: str, **args: object) -> Future[object]:
        """Carried out at once: what a test asked for has happened when it looks."""
        future: Future[object] = Future()
        try:
            future.set_result(self.run(command, **args))
        except TwinstudioError as error:
            self.say("alarm", command, str(error))
            future.set_exception(error)
        except ValueError as error:
            future.set_exception(error)
        return future


def _filled(values: np.ndarray | None) -> np.ndarray:
    assert values is not None
    return values


@dataclass
class AnsweringSession(FakeSession):
    """A fake session; `answers` are what its commands return or raise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.answers: dict[str, Any] = {}

    def run(self, command: str, **args: object) -> object:
        self.ran.append((command, args))
        answer = self.answers.get(command)
        if isinstance(answer, Exception):
            raise answer
        return answer(**args) if callable(answer) else answer
