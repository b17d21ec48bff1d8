import threading

import pytest
from gui.fake_session import FakeSession

from twinstudio.gui.notices import KEPT, Notices
from twinstudio.gui.palette import score
from twinstudio.gui.runner import Runner, parsed
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.views import Entry


def test_that_results_and_complaints_wait_until_they_are_collected() -> None:
    session, notices, got = FakeSession(), Notices(), []
    runner = Runner(session, notices)  # type: ignore[arg-type]
    runner.run("gap.reset", got.append)
    session.refuse = ""
    runner.run("no.such")
    runner._pool.shutdown(wait=True)
    assert got == []
    runner.collect()
    assert got == [None]
    assert [line.text for line in notices.lines] == ["there is no command 'no.such'"]
    assert not runner.busy


def test_that_an_unforeseen_failure_is_shown_too() -> None:
    notices = Notices()
    runner = Runner(FakeSession(), notices)  # type: ignore[arg-type]
    runner.call("job", lambda: 1 / 0)
    runner._pool.shutdown(wait=True)
    runner.collect()
    assert "ZeroDivisionError" in notices.lines[-1].text


def test_that_closing_leaves_no_thread() -> None:
    runner = Runner(FakeSession(), Notices())  # type: ignore[arg-type]
    runner.run("gap.reset")
    runner.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("window-commands")]


def test_that_a_command_line_is_read_with_names_or_without() -> None:
    commands = FakeSession().commands()
    assert parsed("gap.window 10", commands) == ("gap.window", {"seconds": 10})
    assert parsed("gap.window seconds=1.5", commands) == ("gap.window", {"seconds": 1.5})
    assert parsed("replay.loop on", commands) == ("replay.loop", {"on": True})
    assert parsed("cell.replay '/a b/c.mcap'", commands)[1] == {"log": "/a b/c.mcap"}
    assert parsed("cell.connect tcp://h:1?x=2", commands)[1] == {"endpoint": "tcp://h:1?x=2"}


@pytest.mark.parametrize("line", ["", "nonsense", "gap.reset 3", "gap.window 1 2", "a 'b"])
def test_that_a_wrong_command_line_is_refused_with_a_reason(line: str) -> None:
    with pytest.raises(TwinstudioError, match=r"there is no command|takes|cannot be read"):
        parsed(line, FakeSession().commands())


def test_that_letters_in_order_match_and_word_starts_rank_first() -> None:
    assert score("rst", "record.start") is not None
    assert score("xyz", "record.start") is None
    first, second = score("rs", "record.start"), score("rs", "ghost cursors")
    assert first is not None
    assert second is not None
    assert first > second


def test_that_the_log_never_grows_without_bound() -> None:
    notices = Notices()
    notices.take(Entry(k, 0, "info", "cell", f"line {k}") for k in range(KEPT + 10))
    assert (len(notices.lines), notices.dropped) == (KEPT, 10)


def test_that_a_repeated_line_is_counted_and_not_repeated() -> None:
    notices = Notices()
    for _ in range(3):
        notices.say("warning", "cell", "silent")
    assert [(line.text, line.times) for line in notices.lines] == [("silent", 3)]
