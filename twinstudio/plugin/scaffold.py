"""``twinstudio plugins new``: the shortest project of each kind, with a test that runs."""

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from twinstudio.model.errors import PluginError
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.manifest import FILE

NAME = re.compile(r"^[a-z][a-z0-9]*([-_][a-z0-9]+)*$")
HELP = {
    "bridge": "Brings in the data of one robot",
    "metric": "The largest gap of any joint",
    "mechanism": "Viscous friction in every joint",
    "randomizer": "Draws the friction of every object",
    "calibrator": "Finds the mean of a signal",
    "residual": "A linear model of what is left",
    "hil": "Tests of cell and twin",
    "command": "Draws numbers and reports their mean",
}


def write_project(name: str, kind: str, folder: Path) -> Path:
    """Write a project called `name` with one plugin of `kind` into ``folder/name``.

    Raises PluginError for a wrong name or kind, and where the folder exists already.
    """
    if not NAME.match(name):
        raise PluginError(
            f"'{name}' is no name for a project",
            hint="lower-case words joined by '-', like 'acme-worst-joint'",
        )
    if keyword.iskeyword(name):
        raise PluginError(f"'{name}' is a word of Python", hint="choose another name")
    if kind not in KINDS:
        raise PluginError(f"there is no kind '{kind}'", hint=f"kinds are {', '.join(KINDS)}")
    target = folder / name
    if target.exists():
        raise PluginError("exists already", where=str(target), hint="choose another name")
    words = names_of(name, kind)
    try:
        for path, template in _contents(kind, words["package"]).items():
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(filled(template, words), encoding="utf-8")
    except OSError as error:
        raise PluginError(f"cannot be written: {error.strerror}", where=str(target)) from error
    return target


def names_of(name: str, kind: str) -> dict[str, str]:
    """Everything in a project that is called after it: package, id, class, imports, title."""
    words = re.split(r"[-_]", name)
    owner, rest = words[0], words[1:] or [kind]
    cls = "".join(word.capitalize() for word in words)
    return {
        "name": name,
        "kind": kind,
        "package": "_".join(words),
        "id": f"{owner}.{'_'.join(rest)}",
        "cls": cls,
        "names": ", ".join(sorted((cls, "Params"))),
        "title": " ".join(rest).capitalize(),
        "help": HELP[kind],
    }


def filled(template: str, words: dict[str, str]) -> str:
    """Template file `template` with its names filled in."""
    text = files("twinstudio.plugin").joinpath("templates", f"{template}.txt").read_text("utf-8")
    return Template(text).substitute(words)


def _contents(kind: str, package: str) -> dict[str, str]:
    """Path in the project -> its template."""
    contents = {
        "pyproject.toml": "pyproject.toml",
        ".gitignore": "gitignore",
        f"{package}/__init__.py": "init.py",
        f"{package}/{FILE}": "manifest.toml",
        f"{package}/plugin.py": f"{kind}.py",
        f"tests/test_{package}.py": f"test_{kind if kind in _OWN_TEST else 'plugin'}.py",
    }
    if kind == "hil":
        contents[f"{package}/suite/test_first.py"] = "suite.py"
    return contents


_OWN_TEST = ("metric", "randomizer")
