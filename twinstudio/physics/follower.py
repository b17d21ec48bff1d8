"""How a twin runs beside its cell: which command it is under, when it is set to it."""

from typing import Protocol

import msgspec

from twinstudio.flow.protocol import Description, Level
from twinstudio.model.block import Stamps, Values
from twinstudio.model.errors import LayoutError
from twinstudio.model.scene import TwinMode
from twinstudio.model.signals import Layout
from twinstudio.physics.cellview import cell_view
from twinstudio.physics.inverse import InverseDynamics
from twinstudio.physics.motion import Motion, Motions, between
from twinstudio.physics.stepper import Row, Stepper
from twinstudio.physics.track import Inbox, Sample, Track
from twinstudio.physics.world import CommandKind, World

QUIET = 1_000_000_000
"""ns between two events that tell of a twin that strays; all are counted."""


class Outlet(Protocol):
    """Where a follower sends what it has to tell."""

    def tell(self, level: Level, code: str, text: str) -> None:
        """Something happened once."""

    def relayout(self, layout: Layout) -> None:
        """Rows that are not taken yet must be taken now; then `layout` is in force."""


class Counts(msgspec.Struct, kw_only=True):
    """What happened so far; all only go up.

    late: cell samples that came after the instant they were for, and were used at
    once. stale: samples left out, as their time does not advance, or cannot be. missing:
    readings that were NaN or absurd, so the last one held. resynchronised: how often
    the twin was set to the cell, the first time not counted.
    """

    late: int = 0
    stale: int = 0
    missing: int = 0
    resynchronised: int = 0


