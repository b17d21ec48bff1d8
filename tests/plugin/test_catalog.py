"""The catalog: states, isolation, rivals, safe mode, retry."""

import importlib
import math
import sys
import threading
from pathlib import Path

import pytest
from plugin_helpers import distribute, manifest, metric_code, single_file

from twinstudio.bench.catalog import PREFIX, lay_out
from twinstudio.model.errors import PluginError
from twinstudio.plugin import catalog as catalogs
from twinstudio.plugin.catalog import Catalog, Places, open_catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.folders import Folder
from twinstudio.plugin.kinds import Metric
from twinstudio.plugin.manifest import Installed


def catalog_of(site: Path, *, choices: Choices | None = None, safe: bool = False) -> Catalog:
    sources = [Installed([str(site)]), Folder(site / "files")]
    return Catalog(sources, choices or Choices(), safe=safe)


def test_that_a_plugin_is_imported_on_first_use_and_not_before(site: Path) -> None:
    distribute(site, "acme-reach")
    catalog = catalog_of(site)
    (entry,) = catalog.entries()
    assert entry.state == "unused"
    assert "acme_reach" not in sys.modules
    cls = catalog.load("acme.reach")
    assert issubclass(cls, Metric)
    assert catalog.entry("acme.reach").state == "enabled"
    assert catalog.load("acme.reach") is cls


def test_that_a_single_file_is_loaded_like_any_other(site: Path) -> None:
    single_file(site / "files", "reach", "acme.reach")
    assert catalog_of(site).load("acme.reach").id == "acme.reach"


def test_that_two_files_of_one_name_do_not_meet(site: Path) -> None:
    single_file(site / "one", "reach", "acme.one")
    single_file(site / "two", "reach", "acme.two")
    catalog = Catalog([Folder(site / "one"), Folder(site / "two")], Choices())
    assert [catalog.load(f"acme.{k}").id for k in ("one", "two")] == ["acme.one", "acme.two"]


def test_that_an_unknown_id_names_the_nearest(site: Path) -> None:
    distribute(site, "acme-reach")
    with pytest.raises(PluginError, match=r"no plugin 'acme\.raech'; did you mean 'acme\.reach'"):
        catalog_of(site).load("acme.raech")


def test_that_a_disabled_plugin_is_listed_and_not_loaded(site: Path, tmp_path: Path) -> None:
    distribute(site, "acme-reach")
    catalog_of(site, choices=Choices(tmp_path)).disable("acme.reach")
    later = catalog_of(site, choices=Choices(tmp_path))
    assert later.entries()[0].state == "disabled"
    with pytest.raises(PluginError, match=r"plugins enable acme\.reach"):
        later.load("acme.reach")
    assert later.enable("acme.reach").state == "unused"
    assert later.load("acme.reach")


