"""Checks a plugin by id, single file or project folder, as ``plugins validate`` does."""

import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from twinstudio.model import config
from twinstudio.model.errors import PluginError
from twinstudio.plugin.catalog import Catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.folders import offers_of_file
from twinstudio.plugin.kinds import Finding
from twinstudio.plugin.manifest import FILE, GROUP, Offer, offers_of
from twinstudio.plugin.testing import check_plugin


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on one plugin; `trace` of a failed import, or ""."""

    id: str
    passed: bool
    findings: tuple[Finding, ...] = ()
    trace: str = ""


def validate_plugin(catalog: Catalog, plugin: str) -> Verdict:
    """Everything wrong with `plugin`; raises PluginError only if there is no such id."""
    catalog.probe(plugin)
    try:
        cls = catalog.load(plugin)
    except PluginError as error:
        finding = Finding(error.what, fatal=True, hint=error.hint)
        trace = catalog.entry(plugin).trace
        return Verdict(id=plugin, passed=False, findings=(finding,), trace=trace)
    findings = tuple(check_plugin(cls)) + tuple(map(Finding, catalog.stray_hooks(plugin)))
    return Verdict(id=plugin, passed=not findings, findings=findings)


def validate_path(path: Path) -> list[Verdict]:
    """Everything wrong with the plugins of a single file or of a project's folder.

    Raises PluginError where there are none.
    """
    path = path.resolve()
    offers = offers_of_file(path) if path.is_file() else _offers_of_project(path)
    catalog = Catalog([_Given(offers)], Choices())
    roots = sorted({str(o.place.parent) for o in offers if o.place is not None and o.distribution})
    sys.path[:0] = roots
    try:
        return [validate_plugin(catalog, offer.id) for offer in offers]
    finally:
        del sys.path[: len(roots)]


class _Project(msgspec.Struct, frozen=True, rename="kebab"):
    """What counts of the table ``project`` in a pyproject.toml."""

    name: str
    version: str = ""
    entry_points: dict[str, dict[str, str]] = {}


class _Given:
    """A source of plugins that are known already."""

    def __init__(self, offers: list[Offer]) -> None:
        self._offers = offers

    def offers(self) -> list[Offer]:
        """Those it was given."""
        return self._offers


def _offers_of_project(folder: Path) -> list[Offer]:
    """Plugins that the project in `folder` would announce once installed."""
    where = folder / "pyproject.toml"
    try:
        raw = config.tables(where.read_text(encoding="utf-8")).get("project", {})
        project = msgspec.convert(raw, _Project)
    except OSError as error:
        hint = "give a plugin's id, its single file or the folder of its project"
        raise PluginError(
            f"cannot be read: {error.strerror}", where=str(where), hint=hint
        ) from error
    except msgspec.ValidationError as error:
        raise PluginError(f"[project] is malformed: {error}", where=str(where)) from error
    except ValueError as error:
        raise PluginError(f"is no valid TOML: {error}", where=str(where)) from error
    packages = project.entry_points.get(GROUP, {})
    if not packages:
        raise PluginError(
            f'announces no plugins: there is no [project.entry-points."{GROUP}"]', where=str(where)
        )
    base = Offer(id=project.name, origin=project.name, version=project.version)
    return [o for package in packages.values() for o in _of_package(folder, package, base)]


def _of_package(folder: Path, package: str, base: Offer) -> list[Offer]:
    for place in (folder / package, folder / "src" / package):
        file = place / FILE
        if file.is_file():
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise PluginError(f"cannot be read: {error}", where=str(file)) from error
            return offers_of(text, str(file), replace(base, module=package, place=place))
    raise PluginError(f"package '{package}' has no {FILE}", where=str(folder))
