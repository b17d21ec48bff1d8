"""Installations into a throw-away environment, for tests of the session and of the window."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from plugin_helpers import clean_environment, home_of

from twinstudio.plugin.catalog import Catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.manifest import Installed
from twinstudio.session.installing import Installing, InstallView
from twinstudio.session.journal import Journal

SLOW_BACKEND = """
import pathlib, time

pathlib.Path(__file__).with_name("begun").write_text("")
time.sleep(600)
"""


class Bench:
    """Installations into an environment of their own."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.journal = Journal()
        self.catalog = Catalog([Installed([str(site)])], Choices())
        self.installing = Installing(lambda: self.catalog, self.journal)

    def view(self) -> InstallView:
        view = self.installing.view()
        assert view is not None
        return view

    def until(self, what: Callable[[InstallView], bool]) -> InstallView:
        deadline = time.monotonic() + 60.0
        while not what(self.view()):
            assert time.monotonic() < deadline, self.view()
            time.sleep(0.01)
        return self.view()

    def ended(self) -> InstallView:
        return self.until(lambda view: view.over)

    def planned(self) -> InstallView:
        return self.until(lambda view: view.state != "planning")

    def told(self) -> list[tuple[str, str]]:
        return [(entry.level, entry.text) for entry in self.journal.since(0)]


@contextmanager
def throw_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """pip works on a throw-away environment, which comes first on the path here, too."""
    programs = clean_environment(tmp_path / "env")
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = tmp_path / "env" / "lib" / version / "site-packages"
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in home_of(tmp_path).items():
        if name.startswith("PIP_"):
            monkeypatch.setenv(name, value)
    before = set(sys.modules)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(site))
    made = Bench(site)
    yield made
    made.installing.close()
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]


def wheel_of(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
    subprocess.run([*command, str(project)], check=True, timeout=90)
    return max(folder.glob("*.whl"), key=lambda file: file.stat().st_mtime_ns)


def slow_project(folder: Path) -> Path:
    """A project whose build waits for ever."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "slow"\nbackend-path = ["."]\n'
        '[project]\nname = "acme-slow"\nversion = "1.0"\n'
    )
    (folder / "slow.py").write_text(SLOW_BACKEND)
    return folder


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60.0
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)
