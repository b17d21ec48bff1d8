"""How each kind of plugin runs as a job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twinstudio.jobs import stored
from twinstudio.jobs.context import WorkerContext
from twinstudio.jobs.record import State
from twinstudio.jobs.spec import JobSpec
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError
from twinstudio.model.params import Params
from twinstudio.model.results import Patch, Result
from twinstudio.model.scene import load_scene
from twinstudio.plugin.kinds import Calibrator, Command, Finding, Metric, Plugin, Randomizer

HELD_OUT = "held_out"
"""Inputs of a calibrator whose names start so are for validation alone."""
HELD_OUT_PART = 0.25
"""Without such inputs, this last part of each log is kept from the solver."""


@dataclass(slots=True)
class Execution:
    """One plugin at work. `results` grow as they come, so that a late failure keeps them.

    enter: says which state the job is in. note: keeps a line for the record.
    """

    spec: JobSpec
    context: WorkerContext
    enter: Callable[[State], None]
    note: Callable[[str], None]
    results: list[Result] = field(default_factory=list)

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
        pair = _pair(self._input("log"))
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
        logs, held_out = self._logs()
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

    def _input(self, name: str) -> Path:
        if name not in self.context.inputs:
            known = ", ".join(self.context.inputs) or "none"
            raise JobError(f"a {self.spec.kind} needs the input '{name}'", hint=f"given: {known}")
        return self.context.inputs[name]

    def _logs(self) -> tuple[dict[str, Block], dict[str, Block]]:
        """The cell's samples of each log: those to solve with, and those kept from the solver."""
        blocks = {name: _cell(path) for name, path in self.context.inputs.items()}
        solving = {n: b for n, b in blocks.items() if not n.startswith(HELD_OUT)}
        held = {n: b for n, b in blocks.items() if n.startswith(HELD_OUT)}
        if not solving:
            raise JobError("a calibrator needs a log", hint="give an input: log=FILE.mcap")
        if not held:
            self.note(
                f"the last {HELD_OUT_PART:.0%} of each log is held out for validation;"
                f" an input named {HELD_OUT}... would take its place"
            )
            return _split(solving)
        return solving, held


def _split(blocks: Mapping[str, Block]) -> tuple[dict[str, Block], dict[str, Block]]:
    """The first and the last part in time of each block."""
    first, last = {}, {}
    for name, block in blocks.items():
        cut = int(np.ceil(len(block) * (1.0 - HELD_OUT_PART)))
        first[name] = block.part(slice(0, cut))
        last[name] = block.part(slice(cut, len(block)))
    return first, last


def _cell(path: Path) -> Block:
    from twinstudio.flow.record import read_recording  # noqa: PLC0415 - most jobs need none

    block = read_recording(path).source("cell").block
    if not len(block):
        raise JobError("holds no samples of the cell", where=str(path))
    return block


def _pair(path: Path) -> Any:
    from twinstudio.flow.align import pair  # noqa: PLC0415 - most jobs need none
    from twinstudio.flow.record import read_recording  # noqa: PLC0415

    recording = read_recording(path)
    absent = [name for name in ("twin", "cell") if name not in recording.sources]
    if absent:
        raise JobError(
            f"holds no {' and no '.join(absent)}, and a metric compares the two",
            where=str(path),
            hint="record cell and twin together",
        )
    clocks = {n: recording.clocks[n][-1].model() for n in recording.clocks if recording.clocks[n]}
    return pair(
        recording.sources["twin"].block,
        recording.sources["cell"].block,
        twin_clock=clocks.get("twin"),
        cell_clock=clocks.get("cell"),
    )
