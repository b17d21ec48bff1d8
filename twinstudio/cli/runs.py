"""``runs``: what was computed, from what; again, elsewhere, or no more."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table as View

    from twinstudio.jobs.compare import Difference
    from twinstudio.jobs.job import JobView
    from twinstudio.jobs.record import Run
    from twinstudio.jobs.runner import Job
    from twinstudio.jobs.spec import JobSpec
    from twinstudio.jobs.store import Store
    from twinstudio.model.results import Result

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Folder = Annotated[Path | None, typer.Option("--runs-dir", help="Folder of the runs.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="As `runs list` shows it.")]
Force = Annotated[
    bool, typer.Option("--force", help="Also a patch that made the twin worse on held-out data.")
]
FORCE = "--force promotes it all the same"
LISTED_SECONDS = 0.2
FAILED, INTERRUPTED = 1, 130


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    runs = typer.Typer(
        help="Runs: list, show, reproduce, compare, promote, export, import, delete.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    runs.command("list")(list_)
    runs.command("show")(show_)
    runs.command("reproduce")(reproduce_)
    runs.command("compare")(compare)
    runs.command("promote")(promote)
    runs.command("export")(export)
    runs.command("import")(import_)
    runs.command("delete")(delete)
    app.add_typer(runs, name="runs")


def store_of(folder: Path | None = None) -> "Store":
    """The runs of this user, or those in `folder`."""
    from twinstudio.jobs.store import Store
    from twinstudio.session.places import places

    known = places()
    return Store(folder or known.get("runs", known["recordings"].parent / "runs"))


def list_(
    text: Annotated[str, typer.Option(help="Only with this in title, plugin, user or error.")] = "",
    plugin: Annotated[str, typer.Option(help="Only of this plugin.")] = "",
    state: Annotated[str, typer.Option(help="Only done, failed or cancelled.")] = "",
    runs_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """List the runs there are, newest first.

    Example: twinstudio runs list --state failed
    """
    from twinstudio.cli import show
    from twinstudio.jobs.store import RunFilter

    wanted: Any = state or None
    store = store_of(runs_dir)
    heads = store.list(RunFilter(text=text, plugin=plugin, state=wanted))
    if as_json:
        show.json(heads)
        return
    view = new_view("id", "plugin", "title", "state", "seconds", "who", "error")
    for head in heads:
        seconds = "-" if head.seconds is None else f"{head.seconds:.1f}"
        spec = head.spec
        view.add_row(head.id, spec.plugin, spec.title, head.state, seconds, head.who, head.error)
    say_text(view if heads else f"no runs in {store.folder}")


def show_(run: Id, runs_dir: Folder = None, as_json: Json = False) -> None:
    """Show what a run was made from, how it went and what came out.

    Example: twinstudio runs show 20260131-101500-4f3a9c
    """
    from twinstudio.cli import show

    store = store_of(runs_dir)
    record = store.load(run)
    results = store.results(run)
    if as_json:
        show.json({**plain_run(record), "results": [plain_result(result) for result in results]})
        return
    _print_run(record, store)
    _print_results(record, results)


def reproduce_(run: Id, runs_dir: Folder = None, as_json: Json = False) -> None:
    """Run a run again: say what has changed since, and whether the numbers are the same.

    Exit status 0 only if they are, to the last bit.

    Example: twinstudio runs reproduce 20260131-101500-4f3a9c
    """
    from twinstudio.cli import show
    from twinstudio.jobs.reproduce import reproduce
    from twinstudio.jobs.runner import Runner

    with Runner(store_of(runs_dir)) as runner, progress_line(shown=not as_json) as watch:
        outcome = reproduce(run, runner, watch=watch)
    if as_json:
        show.json(outcome)
    else:
        _print_differences("changed since", ("then", "now"), outcome.changed)
        _print_differences("results", ("then", "now"), outcome.results)
        verdict = "the same numbers" if outcome.same else "not the same"
        reason = f": {outcome.error}" if outcome.error else ""
        say_text(f"{outcome.run}: {outcome.state}, {verdict}{reason}")
    if not outcome.same:
        raise typer.Exit(FAILED)


def compare(
    one: Id,
    other: Annotated[str, typer.Argument(metavar="OTHER")],
    runs_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Show what two runs differ in: parameters, environment, results.

    Example: twinstudio runs compare 20260131-101500-4f3a9c 20260131-102000-0c11d2
    """
    from twinstudio.cli import show

    outcome = store_of(runs_dir).compare(one, other)
    if as_json:
        show.json(outcome)
        return
    for title in ("params", "environment", "results"):
        _print_differences(title, (one, other), getattr(outcome, title))