def test_that_safe_mode_leaves_only_what_comes_with_twinstudio(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribute(site, "acme-reach")
    distribute(
        site, "other-one", toml=manifest("other_one", "other.one"), code=metric_code("other.one")
    )
    monkeypatch.setattr(catalogs, "FIRST_PARTY", frozenset({"other-one"}))
    catalog = catalog_of(site, safe=True)
    states = {entry.id: (entry.first_party, entry.state) for entry in catalog.entries()}
    assert states == {"other.one": (True, "unused"), "acme.reach": (False, "disabled")}
    with pytest.raises(PluginError, match="safe mode"):
        catalog.load("acme.reach")
    assert catalog.load("other.one")


def test_that_of_two_plugins_with_one_id_neither_is_used(site: Path) -> None:
    distribute(site, "acme-reach")
    file = single_file(site / "files", "reach", "acme.reach")
    distribute(
        site, "other-one", toml=manifest("other_one", "other.one"), code=metric_code("other.one")
    )
    catalog = catalog_of(site)
    rivals = [entry for entry in catalog.entries() if entry.id == "acme.reach"]
    assert [entry.state for entry in rivals] == ["failed", "failed"]
    assert f"also taken by {file}" in rivals[0].reason
    assert "also taken by acme-reach" in rivals[1].reason
    with pytest.raises(PluginError, match="uninstall one of them"):
        catalog.load("acme.reach")
    assert catalog.load("other.one")


def test_that_nobody_takes_the_id_of_what_comes_with_twinstudio(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "FIRST_PARTY", frozenset({"acme-reach"}))
    distribute(site, "acme-reach")
    single_file(site / "files", "reach", "acme.reach", code="raise SystemExit")
    catalog = catalog_of(site)
    assert [entry.state for entry in catalog.entries()] == ["unused", "failed"]
    assert catalog.load("acme.reach").__module__ == "acme_reach.plugin"


def test_that_a_failure_stays_until_it_is_retried(site: Path) -> None:
    package = distribute(site, "acme-reach", code="import acme_missing")
    catalog = catalog_of(site)
    for _ in range(2):
        with pytest.raises(PluginError, match="ModuleNotFoundError: No module named 'acme_miss"):
            catalog.load("acme.reach")
    entry = catalog.entry("acme.reach")
    assert entry.state == "failed"
    assert "import acme_missing" in entry.trace
    (package / "plugin.py").write_text(metric_code())
    assert catalog.retry("acme.reach").state == "enabled"
    assert catalog.load("acme.reach")


def test_that_retry_reads_the_manifest_anew(site: Path) -> None:
    package = distribute(site, "acme-reach", toml=manifest("acme_reach", "acme.reach", api=7))
    catalog = catalog_of(site)
    assert "API 7" in catalog.entry("acme.reach").reason
    (package / "twinstudio-plugin.toml").write_text(manifest("acme_reach", "acme.reach"))
    assert catalog.retry("acme.reach").state == "enabled"


def test_that_retry_runs_the_new_code(site: Path) -> None:
    file = single_file(site / "files", "reach", "acme.reach")
    catalog = catalog_of(site)
    old = catalog.load("acme.reach")
    file.write_text(file.read_text().replace("largest gap", "worst gap of all"))
    catalog.retry("acme.reach")
    assert catalog.load("acme.reach") is not old


def test_that_refresh_finds_what_was_installed_and_keeps_what_is_loaded(site: Path) -> None:
    distribute(site, "acme-reach")
    catalog = catalog_of(site)
    cls = catalog.load("acme.reach")
    single_file(site / "files", "more", "acme.more")
    assert [entry.id for entry in catalog.refresh()] == ["acme.more", "acme.reach"]
    assert catalog.load("acme.reach") is cls


def test_that_an_upgrade_is_imported_anew(site: Path) -> None:
    package = distribute(site, "acme-reach", version="1.0")
    catalog = catalog_of(site)
    old = catalog.load("acme.reach")
    info = site / "acme_reach-1.0.dist-info" / "METADATA"
    info.write_text(info.read_text().replace("Version: 1.0", "Version: 2.0"))
    (package / "plugin.py").write_text(metric_code().replace("largest gap", "worst gap of all"))
    assert [(e.version, e.state) for e in catalog.refresh()] == [("2.0", "unused")]
    assert catalog.load("acme.reach") is not old


def test_that_what_was_replaced_while_in_use_asks_for_a_restart(site: Path) -> None:
    distribute(site, "acme-reach", version="1.0")
    distribute(site, "acme-more", toml=manifest("acme_more", "acme.more"))
    catalog = catalog_of(site)
    old = catalog.load("acme.reach")
    entries = {entry.id: entry for entry in catalog.refresh(("Acme_Reach", "acme-more"))}
    assert entries["acme.reach"].restart.startswith("version 1.0 was in use")
    assert entries["acme.more"].restart == ""
    assert entries["acme.reach"].state == "unused"
    assert catalog.load("acme.reach") is not old


def test_that_a_run_that_goes_well_clears_the_failure_of_the_one_before(site: Path) -> None:
    distribute(site, "acme-reach")
    catalog = catalog_of(site)
    catalog.load("acme.reach")
    catalog.note_failure("acme.reach", "no luck")
    assert catalog.entry("acme.reach").state == "failed"
    catalog.note_success("acme.reach")
    assert catalog.entry("acme.reach").state == "enabled"


def test_that_two_hundred_are_listed_and_none_is_imported(site: Path) -> None:
    lay_out(site, 200)
    entries = Catalog([Installed([str(site)])], Choices()).entries()
    assert [entry.state for entry in entries] == ["unused"] * 200
    assert not [name for name in sys.modules if name.startswith(PREFIX)]


def test_that_a_failed_run_is_kept_in_the_entry_and_can_be_repeated(site: Path) -> None:
    distribute(site, "acme-reach")
    catalog = catalog_of(site)
    with pytest.raises(ZeroDivisionError) as caught:
        math.fmod(1 // 0, 1)
    catalog.note_failure("acme.reach", caught.value)
    entry = catalog.entry("acme.reach")
    assert entry.state == "failed"
    assert entry.reason.startswith("ZeroDivisionError: ")
    assert "math.fmod" in entry.trace
    assert catalog.load("acme.reach")
    assert catalog.retry("acme.reach").state == "enabled"


def test_that_the_digest_follows_the_source(site: Path) -> None:
    package = distribute(site, "acme-reach")
    file = single_file(site / "files", "one", "acme.one")
    catalog = catalog_of(site)
    before = catalog.digest("acme.reach"), catalog.digest("acme.one")
    assert before == (catalog.digest("acme.reach"), catalog.digest("acme.one"))
    (package / "helper.py").write_text("x = 1")
    file.write_text(file.read_text() + "\n# changed\n")
    after = catalog.digest("acme.reach"), catalog.digest("acme.one")
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_that_places_make_the_same_catalog_in_another_process(site: Path, tmp_path: Path) -> None:
    single_file(site / "files", "reach", "acme.reach")
    places = Places(
        folders=(str(site / "files"),), settings=str(tmp_path), safe=False, installed=False
    )
    assert [entry.id for entry in open_catalog(places).entries()] == ["acme.reach"]


def test_that_many_threads_load_one_plugin_once(site: Path) -> None:
    package = distribute(site, "acme-reach")
    (package / "plugin.py").write_text(
        "import pathlib\n"
        "with pathlib.Path(__file__).with_name('count').open('a') as file:\n"
        "    file.write('x')\n" + metric_code()
    )
    catalog, loaded = catalog_of(site), []
    threads = [
        threading.Thread(target=lambda: loaded.append(catalog.load("acme.reach"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 8
    assert len(set(loaded)) == 1
    assert (package / "count").read_text() == "x"


def test_that_a_slow_import_holds_up_no_listing(site: Path) -> None:
    code = "from other_gate import begun, go\nbegun.set()\ngo.wait(30.0)\n" + metric_code()
    distribute(site, "acme-reach", code=code)
    (site / "other_gate.py").write_text(
        "import threading\nbegun, go = threading.Event(), threading.Event()\n"
    )
    gate = importlib.import_module("other_gate")
    catalog, loaded = catalog_of(site), []
    thread = threading.Thread(target=lambda: loaded.append(catalog.load("acme.reach")))
    thread.start()
    try:
        assert gate.begun.wait(30.0)
        assert catalog.entries()[0].state == "unused"
    finally:
        gate.go.set()
        thread.join()
    assert catalog.entries()[0].state == "enabled"
    assert len(loaded) == 1


def test_that_retry_survives_what_would_end_the_process(site: Path) -> None:
    package = distribute(site, "acme-reach", code="import os\nos._exit(3)\n")
    catalog = catalog_of(site)
    assert catalog.probe("acme.reach").state == "failed"
    assert "status 3" in catalog.retry("acme.reach").reason
    (package / "plugin.py").write_text(metric_code())
    assert catalog.retry("acme.reach").state == "enabled"
