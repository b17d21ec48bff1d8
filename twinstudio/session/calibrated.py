"""The demo of a calibration: gap, fits, gap again, on a motion that no fit has seen.

The emulated cell is computed as fast as the machine gives, not in real time, so the
figures are the same on every machine.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from msgspec import structs

from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.jobs import promoting
from twinstudio.jobs.job import JobView
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.spec import JobSpec, specify
from twinstudio.jobs.store import Store
from twinstudio.model.errors import JobError, TwinstudioError
from twinstudio.model.gaps import GapTable
from twinstudio.model.scene import FILE, Scene, load_scene
from twinstudio.physics.cellfile import CellTruth, WayPoint, load_cell
from twinstudio.physics.emulatedcell import EmulatedCell
from twinstudio.plugin.catalog import Catalog
from twinstudio.session.fitting import calibrator
from twinstudio.session.offline import gap_of_log, report_of

FITS = (("inverse_dynamics", "friction"), ("closed_loop", "latency"))
"""What is fitted one after the other: of each group the first that is installed."""
POINTS = 24
REACH = 0.45
"""Way-points of the training motion lie within this of home, rad."""
WAIT_SECONDS = 0.2


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One fit: run, verdict of its trial, whether its patch was promoted, and why not."""

    plugin: str
    run: str
    promoted: bool
    words: str


@dataclass(frozen=True, slots=True)
class Demo:
    """Gap before and after on the motion that no fit has seen, and the files of both.

    scene: a copy, with the patches on it.
    """

    scene: Path
    before: GapTable
    after: GapTable
    steps: tuple[Step, ...]
    training: Path
    unseen: Path
    report: Path


@dataclass(frozen=True, slots=True)
class Calibration:
    """The demo on one scene with an emulated cell.

    out: folder for scene, recordings, runs and report; must not hold a scene yet.
    tell: gets a line at each step. watch: gets how a job stands, several times a second.
    """

    scene: Scene
    out: Path
    catalog: Catalog
    seed: int = 1
    seconds: float = 30.0
    tell: Callable[[str], None] = lambda _text: None
    watch: Callable[[JobView], None] = lambda _view: None

    def run(self, fits: Sequence[str] = ()) -> Demo:
        """Record, measure, fit and measure again; raises TwinstudioError.

        fits: names of calibrators; by default those of `FITS` that are installed.
        """
        names = tuple(fits) or self._installed()
        folder = self._copy()
        training, unseen = self.out / "training.mcap", self.out / "unseen.mcap"
        motions = np.random.default_rng(self.seed)
        self._record(training, self._somewhere_else(motions), stream=1)
        self._record(unseen, self._truth(), stream=2)
        self.tell("gap of the unseen motion before")
        before = gap_of_log(unseen, folder).table
        store = Store(self.out / "runs")
        steps = tuple(self._fit(name, folder, training, store) for name in names)
        self.tell("gap of the unseen motion after")
        outcome = gap_of_log(unseen, folder)
        report = report_of(outcome, self.out / "after.html")
        return Demo(folder, before, outcome.table, steps, training, unseen, report)

    def _installed(self) -> tuple[str, ...]:
        known = {entry.id.rpartition(".")[2] for entry in self.catalog.entries()}
        groups = [[name for name in group if name in known] for group in FITS]
        found = tuple(group[0] for group in groups if group)
        if not found:
            names = ", ".join(name for group in FITS for name in group)
            raise JobError(
                f"none of the calibrators {names} is installed",
                hint="install twinstudio-calibration, or name one with --fit",
            )
        return found

    def _copy(self) -> Path:
        folder = self.out / Path(self.scene.folder).name
        if (folder / FILE).exists():
            raise JobError("holds a scene already", where=str(folder), hint="name another folder")
        shutil.copytree(self.scene.folder, folder)
        return folder

    def _truth(self) -> CellTruth:
        scene = self.scene
        return load_cell(scene.path(scene.cell.emulated), scene.robot.joints)

    def _somewhere_else(self, rng: np.random.Generator) -> CellTruth:
        """The same cell with other way-points: about home, at other speeds."""
        truth, robot = self._truth(), self.scene.robot
        home = np.array(robot.home)
        points = tuple(
            WayPoint(
                to=tuple((home + REACH * rng.uniform(-1.0, 1.0, len(home))).tolist()),
                speed=float(rng.uniform(0.3, 1.0)),
                dwell=float(rng.choice([0.0, 0.2])),
            )
            for _ in range(POINTS)
        )
        return structs.replace(truth, program=points)

    def _record(self, path: Path, truth: CellTruth, *, stream: int) -> None:
        self.tell(f"recording {path.name}: {self.seconds:g} s of the emulated cell")
        rng = np.random.default_rng([self.seed, stream])
        cell = EmulatedCell(self.scene, truth, rng)
        block = cell.run(self.seconds)
        writer = RecordingWriter(path)
        writer.source("cell", SourceDescription("cell", "emulated", block.layout, 1000.0))
        writer.write("cell", block)
        writer.close()

    def _fit(self, name: str, folder: Path, log: Path, store: Store) -> Step:
        spec = self._specify(name, folder, log)
        self.tell(f"fitting {spec.title}")
        with Runner(store) as runner:
            job = runner.submit(spec)
            view = job.wait(WAIT_SECONDS)
            while not view.over:
                self.watch(view)
                view = job.wait(WAIT_SECONDS)
        if view.state != "done":
            return Step(plugin=spec.plugin, run=view.id, promoted=False, words=view.error)
        try:
            _, _, trial = promoting.promote(store, view.id, load_scene(folder))
        except TwinstudioError as error:
            return Step(plugin=spec.plugin, run=view.id, promoted=False, words=error.what)
        words = trial.words if trial is not None else ""
        return Step(plugin=spec.plugin, run=view.id, promoted=True, words=words)

    def _specify(self, name: str, folder: Path, log: Path) -> JobSpec:
        entry = calibrator(self.catalog, name)
        cls = self.catalog.load(entry.id)
        slots = [slot.name for slot in cls.inputs if slot.required]
        return specify(
            cls,
            {},
            seed=self.seed,
            plugin=entry.id,
            scene=folder,
            inputs=dict.fromkeys(slots, log),
            title=entry.title,
            version=entry.version,
        )
