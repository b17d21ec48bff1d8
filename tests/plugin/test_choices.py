"""What is switched off stays so."""

from pathlib import Path

import pytest

from twinstudio.model.errors import PluginError
from twinstudio.plugin.choices import Choices


def test_that_a_choice_is_kept(tmp_path: Path) -> None:
    Choices(tmp_path / "new").switch("acme.reach", enabled=False)
    assert Choices(tmp_path / "new").disabled == {"acme.reach"}
    Choices(tmp_path / "new").switch("acme.reach", enabled=True)
    assert Choices(tmp_path / "new").disabled == frozenset()


def test_that_the_choices_of_two_programs_add_up(tmp_path: Path) -> None:
    first, second = Choices(tmp_path), Choices(tmp_path)
    first.switch("acme.one", enabled=False)
    second.switch("acme.two", enabled=False)
    assert Choices(tmp_path).disabled == {"acme.one", "acme.two"}


def test_that_choices_without_a_folder_are_forgotten() -> None:
    choices = Choices()
    choices.switch("acme.one", enabled=False)
    assert choices.disabled == {"acme.one"}
    assert Choices().disabled == frozenset()


def test_that_a_broken_file_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "plugins.toml").write_text("disabled = 3")
    with pytest.raises(PluginError, match=r"plugins\.toml: key 'disabled'.*correct or delete"):
        Choices(tmp_path)


def test_that_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("a file where the folder should be")
    choices = Choices(tmp_path / "settings")
    with pytest.raises(PluginError, match="cannot be written"):
        choices.switch("acme.one", enabled=False)
    assert choices.disabled == frozenset()
