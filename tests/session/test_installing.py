"""Plugins in and out of a session: shown first, agreed to, carried out, cancelled, told.

A throw-away environment takes what is installed; no index is asked.
"""

import os
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from install_helpers import Bench, children, slow_project, throw_away, wait_for, wheel_of
from plugin_helpers import distribute

from twinstudio.model.errors import PluginError
from twinstudio.plugin import install as installer
from twinstudio.plugin.scaffold import write_project


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with throw_away(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def wheel(bench: Bench, tmp_path: Path) -> Path:
    return wheel_of(write_project("acme-settling", "metric", tmp_path), tmp_path / "dist")


def raise_version(project: Path, version: str) -> None:
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace('version = "0.1.0"', f'version = "{version}"'))


# --- the way in and out -----------------------------------------------------------------------


def test_that_nothing_is_installed_before_it_is_agreed_to(bench: Bench, wheel: Path) -> None:
    bench.installing.install(str(wheel))
    view = bench.planned()
    assert view.state == "planned"
    assert [str(change) for change in view.changes] == ["install acme-settling 0.1.0"]
    assert installer.version_of("acme-settling") == ""
    assert bench.told()[-1] == ("info", "plan: install acme-settling 0.1.0; waits to be agreed to")


def test_that_a_plugin_is_installed_listed_and_uninstalled(bench: Bench, wheel: Path) -> None:
    assert bench.catalog.entries() == ()
    bench.installing.install(str(wheel))
    bench.planned()
    bench.installing.install(str(wheel), agreed=True)
    view = bench.ended()
    assert (view.state, view.outcome) == (
        "done",
        "Installed acme-settling 0.1.0 (acme.settling)",
    )
    assert any("Successfully installed acme-settling-0.1.0" in line for line in view.lines)
    assert view.count == len(view.lines)
    (entry,) = bench.catalog.entries()
    assert (entry.id, entry.state, entry.restart) == ("acme.settling", "unused", "")
    bench.installing.uninstall("acme_settling")
    view = bench.planned()
    assert [str(change) for change in view.changes] == ["uninstall acme-settling 0.1.0"]
    assert len(bench.catalog.entries()) == 1
    bench.installing.uninstall("acme_settling", agreed=True)
    assert bench.ended().outcome == "acme-settling 0.1.0 is uninstalled"
    assert bench.catalog.entries() == ()
    assert installer.version_of("acme-settling") == ""


def test_that_the_lines_of_the_log_replay_it(bench: Bench, wheel: Path) -> None:
    """Agreement may come before the plan is there: a script does not wait for one."""
    bench.installing.install(str(wheel))
    bench.installing.install(str(wheel), agreed=True)
    assert bench.ended().state == "done"
    bench.installing.uninstall("acme-settling", agreed=True)
    assert bench.ended().state == "done"
    assert bench.view().number == 2


def test_that_what_is_installed_already_is_told(bench: Bench, wheel: Path) -> None:
    bench.installing.install(str(wheel), agreed=True)
    bench.ended()
    bench.installing.install(str(wheel))
    view = bench.ended()
    assert view.state == "done"
    assert "is installed already; nothing was changed" in view.outcome


def test_that_a_package_without_plugins_is_told(bench: Bench, tmp_path: Path) -> None:
    project = write_project("acme-settling", "metric", tmp_path)
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace("twinstudio.plugins", "others.plugins"))
    bench.installing.install(str(project), agreed=True, offline=True)
    assert bench.ended().outcome == "Installed acme-settling 0.1.0 (no plugins in it)"


def test_that_a_plugin_that_was_in_use_asks_for_a_restart(
    bench: Bench, wheel: Path, tmp_path: Path
) -> None:
    bench.installing.install(str(wheel), agreed=True)
    bench.ended()
    old = bench.catalog.load("acme.settling")
    raise_version(tmp_path / "acme-settling", "0.2.0")
    newer = wheel_of(tmp_path / "acme-settling", tmp_path / "newer")
    bench.installing.install(str(newer))
    view = bench.planned()
    assert [str(change) for change in view.changes] == ["replace acme-settling 0.1.0 by 0.2.0"]
    bench.installing.install(str(newer), agreed=True)
    assert bench.ended().outcome.endswith("(acme.settling); restart Twinstudio")
    (entry,) = bench.catalog.entries()
    assert (entry.version, entry.state) == ("0.2.0", "unused")
    assert entry.restart.startswith("version 0.1.0 was in use when it was replaced")
    assert bench.catalog.load("acme.settling") is not old


