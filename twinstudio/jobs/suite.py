"""A HIL suite as a job: its pytest tests, run in the job's process, one row a test."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstudio.jobs.compare import TIMED
from twinstudio.jobs.mishap import one_line
from twinstudio.model.errors import JobError
from twinstudio.model.params import Params
from twinstudio.model.results import Scalar, Table
from twinstudio.plugin.kinds import HilSuite

if TYPE_CHECKING:
    from twinstudio.jobs.execute import Execution

BAD = ("failed", "error")
_DONE, _FAILED, _NO_TESTS = 0, 1, 5  # exit statuses of pytest


@dataclass(slots=True)
class Row:
    """One test. outcome: passed, failed, error, skipped, xfailed or xpassed; duration: s."""

    name: str
    outcome: str = "passed"
    duration: float = 0.0
    message: str = ""

    def take(self, report: Any) -> None:
        """Add what pytest reports of its set-up, call or tear-down."""
        self.duration += report.duration
        expected = hasattr(report, "wasxfail")
        if report.failed:
            self.outcome = "failed" if report.when == "call" else "error"
            self.message = reason(report)
        elif report.skipped:
            self.outcome = "xfailed" if expected else "skipped"
            self.message = report.wasxfail if expected else reason(report)
        elif expected and report.when == "call":
            self.outcome, self.message = "xpassed", report.wasxfail


@dataclass(slots=True)
class Watch:
    """What was seen of a run of pytest."""

    rows: dict[str, Row] = field(default_factory=dict)
    count: int = 0
    problems: list[str] = field(default_factory=list)


def run_suite(job: "Execution", plugin: HilSuite[Any], params: Params) -> None:
    """Run the tests of `plugin`; those that fail are a result.

    Raises JobError for a suite that cannot be collected, has no tests or is stopped
    by one of them.
    """
    path = plugin.tests(params)
    if not isinstance(path, Path) or not path.exists():
        raise JobError(f"{job.spec.plugin}.tests returned {path!r:.80}, no path that exists")
    job.enter("running")
    watch = Watch()
    status = _pytest(job, path.resolve(), params, watch)
    job.enter("analysing")
    if watch.rows:
        job.results += results_of(list(watch.rows.values()))
    job.context.checkpoint()
    if status == _NO_TESTS:
        raise JobError("the suite has no tests", where=str(path))
    if status not in (_DONE, _FAILED):
        why = "; ".join(watch.problems) or f"pytest ended with status {status}"
        raise JobError(f"the suite could not be run: {one_line(why)}", where=str(path))


def results_of(rows: list[Row]) -> list[Scalar | Table]:
    """The verdict as scalars, `failed` first, and a table of all tests."""
    outcomes = [row.outcome for row in rows]
    failed = sum(outcomes.count(name) for name in BAD)
    others = ("passed", "skipped", "xfailed", "xpassed")
    counts = {"failed": failed} | {n: outcomes.count(n) for n in others if n in outcomes}
    table = Table(
        name="tests",
        columns=("test", "outcome", TIMED, "message"),
        units=("", "", "s", ""),
        rows=tuple((r.name, r.outcome, round(r.duration, 6), r.message) for r in rows),
    )
    scalars = [Scalar(name=n, value=float(count), unit="1") for n, count in counts.items()]
    return [*scalars, table]


def _pytest(job: "Execution", path: Path, params: Params, watch: Watch) -> int:
    try:
        import pytest  # noqa: PLC0415 - only suites need it

        from twinstudio.jobs.watching import Watcher  # noqa: PLC0415
    except ImportError as error:
        raise JobError("HIL suites need pytest", hint="pip install pytest") from error
    folder = path if path.is_dir() else path.parent
    own = folder / "pytest.ini"
    settings = own if own.is_file() else job.context.scratch / "pytest.ini"
    if settings != own:
        # Else settings of a project further up would decide how the suite runs.
        settings.write_text("[pytest]\n")
    os.environ.pop("PYTEST_ADDOPTS", None)
    words = [str(path), "-c", str(settings), f"--rootdir={folder}", f"--confcutdir={folder}"]
    # Our plugin for authors has a `job_context` too, which only pretends.
    words += ["-p", "no:cacheprovider", "-p", "no:twinstudio", "--import-mode=importlib"]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # ours is imported already
    words += ["--capture=no"]  # what tests print goes to the run's log, as of any other job
    return int(pytest.main(words, plugins=[Watcher(job.context, params, watch)]))


def reason(report: Any) -> str:
    """Why a test did not pass, in one line."""
    told = report.longrepr
    if isinstance(told, tuple):
        return one_line(str(told[2]))
    crash = getattr(told, "reprcrash", None)
    if crash is not None:
        return one_line(f"{crash.message} ({Path(crash.path).name}, line {crash.lineno})")
    lines = [line for line in str(told).splitlines() if line.strip()]
    raised = [line[1:].strip() for line in lines if line.startswith("E ")]
    return one_line((raised or lines or ["no reason given"])[-1])
