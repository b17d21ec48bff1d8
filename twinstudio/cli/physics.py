"""``physics``: whether what a scene's twin computes can be trusted."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from twinstudio.physics.stepcheck import StepCheck


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    physics = typer.Typer(
        help="Physics: check whether results depend on step and solver.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )

    @physics.callback()
    def group() -> None:
        """Keep ``check`` a command of its own, though it is the only one."""

    physics.command("check")(check)
    app.add_typer(physics, name="physics")


def check(
    scene: Annotated[str, typer.Argument(help="Scene whose twin is checked.")],
    seconds: Annotated[float, typer.Option(min=0.2, max=600.0, help="Length of the motion.")] = 5.0,
    bound: Annotated[
        float,
        typer.Option(min=1e-6, max=1.0, help="Share of a result's variation that counts as moved."),
    ] = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Halve the step and refine the solver, and report which results move.

    The motion is that of the scene's emulated cell, or a gentle one about home where
    there is none. Exit status 1 when a result moves.

    Example: twinstudio physics check panda_cell
    """
    from twinstudio.cli import show
    from twinstudio.model.patches import load_patched
    from twinstudio.physics.exercise import RATE
    from twinstudio.physics.program import programmed
    from twinstudio.physics.quiet import keep_output_clean
    from twinstudio.physics.stepcheck import step_check

    keep_output_clean()
    loaded = load_patched(scene)
    commands = programmed(loaded, seconds, rate=RATE) if loaded.cell.emulated else None
    outcome = step_check(loaded, seconds=seconds, bound=bound, commands=commands)
    if as_json:
        show.json(outcome)
    else:
        _print(outcome)
    if any(change.moves for change in outcome.changes):
        raise typer.Exit(1)


def _print(outcome: "StepCheck") -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    view = Table(title=f"{outcome.scene}, {outcome.seconds:g} s: finer settings minus the scene's")
    for head in ("variant", "result", "moved most", "RMS change", "unit", "of its variation", ""):
        right = head in ("RMS change", "of its variation")
        view.add_column(head, justify="right" if right else "left")
    last = ""
    for change in outcome.changes:
        view.add_row(
            change.variant if change.variant != last else "",
            change.quantity,
            change.where,
            f"{change.change:.3g}",
            change.unit,
            f"{change.share:.2%}",
            "moves" if change.moves else "",
        )
        last = change.variant
    console = Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False)
    console.print(view)
    console.print(outcome.verdict)
    for note in outcome.notes:
        console.print(f"note: {note}")