def test_that_a_library_that_was_replaced_asks_for_a_restart(bench: Bench, tmp_path: Path) -> None:
    project = write_project("acme-library", "metric", tmp_path)
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace("twinstudio.plugins", "others.plugins"))
    bench.installing.install(str(project), agreed=True, offline=True)
    assert bench.ended().outcome == "Installed acme-library 0.1.0 (no plugins in it)"
    raise_version(project, "0.2.0")
    bench.installing.install(str(project), agreed=True, offline=True)
    view = bench.ended()
    assert view.outcome == "Installed acme-library 0.2.0 (no plugins in it); restart Twinstudio"


def test_that_the_same_version_from_a_folder_replaces_what_was_in_use(
    bench: Bench, tmp_path: Path
) -> None:
    project = write_project("acme-settling", "metric", tmp_path)
    bench.installing.install(str(project), agreed=True, offline=True)
    bench.ended()
    old = bench.catalog.load("acme.settling")
    bench.installing.install(str(project), agreed=True, offline=True)
    assert bench.ended().state == "done"
    assert "version 0.1.0 was in use" in bench.catalog.entry("acme.settling").restart
    assert bench.catalog.load("acme.settling") is not old


# --- what cannot be done ----------------------------------------------------------------------


def failed(bench: Bench, what: str, *, offline: bool = True) -> str:
    bench.installing.install(what, offline=offline)
    view = bench.ended()
    assert view.state == "failed"
    assert ("alarm", view.outcome) in bench.told()
    assert view.outcome.endswith("; nothing was changed")
    return view.outcome


def test_that_garbage_is_refused_in_one_line(bench: Bench, tmp_path: Path) -> None:
    garbage = tmp_path / "acme_reach-1.0-py3-none-any.whl"
    garbage.write_bytes(os.urandom(4000))
    assert "pip could not handle" in failed(bench, str(garbage))
    text = tmp_path / "notes.txt"
    text.write_text("no plugin")
    assert "pip could not handle" in failed(bench, str(text))


