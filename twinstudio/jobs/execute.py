"""How each kind of plugin runs as a job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinstudio.jobs import stored
from twinstudio.jobs.context import WorkerContext
from twinstudio.jobs.record import State
from twinstudio.jobs.spec import DEFAULT_SPLIT, HELD_OUT, JobSpec
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError
from twinstudio.model.params import Params
from twinstudio.model.patches import load_patched
from twinstudio.model.results import Patch, Result
from twinstudio.model.scene import Scene, load_scene
from twinstudio.plugin.kinds import (
    Calibrator,
    Command,
    Finding,
    HilSuite,
    Metric,
    Plugin,
    Randomizer,
    ResidualLearner,
    SourceBridge,
)
from twinstudio.plugin.slots import Slots, belonging, slot_of


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
            self._calibrator(plugin, params)
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

    def _keep(self, value: object, what: str) -> None:
        self.results += stored.check(value, f"{self.spec.plugin}.{what}")

    def _command(self, plugin: Command[Any], params: Params) -> None:
        self.enter("running")
        value = plugin.run(self.context, params)
        self.enter("analysing")
        self._keep(value, "run")

    def _metric(self, plugin: Metric[Any], params: Params) -> None:
        from twinstudio.jobs.logs import LogReader  # noqa: PLC0415 - most jobs need none

        scene = load_patched(self.spec.scene) if self.spec.scene else None
        pair = LogReader(self.spec.inputs, self.note, self.context.progress).pair("log", scene)
        self.enter("running")
        value = plugin.measure(pair, params)
        self.enter("analysing")
        self._keep(value, "measure")

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
            self._keep([patch], "draw")
        self.enter("analysing")

    def _calibrator(self, plugin: Calibrator[Any], params: Params) -> None:
        scene = load_scene(self.spec.scene)
        logs, held_out = self._logs(plugin.inputs, scene)
        self._check(plugin.check(logs, scene, params))
        self.context.checkpoint()
        self.enter("running")
        self._keep(plugin.solve(self.context, logs, scene, params), "solve")
        self.context.checkpoint()
        self.enter("analysing")
        solved = tuple(self.results)
        self._keep(plugin.validate(held_out, scene, solved), "validate")

    def _check(self, findings: object) -> None:
        name = f"{self.spec.plugin}.check"
        if not isinstance(findings, Sequence) or not all(isinstance(f, Finding) for f in findings):
            raise JobError(f"{name} returned no list of findings", hint="return Finding objects")
        for finding in findings:
            advice = f"; {finding.hint}" if finding.hint else ""
            self.note(f"check: {finding.text}{advice}")
        fatal = [finding for finding in findings if finding.fatal]
        if fatal:
            raise JobError(
                f"the data cannot be calibrated from: {fatal[0].text}", hint=fatal[0].hint
            )

    def _logs(self, slots: Slots, scene: Scene) -> tuple[dict[str, Block], dict[str, Block]]:
        """The cell's samples of each log: those to solve with, and those kept from the solver."""
        from twinstudio.jobs.logs import LogReader, split  # noqa: PLC0415 - most jobs need none

        reader = LogReader(self.spec.inputs, self.note)
        names = [n for n in self.spec.inputs if (s := slot_of(n, slots)) and s.kind == "log"]
        held = belonging(names, HELD_OUT, slots)
        read = {name: reader.blocks(name, scene) for name in names}
        solving = [blocks for name, blocks in read.items() if name not in held]
        kept = [read[name] for name in held]
        if not held and solving:
            share = DEFAULT_SPLIT if self.spec.split is None else self.spec.split
            self.note(f"solved with the first {share:.4g} of each log, the rest is held out")
            solving, kept = map(list, zip(*(split(b, share) for b in solving), strict=True))
        return _joined(solving), _joined(kept)


def _joined(logs: Iterable[Mapping[str, Block]]) -> dict[str, Block]:
    return {name: block for blocks in logs for name, block in blocks.items()}
