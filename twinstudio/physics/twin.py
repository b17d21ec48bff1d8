"""The live twin: a process that steps the world in real time beside a cell.

The twin runs a little behind the cell's clock (`scene.twin.behind`), so that each
command is there before it is needed: at a step due at time t the simulation is
at the instant t - behind, and uses the newest cell sample not later than that
instant, mapped to this machine's clock. Samples are published with that instant
as their stamp, so twin and cell pair without any correction for latency.
"""

import gc
import queue
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import msgspec

from twinstudio.flow.lifetime import Lifetime
from twinstudio.flow.link import Link
from twinstudio.flow.protocol import Level, Operation
from twinstudio.flow.serve import Endpoint, Handler
from twinstudio.model.errors import LinkError
from twinstudio.model.patches import load_patched
from twinstudio.model.scene import Scene, TwinMode
from twinstudio.model.signals import Layout
from twinstudio.physics.follower import Follower
from twinstudio.physics.pacing import Pacer
from twinstudio.physics.quiet import keep_output_clean
from twinstudio.physics.track import Inbox
from twinstudio.physics.world import World

__all__ = ["TwinServer", "serve"]

PUBLISH_EVERY = 10_000_000
"""ns between two blocks."""
LOOK_EVERY = 500_000_000
"""ns between two looks at how the cell's link is doing."""
PATIENCE = 10.0
"""s that a request may wait for its turn between two steps."""
GLANCE = 0.1
"""s between two looks at whether the twin still runs, while a request waits."""
_SWITCH = 0.5e-3
MODES: tuple[TwinMode, ...] = ("commanded", "following", "resynchronised")


def serve(
    scene_path: Path | str,
    *,
    control_port: int = 0,
    attached: bool = False,
    follow: str | None = None,
    mode: str | None = None,
    free: bool = False,
) -> None:
    """Run the twin of a scene until the process is told to end; the main thread.

    Prints ``{"control": "tcp://..."}`` when it is ready. follow: control address of
    the cell. mode: instead of the scene's. free: run as fast as possible.
    Raises SceneError or PhysicsError if the world cannot be built, LinkError for an
    address or port that cannot be used.
    """
    keep_output_clean()
    lifetime = Lifetime(attached=attached)
    scene = load_patched(scene_path)
    # The receiving threads must not hold the interpreter for a whole step.
    sys.setswitchinterval(_SWITCH)
    with TwinServer(scene, mode=checked_mode(mode or scene.twin.mode), end=lifetime.end) as server:
        server.open(control_port)
        if follow is not None:
            server.follow(follow)
        gc.collect()
        gc.freeze()
        lifetime.announce(server.endpoint.control)
        server.run(Pacer(scene.simulation.step, free=free), until=lambda: lifetime.over)


def checked_mode(mode: object) -> TwinMode:
    """`mode` if there is such a mode; raises LinkError listing them."""
    for known in MODES:
        if mode == known:
            return known
    raise LinkError(f"there is no mode '{mode!s:.40}'", hint=f"there are {', '.join(MODES)}")


