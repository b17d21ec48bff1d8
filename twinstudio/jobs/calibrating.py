"""A calibrator as a job: check, solve, validate, and a trial of the patch in the twin."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinstudio.jobs import calibration
from twinstudio.jobs.calibration import Calibration, Found, Trial
from twinstudio.jobs.logs import LogReader, split
from twinstudio.jobs.patching import patches_in
from twinstudio.jobs.spec import DEFAULT_SPLIT, HELD_OUT
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError
from twinstudio.model.params import Params
from twinstudio.model.patches import Promoted, patched, patches_of
from twinstudio.model.results import Result
from twinstudio.model.scene import Scene, load_scene
from twinstudio.plugin.context import Cancelled
from twinstudio.plugin.kinds import Calibrator, Finding
from twinstudio.plugin.slots import Slots, belonging, slot_of

if TYPE_CHECKING:
    from twinstudio.jobs.execute import Execution


@dataclass(slots=True)
class Calibrating:
    """One calibrator at work. It keeps what it found also when it fails.

    solved, scored: how many of the results came from solve, and from validate.
    """

    job: "Execution"
    notes: list[str] = field(default_factory=list)
    findings: tuple[Found, ...] = ()
    trials: tuple[Trial, ...] = ()
    under: tuple[Promoted, ...] = ()
    solved: int = 0
    scored: int = 0

    def run(self, plugin: Calibrator[Any], params: Params) -> None:
        """Raises what the plugin raises, and JobError for fatal findings."""
        try:
            self._run(plugin, params)
        except Cancelled:
            self._keep()
            raise
        except Exception as error:
            self._keep()
            self._report(str(error))
            raise
        self._keep()
        self._report("")

    def note(self, text: str) -> None:
        """Keep a line for the record and for the report."""
        self.notes.append(text)
        self.job.note(text)

    def _run(self, plugin: Calibrator[Any], params: Params) -> None:
        job = self.job
        written = load_scene(job.spec.scene)
        self.under = patches_of(written)
        # A fit adds to what is in force: a second joint must not undo the first.
        scene = patched(written, self.under)
        logs, held_out = self._logs(plugin.inputs, scene)
        self._check(plugin.check(logs, scene, params))
        job.context.checkpoint()
        job.enter("running")
        job.keep(plugin.solve(job.context, logs, scene, params), "solve")
        self.solved = len(job.results)
        job.context.checkpoint()
        job.enter("analysing")
        job.context.progress(0.0, "scoring on held-out data")
        solved = tuple(job.results)
        job.keep(plugin.validate(held_out, scene, solved), "validate")
        self.scored = len(job.results) - self.solved
        self._try(solved, written, held_out)

    def _try(self, solved: tuple[Result, ...], scene: Scene, held_out: Mapping[str, Block]) -> None:
        """Replay the held-out logs through the twin without and with each patch."""
        from twinstudio.jobs.trial import tried  # noqa: PLC0415 - brings the engine

        for number, patch in patches_in(solved).items():
            trial, figures = tried(
                patch,
                number,
                scene=scene,
                under=self.under,
                logs=held_out,
                note=self.note,
                progress=self.job.context.progress,
            )
            self.job.results += figures
            self.trials = (*self.trials, trial)
            self.note(f"patch '{patch.name}': {trial.words}")
            self.job.context.progress(1.0, trial.words)

    def _check(self, findings: object) -> None:
        name = f"{self.job.spec.plugin}.check"
        if not isinstance(findings, Sequence) or not all(isinstance(f, Finding) for f in findings):
            raise JobError(f"{name} returned no list of findings", hint="return Finding objects")
        self.findings = tuple(Found(text=f.text, hint=f.hint, fatal=f.fatal) for f in findings)
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
        spec = self.job.spec
        reader = LogReader(spec.inputs, self.note)
        names = [n for n in spec.inputs if (s := slot_of(n, slots)) and s.kind == "log"]
        held = belonging(names, HELD_OUT, slots)
        read = {name: reader.blocks(name, scene) for name in names}
        solving = [blocks for name, blocks in read.items() if name not in held]
        kept = [read[name] for name in held]
        if not held and solving:
            share = DEFAULT_SPLIT if spec.split is None else spec.split
            self.note(f"solved with the first {share:.4g} of each log, the rest is held out")
            solving, kept = map(list, zip(*(split(b, share) for b in solving), strict=True))
        return _joined(solving), _joined(kept)

    def _keep(self) -> None:
        """Findings and trials as a file that belongs to the results."""
        under = tuple(promoted.run for promoted in self.under)
        found = Calibration(
            findings=self.findings,
            trials=self.trials,
            under=under,
            solved=self.solved,
            scored=self.scored,
        )
        calibration.write(self.job.folder, found)
        self.job.files.append(calibration.FILE)

    def _report(self, error: str) -> None:
        """Report pages beside the results; without room or drawings the run still counts."""
        from twinstudio.jobs.fitreport import write_fit_report  # noqa: PLC0415 - draws

        self.job.files += write_fit_report(self, error)


def _joined(logs: Iterable[Mapping[str, Block]]) -> dict[str, Block]:
    return {name: block for blocks in logs for name, block in blocks.items()}
