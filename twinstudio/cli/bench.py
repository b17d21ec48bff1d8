"""``bench``: the measurements behind our numbers."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("bench")(bench)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which measurements; all without a name.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=5.0, help="Length of the streaming measurements.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON.")] = False,
) -> None:
    """Measure this machine against the goals; exit status 1 when one is missed.

    Example: twinstudio bench alignment twin_rate
    """
    from twinstudio.bench import run
    from twinstudio.cli import show
    from twinstudio.physics.quiet import keep_output_clean

    keep_output_clean()
    rows = run(names or [], seconds=seconds)
    if as_json:
        show.json({"rows": [row.as_json() for row in rows]})
    else:
        show.bench_table(rows)
    if not all(row.passed for row in rows):
        raise typer.Exit(1)
