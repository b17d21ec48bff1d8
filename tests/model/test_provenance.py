"""Hashes that anybody can check with the tools of the system."""

import hashlib
import subprocess
from pathlib import Path

from twinstudio.model.provenance import digest, tree_digest

LISTING = "find . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"


def test_that_the_hash_of_a_file_is_that_of_its_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert digest(tmp_path / "a") == hashlib.sha256(b"12345").hexdigest()


def test_that_the_hash_of_a_folder_can_be_had_from_the_shell(tmp_path: Path) -> None:
    for name in ("b", "a.txt", "a/c", "Z", "ä ö", "a-b/c/d"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (tmp_path / "empty").mkdir()
    told = subprocess.run(
        ["bash", "-c", LISTING], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert told.split()[0] == digest(tmp_path)


def test_that_names_and_places_of_files_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    before = digest(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    assert digest(tmp_path) != before
    assert tree_digest([tmp_path / "a"], tmp_path) != digest(tmp_path / "a")
    (tmp_path / "c").rename(tmp_path / "b")
    assert digest(tmp_path) == before
