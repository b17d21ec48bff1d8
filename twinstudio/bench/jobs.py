"""How soon a job starts and is cancelled, and how fast a thousand runs are listed."""

import tempfile
import time
from pathlib import Path

from msgspec import structs

from twinstudio.bench.row import Row
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.spec import specify
from twinstudio.jobs.store import Store
from twinstudio.model.errors import JobError

RUNS = 1000
REPEATS = 3
WAIT = 30.0
PLUGIN = """
import time
from twinstudio.model.params import Params
from twinstudio.model.results import Scalar
from twinstudio.plugin.kinds import Command

class Heeds(Command[Params]):
    id = "bench.heeds"
    params = Params
    def run(self, context, params):
        context.progress(0.5)
        while True:
            context.checkpoint()
            time.sleep(0.01)

class Deaf(Command[Params]):
    id = "bench.deaf"
    params = Params
    def run(self, context, params):
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        context.progress(0.5)
        while True:
            pass

class Short(Command[Params]):
    id = "bench.short"
    params = Params
    def run(self, context, params):
        return [Scalar(name=f"figure {k}", value=float(k), unit="m") for k in range(20)]
"""


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - takes as long as it takes
    """Start and cancels, best of three; listing, best of three, files in the disk cache."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "plugins.py").write_text(PLUGIN, encoding="utf-8")
        store = Store(folder / "runs")
        with Runner(store) as runner:
            started, heeded = zip(
                *(_start_and_cancel(runner, folder, "Heeds") for _ in range(REPEATS)), strict=True
            )
            _, forced = _start_and_cancel(runner, folder, "Deaf")
            job = runner.submit(specify(f"{folder}/plugins.py:Short", {}, seed=1))
            job.wait(WAIT)
        listing = _listing(store, job.id)
    start, asked = min(started), min(heeded)
    return [
        Row("job.start", start, "s until ready", "< 1.5", start < 1.5),
        Row("job.cancel.heeded", asked, "s", "< 0.2", asked < 0.2),
        Row("job.cancel.forced", forced, "s", "< 3", forced < 3.0),
        Row("runs.list", listing, f"s for {RUNS} runs", "< 0.2", listing < 0.2),
    ]


def _start_and_cancel(runner: Runner, folder: Path, name: str) -> tuple[float, float]:
    """Seconds until a job was ready, and from its cancel until it was gone."""
    job = runner.submit(specify(f"{folder}/plugins.py:{name}", {}, seed=1))
    deadline = time.monotonic() + WAIT
    while job.view().progress < 0.5:
        if job.view().over or time.monotonic() > deadline:
            raise JobError(f"the measured job did not run: {job.view().error}")
        time.sleep(0.005)
    asked = time.monotonic()
    job.cancel()
    job.wait(WAIT)
    return runner.ready_after(job.id) or float("nan"), time.monotonic() - asked


def _listing(store: Store, example: str) -> float:
    """Fastest listing of copies of the run `example`, s."""
    run = store.load(example)
    for k in range(RUNS - len(store.list())):
        copy = structs.replace(run, id=f"20260101-000000-{k:06x}")
        store.path(copy.id).mkdir()
        store.save(copy)
    taken = []
    for _ in range(REPEATS):
        before = time.perf_counter()
        count = len(store.list())
        taken.append(time.perf_counter() - before)
        assert count == RUNS
    return min(taken)
