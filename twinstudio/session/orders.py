"""What a session can be told to do; each order is a named command.

Name, help and arguments that a face shows come from these methods themselves.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twinstudio.model.errors import LinkError, QuantityError, RecordingError
from twinstudio.session.cast import Cast, CellChoice
from twinstudio.session.gapline import GapLine
from twinstudio.session.metrics import LiveMetrics
from twinstudio.session.recording import Recording
from twinstudio.session.workshop import Workshop


class Orders:
    """The commands of one session. All raise TwinstudioError in plain words."""

    def __init__(
        self,
        cast: Cast,
        gap: GapLine,
        recording: Recording,
        workshop: Workshop,
        metrics: LiveMetrics,
    ) -> None:
        self._cast = cast
        self._gap = gap
        self._recording = recording
        self._workshop = workshop
        self._metrics = metrics

    def table(self) -> dict[str, Callable[..., object]]:
        """Every command by name."""
        return {
            "cell.connect": self.cell_connect,
            "cell.replay": self.cell_replay,
            "cell.restart": self.cell_restart,
            "gap.reset": self.gap_reset,
            "gap.window": self.gap_window,
            "job.cancel": self.job_cancel,
            "job.start": self.job_start,
            "metric.add": self.metric_add,
            "metric.remove": self.metric_remove,
            "patch.apply": self.patch_apply,
            "patch.list": self.patch_list,
            "patch.undo": self.patch_undo,
            "plugin.cancel": self.plugin_cancel,
            "plugin.disable": self.plugin_disable,
            "plugin.enable": self.plugin_enable,
            "plugin.install": self.plugin_install,
            "plugin.retry": self.plugin_retry,
            "plugin.uninstall": self.plugin_uninstall,
            "record.start": self.record_start,
            "record.stop": self.record_stop,
            "replay.loop": self.replay_loop,
            "replay.pause": self.replay_pause,
            "replay.rate": self.replay_rate,
            "replay.resume": self.replay_resume,
            "replay.seek": self.replay_seek,
            "twin.mode": self.twin_mode,
            "twin.restart": self.twin_restart,
        }

    def cell_connect(self, endpoint: str) -> None:
        """Connect to a running cell.

        endpoint: its control address, e.g. tcp://127.0.0.1:5600
        """
        self._cast.start_cell(CellChoice(endpoint=endpoint))

    def cell_replay(self, log: str) -> None:
        """Replay a recording as the cell.

        log: path of the recording (MCAP)
        """
        if not Path(log).is_file():
            raise RecordingError(
                f"there is no recording {log}", hint="give the path of an MCAP file"
            )
        self._cast.start_cell(CellChoice(log=Path(log)))

    def cell_restart(self) -> None:
        """Start the cell anew, or connect to it anew."""
        self._cast.start_cell()

    def twin_restart(self) -> None:
        """Start the twin process anew."""
        self._cast.start_twin()

    def twin_mode(self, mode: str) -> None:
        """Choose how the twin runs beside the cell.

        mode: commanded, following or resynchronised
        """
        self._cast.get("twin").link.request("mode", mode=mode)

    def gap_reset(self) -> None:
        """Start the figures over the run anew."""
        self._gap.reset()

    def gap_window(self, seconds: float) -> None:
        """Set the length of the sliding window.

        seconds: 1 to 600
        """
        if not 1.0 <= float(seconds) <= 600.0:
            raise QuantityError(f"a gap window of {seconds} s; it may be 1 to 600 s")
        self._gap.window = float(seconds)

    def metric_add(self, plugin: str, params: dict[str, Any] | None = None) -> str:
        """Measure the sliding window with a metric of a plugin; returns the key that names it.

        plugin: its id
        params: name -> value, SI or text with a unit
        """
        return self._metrics.add(plugin, params)

    def metric_remove(self, key: str) -> None:
        """Measure with a metric no longer.

        key: what metric.add returned, its plugin's id where there is one alone
        """
        self._metrics.remove(key)

    def record_start(self, path: str = "") -> str:
        """Record cell and twin.

        path: MCAP file to write; without one a new file in the user's folder
        """
        return str(self._recording.start(Path(path) if path else None, self._cast.sources))

    def record_stop(self) -> None:
        """Stop recording and close the file."""
        self._recording.stop()

    def replay_pause(self) -> None:
        """Pause the replayed cell."""
        self._transport("pause")

    def replay_resume(self) -> None:
        """Let the replayed cell go on."""
        self._transport("resume")

    def replay_seek(self, seconds: float) -> None:
        """Jump in the replayed log.

        seconds: from its start
        """
        self._transport("seek", seconds=float(seconds))

    def replay_rate(self, factor: float) -> None:
        """Replay faster or slower.

        factor: 1 is real time
        """
        self._transport("rate", factor=float(factor))

    def replay_loop(self, on: bool) -> None:
        """Start over at the end of the log, or not.

        on: true or false
        """
        self._transport("loop", on=bool(on))

    def plugin_enable(self, plugin: str) -> None:
        """Switch a plugin on.

        plugin: its id
        """
        self._workshop.catalog.enable(plugin)

    def plugin_disable(self, plugin: str) -> None:
        """Switch a plugin off.

        plugin: its id
        """
        self._workshop.catalog.disable(plugin)

    def plugin_retry(self, plugin: str) -> None:
        """Read and import a plugin anew.

        plugin: its id
        """
        self._workshop.catalog.retry(plugin)

    def plugin_install(self, what: str, agreed: bool = False, offline: bool = False) -> None:
        """Show what installing plugins would change, then do it once that is agreed to.

        what: a wheel, a project's folder or a package name
        agreed: true does it; without, the changes are shown first
        offline: true asks no package index
        """
        self._workshop.installing.install(what, agreed=agreed, offline=offline)

    def plugin_uninstall(self, package: str, agreed: bool = False) -> None:
        """Show what uninstalling a package of plugins would change, then do it once agreed to.

        package: what the plugins came in
        agreed: true does it; without, the changes are shown first
        """
        self._workshop.installing.uninstall(package, agreed=agreed)

    def plugin_cancel(self) -> None:
        """End the installation that is under way, or drop its plan."""
        self._workshop.installing.cancel()

    def job_start(
        self,
        plugin: str,
        params: dict[str, Any],
        seed: int,
        inputs: dict[str, str] | None = None,
        draws: int = 1,
        *,
        split: float | None = None,
        duration: float = 0.0,
    ) -> str:
        """Run a plugin as a job; returns the id of its run.

        plugin: its id
        params: name -> value, SI or text with a unit
        seed: of its random numbers
        inputs: name -> file, e.g. log -> a recording
        draws: how often a randomizer draws
        split: share of each log that a calibrator solves with
        duration: how long a bridge records [s]; 0 until it is cancelled
        """
        return self._workshop.start(
            plugin,
            params,
            seed=seed,
            inputs=inputs,
            draws=draws,
            split=split,
            duration=duration,
        )

    def job_cancel(self, run: str) -> None:
        """End a job.

        run: id of its run
        """
        self._workshop.cancel(run)

    def patch_apply(
        self, run: str, name: str = "", result: int = 0, *, force: bool = False
    ) -> None:
        """Put a patch that a run found onto the scene, and start the twin anew with it.

        run: its id
        name: of the patch, where the run has several
        result: number of the patch among the run's results, where several have one name
        force: true promotes also a patch that made the twin worse on held-out data
        """
        self._workshop.promote(run, name, result, force=force)
        self._cast.start_twin()

    def patch_list(self) -> list[str]:
        """Tell the patches in force, oldest first: name, run and keys."""
        return [
            f"{promoted.patch.name} of {promoted.run}:"
            f" {', '.join(change.key for change in promoted.patch.changes)}"
            for promoted in self._workshop.in_force()
        ]

    def patch_undo(self) -> None:
        """Take the newest patch off the scene, and start the twin anew without it."""
        self._workshop.take_back()
        self._cast.start_twin()

    def _transport(self, operation: str, **args: Any) -> None:
        if self._cast.choice.log is None:
            raise LinkError("the cell is no replay", hint="run cell.replay(log=...) first")
        self._cast.get("cell").link.request(operation, **args)
