"""``fit``: a calibrator from its logs to a patch that may be promoted."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinstudio.cli.plugins import Folder as PluginsFolder
from twinstudio.cli.plugins import Safe
from twinstudio.cli.runs import FORCE, Folder, Force, Json

if TYPE_CHECKING:
    from twinstudio.jobs.calibration import Calibration
    from twinstudio.jobs.job import JobView
    from twinstudio.jobs.spec import JobSpec
    from twinstudio.jobs.store import Store
    from twinstudio.model.results import Result

FAILED = 1


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("fit")(fit)


def fit(
    name: Annotated[
        str, typer.Argument(help="Calibrator: its id, or the last word of it, like payload.")
    ],
    scene: Annotated[str, typer.Option(help="Scene that is calibrated.")],
    log: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]PATH",
            help="Log to solve with, FORMAT:PATH if it is not recognised; repeatable.",
        ),
    ],
    validate: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Log to validate on alone; repeatable."),
    ] = None,
    split: Annotated[
        float | None,
        typer.Option(
            help="Share of each log to solve with; 0.75 if not given.", show_default=False
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.html and report.json.")
    ] = None,
    promote: Annotated[
        bool, typer.Option("--promote", help="Put the patch onto the scene if the twin is better.")
    ] = False,
    force: Force = False,
    plugins_dir: PluginsFolder = None,
    runs_dir: Folder = None,
    safe: Safe = False,
    as_json: Json = False,
) -> None:
    """Calibrate: check the logs, solve, score on held-out data, try the patch in the twin.

    Exit status 0 when it went through, whatever the verdict; 1 when it failed, or when
    --promote was refused; 130 when it was interrupted. The run is kept in any case.

    Example: twinstudio fit inverse_dynamics --scene panda_cell --log panda.mcap --split 0.7
    """
    from twinstudio.cli.runs import follow_job, store_of

    store = store_of(runs_dir)
    spec = _specify(
        name, scene, log, validate or [], split, values or [], seed, (plugins_dir, safe)
    )
    view = follow_job(spec, store, shown=not as_json)
    report = _report(store, view.id, out)
    trouble = view.error if view.state == "failed" else ""
    promoted = ""
    if promote and not trouble:
        promoted, trouble = _promote(store, view.id, scene, force=force)
    if as_json:
        _tell_json(store, view, report, promoted, trouble)
    else:
        _tell(store, view, report, promoted, trouble)
    if trouble:
        raise typer.Exit(FAILED)


def _specify(
    name: str,
    scene: str,
    logs: Sequence[str],
    validate: Sequence[str],
    split: float | None,
    values: Sequence[str],
    seed: int,
    plugins: tuple[Path | None, bool],
) -> "JobSpec":
    from twinstudio.cli.plugins import clean_output, open_plugins
    from twinstudio.jobs.spec import specify
    from twinstudio.model import params
    from twinstudio.session.fitting import calibrator, inputs_of

    catalog = open_plugins(*plugins)
    entry = catalog.probe(calibrator(catalog, name).id)
    with clean_output():
        cls = catalog.load(entry.id)
    given = params.from_text(cls.params, list(values), where=entry.id)
    return specify(
        cls,
        params.plain(given),
        seed=seed,
        plugin=entry.id,
        scene=scene,
        inputs=inputs_of(logs, validate, cls.inputs),
        title=entry.title,
        version=entry.version,
        split=split,
    )


def _report(store: "Store", run: str, out: Path | None) -> Path | None:
    """The HTML report of the run, copied to `out` if that is given; None if there is none."""
    from twinstudio.jobs.fitreport import HTML, JSON

    pages = [store.path(run) / name for name in (JSON, HTML)]
    there = [page for page in pages if page.is_file()]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        there = [Path(shutil.copy(page, out / page.name)) for page in there]
    return there[-1] if there else None


def _promote(store: "Store", run: str, scene: str, *, force: bool) -> tuple[str, str]:
    """What was promoted, or why nothing was."""
    from twinstudio.jobs import promoting
    from twinstudio.model.errors import TwinstudioError
    from twinstudio.model.scene import load_scene

    try:
        number, patch, _ = promoting.promote(store, run, load_scene(scene), force=force, say=FORCE)
    except TwinstudioError as error:
        return "", f"nothing is promoted: {error}"
    return f"result {number} '{patch.name}'", ""


def _tell_json(
    store: "Store", view: "JobView", report: Path | None, promoted: str, trouble: str
) -> None:
    import msgspec

    from twinstudio.cli import show
    from twinstudio.cli.runs import plain_result, plain_run
    from twinstudio.jobs import calibration

    found = calibration.read(store, view.id)
    told: dict[str, Any] = {
        **plain_run(store.load(view.id)),
        "results": [plain_result(result) for result in store.results(view.id)],
        "calibration": msgspec.to_builtins(found),
        "report": str(report) if report else None,
        "promoted": promoted or None,
        "trouble": trouble or None,
    }
    show.json(told)


def _tell(
    store: "Store", view: "JobView", report: Path | None, promoted: str, trouble: str
) -> None:
    import sys

    from twinstudio.jobs import calibration
    from twinstudio.jobs.calibration import Calibration
    from twinstudio.report.fit import UNKNOWN
    from twinstudio.report.numbers import DASH

    found = calibration.read(store, view.id) or Calibration()
    results = store.results(view.id)
    solved, rest = results[: found.solved], results[found.solved :]
    _tell_findings(found)
    _tell_results(solved, "Parameters (SI, 95 % intervals)", UNKNOWN)
    _tell_results(rest[: found.scored], "Held-out data", DASH)
    _tell_results(rest[found.scored :], "The twin without and with the patch", DASH)
    for trial in found.trials:
        print(f"\npatch {trial.patch} '{trial.name}': {trial.words}")
    print(f"\nrun:    {view.id}")
    if report is not None:
        print(f"report: {report}")
    if trouble:
        print(f"twinstudio: {trouble}", file=sys.stderr)
    elif promoted:
        print(
            f"{promoted} is on the scene; take it back: twinstudio scene undo {_scene(store, view)}"
        )
    elif found.trials:
        force = " --force" if found.trials[0].refused else ""
        print(f"next:   twinstudio runs promote {view.id}{force}")


def _tell_findings(found: "Calibration") -> None:
    for finding in found.findings:
        advice = f"; {finding.hint}" if finding.hint else ""
        print(f"check: {'FATAL: ' if finding.fatal else ''}{finding.text}{advice}")
    if not found.findings and found.solved:
        print("check: nothing to complain of")


def _tell_results(results: "Sequence[Result]", title: str, unknown: str) -> None:
    """Figures, tables and patches; curves and pictures are for the report."""
    from twinstudio.cli import show
    from twinstudio.cli.runs import say_text
    from twinstudio.model.results import Patch, Scalar, Table

    scalars = [one for one in results if isinstance(one, Scalar)]
    if scalars:
        say_text(show.figures(scalars, title=title, unknown=unknown))
    for one in results:
        if isinstance(one, Table):
            say_text(show.result_table(one))
        elif isinstance(one, Patch):
            print(f"patch '{one.name}': {one.reason}")
            for change in one.changes:
                print(f"  {change.key} = {_value(change.value)}")


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _scene(store: "Store", view: "JobView") -> str:
    return str(Path(store.load(view.id).spec.scene).parent)
