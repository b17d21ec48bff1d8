"""``import``, ``record`` and ``gap``: logs in, logs out, figures from logs."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinstudio.cli.plugins import Folder, Safe

if TYPE_CHECKING:
    from twinstudio.model.measured import Measured
    from twinstudio.session.logmetrics import LogMetrics

Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("import")(import_)
    app.command("record")(record)
    app.command("gap")(gap)


def import_(
    format_: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="panda_gaz, emps, kuka_kr300, ur10e_innopolis, schunk_tum, cmu_push,"
            " ur3_cobotops, servo_backlash, csv, mat, mcap or rosbag2.",
        ),
    ],
    source: Annotated[Path, typer.Argument(help="The log: a file or the data set's folder.")],
    out: Annotated[Path, typer.Argument(metavar="OUT.mcap", help="Where the recording goes.")],
    mapping: Annotated[
        Path | None, typer.Option(help="For csv and mat: which column is what (TOML).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Turn a foreign log into a recording; says what was dropped and why.

    Example: twinstudio import emps logs/DATA_EMPS.mat emps.mcap
    """
    from twinstudio.cli import show
    from twinstudio.flow.importers import import_log

    report = import_log(format_, source, out, mapping=mapping)
    if as_json:
        show.json(report.as_json())
    else:
        print(report.as_text())


def record(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT.mcap", help="Where the recording goes; a new file."),
    ],
    cell: Annotated[str, typer.Option(help="Control address of the cell.")] = "",
    twin: Annotated[str, typer.Option(help="Control address of the twin.")] = "",
    seconds: Annotated[
        float, typer.Option(min=0.0, help="How long; 0 until interrupted (Ctrl+C).")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Record running endpoints to MCAP, without a window.

    Example: twinstudio record shift.mcap --cell tcp://127.0.0.1:5600 --seconds 60
    """
    from twinstudio.cli import show
    from twinstudio.session.recording import record_endpoints

    outcome = record_endpoints(out, cell=cell, twin=twin, seconds=seconds)
    for role, text in outcome["troubles"].items():
        print(f"twinstudio: {role}: {text}", file=sys.stderr)
    if as_json:
        show.json(outcome)
    else:
        print(f"{outcome['path']}: {outcome['seconds']:.1f} s, {outcome['bytes']} bytes")


def gap(
    log: Annotated[Path, typer.Argument(help="Recording (MCAP).")],
    scene: Annotated[str, typer.Option(help="Scene whose twin is compared.")],
    repeat: Annotated[
        list[Path] | None,
        typer.Option(help="A recording of the same run again, for the noise floor; repeatable."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID[:NAME=VALUE,...]",
            help="Also measure with this metric of a plugin; repeatable.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a report with plots.")] = None,
    plugins_dir: Folder = None,
    safe: Safe = False,
    as_json: Json = False,
) -> None:
    """Compare a recording with the twin, joint by joint.

    A recording that holds a twin is compared with that; else the scene's twin is
    run under the recorded commands, or follows the recorded joints if there are none.

    A metric that fails is one line of the error output and exit status 1; all else is
    shown all the same.

    Example: twinstudio gap panda.mcap --scene panda_cell --json
    """
    from twinstudio.cli import show
    from twinstudio.gap.table import as_json as figures
    from twinstudio.physics.quiet import keep_output_clean
    from twinstudio.session.offline import gap_of_log, report_of

    keep_output_clean()
    with _metrics(metric or [], plugins_dir, safe=safe) as metrics:
        outcome = gap_of_log(log, scene, repeats=repeat or ())
        measured = metrics.measure(outcome.pair) if metrics is not None else ()
    if html is not None:
        report_of(outcome, html, measured)
    if as_json:
        show.json(figures(outcome.table) | {"metrics": [_plain(one) for one in measured]})
    else:
        show.gap_table(outcome.table)
        show.metrics(measured)
        if html is not None:
            print(f"report: {html}")
    failed = [one for one in measured if one.error]
    for one in failed:
        print(f"twinstudio: metric {one.name}: {one.error}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _metrics(
    wanted: list[str], folder: Path | None, *, safe: bool
) -> "contextlib.AbstractContextManager[LogMetrics | None]":
    """The metrics that were asked for, being loaded; without any no plugin is looked for."""
    if not wanted:
        return contextlib.nullcontext()
    from twinstudio.plugin.catalog import open_catalog
    from twinstudio.session.logmetrics import LogMetrics
    from twinstudio.session.places import plugin_places

    return LogMetrics(open_catalog(plugin_places(folder, safe=safe)), wanted)


def _plain(measured: "Measured") -> dict[str, Any]:
    """What a metric said as JSON can hold it."""
    from twinstudio.jobs.stored import as_plain, worded

    return {
        "plugin": measured.plugin,
        "version": measured.version,
        "title": measured.title,
        "params": worded(measured.params),
        "results": [as_plain(result) for result in measured.results],
        "error": measured.error or None,
    }
