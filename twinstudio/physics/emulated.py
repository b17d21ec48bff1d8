"""The emulated cell as a process: what stands in for a robot where there is none.

It runs on MuJoCo, an engine the twin does not share, with friction, motors,
sensors and delays of its own from ``cell.toml``, which the twin never reads.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from twinstudio.flow.lifetime import Lifetime
from twinstudio.flow.protocol import Operation
from twinstudio.flow.serve import Endpoint, Handler
from twinstudio.model.errors import LinkError, TwinstudioError
from twinstudio.model.scene import load_scene
from twinstudio.physics.cellfaults import NAMES, Faults, LossyEndpoint, flag, number, only
from twinstudio.physics.emulatedcell import RATE, EmulatedCell, emulated_cell

__all__ = ["CellServer", "EmulatedCell", "emulated_cell", "serve"]

MOST_BEHIND = 250_000_000  # ns, by which the cell catches up; beyond that it leaves time out
REMEMBERED = 4000  # blocks of which the lateness is kept


def serve(
    scene_path: Path | str, *, control_port: int = 0, attached: bool = False, seed: int = 0
) -> None:
    """Run the emulated cell of a scene in real time until the process is told to end.

    Prints ``{"control": "tcp://..."}`` when it is ready. Raises SceneError or
    PhysicsError if the cell cannot be built or its motion diverges, LinkError if
    the port is taken.
    """
    lifetime = Lifetime(attached=attached)
    scene = load_scene(scene_path)
    cell = emulated_cell(scene, np.random.default_rng(seed), start=time.monotonic_ns())
    server = CellServer(cell, end=lifetime.end)
    with LossyEndpoint(
        role="cell",
        name="emulated cell",
        layout=cell.layout,
        rate=RATE,
        scene=scene.name,
        control_port=control_port,
        operations=server.operations(),
    ) as endpoint:
        lifetime.announce(endpoint.control)
        try:
            server.run(endpoint, until=lambda: lifetime.over)
        except TwinstudioError as error:
            endpoint.event("alarm", "diverged", str(error))
            raise


class CellServer:
    """Steps a cell in real time and carries out what its endpoint is asked for."""

    def __init__(self, cell: EmulatedCell, *, end: Callable[[], None]) -> None:
        self._cell = cell
        self._end = end
        self._faults = Faults(cell)
        # Requests come on the endpoint's thread, between blocks.
        self._lock = threading.Lock()
        self._late: deque[int] = deque(maxlen=REMEMBERED)
        self._left_out = 0
        self._begun: int | None = None

    def run(self, endpoint: LossyEndpoint, *, until: Callable[[], bool]) -> None:
        """Publish block after block, each when its last sample is due."""
        self._begun = time.monotonic_ns()
        self._cell.move_clock(self._begun - self._cell.next_stamp)
        while not until():
            with self._lock:
                block = self._cell.advance()
                spoilt = self._faults.spoil(block)
                lose, self._faults.to_lose = self._faults.to_lose, 0
            late = _wait(int(block.stamps[-1]))
            with self._lock:
                self._late.append(late)
            endpoint.lose += lose
            if spoilt is not None:
                endpoint.publish(*spoilt)
            if late > MOST_BEHIND:
                self._catch_up(endpoint, late)

    def operations(self) -> dict[str, Handler]:
        """What the cell can be asked for, by name."""
        offered: list[tuple[Callable[[dict[str, Any]], Any], str, dict[str, str]]] = [
            (self.status, "How the cell is doing", {}),
            (self.program, "Start or halt the motion, smoothly", {"run": "true or false"}),
            (self.speed, "Scale the speed of the motion", {"factor": "0 to 1"}),
            (self.temperature, "Change the temperature around", {"ambient": "degC, -40 to 80"}),
            (self.fault, "Switch a fault on or off", _FAULT_ARGUMENTS),
            (self.stop, "End the process", {}),
        ]
        return {
            call.__name__: Handler(Operation(name=call.__name__, help=text, args=args), call)
            for call, text, args in offered
        }

    def status(self, args: dict[str, Any]) -> dict[str, Any]:
        """Motion, heat, faults and timing; times in s."""
        only(args)
        with self._lock:
            cell, player = self._cell, self._cell.player
            late = list(self._late)
            told = {
                "running": player.running,
                "speed": player.factor,
                "rate": player.rate,
                "program_time": player.time,
                "real_time": self._real_time(),
                "left_out": self._left_out / 1e9,
                "ambient": cell.heat.ambient,
                "case_temperature": cell.heat.case.tolist(),
                "winding_temperature": cell.heat.winding.tolist(),
                "payload": cell.plant.payload.mass,
                "faults": sorted(self._faults.active),
            }
        # The cell must not wait for statistics.
        return told | {"lateness_p50": _late(late, 50.0), "lateness_p99": _late(late, 99.0)}

    def program(self, args: dict[str, Any]) -> None:
        """run: whether the cell moves."""
        only(args, "run")
        run = flag(args, "run")
        with self._lock:
            self._cell.player.running = run

    def speed(self, args: dict[str, Any]) -> None:
        """factor: of the program's own speed."""
        only(args, "factor")
        factor = number(args, "factor", 0.0, 1.0)
        with self._lock:
            self._cell.player.factor = factor

    def temperature(self, args: dict[str, Any]) -> None:
        """ambient: degC."""
        only(args, "ambient")
        ambient = number(args, "ambient", -40.0, 80.0)
        with self._lock:
            self._cell.heat.ambient = ambient

    def fault(self, args: dict[str, Any]) -> list[str]:
        """Switch a fault; returns the names of those that are on."""
        only(args, *_FAULT_ARGUMENTS)
        name, on, joint = args.get("name"), flag(args, "on"), args.get("joint")
        if not isinstance(name, str) or not isinstance(joint, str | None):
            raise LinkError("'name' and 'joint' are texts", hint=f"faults: {', '.join(NAMES)}")
        value = number(args, "value", 0.0, 1e9) if "value" in args else None
        with self._lock:
            self._faults.switch(name, on, value, joint)
            return sorted(self._faults.active)

    def stop(self, args: dict[str, Any]) -> None:
        """End the process, soon after the reply."""
        only(args)
        self._end()

    def _catch_up(self, endpoint: Endpoint, late: int) -> None:
        """Leave out the time by which the cell is `late` [ns], and say so."""
        with self._lock:
            self._cell.move_clock(late)
            self._left_out += late
        endpoint.event(
            "warning", "behind", f"the cell fell {late / 1e6:.0f} ms behind and left them out"
        )

    def _real_time(self) -> float | None:
        """Simulated over elapsed time since the start."""
        if self._begun is None:
            return None
        elapsed = time.monotonic_ns() - self._begun
        return (self._cell.next_stamp - self._begun - self._left_out) / max(elapsed, 1)


_FAULT_ARGUMENTS = {
    "name": ", ".join(NAMES),
    "on": "true or false",
    "value": "how much: heat W, payload kg, snag N m or N, drop messages",
    "joint": "which joint snags",
}


def _wait(due: int) -> int:
    """Sleep until `due` [ns, monotonic clock]; returns how late it then is [ns]."""
    while (left := due - time.monotonic_ns()) > 0:
        time.sleep(left / 1e9)
    return -left


def _late(nanoseconds: list[int], percent: float) -> float | None:
    """A percentile in s, None of nothing."""
    return float(np.percentile(nanoseconds, percent)) / 1e9 if nanoseconds else None
