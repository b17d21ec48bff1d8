"""``plugins``: what there is, what is wrong with it, new ones, in and out."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from twinstudio.model.params import Field
    from twinstudio.plugin.catalog import Catalog, Entry
    from twinstudio.plugin.slots import InputSlot

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Folder = Annotated[
    Path | None, typer.Option("--plugins-dir", help="Another folder of single-file plugins.")
]
Safe = Annotated[bool, typer.Option("--safe", help="Only plugins that come with Twinstudio.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Ask no package index; build with what is installed.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    plugins = typer.Typer(
        help="Plugins: list, check, write, run, switch, install.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    plugins.command("list")(list_)
    plugins.command("info")(info)
    plugins.command("validate")(validate)
    plugins.command("new")(new)
    plugins.command("run")(run)
    plugins.command("enable")(enable)
    plugins.command("disable")(disable)
    plugins.command("install")(install)
    plugins.command("uninstall")(uninstall)
    app.add_typer(plugins, name="plugins")


def list_(plugins_dir: Folder = None, safe: Safe = False, as_json: Json = False) -> None:
    """List all plugins and their state; imports none of them.

    Example: twinstudio plugins list --json
    """
    from twinstudio.cli import show

    entries = open_plugins(plugins_dir, safe).entries()
    if as_json:
        show.json(entries)
        return
    if not entries:
        print("No plugins. 'twinstudio plugins new NAME --kind metric' writes one.")
        return
    wide = max(len(entry.id) for entry in entries)
    for entry in entries:
        version = f" {entry.version}" if entry.version else ""
        print(f"{entry.id:{wide}}  {entry.kind:10}  {entry.state:8}  {entry.origin}{version}")
        if entry.reason:
            print(f"{'':{wide}}  {entry.reason}")


def info(
    plugin: Annotated[str, typer.Argument(metavar="ID")],
    plugins_dir: Folder = None,
    safe: Safe = False,
    as_json: Json = False,
) -> None:
    """Show one plugin with its parameters; imports it.

    Example: twinstudio plugins info twinstudio.worst_joint
    """
    from twinstudio.cli import show
    from twinstudio.model.errors import PluginError
    from twinstudio.model.params import fields

    catalog = open_plugins(plugins_dir, safe)
    catalog.probe(plugin)
    parameters: list[Field] = []
    slots: tuple[InputSlot, ...] = ()
    with clean_output(), contextlib.suppress(PluginError):  # the entry holds reason and trace
        cls = catalog.load(plugin)
        parameters, slots = fields(cls.params), cls.inputs
    entry = catalog.entry(plugin)
    if as_json:
        show.json({"plugin": entry, "params": parameters, "inputs": slots})
        return
    _show(entry)
    for field in parameters:
        default = "required" if field.required else f"default {field.default}"
        print(f"  {field.name:16} {field.unit or field.kind:10} {default:16} {field.help}")
    for slot in slots:
        need = "required" if slot.required else "optional"
        more = " (several)" if slot.several else ""
        print(f"  --input {slot.name:8} {slot.kind:10} {need:16} {slot.help}{more}")


def validate(
    what: Annotated[
        str, typer.Argument(metavar="PATH_OR_ID", help="A plugin's id, file or project folder.")
    ],
    plugins_dir: Folder = None,
    safe: Safe = False,
    as_json: Json = False,
) -> None:
    """Check a plugin against all rules and try it on synthetic data; status 1 on a finding.

    Example: twinstudio plugins validate ./acme-worst-joint
    """
    from twinstudio.cli import show
    from twinstudio.plugin.validating import validate_path, validate_plugin

    with clean_output():
        if Path(what).exists():
            verdicts = validate_path(Path(what))
        else:
            verdicts = [validate_plugin(open_plugins(plugins_dir, safe), what)]
    if as_json:
        show.json(verdicts)
    for verdict in verdicts if not as_json else ():
        print(f"{verdict.id}: {'no findings' if verdict.passed else 'FAILED'}")
        for finding in verdict.findings:
            print(f"  {finding.text}" + (f"; {finding.hint}" if finding.hint else ""))
        if verdict.trace:
            print(verdict.trace, file=sys.stderr)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(1)


def new(
    name: Annotated[str, typer.Argument(help="Name of the project, like acme-worst-joint.")],
    kind: Annotated[
        str,
        typer.Option(
            help="bridge, metric, mechanism, randomizer, calibrator, residual, hil or command."
        ),
    ],
    folder: Annotated[Path, typer.Option(help="Where the project is put.")] = Path(),
    as_json: Json = False,
) -> None:
    """Write the project of a plugin, with a test that runs.

    Example: twinstudio plugins new acme-worst-joint --kind metric
    """
    from twinstudio.cli import show
    from twinstudio.plugin.scaffold import names_of, write_project

    target = write_project(name, kind, folder)
    if as_json:
        show.json({"path": str(target.resolve()), "id": names_of(name, kind)["id"]})
        return
    print(f"Wrote {target}. Next:")
    print(f"  cd {target}")
    print("  python -m pytest")
    print("  twinstudio plugins install .")


def run(
    plugin: Annotated[str, typer.Argument(metavar="ID")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Parameters; see info ID.")
    ] = None,
    scene: Annotated[str, typer.Option(help="Name or folder of a scene.")] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PATH",
            help="What it reads, a path or FORMAT:PATH; see info ID; repeatable.",
        ),
    ] = None,
    split: Annotated[
        float | None,
        typer.Option(
            help="Share of each log to solve with; 0.75 if not given.", show_default=False
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="How often a randomizer draws.")] = 1,
    duration: Annotated[
        float, typer.Option(help="How long a bridge records [s]; 0 until Ctrl+C.")
    ] = 0.0,
    limit: Annotated[
        float, typer.Option(help="Longest duration of the job [s]; 0 for none.")
    ] = 0.0,
    memory: Annotated[
        str, typer.Option(help="Most memory that it may use, e.g. 500M or 2G; 0 for no limit.")
    ] = "0",
    plugins_dir: Folder = None,
    safe: Safe = False,
    as_json: Json = False,
) -> None:
    """Run a plugin as a job and keep the run.

    Example: twinstudio plugins run twinstudio.error_band --seed 1 --input log=shift.mcap
    """
    from twinstudio.cli.runs import run_job_cli
    from twinstudio.jobs.spec import specify
    from twinstudio.model import params

    catalog = open_plugins(plugins_dir, safe)
    entry = catalog.probe(plugin)
    with clean_output():
        cls = catalog.load(plugin)
    given = params.from_text(cls.params, values or [], where=plugin)
    spec = specify(
        cls,
        params.plain(given),
        seed=seed,
        plugin=plugin,
        scene=scene,
        inputs=_named(inputs or []),
        title=entry.title,
        version=entry.version,
        draws=draws,
        split=split,
        duration=duration,
        limit=limit,
        memory=_size(memory),
    )
    run_job_cli(spec, as_json=as_json)


def enable(
    plugin: Annotated[str, typer.Argument(metavar="ID")],
    plugins_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Switch a plugin on."""
    _switched(open_plugins(plugins_dir).enable(plugin), as_json)


