"""``scene``: the patches that lie on a scene, and taking them off again."""

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Scene = Annotated[str, typer.Argument(help="Scene: its folder, or the name of a shipped one.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    scene = typer.Typer(
        help="Scenes: the patches in force, and undo.", no_args_is_help=True, rich_markup_mode=None
    )
    scene.command("patches")(patches_)
    scene.command("undo")(undo)
    app.add_typer(scene, name="scene")


def patches_(scene: Scene, as_json: Json = False) -> None:
    """List the patches in force with what they changed, and the runs they came from.

    Example: twinstudio scene patches panda_cell
    """
    from rich.table import Table

    from twinstudio.cli import show
    from twinstudio.cli.runs import say_text
    from twinstudio.model.patches import origins, patches_of
    from twinstudio.model.scene import load_scene

    written = load_scene(scene)
    stack = patches_of(written)
    changed = origins(written, stack)
    if as_json:
        show.json({"patches": stack, "values": changed})
        return
    if not stack:
        print(f"no patch lies on {scene}; {Path(written.folder) / 'scene.toml'} is in force alone")
        return
    for promoted in stack:
        when = dt.datetime.fromtimestamp(promoted.when, tz=dt.UTC).astimezone()
        print(f"{when:%Y-%m-%d %H:%M} '{promoted.patch.name}' of run {promoted.run}")
        print(f"  {promoted.patch.reason}")
    view = Table()
    for head in ("key (SI)", "as written", "in force", "run"):
        view.add_column(head, overflow="fold")
    for one in changed:
        view.add_row(one.key, _text(one.nominal), _text(one.value), one.run)
    say_text(view)


def undo(scene: Scene, as_json: Json = False) -> None:
    """Take the newest patch off a scene.

    Example: twinstudio scene undo panda_cell
    """
    from twinstudio.cli import show
    from twinstudio.model.patches import patches_of, take_back
    from twinstudio.model.scene import load_scene

    written = load_scene(scene)
    taken = take_back(written)
    left = len(patches_of(written))
    if as_json:
        show.json({"name": taken.patch.name, "run": taken.run, "left": left})
        return
    print(f"'{taken.patch.name}' of run {taken.run} is off {scene}; {left} patches are left")


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
