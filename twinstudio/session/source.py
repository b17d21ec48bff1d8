"""One source of a session: its process (if ours), its link and its history."""

import threading
from collections.abc import Callable, Sequence

import numpy as np

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


class Source:
    """Blocks arrive on the link's thread; everything else may be called from any thread.

    A new layout starts a new history: columns must not change their meaning. So
    does a source that comes back with a clock that is behind, since its samples
    would otherwise all be refused as late.
    """

    def __init__(
        self,
        role: SourceName,
        control: str,
        *,
        joints: Sequence[str],
        budget: int,
        title: str,
        on_event: Callable[[SourceName, Event], None],
        on_description: Callable[[SourceName, Description], None],
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
        return behind or history.layout != block.layout

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


def _joint_columns(layout: Layout, joints: Sequence[str]) -> list[int]:
    """Column of every joint's position, -1 for one the source does not have."""
    if "joint.position" not in layout:
        return [-1] * len(joints)
    labels = layout.signal("joint.position").labels
    start = layout.span("joint.position").start
    return [start + labels.index(joint) if joint in labels else -1 for joint in joints]
