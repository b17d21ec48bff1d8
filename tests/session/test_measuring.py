"""A metric in a process of its own: what it says, and every way in which it can go wrong."""

import re
import sys
from pathlib import Path

import psutil
import pytest
from metric_helpers import catalog_of, pair_of

from twinstudio.model.errors import ParamsError, PluginError
from twinstudio.model.results import Scalar, Series, Table
from twinstudio.session.logmetrics import LogMetrics, parsed
from twinstudio.session.measuring import Measuring

LIMIT = 20.0
SHORT = 0.3


def test_that_a_metric_measures_a_pair_with_parameters_in_any_unit(tmp_path: Path) -> None:
    with Measuring(catalog_of(tmp_path, "sound"), "try.sound", {"width": "25 mm"}) as one:
        assert one.ready().params == {"width": 0.025, "mode": "a"}
        for gap in (0.5, 0.25):
            said = one.measure(pair_of(gap=gap), limit=LIMIT)
            (figure,) = said.results
            assert isinstance(figure, Scalar)
            assert (figure.value, figure.unit, figure.high) == (gap + 0.025, "m", 9.0)
            assert (said.plugin, said.version, said.error) == ("try.sound", "1.5", "")


def test_that_results_of_every_kind_arrive_whole(tmp_path: Path) -> None:
    with Measuring(catalog_of(tmp_path, "rich"), "try.rich", {}) as one:
        one.ready()
        figure, table, curve = one.measure(pair_of(), limit=LIMIT).results
    assert isinstance(figure, Scalar)
    assert figure.low == -float("inf")
    assert isinstance(table, Table)
    assert table.rows == (("<j1>", 0.5), ("j2", None))
    assert isinstance(curve, Series)
    assert curve.y[1] != curve.y[1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", r"^raised ValueError: no such joint \(raises.py, line \d+, in measure\)$"),
        ("typed", "try.typed.measure returned a dict, no list of results"),
        ("items", "result 0 of try.items.measure is a float"),
        ("nothing", "try.nothing.measure returned nothing, no list of results"),
        ("nan", "result 'rms' is nan, no figure"),
        ("unit", "furlong"),
        ("exits", r"^called sys.exit\(3\)"),
        ("dies", r"^measure was ended by signal SIGSEGV \(dies.py, line \d+, in measure\)$"),
        ("leaves", "^measure ended the process with status 0; a plugin returns or raises$"),
    ],
)
def test_that_a_metric_that_fails_is_one_line_with_its_reason(
    name: str, reason: str, tmp_path: Path
) -> None:
    catalog = catalog_of(tmp_path, name)
    with Measuring(catalog, f"try.{name}", {}) as one:
        one.ready()
        said = one.measure(pair_of(), limit=LIMIT)
    assert re.search(reason, said.error)
    assert "\n" not in said.error
    assert said.results == ()
    entry = catalog.entry(f"try.{name}")
    assert (entry.state, entry.reason) == ("failed", said.error)


@pytest.mark.parametrize("name", ["hangs", "holds"])
def test_that_one_that_hangs_is_ended_and_where_it_hung_is_told(name: str, tmp_path: Path) -> None:
    with Measuring(catalog_of(tmp_path, name), f"try.{name}", {}) as one:
        one.ready()
        said = one.measure(pair_of(), limit=SHORT)
    assert said.error.startswith(f"measure did not end within 0.3 s ({name}.py, line")


def test_that_what_it_prints_and_forks_disturbs_nobody(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "prints", "forks")
    with Measuring(catalog, "try.prints", {}) as one:
        one.ready()
        assert [one.measure(pair_of(), limit=LIMIT).error for _ in range(3)] == ["", "", ""]
    with Measuring(catalog, "try.forks", {}) as one:
        one.ready()
        answers = [one.measure(pair_of(), limit=LIMIT) for _ in range(3)]
    assert [(len(said.results), said.error) for said in answers] == [(1, "")] * 3


def test_that_wrong_parameters_are_the_users_fault_and_not_the_plugins(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "sound")
    for params, text in (
        ({"width": "3 m"}, r"'width'.*allowed 0 to 1 m"),
        ({"wide": 1.0}, "unknown key 'wide'"),
        (["width=5 kg"], "width"),
        (["width"], "write name=value"),
    ):
        with Measuring(catalog, "try.sound", params) as one, pytest.raises(ParamsError, match=text):
            one.ready()
    assert catalog.entry("try.sound").state == "unused"


def test_that_only_metrics_that_are_there_and_switched_on_measure(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path / "p", "sound", settings=str(tmp_path / "s"))
    with pytest.raises(PluginError, match=r"no plugin 'try.sund'; did you mean 'try.sound'"):
        Measuring(catalog, "try.sund", {})
    catalog.disable("try.sound")
    with pytest.raises(PluginError, match="switched off"):
        Measuring(catalog, "try.sound", {})


def test_that_one_that_cannot_be_imported_says_so(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "broken")
    with (
        Measuring(catalog, "try.broken", {}) as one,
        pytest.raises(PluginError, match="No module named 'nowhere_to_be_found'"),
    ):
        one.ready()
    assert catalog.entry("try.broken").state == "failed"
    assert "ModuleNotFoundError" in catalog.entry("try.broken").trace


def test_that_nothing_of_a_metric_is_imported_here(tmp_path: Path) -> None:
    before = set(sys.modules)
    with Measuring(catalog_of(tmp_path, "sound"), "try.sound", {}) as one:
        one.ready()
        one.measure(pair_of(), limit=LIMIT)
    assert not [name for name in set(sys.modules) - before if "twinstudio_plugin_files" in name]


def test_that_closing_ends_the_process_and_is_no_failure(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "sound")
    one = Measuring(catalog, "try.sound", {})
    one.ready()
    (child,) = psutil.Process().children()
    one.close()
    assert not child.is_running()
    assert one.measure(pair_of(), limit=LIMIT).error
    assert catalog.entry("try.sound").state == "unused"
    one.drop()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acme.a", ("acme.a", [])),
        ("acme.a:", ("acme.a", [])),
        (
            "acme.a:share=90 %,signal=joint.effort",
            ("acme.a", ["share=90 %", "signal=joint.effort"]),
        ),
        ("acme.a:weights=[1,2,3],b=2", ("acme.a", ["weights=[1,2,3]", "b=2"])),
        ("acme.a:nonsense", ("acme.a", ["nonsense"])),
        ("acme.a:path=C:/x", ("acme.a", ["path=C:/x"])),
    ],
)
def test_that_a_metric_and_its_parameters_are_read_from_one_word(
    text: str, found: tuple[str, list[str]]
) -> None:
    assert parsed(text) == found


def test_that_of_several_metrics_one_failure_leaves_the_others(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "sound", "raises", "broken", "rich")
    wanted = ["try.sound:width=1 cm", "try.raises", "try.broken", "try.rich", "try.sound"]
    with LogMetrics(catalog, wanted) as metrics:
        said = metrics.measure(pair_of(), limit=LIMIT)
    assert [one.plugin for one in said] == [text.partition(":")[0] for text in wanted]
    assert [bool(one.error) for one in said] == [False, True, True, False, False]
    assert said[0].params["width"] == 0.01
    assert "nowhere_to_be_found" in said[2].error


def test_that_a_typing_error_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "sound")
    with pytest.raises(ParamsError, match="unknown key 'wide'"):
        LogMetrics(catalog, ["try.sound", "try.sound:wide=1"])
    with pytest.raises(PluginError, match="no plugin 'nobody'"):
        LogMetrics(catalog, ["try.sound", "nobody"])
