"""Fixtures for the tests of plugins; pytest finds them by itself once Twinstudio is installed.

Nothing of Twinstudio is imported until one of them is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from twinstudio.model.pair import Pair
    from twinstudio.plugin.testing import FakeContext


@pytest.fixture
def job_context() -> "Iterator[FakeContext]":
    """A context to run a plugin in; its scratch folder goes away after the test."""
    from twinstudio.plugin.testing import FakeContext  # noqa: PLC0415 - see above

    with FakeContext() as context:
        yield context


@pytest.fixture
def pair() -> "Pair":
    """Two joints for two seconds; the twin is 1 mrad and -2 mrad off."""
    from twinstudio.plugin.testing import make_pair  # noqa: PLC0415 - see above

    return make_pair(offsets=(0.001, -0.002))


@pytest.fixture
def no_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog finds none of the plugins that happen to be installed."""
    from twinstudio.plugin.manifest import Installed  # noqa: PLC0415 - see above

    monkeypatch.setattr(Installed, "offers", lambda _: [])
