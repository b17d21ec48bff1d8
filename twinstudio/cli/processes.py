"""``twin``, ``cell`` and ``replay``: the processes that speak the protocol."""

from pathlib import Path
from typing import Annotated

import typer

from twinstudio.cli.window import SceneArgument
from twinstudio.flow.lifetime import hold_signals

Port = Annotated[int, typer.Option(min=0, max=65535, help="Control port; 0 picks a free one.")]
Attached = Annotated[bool, typer.Option("--attached", hidden=True)]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("twin")(twin)
    app.command("cell")(cell)
    app.command("replay")(replay)


def twin(
    scene: SceneArgument,
    follow: Annotated[str, typer.Option(help="Control address of the cell to follow.")] = "",
    mode: Annotated[
        str, typer.Option(help="commanded, following or resynchronised; default: the scene's.")
    ] = "",
    control_port: Port = 0,
    attached: Attached = False,
) -> None:
    """Run the PyBullet twin of a scene as a process of its own.

    It prints its control address as one line of JSON and runs until interrupted.

    Example: twinstudio twin panda_cell --follow tcp://127.0.0.1:5600
    """
    hold_signals()
    from twinstudio.physics.twin import serve

    serve(
        scene,
        control_port=control_port,
        attached=attached,
        follow=follow or None,
        mode=mode or None,
    )


def cell(
    scene: SceneArgument,
    seed: Annotated[int, typer.Option(help="Seed of its noise.")] = 0,
    control_port: Port = 0,
    attached: Attached = False,
) -> None:
    """Run the emulated cell of a scene, the stand-in for a real robot.

    It prints its control address as one line of JSON and runs until interrupted.

    Example: twinstudio cell panda_cell --control-port 5600
    """
    hold_signals()
    from twinstudio.physics.emulated import serve

    serve(scene, control_port=control_port, attached=attached, seed=seed)


def replay(
    log: Annotated[Path, typer.Argument(help="Recording (MCAP).")],
    source: Annotated[str, typer.Option(help="Which source of the recording to play.")] = "cell",
    rate: Annotated[float, typer.Option(min=0.1, max=10.0, help="1 is real time.")] = 1.0,
    loop: Annotated[bool, typer.Option("--loop", help="Start over at the end.")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Wait for resume or seek.")] = False,
    control_port: Port = 0,
    attached: Attached = False,
) -> None:
    """Publish a recording as if it were the cell.

    It prints its control address as one line of JSON and runs until interrupted;
    pause, resume, seek, rate and loop are requests on the control address.

    Example: twinstudio replay panda.mcap --rate 0.5 --loop
    """
    hold_signals()
    from twinstudio.flow.replaying import serve

    serve(
        log,
        source=source,
        rate=rate,
        loop=loop,
        paused=paused,
        control_port=control_port,
        attached=attached,
    )
