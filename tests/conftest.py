"""What holds for every test: nothing leaks, and the core runs without Qt."""

import importlib.abc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

from twinstudio.model.scene import data_folder

QT_PARTS = ("PySide6", "shiboken6", "pyqtgraph", "OpenGL")
SETTLE_SECONDS = 3.0


class QtBlocker(importlib.abc.MetaPathFinder):
    """Makes importing Qt fail, as on a machine that has none."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".", maxsplit=1)[0] in QT_PARTS:
            raise ImportError(f"{name} is blocked: the core runs without Qt")


# In the background of a script SIGINT is ignored, and so it would be by all that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Continuous integration tries the same examples every time; at a desk they are fresh ones.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

if os.environ.get("TWINSTUDIO_BLOCK_QT"):
    sys.meta_path.insert(0, QtBlocker())


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread, a child process or a socket behind."""
    before = _alive()
    yield
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := _alive() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, f"left behind: {sorted(map(str, left))}"


def _alive() -> set[object]:
    process = psutil.Process()
    threads = {thread for thread in threading.enumerate() if thread.is_alive()}
    children = {child.pid for child in process.children(recursive=True)}
    ports = {f"listening on {c.laddr}" for c in process.net_connections() if c.status == "LISTEN"}
    return threads | {f"process {pid}" for pid in children} | ports


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real logs skip, with the reason, where the logs are not at hand."""
    if data_folder().is_dir():
        return
    skip = pytest.mark.skip(reason=f"no real logs: {data_folder()} is absent (TWINSTUDIO_DATA)")
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(skip)


@pytest.fixture
def data() -> Path:
    """The folder with logs of real robots; use it with ``@pytest.mark.data``."""
    return data_folder()
