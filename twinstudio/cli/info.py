"""``info``: what to put into a bug report."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from twinstudio.model.provenance import provenance
from twinstudio.model.scene import data_folder, scenes_folder, shipped_scenes


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("info")(info)


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Versions, OpenGL and paths, for bug reports."""
    from twinstudio.cli import show

    facts = gather()
    if as_json:
        show.json(facts)
        return
    for name, value in facts.items():
        print(f"{name:12} {_line(value)}")


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {version}" for key, version in value.items())
    return str(value)


def gather() -> dict[str, Any]:
    """The facts, name -> value."""
    from twinstudio.session.places import places

    origin = provenance()
    return {
        "twinstudio": origin.twinstudio,
        "python": f"{origin.python} ({sys.executable})",
        "platform": origin.platform,
        "cores": os.cpu_count(),
        "packages": origin.packages,
        "display": os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or "none",
        "opengl": _opengl(),
        "scenes": f"{scenes_folder()} ({', '.join(shipped_scenes())})",
        "data": _described(data_folder()),
        **{name: str(path) for name, path in places().items()},
    }


def _described(folder: Path) -> str:
    return f"{folder}{'' if folder.is_dir() else ' (absent)'}"


def _opengl() -> str:
    try:
        from twinstudio.gui.opengl import describe
    except ImportError as error:
        return f"none: {error}"
    return describe()
