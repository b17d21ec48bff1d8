"""Plugins in and out of the running environment, by its own pip in a child process.

A plugin is a Python distribution and runs with all rights of the user; nothing
here makes a stranger's code safe.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec

from twinstudio.model.errors import PluginError
from twinstudio.plugin.manifest import GROUP

NOTE = "A plugin runs with all your rights: install only what you trust."
Say = Callable[[str], None]
_UNREACHABLE = re.compile(
    r"NewConnectionError|Failed to establish|name resolution|getaddrinfo|timed out|Timeout"
    r"|Network is unreachable|Connection refused|ProxyError|Cannot connect to proxy|SSLError"
)


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution that will be installed; `before` is the version there is, or ""."""

    name: str
    version: str
    before: str = ""

    def __str__(self) -> str:
        if not self.before:
            return f"install {self.name} {self.version}"
        return f"replace {self.name} {self.before} by {self.version}"


def plan(what: str, *, offline: bool = False) -> tuple[PlannedChange, ...]:
    """What installing `what` would change; installs nothing.

    what: a wheel, the folder of a project, or a package's name as pip takes it.
    offline: ask no index, and build with what is installed.
    Raises PluginError, also when the index cannot be reached.
    """
    _allowed()
    with tempfile.TemporaryDirectory(prefix="twinstudio-plan-") as folder:
        report = Path(folder) / "report.json"
        _pip(
            ["install", "--dry-run", "--report", str(report), *_arguments(what, offline)],
            lambda _: None,
            what,
        )
        listed = msgspec.json.decode(report.read_bytes())["install"]
    return tuple(_planned(item["metadata"]) for item in listed)


def install(what: str, say: Say, *, offline: bool = False) -> None:
    """Install `what`; each line of pip goes to `say` as it comes. Raises PluginError."""
    _allowed()
    _pip(["install", *_arguments(what, offline)], say, what)


def removable(name: str) -> str:
    """Name and version of distribution `name`, which must be one of plugins.

    Raises PluginError if it is not installed, has no plugins, or may not be changed.
    """
    _allowed()
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        hint = "'twinstudio plugins list' shows what each plugin comes from"
        raise PluginError(f"no package '{name}' is installed", hint=hint) from error
    if not found.entry_points.select(group=GROUP):
        raise PluginError(f"package '{name}' has no plugins", hint="use pip for other packages")
    return f"{found.name} {found.version}"


def uninstall(name: str, say: Say) -> None:
    """Uninstall distribution `name`, which must be one of plugins. Raises PluginError."""
    removable(name)
    _pip(["uninstall", "--yes", name], say, name)


def _arguments(what: str, offline: bool) -> list[str]:
    if not what or what.startswith("-"):
        raise PluginError(f"'{what}' is no wheel, folder or package name")
    looks_like_path = "/" in what or "\\" in what or what.endswith(".whl") or what in {".", ".."}
    if looks_like_path and "://" not in what and " @ " not in what:
        path = Path(what).expanduser()
        if not path.exists():
            raise PluginError("there is no such wheel or folder", where=what)
        what = str(path.resolve())
    local = ["--no-index", "--no-build-isolation"] if offline else ["--retries", "1"]
    return [*local, what]


def _allowed() -> None:
    """Refuse to change a Python that belongs to the operating system."""
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if sys.prefix == sys.base_prefix and marker.exists():
        raise PluginError(
            f"this Python is managed by the operating system ({marker})",
            hint="install Twinstudio into a virtual environment (python -m venv) and use that",
        )


def _planned(metadata: dict[str, Any]) -> PlannedChange:
    name = metadata["name"]
    try:
        before = distribution(name).version
    except PackageNotFoundError:
        before = ""
    return PlannedChange(name=name, version=metadata["version"], before=before)


def _pip(arguments: Sequence[str], say: Say, what: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments]
    common = ["--disable-pip-version-check", "--no-input", "--no-color"]
    if arguments[0] == "install":
        common += ["--progress-bar", "off"]
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - our own Python; a name never begins with '-'
        [*command, *common],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line.rstrip())
            say(lines[-1])
    if child.returncode:
        raise _failure(lines, what)


def _failure(lines: Sequence[str], what: str) -> PluginError:
    """The one line that pip's output comes down to."""
    text = "\n".join(lines)
    if "No module named pip" in text:
        return PluginError(
            "this environment has no pip", hint=f"'{sys.executable} -m ensurepip' adds it"
        )
    if _UNREACHABLE.search(text):
        return PluginError(
            f"'{what}' cannot be installed: the package index cannot be reached",
            hint="check the network, or install a wheel with --offline",
        )
    if "No matching distribution found" in text:
        hint = f"write './{what}' for the folder" if Path(what).is_dir() else _last_error(lines)
        return PluginError(f"'{what}' or something it needs is not to be found", hint=hint)
    return PluginError(f"pip could not handle '{what}'", hint=_last_error(lines))


def _last_error(lines: Sequence[str]) -> str:
    errors = [line for line in lines if line.startswith("ERROR:")] or [x for x in lines if x]
    return errors[-1].removeprefix("ERROR:").strip() if errors else "it said nothing"
