"""One source of a session: its process (if ours), its link and its history."""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from twinstudio.flow.believable import astray, believable, latest
from twinstudio.flow.clock import ClockModel
from twinstudio.flow.history import History
from twinstudio.flow.link import Link
from twinstudio.flow.protocol import Description, Event
from twinstudio.model.block import Block
from twinstudio.model.signals import Layout
from twinstudio.model.views import Floats, SourceName, SourceView
from twinstudio.session.child import Child

OBJECT = "object."
POSE = ".pose"
STRAY_QUIET = 10 * 10**9
"""ns without a sample astray after which the next is told of."""


class Source:
    """Blocks arrive on the link's thread; everything else may be called from any thread.

    A new layout starts a new history: columns must not change their meaning. So
    does a clock that is behind what is held, because the source came back with it
    or it was set: its samples would otherwise all be refused as late. Samples
    whose stamp cannot be are left out of the history, told of and counted.
    """

    def __init__(  # noqa: PLR0913 - who plays, where, and who is to hear of what
        self,
        role: SourceName,
        control: str,
        *,
        joints: Sequence[str],
        budget: int,
        title: str,
        on_event: Callable[[SourceName, Event], None],
        on_description: Callable[[SourceName, Description], None],
        on_trouble: Callable[[SourceName, str], None],
        child: Child | None = None,
    ) -> None:
        """Connect to `control`; `budget` is the history's memory in bytes."""
        self.role = role
        self.control = control
        self.title = title
        self.child = child
        self._joints = tuple(joints)
        self._budget = budget
        self._on_description = on_description
        self._on_trouble = on_trouble
        self._clock_steps = 0
        self._strayed = -STRAY_QUIET
        self._history: History | None = None
        self._returned = False
        self._lock = threading.Lock()
        self._columns: list[int] | None = None
        self.link = Link(
            control,
            sinks=[self._take],
            on_event=lambda event: on_event(role, event),
            on_description=self._described,
        )

    def _described(self, description: Description) -> None:
        self._returned = True
        self._on_description(self.role, description)

    @property
    def history(self) -> History | None:
        """Samples of the present layout; None before the first block."""
        with self._lock:
            return self._history

    @property
    def layout(self) -> Layout | None:
        """The layout in force; None before the first block."""
        history = self.history
        return history.layout if history is not None else None

    @property
    def clock(self) -> ClockModel | None:
        """Maps this source's stamps to the session's clock."""
        return self.link.clock

    def _take(self, block: Block) -> None:
        self._mind_clock(block)
        block = believable(block, self.clock)
        if not len(block):
            return
        with self._lock:
            if self._history is None or self._must_start_anew(self._history, block):
                self._history = History(block.layout, self._budget)
                self._columns = _joint_columns(block.layout, self._joints)
            history = self._history
        history.append(block)

    def _must_start_anew(self, history: History, block: Block) -> bool:
        returned, self._returned = self._returned, False
        span = history.span()
        behind = returned and span is not None and bool(block.stamps[0] <= span[1])
        return behind or history.layout != block.layout or self._lies_ahead(span, block)

    def _lies_ahead(self, span: tuple[int, int] | None, block: Block) -> bool:
        """Whether what is held lies in the future, so that all to come would be refused."""
        clock = self.clock
        if span is None or clock is None or block.received is None:
            return False
        return span[1] > latest(clock, block.received)

    def _mind_clock(self, block: Block) -> None:
        """Tell of a clock that was set, and now and then of stamps that cannot be."""
        clock, steps = self.clock, self.link.clock_steps
        if steps > self._clock_steps:
            self._on_trouble(self.role, "its clock was set while it ran; what is held may jump")
        self._clock_steps = steps
        wrong = astray(block, clock)
        if wrong is None or clock is None or block.received is None:
            return
        if block.received - self._strayed > STRAY_QUIET:
            off = (int(block.stamps[wrong][0]) - latest(clock, block.received)) / 1e9
            self._on_trouble(self.role, _stray_text(off))
        self._strayed = block.received

    def view(self, note: str) -> SourceView:
        """How this source looks now."""
        history = self.history
        latest = history.latest() if history is not None else None
        row = latest.values[-1] if latest is not None else None
        return SourceView(
            role=self.role,
            title=self.title,
            control=self.control,
            health=self.link.health(),
            joints=self.joints_of(row),
            objects=self.objects_of(row),
            running=self.child is None or self.child.running,
            note=note,
        )

    def joints_of(self, row: Floats | None) -> Floats:
        """Joint positions of one sample in the scene's order, NaN where unknown."""
        if row is None or self._columns is None:
            return np.full(len(self._joints), np.nan)
        return np.array([row[k] if k >= 0 else np.nan for k in self._columns])

    def objects_of(self, row: Floats | None) -> dict[str, Floats]:
        """Poses of the objects this source reports, name -> float64[7]."""
        layout = self.layout
        if row is None or layout is None:
            return {}
        return {
            name.removeprefix(OBJECT).removesuffix(POSE): row[layout.span(name)].copy()
            for name in layout.names
            if name.startswith(OBJECT) and name.endswith(POSE)
        }

    def close(self) -> None:
        """Close the link and end the process, if it is ours."""
        self.link.close()
        if self.child is not None:
            self.child.stop()


def _stray_text(off: float) -> str:
    side = "ahead of" if off > 0 else "behind"
    return (
        f"a sample is stamped {abs(off):.3g} s {side} its clock: such samples are counted,"
        " recorded, and neither drawn nor compared; are samples and pings stamped by one clock?"
    )


def _joint_columns(layout: Layout, joints: Sequence[str]) -> list[int]:
    """Column of every joint's position, -1 for one the source does not have."""
    if "joint.position" not in layout:
        return [-1] * len(joints)
    labels = layout.signal("joint.position").labels
    start = layout.span("joint.position").start
    return [start + labels.index(joint) if joint in labels else -1 for joint in joints]
