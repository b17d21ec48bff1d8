"""Real logs for tests that need them; they skip, with the reason, where there are none."""

from pathlib import Path

import pytest

from twinstudio.model.scene import data_folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests on real logs where the logs are not at hand."""
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
