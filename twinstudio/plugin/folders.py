"""Single-file plugins: a folder of .py files, each with a manifest in its comments.

The block has the shape of inline script metadata (PEP 723), each line a comment::

    # /// twinstudio-plugin
    # api = 1
    # version = "1.0"
    # [[plugins]]
    # id = "acme.worst_joint"
    # kind = "metric"
    # title = "Worst joint"
    # help = "The joint whose position differs most"
    # ///

It starts with the first line and ends with the second; between them every line
is ``#`` alone or begins with ``# ``. It stands before the first line of code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from twinstudio.model.errors import PluginError
from twinstudio.model.words import one_line, sayable
from twinstudio.plugin.manifest import Offer, offers_of

OPENING = "# /// twinstudio-plugin"
CLOSING = "# ///"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of single-file plugins. Files that begin with ``_`` or ``.`` are left alone."""

    path: Path

    def offers(self) -> list[Offer]:
        """Plugins of every .py file in order of name; none when there is no folder."""
        try:
            files = sorted(self.path.glob("*.py"))
        except OSError as error:
            problem = f"{self.path}: cannot be read: {error.strerror}"
            return [Offer(self.path.name, str(self.path), distribution=False, problem=problem)]
        return [o for file in files if file.name[0] not in "_." for o in offers_of_file(file)]


def offers_of_file(file: Path) -> list[Offer]:
    """The plugins of one single-file plugin; problems are offers of their own."""
    name = sayable(str(file))
    base = Offer(id=sayable(file.stem), origin=name, place=file, distribution=False)
    try:
        return offers_of(header(_text(file), name), name, base)
    except PluginError as error:
        return [replace(base, problem=one_line(str(error)))]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [replace(base, problem=one_line(f"{name}: cannot be read: {reason}"))]


def _text(file: Path) -> str:
    """What is in `file`; a pipe or a device is not opened, since that might never end."""
    if str(file) != sayable(str(file)):
        raise PluginError("its name is no UTF-8", where=sayable(str(file)), hint="rename it")
    if file.exists() and not file.is_file():
        raise PluginError("is no regular file", where=str(file), hint="remove or rename it")
    return file.read_text(encoding="utf-8-sig")  # some editors put a mark first, as Python allows


def header(text: str, where: str) -> str:
    """The TOML in the comments at the top of a single file; raises PluginError without one."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.rstrip() == OPENING:
            return "\n".join(_body(lines, where))
        if line.strip() and not line.startswith("#"):
            break
    raise PluginError(
        "has no plugin header", where=where, hint=f"begin the file with a block '{OPENING}'"
    )


def _body(lines: Iterator[str], where: str) -> Iterator[str]:
    for line in lines:
        stripped = line.rstrip()
        if stripped == CLOSING:
            return
        if stripped != "#" and not line.startswith("# "):
            break
        yield stripped[2:]
    raise PluginError(
        "the plugin header does not end", where=where, hint=f"close it with a line '{CLOSING}'"
    )
