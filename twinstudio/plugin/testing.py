"""For authors: data with a known truth, a context to run in, and a check of all rules.

::

    from twinstudio.plugin.testing import check_plugin, make_pair

    def test_that_the_plugin_keeps_the_rules() -> None:
        assert check_plugin(WorstJoint) == []
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Block
from twinstudio.model.pair import Pair
from twinstudio.model.params import Params
from twinstudio.model.scene import Box, Object, Scene, load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.context import Cancelled, fraction_of, one_by_one, workers_of
from twinstudio.plugin.kinds import Finding, Plugin
from twinstudio.plugin.trials import Trial, check

A = TypeVar("A")
B = TypeVar("B")
Floats = NDArray[np.float64]
KINDS = ("joint.position", "joint.velocity", "joint.effort", "command.position")

__all__ = [
    "FakeContext",
    "check_plugin",
    "make_block",
    "make_pair",
    "make_scene",
]


class FakeContext:
    """A JobContext for tests: remembers what it is told, and can cancel.

    said: (fraction, message) of every progress. lines: the log.
    cancel_after: number of check-ins (progress or checkpoint) that pass before
    Cancelled is raised; never if None.
    The scratch folder is made on first use and goes with the context.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        inputs: Mapping[str, Path] | None = None,
        cancel_after: int | None = None,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: Mapping[str, Path] = dict(inputs or {})
        self.said: list[tuple[float, str]] = []
        self.lines: list[str] = []
        self._left = cancel_after
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def scratch(self) -> Path:
        """An empty folder of this context alone."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="twinstudio-scratch-")
        return Path(self._folder.name)

    def close(self) -> None:
        """Remove the scratch folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def progress(self, fraction: float, message: str = "") -> None:
        """Remember it; raises JobError outside of 0 to 1, Cancelled when due."""
        self.checkpoint()
        self.said.append((fraction_of(fraction), message))

    def checkpoint(self) -> None:
        """Raise Cancelled when the check-ins are used up."""
        if self._left is None:
            return
        if self._left == 0:
            raise Cancelled
        self._left -= 1

    def log(self, text: str) -> None:
        """Remember a line."""
        self.lines.append(text)

    def map(self, work: Callable[[A], B], items: Iterable[A], *, workers: int = 1) -> list[B]:
        """Results one after the other, in this process, whatever `workers` is."""
        workers_of(workers)
        return one_by_one(self, work, items)


def make_block(
    *,
    joints: int = 2,
    seconds: float = 2.0,
    rate: float = 500.0,
    offsets: Sequence[float] = (),
    late: float = 0.0,
) -> Block:
    """A smooth motion of `joints` joints as a block, without noise.

    offsets: added to the position of each joint [rad]. late: delay of the motion
    behind its command [s]. Signals: joint.position, joint.velocity, joint.effort,
    command.position.
    """
    stamps = np.rint(np.arange(round(seconds * rate)) * 1e9 / rate).astype(np.int64)
    shift = np.zeros(joints) if len(offsets) == 0 else np.asarray(offsets, dtype=np.float64)
    command, _, _ = _motion(stamps * 1e-9, joints)
    position, velocity, acceleration = _motion(stamps * 1e-9 - late, joints)
    effort = 0.5 * acceleration + 0.2 * velocity
    layout = Layout(joint_signals([f"joint{k + 1}" for k in range(joints)], kinds=KINDS))
    return Block(layout, stamps, np.hstack([position + shift, velocity, effort, command]))


def make_pair(
    *,
    joints: int = 2,
    seconds: float = 2.0,
    rate: float = 500.0,
    offsets: Sequence[float] = (),
    late: float = 0.0,
) -> Pair:
    """A pair whose gap is known: the cell moves, the twin is off by `offsets` and `late`.

    offsets: twin minus cell in the position of each joint [rad], none by default.
    late: how far the twin's motion is behind the cell's [s].
    """
    cell = make_block(joints=joints, seconds=seconds, rate=rate)
    twin = make_block(joints=joints, seconds=seconds, rate=rate, offsets=offsets, late=late)
    return Pair(cell.layout, cell.stamps, np.array(twin.values), np.array(cell.values))


def make_scene() -> Scene:
    """A complete scene: one axis, and a cube of 0.2 kg and friction 0.5 beside it."""
    cube = Object(name="cube", shape=Box(size=(0.04, 0.04, 0.04)), mass=0.2, friction=0.5)
    return msgspec.structs.replace(load_scene("emps_axis"), objects=(cube,))


def check_plugin(
    cls: type[Plugin[Any]],
    params: Params | None = None,
    *,
    pair: Pair | None = None,
    scene: Scene | None = None,
) -> list[Finding]:
    """Everything wrong with plugin class `cls`; [] for a sound one.

    Looks at class and parameters, then runs what can be run without a robot:
    twice with one seed, on good data and on data without a reading.
    params: the defaults if None. pair, scene: synthetic ones if None.
    """
    data = Trial(
        pair=pair or make_pair(offsets=(0.001, -0.002)),
        scene=scene or make_scene(),
        block=make_block(),
        context=FakeContext,
    )
    return check(cls, params, data)


def _motion(time: Floats, joints: int) -> tuple[Floats, Floats, Floats]:
    """Position, velocity, acceleration of joint k: a sine of 0.4 + 0.1 k Hz, 0.5 rad."""
    omega = 2.0 * np.pi * (0.4 + 0.1 * np.arange(joints, dtype=np.float64))
    sine: Floats = np.sin(time[:, None] * omega)
    cosine: Floats = np.cos(time[:, None] * omega)
    velocity: Floats = 0.5 * omega * cosine
    acceleration: Floats = -0.5 * omega * omega * sine
    return 0.5 * sine, velocity, acceleration