def promote(
    run: Id,
    patch: Annotated[
        str, typer.Argument(metavar="[PATCH]", help="Number or name, where a run has several.")
    ] = "",
    scene: Annotated[
        str, typer.Option(help="Scene that it goes onto; the run's own if not given.")
    ] = "",
    result: Annotated[
        int, typer.Option(min=0, help="Number of the patch, as `runs show` has it.")
    ] = 0,
    name: Annotated[str, typer.Option(help="Name of the patch, where only one has it.")] = "",
    force: Force = False,
    runs_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Put a patch that a run found onto a scene; `scene undo` takes it back.

    A patch that made the twin worse on held-out data, or that could not be
    simulated, is refused with the figures.

    Example: twinstudio runs promote 20260131-101500-4f3a9c --scene panda_cell --result 3
    """
    from twinstudio.jobs import promoting
    from twinstudio.model.scene import load_scene

    store = store_of(runs_dir)
    if patch.isdecimal():
        result = result or int(patch)
    else:
        name = name or patch
    onto = scene or store.load(run).spec.scene
    number, chosen, trial = promoting.promote(
        store, run, load_scene(onto), name=name, result=result, force=force, say=FORCE
    )
    plain = {"run": run, "result": number, "name": chosen.name}
    words = f"; {trial.words}" if trial is not None else ""
    text = f"result {number} '{chosen.name}' of {run} is on {onto}{words}"
    _say(plain, text, as_json=as_json)


def export(
    run: Id,
    file: Annotated[Path, typer.Argument(metavar="FILE.zip")],
    with_inputs: Annotated[
        bool, typer.Option("--with-inputs", help="Take along the files that it read.")
    ] = False,
    runs_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Put a run into one file, to be imported elsewhere; its inputs only if asked to.

    Example: twinstudio runs export 20260131-101500-4f3a9c run.zip --with-inputs
    """
    path = store_of(runs_dir).export(run, file, with_inputs=with_inputs)
    _say({"path": str(path), "bytes": path.stat().st_size}, f"{path}", as_json=as_json)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip")],
    runs_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Take in a run that was exported.

    Example: twinstudio runs import run.zip
    """
    run = store_of(runs_dir).import_(file)
    _say({"id": run}, run, as_json=as_json)


def delete(run: Id, runs_dir: Folder = None, as_json: Json = False) -> None:
    """Remove a run and its results for good.

    Example: twinstudio runs delete 20260131-101500-4f3a9c
    """
    store_of(runs_dir).delete(run)
    _say({"deleted": run}, f"{run} is deleted", as_json=as_json)


def run_job_cli(spec: "JobSpec", *, store: "Store | None" = None, as_json: bool = False) -> str:
    """Run a job with its progress on the terminal, print what came out, return the run's id.

    Ctrl-C cancels it. Raises JobError if it failed, typer.Exit with status 130 if
    it was cancelled; the run is kept in any case.
    """
    from twinstudio.model.errors import JobError

    kept = store or store_of()
    view = follow_job(spec, kept, shown=not as_json)
    if view.state == "failed":
        raise JobError(view.error, hint=f"see: twinstudio runs show {view.id}")
    record, results = kept.load(view.id), kept.results(view.id)
    if as_json:
        told = {**plain_run(record), "results": list(map(plain_result, results))}
        _say(told, "", as_json=True)
    else:
        _print_run(record, kept)
        _print_results(record, results)
    return view.id


def follow_job(spec: "JobSpec", store: "Store", *, shown: bool) -> "JobView":
    """Run a job, with its progress on the terminal if `shown`, to its end, good or bad.

    Ctrl-C cancels it; raises typer.Exit with status 130 for one that was cancelled.
    """
    from twinstudio.jobs.runner import Runner

    with Runner(store) as runner:
        view = _followed(runner.submit(spec), shown=shown)
    if view.state == "cancelled":
        print(f"twinstudio: {view.error}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    return view


def _followed(job: "Job", *, shown: bool) -> "JobView":
    """Show how a job goes until it is over; an interrupt cancels it."""
    with progress_line(shown=shown) as watch:
        view = job.wait(LISTED_SECONDS)
        while not view.over:
            watch(view)
            try:
                view = job.wait(LISTED_SECONDS)
            except KeyboardInterrupt:
                job.cancel()
    return view


@contextmanager
def progress_line(*, shown: bool) -> "Iterator[Callable[[JobView], None]]":
    """What shows a job's state in one line that renews itself, on standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda _view: None
        return
    with console.status("") as status:
        yield lambda view: status.update(_in_words(view))


def _in_words(view: "JobView") -> str:
    left = "" if view.left is None else f", {view.left:.0f} s left"
    return f"{view.title}: {view.state} {view.progress:.0%}{left} {view.message}".rstrip()


def _say(value: object, text: str, *, as_json: bool) -> None:
    from twinstudio.cli import show

    if as_json:
        show.json(value)
    else:
        say_text(text)


def _print_run(run: "Run", store: "Store") -> None:
    from twinstudio.jobs.memory import in_words
    from twinstudio.model.words import one_line

    spec = run.spec
    where = run.provenance
    lines = {
        "run": run.id,
        "plugin": f"{spec.plugin} {spec.version}".rstrip() + f" ({spec.kind})",
        "state": run.state + (f": {run.error}" if run.error else ""),
        "who": f"{run.who} on {run.host}",
        "created": f"{run.created.astimezone():%Y-%m-%d %H:%M:%S}",
        "took": ", ".join(f"{state} {t:.2f} s" for state, t in run.durations.items()),
        "seed": spec.seed,
        "split": "" if spec.split is None else spec.split,
        "duration": f"{spec.duration:g} s" if spec.duration else "",
        "limit": f"{spec.limit:g} s" if spec.limit else "",
        "memory": in_words(spec.memory) if spec.memory else "",
        "scene": spec.scene,
        "versions": f"twinstudio {where.twinstudio}, python {where.python}" if where else "",
        "reproduces": run.of,
    }
    lines |= {f"input {name}": given.path for name, given in spec.inputs.items()}
    lines |= {f"param {name}": value for name, value in spec.params.items()}
    lines |= {f"note {k + 1}": note for k, note in enumerate(run.notes)}
    lines |= {"folder": store.folder / run.id, "files": ", ".join(sorted(run.files))}
    for name, value in lines.items():
        if value != "":
            print(f"{one_line(name):<12} {one_line(str(value))}")


def _print_results(run: "Run", results: "tuple[Result, ...]") -> None:
    """What a calibrator cannot tell is said; other figures may be without an interval."""
    from twinstudio.cli import show
    from twinstudio.report.numbers import DASH

    show.results(results, unknown="no interval" if run.spec.kind == "calibrator" else DASH)


def _print_differences(title: str, sides: tuple[str, str], found: "tuple[Difference, ...]") -> None:
    if not found:
        print(f"{title}: no difference")
        return
    view = new_view(title, *sides)
    for difference in found:
        view.add_row(difference.name, str(difference.one), str(difference.other))
    say_text(view)


def plain_run(run: "Run") -> dict[str, Any]:
    """The record as it is on disk, without how its results are stored."""
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(run)
    for name in ("results_file", "files", "owner", "format"):
        del plain[name]
    return plain


def plain_result(result: "Result") -> Any:
    """A result as plain data; a picture by its size alone."""
    from twinstudio.jobs.stored import as_plain

    plain = as_plain(result)
    if "data" in plain:
        plain["bytes"] = len(plain.pop("data"))
    return plain


def new_view(*columns: str) -> "View":
    """An empty table with these headings."""
    from rich.table import Table

    view = Table()
    for column in columns:
        view.add_column(column)
    return view


def say_text(what: object) -> None:
    """Print text or a table as it is, without markup."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 160
    Console(width=width, markup=False, highlight=False).print(what)
