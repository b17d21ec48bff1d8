"""A folder of distributions on the path, and nothing of it left behind."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on sys.path; modules of plugins that were imported are forgotten."""
    folder = tmp_path / "site"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in set(sys.modules) - before:
        if name.startswith(("acme", "other", "twinstudio_plugin_files")):
            del sys.modules[name]
    importlib.invalidate_caches()