class Follower:
    """Steps a world under, or along with, the samples of a cell.

    Without a cell the robot is held at home. At the first sample the twin is set
    to the cell. When samples stop, the last one holds; when the cell comes back as
    another instance, the twin is set to it once. All on one thread.
    """

    def __init__(self, world: World, mode: TwinMode, outlet: Outlet) -> None:
        self._world = world
        self._outlet = outlet
        self._home = list(world.scene.robot.home)
        self._still = [0.0] * len(self._home)
        self._inverse = InverseDynamics(world.scene)
        self._counts = Counts()
        self._mode: TwinMode = mode
        self._instant: int | None = None
        self._description: Description | None = None
        self._track: Track | None = None
        self._sample: Sample | None = None
        self._to_set = ""
        self._quiet_until = 0
        self._motions = Motions(self._inverse)
        self._now: Motion | None = None
        self._next: Motion | None = None
        self._target: Row = self._home
        self._stepper = Stepper(world, "position")

    @property
    def mode(self) -> TwinMode:
        """How the twin runs beside its cell."""
        return self._mode

    @property
    def layout(self) -> Layout:
        """What the columns of `take` mean."""
        return self._stepper.layout

    @property
    def counts(self) -> Counts:
        """What happened so far."""
        now, track = msgspec.structs.replace(self._counts), self._track
        if track is not None:
            now.late += track.late
            now.stale += track.stale
            now.missing += track.missing
        return now

    def close(self) -> None:
        """Let go of the inverse dynamics; the world stays."""
        self._inverse.close()

    def take(self) -> tuple[Stamps, Values]:
        """Rows since the last call: int64[n] ns, float64[n, layout.width]."""
        return self._stepper.take()

    def take_in(self, inbox: Inbox) -> None:
        """Take over what the cell sent."""
        while (item := inbox.next()) is not None:
            if isinstance(item, Description):
                self._adopt(item)
            elif self._track is not None:
                block, clock = item
                assert clock is not None
                self._track.add(block, clock, self._instant if self._sample else None)

    def step(self, instant: int) -> None:
        """One step of the world, at `instant` [ns, our clock]."""
        self._instant = instant
        sample = self._track.due(instant) if self._track is not None else None
        if sample is not None:
            self._sample = sample
            if self._to_set:
                self._set_to(sample)
            self._use(sample)
        if self._now is not None:
            self._impose(self._now, instant)
        else:
            self._stepper.advance(instant, self._target)

    # ------------------------------------------------------------ between steps

    def set_mode(self, mode: TwinMode) -> None:
        """Run in another way from now on.

        Raises LayoutError if the cell lacks what the mode needs.
        """
        if self._track is not None:
            self._track.view.must_serve(mode)
        self._mode = mode
        self._motions.forget()
        self._next = None
        self._world.release()
        self._stepper.forget_command()
        if self._track is None and self._description is not None:
            self._adopt(self._description)
        elif self._sample is not None:
            self._use(self._sample)

    def reset(self) -> None:
        """Robot and objects at their start; then set to the cell again, if there is one."""
        self._world.reset()
        self._stepper.forget_command()
        if self._track is None:
            self._hold(self._home)
        else:
            self._to_set = "synchronised"

    def let_go(self) -> None:
        """Forget the cell and hold the robot where it is."""
        self._forget_track()
        self._description = None
        self._hold(self._world.joint_state()[0].tolist())

    def _hold(self, position: Row) -> None:
        self._sample = self._now = None
        self._target = position
        self._drive_by("position")

    def _adopt(self, description: Description) -> None:
        """Read what follows as `description` says."""
        last = self._description
        self._description = description
        self._forget_track()
        try:
            view = cell_view(description.layout, self._world)
            view.must_serve(self._mode)
        except LayoutError as error:
            self._outlet.tell("alarm", "cell-unusable", f"the twin cannot follow: {error}")
            return
        self._track = Track(view, self._home)
        if last is None or self._sample is None:
            self._to_set = "synchronised"
        elif last.instance != description.instance:
            self._to_set = "resynchronised"
        elif view.kind != self._stepper.command:
            self._to_set = "synchronised"

    def _forget_track(self) -> None:
        self._counts = self.counts
        self._track = None

    def _drive_by(self, kind: CommandKind | None) -> None:
        """Let commands of `kind` move the robot, or none; changes the layout to fit."""
        self._world.release()
        if kind == self._stepper.command:
            self._stepper.forget_command()
            return
        stepper = Stepper(self._world, kind)
        self._outlet.relayout(stepper.layout)
        self._stepper = stepper

    # ------------------------------------------------------------ samples

    def _set_to(self, sample: Sample) -> None:
        """Set the robot to the cell and say so."""
        code, self._to_set = self._to_set, ""
        self._motions.forget()
        self._next = None
        assert self._track is not None
        self._drive_by(self._track.view.kind)
        if code == "resynchronised":
            self._counts.resynchronised += 1
        if not sample.position:
            text = "the cell tells no joint positions: the twin starts from where it stands"
            self._outlet.tell("warning", code, text)
            return
        self._world.reset(sample.position, sample.velocity or None)
        why = "at its first sample" if code == "synchronised" else "after it started anew"
        self._outlet.tell("info", code, f"the twin was set to the cell {why}")

    def _use(self, sample: Sample) -> None:
        """Let a sample act from this step on."""
        if self._mode == "following":
            following = self._next is not None and self._next.time == sample.time
            self._now = self._next if following else self._motions.of(sample)
            return
        self._now = self._next = None
        self._target = sample.command
        if self._mode == "resynchronised":
            self._check(sample)

    def _impose(self, now: Motion, instant: int) -> None:
        """A step with the robot where the cell was at `instant`.

        The twin is behind the cell, so that the sample after is mostly here already.
        """
        ahead = self._track.ahead() if self._track is not None else None
        if ahead is not None and (self._next is None or self._next.time != ahead.time):
            self._next = self._motions.of(ahead)
        motion = between(now, self._next if ahead is not None else None, instant)
        command = self._sample.command if self._sample is not None else None
        state = (motion.position, motion.velocity)
        self._stepper.impose(instant, state, motion.effort, command or None)

    def _check(self, sample: Sample) -> None:
        """Set the robot to the cell if a joint is too far off."""
        limit = self._world.scene.twin.resync_above
        twin = self._world.joint_state()[0].tolist()
        off = [abs(a - b) for a, b in zip(twin, sample.position, strict=True)]
        if max(off) <= limit:
            return
        worst = off.index(max(off))
        self._world.set_joints(sample.position, sample.velocity or self._still)
        self._stepper.moved()
        self._counts.resynchronised += 1
        if sample.time < self._quiet_until:
            return
        self._quiet_until = sample.time + QUIET
        joint = self._world.joints[worst]
        unit = "m" if joint in self._world.prismatic else "rad"
        text = (
            f"the twin was set to the cell: {joint} was off by {max(off):.3g} {unit}"
            f" ({self._counts.resynchronised} times so far)"
        )
        self._outlet.tell("warning", "resynchronised", text)