def disable(
    plugin: Annotated[str, typer.Argument(metavar="ID")],
    plugins_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Switch a plugin off: it stays listed and is not used."""
    _switched(open_plugins(plugins_dir).disable(plugin), as_json)


def install(
    what: Annotated[str, typer.Argument(help="A wheel, a project's folder or a package name.")],
    yes: Yes = False,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Install plugins into the running environment; shows first what will change.

    Example: twinstudio plugins install acme_worst_joint-0.1.0-py3-none-any.whl
    """
    from twinstudio.cli import show
    from twinstudio.plugin import install as installer

    changes = installer.plan(what, offline=offline)
    if not changes:
        _told("Nothing to do: it is installed already.", as_json)
    for change in changes:
        _told(f"will {change}", as_json)
    if changes:
        _told(installer.NOTE, as_json)
        _agreed(yes)
        installer.install(what, lambda line: _told(line, as_json), offline=offline)
    if as_json:
        show.json({"changes": changes})


def uninstall(
    name: Annotated[str, typer.Argument(help="The package the plugins came in.")],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove a package of plugins from the running environment.

    Example: twinstudio plugins uninstall acme-worst-joint
    """
    from twinstudio.cli import show
    from twinstudio.plugin import install as installer

    _told(f"will {installer.plan_removal(name)}", as_json)
    _agreed(yes)
    installer.uninstall(name, lambda line: _told(line, as_json))
    if as_json:
        show.json({"uninstalled": name})


def _size(text: str) -> int:
    from twinstudio.jobs.memory import parsed
    from twinstudio.model.errors import ParamsError

    try:
        return parsed(text)
    except ValueError as error:
        hint = "write --memory 500M or --memory 2G"
        raise ParamsError(f"'{text}' is no amount of memory", hint=hint) from error


def _named(words: list[str]) -> dict[str, str]:
    from twinstudio.model.errors import ParamsError

    pairs = [word.partition("=") for word in words]
    for name, equals, path in pairs:
        if not (name and equals and path):
            raise ParamsError(f"'{name}{equals}{path}' is no input", hint="write --input name=path")
    names = [name for name, _, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        hint = f"give each a name of its own, like {twice[0]} and {twice[0]}_2"
        raise ParamsError(f"input '{twice[0]}' is given twice", hint=hint)
    return {name: path for name, _, path in pairs}


def open_plugins(folder: Path | None, safe: bool = False) -> "Catalog":
    """All plugins, those in `folder` included; safe: only those that come with Twinstudio."""
    from twinstudio.plugin.catalog import open_catalog
    from twinstudio.session.places import plugin_places

    return open_catalog(plugin_places(folder, safe=safe))


def clean_output() -> "contextlib.redirect_stdout[Any]":
    """What a plugin prints goes beside the output, not into it."""
    return contextlib.redirect_stdout(sys.stderr)


def _show(entry: "Entry") -> None:
    print(f"{entry.id}: {entry.title}, a {entry.kind or 'plugin'} from {entry.origin}")
    print(f"  {entry.help}")
    print(f"  version {entry.version or 'unknown'}, {entry.state}")
    if entry.docs:
        print(f"  {entry.docs}")
    if entry.reason:
        print(f"  {entry.reason}")
    if entry.trace:
        print(entry.trace, file=sys.stderr)


def _switched(entry: "Entry", as_json: bool) -> None:
    from twinstudio.cli import show

    if as_json:
        show.json(entry)
    else:
        print(f"{entry.id} is {'switched off' if entry.state == 'disabled' else 'switched on'}")


def _told(line: str, as_json: bool) -> None:
    print(line, file=sys.stderr if as_json else sys.stdout, flush=True)


def _agreed(yes: bool) -> None:
    """Ask, unless told not to; without a terminal and without --yes nothing is changed."""
    from twinstudio.model.errors import PluginError

    if yes:
        return
    if not sys.stdin.isatty():
        raise PluginError("nobody is there to agree", hint="add --yes")
    typer.confirm("Go on?", abort=True, err=True)
