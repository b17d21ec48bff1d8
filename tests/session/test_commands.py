"""Named commands."""

import pytest

from twinstudio.session.commands import CommandError, CommandSet, as_line


def seek(seconds: float, wrap: bool = False) -> float:
    """Jump.

    seconds: from the start
    """
    return -seconds if wrap else seconds


def start(path: str = "") -> str:
    """Record."""
    return path


COMMANDS = CommandSet({"replay.seek": seek, "record.start": start})


def test_that_help_and_arguments_come_from_the_function() -> None:
    _, info = COMMANDS.infos()
    assert (info.name, info.help) == ("replay.seek", "Jump.")
    assert info.args == {"seconds": "from the start", "wrap": ""}


def test_that_arguments_become_what_the_function_asks_for() -> None:
    assert COMMANDS.run("replay.seek", {"seconds": "3", "wrap": "true"}) == -3.0
    assert COMMANDS.run("record.start", {"path": 5}) == "5"


def test_that_a_command_runs_by_name() -> None:
    assert COMMANDS.run("replay.seek", {"seconds": 3.0, "wrap": True}) == -3.0


@pytest.mark.parametrize(
    ("name", "args", "complaint"),
    [
        ("replay.sek", {}, "there is no command 'replay.sek'; there are replay.seek"),
        ("replay.seek", {}, "missing a required argument: 'seconds'; it takes seconds: float"),
        ("replay.seek", {"seconds": 1, "x": 2}, "unexpected keyword argument 'x'"),
        ("replay.seek", {"seconds": "abc"}, "argument 'seconds': expected float"),
        ("replay.seek", {"seconds": None}, "argument 'seconds': expected float, got null"),
        ("record.start", {"path": "a\0b"}, "argument 'path' holds a zero byte"),
        ("record.start", {"path": [1]}, "argument 'path': expected str"),
    ],
)
def test_that_a_wrong_call_is_explained(name: str, args: dict[str, object], complaint: str) -> None:
    with pytest.raises(CommandError) as caught:
        COMMANDS.run(name, args)
    assert complaint in str(caught.value)


def test_that_a_call_is_written_as_a_line_that_can_be_replayed() -> None:
    line = as_line("record.start", {"path": "it's.mcap"})
    assert line == 'record.start(path="it\'s.mcap")'
