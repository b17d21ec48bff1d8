"""Sources are replaced only by what is ready: a slip costs nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from twinstudio.model.errors import LinkError
from twinstudio.model.scene import load_scene
from twinstudio.session.cast import Cast, CellChoice
from twinstudio.session.journal import Journal


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def cast(journal: Journal) -> Iterator[Cast]:
    cast = Cast(
        load_scene("emps_axis"),
        journal,
        choice=CellChoice(),
        budget=2**22,
        on_event=lambda *_: None,
        joined=lambda _: None,
        leaving=lambda _: None,
    )
    yield cast
    cast.close()


def test_that_a_wrong_address_or_log_leaves_the_running_cell_as_it_is(
    cast: Cast, journal: Journal, tmp_path: Path
) -> None:
    cast.start_cell()
    before = cast.get("cell")
    with pytest.raises(LinkError, match="no address"):
        cast.start_cell(CellChoice(endpoint="nonsense"))
    log = tmp_path / "-a log.mcap"
    log.write_bytes(b"no recording")
    cast.start_cell(CellChoice(log=log))
    assert cast.get("cell") is before
    assert before.child is not None
    assert before.child.running
    assert cast.choice == CellChoice()
    told = journal.since(0)[-1]
    assert told.level == "alarm"
    assert "is no MCAP file" in told.text
    assert told.text.endswith("the emulated cell there was goes on")
