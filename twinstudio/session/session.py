"""The composition root: one scene, its twin, its cell, and everything between."""

from twinstudio.model.geometry import SceneGeometry
from twinstudio.model.scene import Scene
from twinstudio.model.views import (
    CommandInfo,
    Entry,
    Moment,
    SignalChoice,
    Snapshot,
    Trace,
    TraceQuery,
)


class Session:
    """Everything a face (window, console, script) needs; thread-safe; knows no Qt.

    Views are pulled; nothing calls back into a face.
    """

    scene: Scene

    @property
    def geometry(self) -> SceneGeometry | None:
        """What to draw, as soon as the twin has told; None until then."""
        raise NotImplementedError

    def start(self) -> None:
        """Start twin and cell in the background; returns at once."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop everything and wait until no thread and no process is left."""
        raise NotImplementedError

    def snapshot(self) -> Snapshot:
        """The newest picture; cheap (under 1 ms), call it once a frame."""
        raise NotImplementedError

    def traces(self, query: TraceQuery) -> list[Trace]:
        """Decimated lines of cell, twin and gap for one signal; cheap."""
        raise NotImplementedError

    def signals(self) -> list[SignalChoice]:
        """What can be plotted now."""
        raise NotImplementedError

    def moment(self, stamp: int) -> Moment:
        """Twin and cell at a past instant [ns, session clock], for scrubbing."""
        raise NotImplementedError

    def extent(self) -> tuple[int, int]:
        """First and last instant that history still holds [ns, session clock]."""
        raise NotImplementedError

    def entries(self, since: int) -> list[Entry]:
        """Log entries with seq >= since, oldest first."""
        raise NotImplementedError

    def commands(self) -> list[CommandInfo]:
        """Every named command; a face offers them, `run` carries them out."""
        raise NotImplementedError

    def run(self, command: str, **args: object) -> object:
        """Carry out a command by name; raises TwinstudioError in plain words.

        Also written to the session log as a line that can be replayed.
        Commands: record.start(path=""), record.stop(), replay.pause(),
        replay.resume(), replay.seek(seconds), replay.rate(factor),
        replay.loop(on), twin.mode(mode), twin.restart(), cell.restart(),
        cell.connect(endpoint), cell.replay(log), gap.reset(), gap.window(seconds).
        """
        raise NotImplementedError
