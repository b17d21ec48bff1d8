"""A workshop of plain data: plugins, jobs and runs without a process or a disk."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from twinstudio.jobs.compare import Comparison, compared
from twinstudio.jobs.job import JobView
from twinstudio.jobs.record import Run, RunHead, SpecHead
from twinstudio.jobs.spec import JobSpec
from twinstudio.jobs.store import ALL, RunFilter
from twinstudio.model import params
from twinstudio.model.config import si
from twinstudio.model.errors import JobError, PluginError
from twinstudio.model.params import Params, about
from twinstudio.model.patches import Origin
from twinstudio.model.provenance import Provenance
from twinstudio.model.results import Change, Patch, Result, Scalar, Series, Table
from twinstudio.plugin.catalog import Entry
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.slots import InputSlot
from twinstudio.session.installing import InstallView

BEGAN = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


class Everything(Params, frozen=True):
    """A parameter of each kind; `mass` is required."""

    mass: Annotated[float, si("kg", low=0.0, high=50.0, about="Mass at the tool")]
    reach: Annotated[float, si("m", low=0.0, high=2.0, about="How far it may reach")] = 0.025
    angle: Annotated[float, si("rad", low=-3.0, high=3.0, about="Angle of the wrist")] = 0.1
    share: Annotated[float, about("A plain number")] = 0.5
    count: Annotated[int, about("How many", low=1, high=9)] = 3
    careful: Annotated[bool, about("Whether to look twice")] = True
    mode: Annotated[Literal["fast", "exact"], about("How it is solved")] = "exact"
    label: Annotated[str, about("What it is called")] = "tool"
    weights: Annotated[tuple[float, ...], about("One a joint")] = (1.0, 0.5)


class Plain(Params, frozen=True):
    gain: Annotated[float, si("1", low=0.0, high=5.0, about="What it finds")] = 0.3


@dataclass(frozen=True)
class Loaded:
    params: type[Params]
    inputs: tuple[InputSlot, ...] = ()


def entry(name: str, kind: str = "command", state: str = "unused", **more: Any) -> Entry:
    known: dict[str, Any] = {
        "title": name.split(".")[1].replace("_", " ").capitalize(),
        "help": f"What {name} is good for",
        "docs": "",
        "origin": f"{name.partition('.')[0]}-plugins",
        "version": "1.2",
        "first_party": False,
    }
    return Entry(id=name, kind=kind, state=state, **(known | more))  # type: ignore[arg-type]


ENTRIES = (
    entry("acme.everything"),
    entry("acme.payload", "calibrator", "enabled"),
    entry("acme.worst", "metric"),
    entry("acme.friction", "randomizer", "disabled", reason="switched off"),
    entry(
        "bad.import",
        "command",
        "failed",
        reason="cannot be imported: No module named 'nowhere'",
        trace="Traceback (most recent call last):\nModuleNotFoundError: nowhere",
    ),
    entry("acme.driver", "mechanism"),
)
RESULTS: tuple[Result, ...] = (
    Scalar(name="payload", value=1.2345, unit="kg", low=1.21, high=1.26, note="at the flange"),
    Scalar(name="offset", value=0.0123, unit="m"),
    Series(
        name="residual",
        x=tuple(0.1 * k for k in range(50)),
        y=tuple(float("nan") if k == 7 else 0.01 * k * (50 - k) for k in range(50)),
        x_unit="s",
        y_unit="N m",
    ),
    Table(
        name="joints",
        columns=("joint", "gap", "n"),
        units=("", "rad", "1"),
        rows=(("joint1", 0.00123, 100), ("joint2", None, 99)),
    ),
    Patch(
        name="payload",
        changes=(Change(key="twin.position_gain", value=0.4),),
        reason="the residual halves",
    ),
)


def job(name: str, state: str, **more: Any) -> JobView:
    known: dict[str, Any] = {
        "title": "Everything",
        "plugin": "acme.everything",
        "kind": "command",
        "progress": 0.0,
        "message": "",
        "error": "",
        "left": None,
        "submitted": BEGAN,
        "started": None if state == "queued" else BEGAN,
        "ended": BEGAN + timedelta(seconds=75) if state in ("done", "failed") else None,
        "folder": f"/runs/{name}",
    }
    return JobView(id=name, state=state, **(known | more))  # type: ignore[arg-type]


def run_of(name: str, state: str = "done", plugin: str = "acme.everything", **params: Any) -> Run:
    spec = JobSpec(
        plugin=plugin,
        kind="command",
        source="acme:Everything",
        params={"mass": 1.5, "angle": 0.2} | params,
        seed=41,
        title="Everything",
        version="1.2",
    )
    return Run(
        id=name,
        spec=spec,
        state=state,  # type: ignore[arg-type]
        error="it ran out of memory" if state == "failed" else "",
        who="eve",
        host="lab",
        created=BEGAN,
        started=BEGAN,
        ended=BEGAN + timedelta(seconds=75),
        durations={"running": 74.0},
        provenance=Provenance(
            twinstudio="0.1", python="3.11", platform="test", packages={"numpy": "2"}, command="x"
        ),
        plugin_digest="ab" * 32,
    )


def head_of(run: Run) -> RunHead:
    spec = run.spec
    return RunHead(
        id=run.id,
        spec=SpecHead(plugin=spec.plugin, kind=spec.kind, title=spec.title, seed=spec.seed),
        state=run.state,
        error=run.error,
        who=run.who,
        created=run.created,
        started=run.started,
        ended=run.ended,
    )


@dataclass
class FakeStore:
    records: dict[str, Run] = field(default_factory=dict)
    found: dict[str, tuple[Result, ...]] = field(default_factory=dict)

    def load(self, run: str) -> Run:
        if run not in self.records:
            raise JobError(f"there is no run '{run}'")
        return self.records[run]

    def results(self, run: str) -> tuple[Result, ...]:
        return self.found.get(run, ())

    def log(self, run: str) -> str:
        return f"log of {run}"

    def compare(self, one: str, other: str) -> Comparison:
        return compared(self.load(one), self.load(other), self.results(one), self.results(other))


@dataclass
class FakeCatalog:
    found: tuple[Entry, ...]
    kinds: dict[str, type[Params]]
    reads: int = 0

    def entry(self, plugin: str) -> Entry:
        return next(e for e in self.found if e.id == plugin)

    def load(self, plugin: str) -> Loaded:
        if self.entry(plugin).state == "failed":
            raise PluginError(self.entry(plugin).reason, where=f"plugin '{plugin}'")
        return Loaded(self.kinds.get(plugin, Plain), KINDS[self.entry(plugin).kind].inputs)

    def refresh(self) -> tuple[Entry, ...]:
        return self.found


@dataclass
class FakeInstalling:
    """Shows what a test puts there."""

    shown: InstallView | None = None

    def view(self) -> InstallView | None:
        return self.shown


class FakeWorkshop:
    def __init__(self, entries: tuple[Entry, ...] = ENTRIES) -> None:
        self.catalog = FakeCatalog(entries, {"acme.everything": Everything})
        self.store = FakeStore()
        self.installing = FakeInstalling()
        self.queue: tuple[JobView, ...] = ()
        self.patched: tuple[Origin, ...] = ()

    def keep(self, *runs: Run, results: tuple[Result, ...] = RESULTS) -> None:
        for run in runs:
            self.store.records[run.id] = run
            self.store.found[run.id] = results

    def plugins(self) -> tuple[Entry, ...]:
        self.catalog.reads += 1
        return self.catalog.found

    def fields(self, plugin: str) -> list[params.Field]:
        return params.fields(self.catalog.load(plugin).params)

    def jobs(self) -> tuple[JobView, ...]:
        return self.queue

    def runs(self, wanted: RunFilter = ALL) -> tuple[RunHead, ...]:
        heads = (head_of(self.store.records[name]) for name in sorted(self.store.records)[::-1])
        return tuple(head for head in heads if wanted.passes(head))

    def origins(self) -> tuple[Origin, ...]:
        return self.patched
