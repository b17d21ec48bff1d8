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


def test_that_an_entry_is_one_line_whatever_others_wrote() -> None:
    journal = Journal()
    journal.write("info", "cell", "one\r\ntwo\x1b[31m\x00 \u202ethree" + "x" * 5000)
    journal.write("info", "cell", "\n")
    texts = [entry.text for entry in journal.since(0)]
    assert texts[0].startswith("one two [31m   three")
    assert len(texts[0]) <= 1000
    assert texts[1] == "(no text)"
