"""The plugin of pytest through which a job watches a suite; imported where one is run."""

from typing import TYPE_CHECKING, Any

import pytest

from twinstudio.jobs.suite import Row, reason
from twinstudio.model.params import Params

if TYPE_CHECKING:
    from twinstudio.jobs.context import WorkerContext
    from twinstudio.jobs.suite import Watch


class Watcher:
    """Fills `watch`, tells the progress, stops a cancelled run, hands out two fixtures."""

    def __init__(self, context: "WorkerContext", params: Params, watch: "Watch") -> None:
        self._context = context
        self._params = params
        self._watch = watch
        self._session: Any = None

    @pytest.fixture
    def job_context(self) -> object:
        """The JobContext of the run."""
        return self._context

    @pytest.fixture
    def suite_params(self) -> Params:
        """The parameters of the suite."""
        return self._params

    def pytest_collectreport(self, report: Any) -> None:
        """Keep why a file could not be collected."""
        if report.failed:
            self._watch.problems.append(f"{report.nodeid}: {reason(report)}")

    def pytest_collection_finish(self, session: Any) -> None:
        """Count the tests."""
        self._session = session
        self._watch.count = len(session.items)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take one phase of one test."""
        self._watch.rows.setdefault(report.nodeid, Row(report.nodeid)).take(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Tell how many are done; start no more of a cancelled job."""
        done, count = len(self._watch.rows), max(1, self._watch.count)
        self._context.tell(done / count, f"{done} of {count}: {nodeid}")
        if self._context.over:
            self._session.shouldstop = "the job was cancelled"

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        """Keep what stopped the run."""
        self._watch.problems.append(f"stopped by {excinfo.exconly()}")

    def pytest_internalerror(self, excinfo: Any) -> None:
        """Keep what broke pytest itself."""
        self._watch.problems.append(excinfo.exconly())
