"""Metrics on the sliding window: measured beside everything else, and taken out when they fail."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from metric_helpers import catalog_of, pair_of

from twinstudio.model.errors import ParamsError, PluginError
from twinstudio.model.pair import Pair
from twinstudio.model.results import Scalar
from twinstudio.model.views import MetricView
from twinstudio.session.journal import Journal
from twinstudio.session.metrics import MOST, LiveMetrics

PATIENCE = 20.0
NAMES = ("sound", "other", "raises", "hangs", "nan", "dies", "slow")


class Window:
    """Stands for the sliding window; counts how often it is looked at."""

    def __init__(self) -> None:
        self.pair: Pair | None = pair_of()
        self.looks = 0

    def recent(self) -> Pair | None:
        self.looks += 1
        return self.pair


class Bench:
    def __init__(self, folder: Path, **more: float) -> None:
        self.catalog = catalog_of(folder, *NAMES)
        self.window, self.journal = Window(), Journal()
        timing = {"every": 0.01, "limit": 10.0} | more
        self.metrics = LiveMetrics(lambda: self.catalog, self.window.recent, self.journal, **timing)

    def view(self, key: str) -> MetricView:
        return next(view for view in self.metrics.views() if view.key == key)

    def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < deadline, self.metrics.views()
            time.sleep(0.005)

    def value(self, key: str) -> float | None:
        results = self.view(key).measured.results
        return results[0].value if results and isinstance(results[0], Scalar) else None

    def told(self) -> list[str]:
        return [entry.text for entry in self.journal.since(0) if entry.level == "alarm"]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def build(**more: float) -> Bench:
        made.append(Bench(tmp_path / "plugins", **more))
        return made[-1]

    yield build
    for bench in made:
        bench.metrics.close()


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make()


def test_that_a_chosen_metric_follows_the_window(bench: Bench) -> None:
    key = bench.metrics.add("try.sound", {"width": "0 mm"})
    bench.until(lambda: bench.value(key) == 0.5)
    view = bench.view(key)
    assert (view.state, view.title) == ("measuring", "Metric sound")
    assert (view.start, view.end) == (0, 99 * 10**7)
    bench.window.pair = pair_of(gap=0.25)
    bench.until(lambda: bench.value(key) == 0.25)


def test_that_without_a_pair_it_waits(bench: Bench) -> None:
    bench.window.pair = None
    key = bench.metrics.add("try.sound")
    looks = bench.window.looks
    bench.until(lambda: bench.window.looks > looks + 2)
    assert bench.view(key).state == "waiting"
    bench.window.pair = pair_of()
    bench.until(lambda: bench.view(key).state == "measuring")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("raises", "raised ValueError"), ("nan", "is nan, no figure"), ("dies", "SIGSEGV")],
)
def test_that_one_that_fails_is_taken_out_with_its_reason(
    bench: Bench, name: str, reason: str
) -> None:
    sound = bench.metrics.add("try.sound")
    failing = bench.metrics.add(f"try.{name}")
    bench.until(lambda: bench.view(failing).state == "failed")
    assert reason in bench.view(failing).measured.error
    assert reason in bench.catalog.entry(f"try.{name}").reason
    (line,) = bench.told()
    assert line.startswith(f"metric try.{name} 1.5 failed and is measured no more: ")
    bench.window.pair = pair_of(gap=0.125)
    bench.until(lambda: bench.value(sound) == 0.145)


def test_that_one_that_hangs_is_timed_out_while_the_others_go_on(
    make: Callable[..., Bench],
) -> None:
    bench = make(limit=1.0)
    hanging, sound = bench.metrics.add("try.hangs"), bench.metrics.add("try.sound")
    for gap in (0.25, 0.75):
        bench.window.pair = pair_of(gap=gap)
        bench.until(lambda gap=gap: bench.value(sound) == gap + 0.02)
    bench.until(lambda: bench.view(hanging).state == "failed")
    assert "measure did not end within 1 s (hangs.py" in bench.view(hanging).measured.error
    assert bench.view(sound).state == "measuring"


def test_that_one_that_has_not_finished_is_not_asked_again(bench: Bench) -> None:
    bench.metrics.add("try.hangs")
    bench.until(lambda: bench.window.looks == 1)
    sound = bench.metrics.add("try.sound")
    bench.until(lambda: bench.value(sound) is not None)
    looks = [bench.window.looks]
    bench.metrics.remove(sound)
    looks.append(bench.window.looks)
    assert bench.view("try.hangs").state == "waiting"
    assert looks[1] >= looks[0] >= 2


def test_that_a_removed_one_is_gone_with_its_process_and_thread(bench: Bench) -> None:
    key = bench.metrics.add("try.hangs")
    bench.until(lambda: bench.window.looks == 1)
    bench.metrics.remove(key)
    assert bench.metrics.views() == ()
    assert bench.told() == []
    assert bench.catalog.entry("try.hangs").state == "unused"
    with pytest.raises(PluginError, match=r"no metric 'try.hangs' to remove; chosen: none"):
        bench.metrics.remove(key)


def test_that_the_same_metric_with_other_parameters_has_a_key_of_its_own(bench: Bench) -> None:
    keys = [bench.metrics.add("try.sound", {"mode": mode}) for mode in ("a", "b")]
    assert keys == ["try.sound", "try.sound#2"]
    with pytest.raises(PluginError, match=r"is measured already, as 'try.sound#2'"):
        bench.metrics.add("try.sound", {"mode": "b"})


def test_that_one_whose_plugin_is_switched_off_is_taken_out(bench: Bench) -> None:
    key = bench.metrics.add("try.sound")
    bench.until(lambda: bench.view(key).state == "measuring")
    bench.catalog.disable("try.sound")
    bench.until(lambda: bench.view(key).state == "failed")
    assert bench.view(key).measured.error.startswith("switched off")
    assert bench.view(key).measured.results == ()


def test_that_one_that_failed_can_be_added_again_in_its_place(bench: Bench) -> None:
    key = bench.metrics.add("try.raises")
    bench.until(lambda: bench.view(key).state == "failed")
    assert bench.metrics.add("try.raises") == key
    assert len(bench.metrics.views()) == 1
    bench.until(lambda: len(bench.told()) == 2)


def test_that_wrong_parameters_and_too_many_metrics_are_refused(bench: Bench) -> None:
    with pytest.raises(ParamsError, match="allowed 0 to 1 m"):
        bench.metrics.add("try.sound", {"width": 3.0})
    bench.window.pair = None
    for k in range(MOST):
        bench.metrics.add("try.sound", {"mode": str(k)})
    with pytest.raises(PluginError, match=r"8 metrics are measured already; remove one"):
        bench.metrics.add("try.other")
    assert len(bench.metrics.views()) == MOST


def test_that_closing_interrupts_an_import_that_hangs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Exception] = []

    def add() -> None:
        try:
            bench.metrics.add("try.slow")
        except PluginError as error:
            failures.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    bench.until(lambda: bool(bench.metrics._loading))
    bench.metrics.close()
    thread.join(PATIENCE)
    assert len(failures) == 1
    with pytest.raises(PluginError, match="being closed"):
        bench.metrics.add("try.sound")
