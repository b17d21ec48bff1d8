"""What the tests of jobs share: a store, a runner, and plugins good and bad."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from twinstudio.jobs.job import JobView
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.spec import JobSpec, specify
from twinstudio.jobs.store import Store

WAIT = 60.0
PLUGINS = Path(__file__).parent / "plugins_at_work.py"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture
def runner(store: Store) -> Iterator[Runner]:
    with Runner(store, at_once=2, who="tester") as runner:
        yield runner


@pytest.fixture
def spec() -> Callable[..., JobSpec]:
    """Make a specification of one of `plugins_at_work`."""

    def make(name: str, params: dict[str, Any] | None = None, **more: Any) -> JobSpec:
        return specify(f"{PLUGINS}:{name}", params or {}, **{"seed": 7, **more})

    return make


@pytest.fixture
def run(runner: Runner, spec: Callable[..., JobSpec]) -> Callable[..., JobView]:
    """Run one of `plugins_at_work` to its end."""

    def go(name: str, params: dict[str, Any] | None = None, **more: Any) -> JobView:
        return runner.submit(spec(name, params, **more)).wait(WAIT)

    return go
