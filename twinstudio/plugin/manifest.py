"""Manifests: what a plugin says of itself, read without importing anything of it.

A distribution announces itself by an entry point of the group
``twinstudio.plugins`` whose value is its top-level package, in which
``twinstudio-plugin.toml`` lies::

    api = 1

    [[plugins]]
    id = "acme.worst_joint"
    kind = "metric"
    title = "Worst joint"
    help = "The joint whose position differs most"
    module = "acme_worst_joint.plugin"
"""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, get_args

import msgspec

from twinstudio.model import config
from twinstudio.model.errors import PluginError, SceneError
from twinstudio.model.words import is_printable, one_line
from twinstudio.plugin.hooks import API

FILE = "twinstudio-plugin.toml"
GROUP = "twinstudio.plugins"
ID = re.compile(r"^(?=.{3,100}\Z)[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z")

Kind = Literal[
    "bridge", "metric", "mechanism", "randomizer", "calibrator", "residual", "hil", "command"
]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One plugin of a manifest.

    module: imported on first use; a module of the announced package. Not given
        in a single file, which is its own module.
    docs: address of a page about it, or "".
    """

    id: str
    kind: Kind
    title: Text
    help: Text
    module: str = ""
    docs: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a distribution or a single file offers; `version` is for single files."""

    api: int
    plugins: Annotated[tuple[Declared, ...], msgspec.Meta(min_length=1)]
    version: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A plugin as announced, or what keeps it from being one (`problem`, one line).

    origin: distribution's name, or path of the single file.
    place: folder of the package, or the single file.
    """

    id: str
    origin: str
    version: str = ""
    kind: str = ""
    title: str = ""
    help: str = ""
    docs: str = ""
    module: str = ""
    place: Path | None = None
    distribution: bool = True
    problem: str = ""


def normal_name(distribution: str) -> str:
    """Name of a distribution as names are compared: in lower case, any run of ``-_.`` a hyphen."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


class Source(Protocol):
    """Where plugins come from."""

    def offers(self) -> list[Offer]:
        """All it has, each problem as an offer of its own; imports nothing, raises nothing."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Distributions of the running environment; `path` instead of ``sys.path`` for tests."""

    path: Sequence[str] | None = None

    def offers(self) -> list[Offer]:
        """Plugins of every distribution that announces some; the first of one name counts."""
        found: dict[str, list[Offer]] = {}
        path = sys.path if self.path is None else self.path
        for distribution in distributions(path=list(path)):
            if GROUP not in _text(distribution, "entry_points.txt"):
                continue
            name, version = _name_and_version(distribution)
            key = normal_name(name)
            if key not in found:
                found[key] = list(_announced(distribution, name, version))
        return [offer for offers in found.values() for offer in offers]


def offers_of(text: str, where: str, base: Offer) -> list[Offer]:
    """The plugins that manifest `text` declares, each on top of `base`.

    A manifest with an error gives one offer a plugin, or one in all, with the problem.
    """
    try:
        manifest = read(text, where, package=base.module)
    except PluginError as error:
        names = _ids_in(text) or [base.id]
        problem = one_line(str(error))
        return [replace(base, id=name, module="", problem=problem) for name in names]
    return [
        replace(
            base,
            id=declared.id,
            kind=declared.kind,
            title=declared.title,
            help=declared.help,
            docs=declared.docs,
            module=declared.module,
            version=base.version or manifest.version,
        )
        for declared in manifest.plugins
    ]


def read(text: str, where: str, *, package: str = "") -> Manifest:
    """Manifest `text`, fully checked; `package` is "" for a single file.

    Raises PluginError, in one line that names file, key and expectation.
    """
    try:
        raw = config.tables(text)
    except ValueError as error:
        raise PluginError(f"is no valid TOML: {error}", where=where) from error
    wanted = raw.get("api", API)
    if type(wanted) is int and wanted != API:
        raise PluginError(
            f"key 'api': written for plugin API {wanted}, this Twinstudio has {API}",
            where=where,
            hint="install a version of the plugin that fits",
        )
    manifest = _typed(raw, where)
    if package and manifest.version:
        hint = "the version is that of the distribution, in pyproject.toml"
        raise PluginError("key 'version' is for single files", where=where, hint=hint)
    for k, declared in enumerate(manifest.plugins):
        _check(declared, f"plugins[{k}]", where, package)
    _once(manifest, where)
    return manifest


