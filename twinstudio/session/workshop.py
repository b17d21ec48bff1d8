"""Plugins, jobs and runs of a session, and what a run may change about its scene."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from twinstudio.jobs import promoting
from twinstudio.jobs.job import JobView
from twinstudio.jobs.record import RunHead
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.spec import specify
from twinstudio.jobs.store import ALL, RunFilter, Store
from twinstudio.model import params, patches
from twinstudio.model.errors import PluginError
from twinstudio.model.results import Patch
from twinstudio.model.scene import Scene
from twinstudio.plugin.catalog import Catalog, Entry, Places, open_catalog
from twinstudio.plugin.kinds import Plugin
from twinstudio.session.installing import Installing
from twinstudio.session.journal import Journal
from twinstudio.session.places import places, plugin_places


class Workshop:
    """Made at once, filled when first used: a session without jobs costs nothing."""

    def __init__(self, scene: Scene, journal: Journal, where: Places | None = None) -> None:
        """`scene` as written, without patches; `where`: the user's places without one."""
        self._scene = scene
        self._journal = journal
        self._where = where
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._runner: Runner | None = None
        self._told: dict[str, str] = {}
        self._judged: set[str] = set()
        self.installing = Installing(lambda: self.catalog, journal)
        self.store = Store(places()["runs"])

    @property
    def catalog(self) -> Catalog:
        """All plugins; nothing of them is imported before it is used."""
        with self._lock:
            if self._catalog is None:
                self._catalog = open_catalog(self._where or plugin_places())
            return self._catalog

    def plugins(self) -> tuple[Entry, ...]:
        """Every plugin and its state, first-party first; knows of every run that has ended."""
        self._judge(self.jobs())
        return self.catalog.entries()

    def fields(self, plugin: str) -> list[params.Field]:
        """Parameters of `plugin`, for a form; imports it. Raises PluginError."""
        return params.fields(self._sound(plugin).params)

    def start(
        self,
        plugin: str,
        values: Mapping[str, Any],
        *,
        seed: int,
        inputs: Mapping[str, str] | None = None,
        draws: int = 1,
        split: float | None = None,
        duration: float = 0.0,
        title: str = "",
    ) -> str:
        """Queue a job on this scene and return the id of its run.

        Raises PluginError, ParamsError or JobError before anything is queued.
        """
        entry = self.catalog.entry(plugin)
        spec = specify(
            self._sound(plugin),
            values,
            seed=seed,
            plugin=plugin,
            scene=self._scene.folder,
            inputs=inputs,
            title=title or entry.title,
            version=entry.version,
            draws=draws,
            split=split,
            duration=duration,
        )
        return self._open_runner().submit(spec).id

    def cancel(self, run: str) -> None:
        """Ask a job to end; by force within 3 s if it does not."""
        self._open_runner().cancel(run)

    def jobs(self) -> tuple[JobView, ...]:
        """Jobs of this session in order of submission."""
        return self._runner.jobs() if self._runner is not None else ()

    def runs(self, wanted: RunFilter = ALL) -> tuple[RunHead, ...]:
        """Runs on disk, of any session, newest first."""
        return self.store.list(wanted)

    def promote(self, run: str, name: str = "", result: int = 0, *, force: bool = False) -> Patch:
        """Put a patch that `run` found onto the scene; raises JobError if none is meant.

        name, result: which one, where a run has several; `result` is its number
        among the results, from 1, and tells apart those of one name. force: also one
        that made the twin worse in its trial, or could not be simulated.
        """
        number, patch, trial = promoting.promote(
            self.store, run, self._scene, name=name, result=result, force=force
        )
        words = f"; {trial.words}" if trial is not None else ""
        text = f"result {number} '{patch.name}' of {run} is applied{words}"
        self._journal.write("info", "patch", text)
        return patch

    def take_back(self) -> Patch:
        """Take the newest patch off the scene; raises SceneError if there is none."""
        return patches.take_back(self._scene).patch

    def in_force(self) -> tuple[patches.Promoted, ...]:
        """Patches in force, oldest first."""
        return patches.patches_of(self._scene)

    def origins(self) -> tuple[patches.Origin, ...]:
        """Every patched value of the scene: nominal, in force, and from which run."""
        return patches.origins(self._scene, patches.patches_of(self._scene))

    def poll(self) -> None:
        """Tell in the log of jobs whose state changed."""
        jobs = self.jobs()
        self._judge(jobs)
        for job in jobs:
            if self._told.get(job.id) == job.state:
                continue
            self._told[job.id] = job.state
            reason = f": {job.error}" if job.error else ""
            self._journal.write(
                "alarm" if job.state == "failed" else "info",
                "job",
                f"{job.title} ({job.id}) is {job.state}{reason}",
            )

    def close(self) -> None:
        """Cancel what runs and let go of its processes."""
        self.installing.close()
        if self._runner is not None:
            self._runner.close()

    def _judge(self, jobs: Sequence[JobView]) -> None:
        """Mark each plugin whose newest run failed, in the order in which they were queued."""
        with self._lock:
            fresh = [job for job in jobs if job.over and job.id not in self._judged]
            self._judged.update(job.id for job in fresh)
        for job in fresh:
            with contextlib.suppress(PluginError):  # it may be gone by now
                if job.state == "failed":
                    self.catalog.note_failure(job.plugin, job.error)
                elif job.state == "done":
                    self.catalog.note_success(job.plugin)

    def _sound(self, plugin: str) -> type[Plugin[Any]]:
        """The class of `plugin`, tried in a process of its own before its first use here."""
        if self.catalog.entry(plugin).state == "unused":
            self.catalog.probe(plugin)
        return self.catalog.load(plugin)

    def _open_runner(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._runner = Runner(self.store)
            return self._runner
