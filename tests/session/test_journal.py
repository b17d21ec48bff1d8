"""The session log."""

from twinstudio.session.journal import Journal


def test_that_entries_come_once_and_in_order() -> None:
    journal = Journal()
    for k in range(5):
        journal.write("info", "cell", f"line {k}")
    assert [entry.text for entry in journal.since(3)] == ["line 3", "line 4"]
    assert journal.since(5) == []


def test_that_the_log_never_grows_without_bound() -> None:
    journal = Journal(kept=10)
    for k in range(100):
        journal.write("info", "cell", f"line {k}")
    entries = journal.since(0)
    assert [entry.seq for entry in entries] == list(range(90, 100))
