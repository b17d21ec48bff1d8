"""How each kind of plugin runs as a job."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinstudio.jobs import stored
from twinstudio.jobs.context import WorkerContext
from twinstudio.jobs.record import State
from twinstudio.jobs.spec import JobSpec
from twinstudio.model.errors import JobError
from twinstudio.model.params import Params
from twinstudio.model.patches import load_patched
from twinstudio.model.results import Patch, Result
from twinstudio.model.scene import load_scene
from twinstudio.plugin.kinds import (
    Calibrator,
    Command,
    HilSuite,
    Metric,
    Plugin,
    Randomizer,
    ResidualLearner,
    SourceBridge,
)


@dataclass(slots=True)
class Execution:
    """One plugin at work. `results` grow as they come, so that a late failure keeps them.

    enter: says which state the job is in. note: keeps a line for the record.
    folder: of the run; `files` in it, by relative name, belong to the results.
    """

    spec: JobSpec
    context: WorkerContext
    enter: Callable[[State], None]
    note: Callable[[str], None]
    folder: Path
    results: list[Result] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def run(self, plugin: Plugin[Any], params: Params) -> None:
        """Run `plugin`; raises whatever it raises, and JobError for what it returns."""
        if isinstance(plugin, Command):
            self._command(plugin, params)
        elif isinstance(plugin, Metric):
            self._metric(plugin, params)
        elif isinstance(plugin, Randomizer):
            self._randomizer(plugin, params)
        elif isinstance(plugin, Calibrator):
            from twinstudio.jobs.calibrating import Calibrating  # noqa: PLC0415 - as for those below

            Calibrating(self).run(plugin, params)
        elif isinstance(plugin, ResidualLearner):
            from twinstudio.jobs.learning import learn  # noqa: PLC0415 - as for those below

            learn(self, plugin, params)
        elif isinstance(plugin, SourceBridge):
            from twinstudio.jobs.bridging import stream  # noqa: PLC0415

            stream(self, plugin, params)
        elif isinstance(plugin, HilSuite):
            from twinstudio.jobs.suite import run_suite  # noqa: PLC0415

            run_suite(self, plugin, params)
        else:
            raise JobError(f"a plugin of kind {self.spec.kind} does not run as a job")

    def keep(self, value: object, what: str) -> None:
        """Take in what the method `what` returned; raises JobError for what is no result."""
        self.results += stored.check(value, f"{self.spec.plugin}.{what}")

    def _command(self, plugin: Command[Any], params: Params) -> None:
        self.enter("running")
        value = plugin.run(self.context, params)
        self.enter("analysing")
        self.keep(value, "run")

    def _metric(self, plugin: Metric[Any], params: Params) -> None:
        from twinstudio.jobs.logs import LogReader  # noqa: PLC0415 - most jobs need none

        scene = load_patched(self.spec.scene) if self.spec.scene else None
        pair = LogReader(self.spec.inputs, self.note, self.context.progress).pair("log", scene)
        self.enter("running")
        value = plugin.measure(pair, params)
        self.enter("analysing")
        self.keep(value, "measure")

    def _randomizer(self, plugin: Randomizer[Any], params: Params) -> None:
        scene = load_scene(self.spec.scene)
        self.enter("running")
        # Each draw has a generator of its own: draw 7 stays the same whatever draw 6 used.
        children = self.context.rng.spawn(self.spec.draws)
        for k, rng in enumerate(children):
            self.context.progress(k / self.spec.draws, f"draw {k + 1} of {self.spec.draws}")
            patch = plugin.draw(scene, rng, params)
            if not isinstance(patch, Patch):
                raise JobError(f"{self.spec.plugin}.draw returned {type(patch).__name__}, no Patch")
            self.keep([patch], "draw")
        self.enter("analysing")
