"""``open`` and ``demo``: the main job, with and without a window."""

from pathlib import Path
from typing import Annotated

import typer

DEMO = "panda_cell"
SceneArgument = Annotated[
    str, typer.Argument(help="Scene: a folder with a scene.toml, or the name of a shipped one.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("open")(open_window)
    app.command("demo")(demo)


def open_window(
    scene: SceneArgument = DEMO,
    cell: Annotated[
        str, typer.Option(help="Control address of a running cell, e.g. tcp://127.0.0.1:5600.")
    ] = "",
    log: Annotated[Path | None, typer.Option(help="Recording to replay as the cell.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Close by itself after so long, for trials.")
    ] = None,
    screenshot: Annotated[
        Path | None, typer.Option(help="With --seconds: a PNG of the window before it closes.")
    ] = None,
) -> None:
    """Open the window on a scene (the same as `twinstudio SCENE`)."""
    from twinstudio.cli.display import must_have_display
    from twinstudio.session.session import Session

    session = Session.open(scene, cell=cell, log=log)
    must_have_display()
    from twinstudio.gui.app import run

    raise typer.Exit(run(session, seconds=seconds, screenshot=screenshot))


def demo(
    headless: Annotated[bool, typer.Option("--headless", help="No window: figures only.")] = False,
    seconds: Annotated[float, typer.Option(min=2.0, help="How long the headless demo runs.")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="Folder for recording, figures and report.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="No window: gap, calibration, and gap again on a motion no fit has seen.",
        ),
    ] = False,
    fit: Annotated[
        list[str] | None,
        typer.Option(help="With --calibrate: fit this, one after the other; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="With --calibrate: of motion and noise.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run the demo scene beside its emulated cell.

    Example: twinstudio demo --headless --seconds 20 --out demo
    """
    if calibrate:
        from twinstudio.cli.calibrated import calibrated

        calibrated(DEMO, seconds=seconds, out=out, fits=fit or [], seed=seed, as_json=as_json)
        return
    if not headless:
        open_window(DEMO)
        return
    from twinstudio.cli import show
    from twinstudio.session.headless import run_headless

    outcome = run_headless(DEMO, seconds=seconds, out=out)
    if as_json:
        show.json(outcome.figures)
        return
    show.gap_table(outcome.table)
    print(f"recording: {outcome.recording}")
    print(f"report:    {outcome.report}")
