"""The page for authors, followed literally."""

import inspect
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from plugin_helpers import clean_environment, home_of

import twinstudio
from twinstudio.plugin import api
from twinstudio.plugin.hooks import HOOK_OF, Hooks
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.manifest import Declared

PAGE = Path(twinstudio.__file__).parent / "docs" / "plugins.md"
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Reader:
    """Someone who does what the page says: writes the files, types the commands."""

    folder: Path
    environment: dict[str, str]
    output: str = ""

    def type(self, commands: str) -> None:
        """Run a block of commands where the last one ended."""
        script = f"set -e\n{commands}\npwd > {self.environment['HOME']}/where"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        self.output = done.stdout
        self.folder = Path(Path(self.environment["HOME"], "where").read_text().strip())

    def write(self, name: str, text: str) -> None:
        """Write a file that the page shows."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def compare(self, lines: str) -> None:
        """Every line that the page shows was part of the output."""
        for line in lines.splitlines():
            assert line in self.output, f"expected '{line}' in:\n{self.output}"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """A reader with a clean environment and no network."""
    programs = clean_environment(tmp_path / "env")
    home = tmp_path / "home"
    home.mkdir()
    environment = home_of(home) | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTEST_ADDOPTS": "-p no:pytest-qt -p no:cacheprovider",
    }
    return Reader(home, environment)


def test_that_the_page_leads_to_plugins_that_work(reader: Reader) -> None:
    guide = PAGE.read_text().partition("# Reference")[0]
    blocks = FENCE.findall(guide)
    assert len(blocks) > 15
    for language, name, text in blocks:
        if language == "sh":
            reader.type(text)
        elif language == "text":
            reader.compare(text)
        else:
            assert name, f"the page does not say which file this is:\n{text}"
            reader.write(name, text)


@pytest.mark.parametrize("hook", [name for name in vars(Hooks) if not name.startswith("_")])
def test_that_every_hook_is_documented_and_has_a_kind(hook: str) -> None:
    assert inspect.getdoc(getattr(Hooks, hook))
    kind = next(kind for kind, name in HOOK_OF.items() if name == hook)
    section = PAGE.read_text().partition(f"\n### `{hook}`\n")[2].partition("\n#")[0]
    assert f"Kind `{kind}`, class `{KINDS[kind].__name__}`" in section
    for method in KINDS[kind].__abstractmethods__:
        arguments = list(inspect.signature(getattr(KINDS[kind], method)).parameters)[1:]
        assert f"`{method}({', '.join(arguments)})`" in section


@pytest.mark.parametrize("key", Declared.__struct_fields__)
def test_that_every_key_of_a_manifest_is_documented(key: str) -> None:
    assert f"| `plugins.{key}` |" in PAGE.read_text()


def test_that_every_member_of_a_context_is_documented() -> None:
    table = PAGE.read_text().partition("## Context of a job")[2].partition("\n## ")[0]
    members = [name for name in vars(api.JobContext) if not name.startswith("_")]
    assert len(members) >= 7
    for name in members:
        assert re.search(rf"\| `{name}\W", table), name