def _typed(raw: dict[str, Any], where: str) -> Manifest:
    try:
        return msgspec.convert(raw, Manifest)  # there are no units to look for: a quarter faster
    except msgspec.ValidationError:
        try:
            return config.convert(raw, Manifest, where=where)
        except SceneError as error:
            hint = f"kinds are {', '.join(get_args(Kind))}" if ".kind'" in error.what else ""
            raise PluginError(error.what, where=error.where, hint=error.hint or hint) from error


def _check(declared: Declared, key: str, where: str, package: str) -> None:
    if not ID.match(declared.id):
        raise PluginError(
            f"key '{key}.id': '{declared.id}' is no plugin id",
            where=where,
            hint="lower-case words joined by dots, at least two, like 'acme.worst_joint';"
            " 100 letters at most",
        )
    for name in ("title", "help", "docs"):
        if not is_printable(getattr(declared, name)):
            raise PluginError(f"key '{key}.{name}': holds control characters", where=where)
    module = declared.module
    if package and not (module == package or module.startswith(f"{package}.")):
        raise PluginError(
            f"key '{key}.module': expected a module of package '{package}', got '{module}'",
            where=where,
        )
    if not package and module:
        raise PluginError(
            f"key '{key}.module': a single file is its own module; leave the key out", where=where
        )


def _once(manifest: Manifest, where: str) -> None:
    names = [declared.id for declared in manifest.plugins]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise PluginError(f"key 'plugins[{k}].id': '{name}' is taken above", where=where)


def _ids_in(text: str) -> list[str]:
    """Ids that a faulty manifest names, so that each is listed with the problem."""
    try:
        plugins: Any = config.tables(text).get("plugins")
    except ValueError:
        return []
    listed = plugins if isinstance(plugins, list) else []
    tables = [entry for entry in listed if isinstance(entry, dict)]
    names = [entry.get("id") for entry in tables]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and ID.match(name)))


def _text(distribution: Distribution, file: str) -> str:
    try:
        return distribution.read_text(file) or ""
    except (OSError, UnicodeDecodeError):
        return ""  # damaged metadata announce nothing


def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Name and version by their header lines: parsing all metadata takes ten times as long."""
    fields = {"Name": "", "Version": ""}
    for line in _text(distribution, "METADATA").splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            break
        if key in fields and not fields[key]:
            fields[key] = value.strip()
    return fields["Name"], fields["Version"]


def _announced(distribution: Distribution, name: str, version: str) -> Iterable[Offer]:
    base = Offer(id=name or "unnamed", origin=name or "unnamed", version=version)
    try:
        packages = [point.value for point in distribution.entry_points.select(group=GROUP)]
    except Exception as error:  # noqa: BLE001 - a foreign file may be wrong in any way
        problem = f"{base.origin}: entry_points.txt cannot be read: {error}"
        return [replace(base, problem=problem)]
    return [offer for package in packages for offer in _of_package(distribution, package, base)]


def _of_package(distribution: Distribution, package: str, base: Offer) -> list[Offer]:
    try:
        path = _manifest_path(distribution, package)
        text = path.read_text(encoding="utf-8")
    except PluginError as error:
        return [replace(base, problem=f"{base.origin}: {error}")]
    except (OSError, UnicodeDecodeError) as error:
        return [replace(base, problem=f"{base.origin}: {FILE} cannot be read: {error}")]
    return offers_of(text, str(path), replace(base, module=package, place=path.parent))


def _manifest_path(distribution: Distribution, package: str) -> Path:
    if not package.isidentifier():
        raise PluginError(
            f"entry point of group {GROUP} has the value '{package}'",
            hint="give the name of a top-level package",
        )
    path = Path(str(distribution.locate_file(package))) / FILE
    if path.is_file():
        return path
    try:
        spec = find_spec(package)  # an editable install lies elsewhere; this imports nothing
    except Exception as error:  # a foreign finder may fail in any way
        raise PluginError(f"package '{package}' cannot be looked up: {error}") from error
    folders = (spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        if (Path(folder) / FILE).is_file():
            return Path(folder) / FILE
    raise PluginError(
        f"package '{package}' has no {FILE}" if spec else f"there is no package '{package}'",
        hint=f"put {FILE} into the package and into the wheel",
    )
