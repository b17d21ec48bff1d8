import pytest
from gui.fake_session import FakeSession

from twinstudio.gui.notices import KEPT, Notices
from twinstudio.gui.palette import score
from twinstudio.gui.runner import Runner, parsed
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.views import Entry


def test_that_a_refusal_is_told_once_and_by_the_session() -> None:
    session, notices = FakeSession(), Notices()
    runner = Runner(session, notices)  # type: ignore[arg-type]
    runner.run("no.such")
    runner.collect()
    assert not runner.busy
    assert not notices.lines
    assert [line.text for line in session.log] == ["there is no command 'no.such'"]


def test_that_an_unforeseen_failure_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    session, notices = FakeSession(), Notices()

    def broken(command: str, **args: object) -> object:
        raise ValueError(command)

    monkeypatch.setattr(session, "run", broken)
    runner = Runner(session, notices)  # type: ignore[arg-type]
    runner.run("gap.reset")
    runner.collect()
    assert "ValueError" in notices.lines[-1].text


def test_that_nothing_is_begun_while_the_window_closes() -> None:
    session = FakeSession()
    runner = Runner(session, Notices())  # type: ignore[arg-type]
    runner.refuse()
    runner.run("gap.reset")
    assert session.ran == []


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
