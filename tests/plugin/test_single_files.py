"""Single-file plugins: a header in comments, read without running the file."""

import os
from pathlib import Path

import pytest
from plugin_helpers import HEADER, single_file

from twinstudio.model.errors import PluginError
from twinstudio.plugin.catalog import Catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.folders import Folder, header


def test_that_a_file_is_listed_without_being_run(tmp_path: Path) -> None:
    file = single_file(tmp_path, "reach", "acme.reach", code="raise SystemExit")
    (offer,) = Folder(tmp_path).offers()
    assert (offer.id, offer.origin, offer.problem) == ("acme.reach", str(file), "")
    assert not offer.distribution


def test_that_a_file_tells_its_version(tmp_path: Path) -> None:
    file = single_file(tmp_path, "reach", "acme.reach")
    file.write_text(file.read_text().replace("# api = 1", '# api = 1\n# version = "3.2"'))
    assert Folder(tmp_path).offers()[0].version == "3.2"


def test_that_files_beginning_with_an_underscore_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_helper.py").write_text("x = 1")
    assert Folder(tmp_path).offers() == []


def test_that_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert Folder(tmp_path / "none").offers() == []


def test_that_a_header_may_stand_below_other_comments() -> None:
    text = "#!/usr/bin/env python3\n# Licence: any\n\n" + HEADER.format(id="a.b")
    assert 'id = "a.b"' in header(text, "f.py")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n", "f.py: has no plugin header; begin the file with"),
        ("", "f.py: has no plugin header"),
        ("x = 1\n" + HEADER, "f.py: has no plugin header"),
        ("# /// twinstudio-plugin\n# api = 1\n", "f.py: the plugin header does not end; close it"),
        ("# /// twinstudio-plugin\n# api = 1\nx = 1\n# ///\n", "the plugin header does not end"),
        ("# /// twinstudio-plugin\n#api = 1\n# ///\n", "the plugin header does not end"),
    ],
)
def test_that_a_missing_or_open_header_is_named(text: str, complaint: str) -> None:
    with pytest.raises(PluginError) as caught:
        header(text, "f.py")
    assert complaint in str(caught.value)


def test_that_each_broken_file_is_listed_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe")
    (tmp_path / "c.py").write_text(HEADER.format(id="a.b").replace("# help", "# hlep"))
    single_file(tmp_path, "d", "acme.reach")
    offers = Folder(tmp_path).offers()
    assert [offer.id for offer in offers] == ["a", "b", "a.b", "acme.reach"]
    assert [bool(offer.problem) for offer in offers] == [True, True, True, False]


def test_that_what_is_no_file_is_listed_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")  # opening it would wait for somebody who writes into it
    (tmp_path / "b.py").mkdir()
    (tmp_path / "c.py").symlink_to("nowhere.py")
    (tmp_path / os.fsdecode(b"d\xff.py")).write_text(HEADER.format(id="a.b"))
    single_file(tmp_path, "e", "acme.reach")
    problems = [offer.problem for offer in Folder(tmp_path).offers()]
    assert [problem.partition(".py: ")[2] for problem in problems] == [
        "is no regular file; remove or rename it",
        "is no regular file; remove or rename it",
        "cannot be read: No such file or directory",
        "its name is no UTF-8; rename it",
        "",
    ]


def test_that_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    file = single_file(tmp_path, "reach", "acme.reach")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    catalog = Catalog([Folder(tmp_path)], Choices())
    assert catalog.load("acme.reach").id == "acme.reach"


def test_that_a_module_key_is_refused_in_a_single_file(tmp_path: Path) -> None:
    file = single_file(tmp_path, "reach", "acme.reach")
    file.write_text(file.read_text().replace("# kind", '# module = "os"\n# kind'))
    assert "a single file is its own module" in Folder(tmp_path).offers()[0].problem
