"""Plugins in and out of the running environment, by its own pip in a child process.

A plugin is a Python distribution and runs with all rights of the user; nothing
here makes a stranger's code safe.
"""

import importlib
import re
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec

from twinstudio.model.errors import PluginError
from twinstudio.plugin import pipchild
from twinstudio.plugin.manifest import GROUP

PROGRAM = "twinstudio"
NOTE = "A plugin runs with all your rights: install only what you trust."
Say = Callable[[str], None]
_THERE = "Requirement already satisfied:"
_NO_BUILDER = re.compile(r"(?:ModuleNotFoundError: No module named|Cannot import) '(\w+)[.\w]*'")
_UNREACHABLE = re.compile(
    r"NewConnectionError|Failed to establish|name resolution|getaddrinfo|timed out|Timeout"
    r"|Network is unreachable|Connection refused|ProxyError|Cannot connect to proxy|SSLError"
)


class Stopped(PluginError):  # noqa: N818 - an outcome, asked for
    """It was asked to end before it was done."""


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one distribution.

    version: the one to come, "" for none. before: the one there is, "" for none.
    """

    name: str
    version: str
    before: str = ""

    def __str__(self) -> str:
        if not self.version:
            return f"uninstall {self.name} {self.before}"
        if not self.before:
            return f"install {self.name} {self.version}"
        return f"replace {self.name} {self.before} by {self.version}"


def plan(
    what: str,
    say: Say = lambda _: None,
    *,
    offline: bool = False,
    stop: threading.Event | None = None,
) -> tuple[PlannedChange, ...]:
    """What installing `what` would change; installs nothing.

    what: a wheel, the folder of a project, or a package's name as pip takes it.
    say: gets each line of pip that tells something. offline: ask no index, and build
    with what is installed. stop: ends it when set. Raises PluginError, also when the
    index cannot be reached, and Stopped.
    """
    _allowed()
    with tempfile.TemporaryDirectory(prefix="twinstudio-plan-") as folder:
        report = Path(folder) / "report.json"
        options = ["install", "--dry-run", "--report", str(report)]
        _pip([*options, *_arguments(what, offline)], say, what, stop)
        listed = msgspec.json.decode(report.read_bytes())["install"]
    return tuple(_planned(item["metadata"]) for item in listed)


def install(
    what: str, say: Say, *, offline: bool = False, stop: threading.Event | None = None
) -> None:
    """Install `what`; arguments and errors as those of `plan`."""
    _allowed()
    _pip(["install", *_arguments(what, offline)], say, what, stop)


def plan_removal(name: str) -> PlannedChange:
    """What uninstalling distribution `name` would change; it must be one of plugins.

    Raises PluginError if it is not installed, has no plugins, or may not be changed.
    """
    _allowed()
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError) as error:
        hint = "'twinstudio plugins list' shows what each plugin comes from"
        raise PluginError(f"no package '{name}' is installed", hint=hint) from error
    if not found.entry_points.select(group=GROUP):
        raise PluginError(f"package '{name}' has no plugins", hint="use pip for other packages")
    return PlannedChange(name=found.name, version="", before=found.version)


def uninstall(name: str, say: Say, *, stop: threading.Event | None = None) -> None:
    """Uninstall distribution `name`, which must be one of plugins; errors as of `plan`."""
    known = plan_removal(name)
    _pip(["uninstall", "--yes", known.name], say, name, stop)
    if version_of(known.name):  # pip leaves alone what lies outside its environment, and says so
        raise PluginError(
            f"package '{name}' is still there", hint="it lies outside this environment"
        )


def version_of(name: str) -> str:
    """Version of the distribution `name` that is installed now, "" without one."""
    importlib.invalidate_caches()  # another process may have changed it a moment ago
    try:
        return distribution(name).version
    except (PackageNotFoundError, ValueError):
        return ""


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
    return [*local, what, *_ourselves()]


def _ourselves() -> list[str]:
    """Twinstudio as it is, named too: pip accepts nothing that breaks it or its libraries."""
    version = version_of(PROGRAM)
    return [f"{PROGRAM}=={version}"] if version else []


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
    return PlannedChange(name=name, version=metadata["version"], before=version_of(name))


def _pip(arguments: Sequence[str], say: Say, what: str, stop: threading.Event | None) -> None:
    common = ["--disable-pip-version-check", "--no-input", "--no-color"]
    if arguments[0] == "install":
        common += ["--progress-bar", "off"]

    def heard(line: str) -> None:
        if not line.startswith(_THERE):  # one for every package that Twinstudio needs
            say(line)

    ended = pipchild.run([*arguments, *common], heard, stop or threading.Event())
    if ended.status and ended.stopped:
        raise Stopped(f"pip was stopped before '{what}' was done")
    if ended.status < 0:
        raise PluginError(f"pip was ended by signal {-ended.status} while it handled '{what}'")
    if ended.status:
        raise _failure(ended.lines, what)


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
            hint="check the network, or install a wheel offline",
        )
    if "conflicting dependencies" in text:
        told = next((x for x in _errors(lines) if x.startswith("Cannot install")), "")
        return PluginError(f"'{what}' does not go together with this Twinstudio", hint=told)
    if "No matching distribution found" in text:
        hint = f"write './{what}' for the folder" if Path(what).is_dir() else _last_error(lines)
        return PluginError(f"'{what}' or something it needs is not to be found", hint=hint)
    builder = _NO_BUILDER.search(text)
    if builder:
        name = builder[1]
        hint = f"'{sys.executable} -m pip install {name}' brings it, or install without offline"
        return PluginError(f"'{what}' cannot be built: there is no '{name}' here", hint=hint)
    return PluginError(f"pip could not handle '{what}'", hint=_last_error(lines))


def _last_error(lines: Sequence[str]) -> str:
    return next(reversed(_errors(lines) or [line for line in lines if line]), "it said nothing")


def _errors(lines: Sequence[str]) -> list[str]:
    """What pip, or a build that it ran, gave as errors."""
    heads = re.compile(r"\s*(?:\w*Error|ERROR|error): ?")
    told = [x for x in lines if heads.match(x) and not re.match(r"\s*error: [\w-]+$", x)]
    return [line.strip().removeprefix("ERROR:").strip() for line in told]