class TwinServer:
    """World, follower and endpoint of one twin; steps run on the thread of `run`.

    end: called when a client asks the process to stop.
    """

    def __init__(self, scene: Scene, *, mode: TwinMode, end: Callable[[], None]) -> None:
        self.scene = scene
        self._end = end
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._endpoint: Endpoint | None = None
        self._pacer: Pacer | None = None
        self._inbox = Inbox()
        self._link: Link | None = None
        self._cell_state = ""
        self._world = World(scene)
        try:
            self._geometry = msgspec.to_builtins(self._world.geometry(), builtin_types=(bytes,))
            self._follower = Follower(self._world, mode, self)
        except BaseException:
            self._world.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, control_port: int = 0) -> None:
        """Start to answer requests; raises LinkError if the port is taken."""
        self._endpoint = Endpoint(
            role="twin",
            name="PyBullet twin",
            layout=self._follower.layout,
            rate=round(1.0 / self.scene.simulation.step, 6),
            scene=self.scene.name,
            control_port=control_port,
            operations=self._operations(),
        )
        for note in self._world.notes:
            self.tell("warning", "drawing", note)

    @property
    def endpoint(self) -> Endpoint:
        """Where samples go and requests come from; raises LinkError before `open`."""
        if self._endpoint is None:
            raise LinkError("the twin is not open yet")
        return self._endpoint

    def close(self) -> None:
        """Let go of cell, port and world."""
        for part in (self._link, self._endpoint, self._follower, self._world):
            if part is not None:
                part.close()

    def run(self, pacer: Pacer, *, until: Callable[[], bool]) -> None:
        """Step, publish and do what is asked, until `until` says so."""
        self._pacer = pacer
        try:
            self._loop(pacer, until)
        finally:
            self._pacer = None

    def _loop(self, pacer: Pacer, until: Callable[[], bool]) -> None:
        follower, calls = self._follower, self._calls
        behind = round(self.scene.twin.behind * 1e9)
        published = looked = stalls = 0
        while not until():
            due, now = pacer.next()
            follower.take_in(self._inbox)
            follower.step(due - behind)
            if now - published >= PUBLISH_EVERY:
                published = now
                self.endpoint.publish(*follower.take())
            if now - looked >= LOOK_EVERY:
                looked = now
                self._look_at_cell()
                stalls = self._tell_stalls(pacer, stalls)
            while not calls.empty():
                _carry_out(*calls.get())

    # ------------------------------------------------------------ what happened

    def tell(self, level: Level, code: str, text: str) -> None:
        """Publish an event."""
        if self._endpoint is not None:
            self._endpoint.event(level, code, text)

    def relayout(self, layout: Layout) -> None:
        """Publish what was measured so far, then go on with another layout."""
        if self._endpoint is not None:
            self._endpoint.publish(*self._follower.take())
            self._endpoint.relayout(layout)

    def _look_at_cell(self) -> None:
        """Tell of a cell that went silent or came back."""
        state = self._link.health().state if self._link is not None else ""
        if state == self._cell_state:
            return
        if self._cell_state == "streaming":
            self.tell("warning", "cell-lost", "nothing comes from the cell: the twin holds on")
        elif state == "streaming":
            self.tell("info", "cell-found", "samples come from the cell")
        self._cell_state = state

    def _tell_stalls(self, pacer: Pacer, known: int) -> int:
        if pacer.stalls != known:
            left = pacer.left_out / 1e9
            often = "once" if pacer.stalls == 1 else f"{pacer.stalls} times"
            text = f"the twin fell behind {often} and left out {left:.3f} s in all"
            self.tell("warning", "stalled", text)
        return pacer.stalls

    # ------------------------------------------------------------ requests

    def _operations(self) -> dict[str, Handler]:
        line = {"from": "start [x, y, z] m", "to": "end [x, y, z] m"}
        offered: list[tuple[Callable[..., Any], str, dict[str, str]]] = [
            (self.status, "How the twin is doing", {}),
            (self.mode, "Choose how it runs beside the cell", {"mode": ", ".join(MODES)}),
            (self.follow, "Follow a cell", {"control": "its address, tcp://host:port"}),
            (self.unfollow, "Let go of the cell", {}),
            (self.reset, "Put robot and objects at their start", {}),
            (self.geometry, "Kinematic tree and triangles of the scene", {}),
            (self.ray, "What a straight line meets first", line),
            (self.stop, "End the process", {}),
        ]
        return {
            call.__name__: Handler(
                Operation(name=call.__name__, help=text, args=args), _checked(call, args)
            )
            for call, text, args in offered
        }

    def status(self) -> dict[str, Any]:
        """Pace, mode and counts; times in s."""
        pacer = self._pacer
        pace = msgspec.to_builtins(pacer.pace()) if pacer is not None else {}
        return {
            **pace,
            "mode": self._follower.mode,
            "following": self._link.control if self._link is not None else "",
            "cell": self._cell_state,
            "behind": self.scene.twin.behind,
            **msgspec.to_builtins(self._follower.counts),
            "unread": self._inbox.dropped,
        }

    def mode(self, mode: object) -> None:
        """Run in another way; raises LayoutError if the cell lacks what it needs."""
        chosen = checked_mode(mode)
        self._between_steps(lambda: self._follower.set_mode(chosen))

    def follow(self, control: object) -> None:
        """Follow the cell at `control` instead of another; raises LinkError if it is no address."""
        if not isinstance(control, str):
            raise LinkError("'control' must be an address such as tcp://127.0.0.1:5600")
        inbox = Inbox()
        link = inbox.connect(control)
        self._between_steps(lambda: self._exchange(inbox, link))

    def unfollow(self) -> None:
        """Let go of the cell and hold the robot where it is."""
        self._between_steps(lambda: self._exchange(Inbox(), None))

    def reset(self) -> None:
        """Put robot and objects at their start."""
        self._between_steps(self._follower.reset)

    def geometry(self) -> Any:
        """The SceneGeometry as plain data."""
        return self._geometry

    def ray(self, start: object, end: object) -> Any:
        """The Hit as plain data, or None."""
        a, b = _point(start, "from"), _point(end, "to")
        return msgspec.to_builtins(self._between_steps(lambda: self._world.ray(a, b)))

    def stop(self) -> None:
        """End the process, soon after the reply."""
        self._end()

    def _exchange(self, inbox: Inbox, link: Link | None) -> None:
        old, self._link, self._inbox = self._link, link, inbox
        if old is not None:
            old.close()
            self._follower.let_go()

    def _between_steps(self, call: Callable[[], Any]) -> Any:
        """Carry out `call` on the stepping thread, and wait for its result."""
        if self._pacer is None:
            return call()
        done: Future[Any] = Future()
        self._calls.put((call, done))
        for _ in range(round(PATIENCE / GLANCE)):
            try:
                return done.result(timeout=GLANCE)
            except TimeoutError:
                if self._pacer is None:
                    raise LinkError("the twin is ending") from None
        raise LinkError(f"the twin did not get to it within {PATIENCE:g} s")


def _carry_out(call: Callable[[], Any], done: Future[Any]) -> None:
    try:
        done.set_result(call())
    except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
        done.set_exception(error)


def _checked(call: Callable[..., Any], args: dict[str, str]) -> Callable[[dict[str, Any]], Any]:
    """`call` as a handler that wants exactly the arguments `args`, in that order."""

    def handle(given: dict[str, Any]) -> Any:
        if given.keys() != args.keys():
            wanted = ", ".join(args) or "no arguments"
            raise LinkError(f"got {', '.join(given) or 'no arguments'}", hint=f"give {wanted}")
        return call(*(given[name] for name in args))

    return handle


def _point(given: object, name: str) -> tuple[float, float, float]:
    try:
        return msgspec.convert(given, tuple[float, float, float])
    except msgspec.ValidationError:
        raise LinkError(f"'{name}' must be three numbers, x, y, z in m") from None