def test_that_a_folder_without_a_project_is_told(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "pyproject.toml" in failed(bench, str(tmp_path / "empty"))


def test_that_a_name_that_does_not_exist_is_told(bench: Bench) -> None:
    assert "'acme-nowhere' or something it needs is not to be found" in failed(
        bench, "acme-nowhere"
    )
    assert "there is no such wheel or folder" in failed(bench, "/nowhere/acme.whl")
    assert "no wheel, folder or package name" in failed(bench, "--target=/tmp")
    assert "no wheel, folder or package name" in failed(bench, "  ")


def test_that_an_index_out_of_reach_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    said = failed(bench, "acme-from-afar", offline=False)
    assert "the package index cannot be reached" in said


def test_that_what_comes_with_twinstudio_or_has_no_plugins_stays(bench: Bench) -> None:
    with pytest.raises(PluginError, match="comes with Twinstudio; disable its plugins"):
        bench.installing.uninstall("Twinstudio_Metrics")
    assert bench.installing.view() is None
    bench.installing.uninstall("numpy")
    assert "package 'numpy' has no plugins" in bench.ended().outcome
    bench.installing.uninstall("acme-nowhere", agreed=True)
    assert "no package 'acme-nowhere' is installed" in bench.ended().outcome


def test_that_an_environment_of_the_operating_system_is_left_alone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert "managed by the operating system" in failed(bench, "acme")


# --- cancelling -------------------------------------------------------------------------------


def test_that_a_plan_is_dropped(bench: Bench, wheel: Path) -> None:
    bench.installing.install(str(wheel))
    bench.planned()
    bench.installing.cancel()
    assert (bench.view().state, bench.view().outcome) == (
        "cancelled",
        "Cancelled; nothing was changed",
    )
    with pytest.raises(PluginError, match="nothing is being installed"):
        bench.installing.cancel()


def test_that_a_build_that_never_ends_is_cancelled_with_all_it_started(
    bench: Bench, tmp_path: Path
) -> None:
    project = slow_project(tmp_path / "slow")
    bench.installing.install(str(project), offline=True)
    wait_for(project / "begun")
    assert children()
    with pytest.raises(PluginError, match=r"cannot install 'acme': '.*slow' is not done"):
        bench.installing.install("acme")
    bench.installing.cancel()
    assert bench.view().cancelling
    view = bench.ended()
    assert (view.state, view.outcome) == ("cancelled", "Cancelled; nothing was changed")
    assert children() == []


def test_that_closing_ends_what_is_under_way(bench: Bench, tmp_path: Path) -> None:
    project = slow_project(tmp_path / "slow")
    bench.installing.install(str(project), offline=True)
    wait_for(project / "begun")
    bench.installing.close()
    assert bench.view().state == "cancelled"
    assert children() == []
    with pytest.raises(PluginError, match="the session is closed"):
        bench.installing.install("acme")


def test_that_another_plan_takes_the_place_of_one_nobody_agreed_to(
    bench: Bench, wheel: Path
) -> None:
    bench.installing.install(str(wheel))
    bench.planned()
    bench.installing.install("acme-nowhere", offline=True)
    view = bench.ended()
    assert (view.number, view.state, view.wanted.what) == (2, "failed", "acme-nowhere")


def test_that_files_being_changed_are_finished_before_a_cancel_takes_effect(
    bench: Bench, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = bench.installing.cancel
    bench.installing.install(str(wheel))
    bench.planned()
    newest = bench.installing._newest
    assert newest is not None
    heard = newest._say

    def cancel_late(line: str) -> None:
        heard(line)
        if line.startswith("Installing collected packages"):
            say()

    monkeypatch.setattr(newest, "_say", cancel_late)
    bench.installing.install(str(wheel), agreed=True)
    view = bench.ended()
    assert view.cancelling
    assert (view.state, view.outcome) == ("done", "Installed acme-settling 0.1.0 (acme.settling)")


ORPHAN = """
import sys, threading
from twinstudio.plugin import pipchild
pipchild.run(["install", "--no-index", "--no-build-isolation", "--dry-run", sys.argv[1]],
             print, threading.Event())
"""


def test_that_pip_ends_when_the_program_is_killed(bench: Bench, tmp_path: Path) -> None:
    project = slow_project(tmp_path / "slow")
    program = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(project)], stdout=subprocess.DEVNULL
    )
    wait_for(project / "begun")
    family = psutil.Process(program.pid).children(recursive=True)
    assert len(family) >= 2
    program.send_signal(signal.SIGKILL)
    program.wait()
    _, alive = psutil.wait_procs(family, timeout=20.0)
    assert alive == []


def test_that_a_fault_of_ours_is_told_and_ends_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_more: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(installer, "plan", broken)
    bench.installing.install("acme")
    assert "a fault of Twinstudio: RuntimeError('out of luck')" in bench.ended().outcome


def test_that_a_package_may_vanish_between_plan_and_agreement(bench: Bench) -> None:
    distribute(bench.site, "acme-reach")
    bench.installing.uninstall("acme-reach")
    assert bench.planned().state == "planned"
    info = bench.site / "acme_reach-1.0.dist-info"
    for file in info.iterdir():
        file.unlink()
    info.rmdir()
    bench.installing.uninstall("acme-reach", agreed=True)
    assert "no package 'acme-reach' is installed; " in bench.ended().outcome


def test_that_threads_end_with_their_work(bench: Bench, wheel: Path) -> None:
    bench.installing.install(str(wheel), agreed=True)
    bench.ended()
    bench.installing.close()
    assert "installing" not in {thread.name for thread in threading.enumerate()}
