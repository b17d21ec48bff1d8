"""From an offer to a class: import, hooks one by one, checks.

Everything here may fail in any way a stranger's code can; all of it comes out
as PluginError with the cause attached.
"""

import difflib
import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pluggy

from twinstudio.model.errors import PluginError
from twinstudio.model.provenance import sha256, tree_digest
from twinstudio.model.words import of_error
from twinstudio.plugin import checks
from twinstudio.plugin.hooks import HOOK_OF, PROJECT, Hooks
from twinstudio.plugin.kinds import KINDS, Plugin
from twinstudio.plugin.manifest import Offer

FILES = "twinstudio_plugin_files"
_NO_CODE = frozenset({"__pycache__", ".git", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


def load_class(offer: Offer) -> type[Plugin[Any]]:
    """The class that `offer` announces, imported and checked; raises PluginError.

    Nothing else gets out, whatever the plugin's code raises, but the interrupt of a user.
    """
    where = f"plugin '{offer.id}'"
    try:
        return _loaded(offer, where)
    except (PluginError, KeyboardInterrupt):
        raise
    except BaseException as error:  # its class may fail at every look that is taken at it
        what = f"its class cannot be looked at: {of_error(error)}"
        raise PluginError(what, where=where) from error


def _loaded(offer: Offer, where: str) -> type[Plugin[Any]]:
    module = _imported(offer, where)
    classes = _given(module, HOOK_OF[offer.kind], where)
    base = KINDS[offer.kind].__name__
    fitting = [cls for cls in classes if getattr(cls, "id", None) == offer.id]
    if len(fitting) != 1:
        hint = f"its hook '{HOOK_OF[offer.kind]}' gives {_listed(classes)}"
        what = f"no {base}" if not fitting else "more than one class"
        raise PluginError(
            f'module {module.__name__} has {what} with id = "{offer.id}"', where=where, hint=hint
        )
    found = checks.problems(fitting[0], offer.kind)
    if found:
        raise PluginError("; ".join(found), where=where)
    cls: type[Plugin[Any]] = fitting[0]
    return cls


def forget(offer: Offer) -> None:
    """Drop the modules of `offer`'s package, so that the next use imports them anew."""
    root = module_name(offer).partition(".")[0] if offer.distribution else module_name(offer)
    for name in list(sys.modules):
        if root and (name == root or name.startswith(f"{root}.")):
            del sys.modules[name]
    importlib.invalidate_caches()


def is_imported(offer: Offer) -> bool:
    """Whether anything of `offer`'s package is imported in this process."""
    root = module_name(offer).partition(".")[0]
    return root in sys.modules


def module_name(offer: Offer) -> str:
    """Name under which the module of `offer` is imported."""
    if offer.distribution:
        return offer.module
    mark = hashlib.sha256(offer.origin.encode()).hexdigest()[:8]
    return f"{FILES}_{Path(offer.origin).stem}_{mark}"


def digest(offer: Offer) -> str:
    """The hash of the plugin's source (see `code_hash`): its file, or its package.

    Raises PluginError when there is no source to read.
    """
    if offer.place is None:
        raise PluginError("there is no source to hash", where=f"plugin '{offer.id}'")
    try:
        return code_hash(offer.place)
    except OSError as error:
        raise PluginError(
            f"source cannot be read: {error}", where=f"plugin '{offer.id}'"
        ) from error


def code_hash(place: Path) -> str:
    """SHA-256 of a file of code, or of all files of a package without caches.

    A run's record has it, and so has the catalog. Raises OSError.
    """
    if not place.is_dir():
        return sha256(place)
    files = (file for file in place.rglob("*") if file.is_file())
    code = (f for f in files if not _NO_CODE.intersection(f.relative_to(place).parts))
    return tree_digest(code, place)


def unknown_hooks(offer: Offer) -> list[str]:
    """Functions marked as hooks whose name is none, each with the nearest one, a line each.

    offer: one that was loaded.
    """
    known = list(HOOK_OF.values())
    strays = [n for n in _marked(_manager(), sys.modules[module_name(offer)]) if n not in known]
    return [
        f"'{name}' is no hook" + (f"; did you mean '{close}'?" if close else "")
        for name in strays
        for close in [_nearest(name, known)]
    ]


def _imported(offer: Offer, where: str) -> ModuleType:
    name = module_name(offer)
    try:
        module = importlib.import_module(name) if offer.distribution else _from_file(offer, name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = f"module {name} cannot be imported: {of_error(error)}"
        raise PluginError(what, where=where) from error
    _same_place(module, offer, where)
    return module


def _from_file(offer: Offer, name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, offer.origin)
    if spec is None or spec.loader is None:
        raise ImportError(f"{offer.origin} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are resolved through it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _same_place(module: ModuleType, offer: Offer, where: str) -> None:
    """Another package of the same name on the path would run code that was never announced."""
    file = getattr(module, "__file__", None)
    if offer.place is None or file is None:
        return
    place = offer.place.resolve()
    if place not in (Path(file).resolve(), *Path(file).resolve().parents):
        raise PluginError(
            f"module {module.__name__} comes from {file}, not from {place}",
            where=where,
            hint="two packages have the same name",
        )


def _given(module: ModuleType, hook: str, where: str) -> list[Any]:
    """What the implementations of `hook` in `module` return, called one by one."""
    manager = _manager()
    marked = _marked(manager, module)
    if hook not in marked:
        what = f"module {module.__name__} implements no hook '{hook}'"
        raise PluginError(what, where=where, hint=_advice(module, hook, list(marked)))
    name = marked[hook]
    alone = SimpleNamespace(**{name: getattr(module, name)})  # a faulty neighbour does no harm
    try:
        manager.register(alone, name=module.__name__)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise PluginError(f"hook '{hook}' does not fit: {reason}", where=where) from error
    classes: list[Any] = []
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        classes += _called(implementation, hook, where)
    return classes


def _called(implementation: Any, hook: str, where: str) -> list[Any]:
    try:
        given = implementation.function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"hook '{hook}' raised {of_error(error)}", where=where) from error
    if not isinstance(given, list | tuple):
        raise PluginError(
            f"hook '{hook}' must return a list of classes, got {type(given).__name__}", where=where
        )
    return list(given)


def _manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    return manager


def _marked(manager: pluggy.PluginManager, module: ModuleType) -> dict[str, str]:
    """Hook name -> name of the function of `module` that is marked as implementing it."""
    marked = {}
    for name in list(vars(module)):
        options = manager.parse_hookimpl_opts(module, name)
        if options is not None:
            marked[options.get("specname") or name] = name
    return marked


def _advice(module: ModuleType, hook: str, marked: list[str]) -> str:
    """How `module` comes to implement `hook`."""
    strays = [name for name in marked if name not in HOOK_OF.values()]
    if close := _nearest(hook, strays):
        return f"it has '{close}', which is no hook: call that '{hook}'"
    if callable(getattr(module, hook, None)):
        return f"mark its function '{hook}' with @implements"
    return f"write '@implements def {hook}()'"


def _nearest(name: str, known: list[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), "")


def _listed(classes: list[Any]) -> str:
    names = [str(getattr(cls, "id", None) or f"{cls!r:.40} without id") for cls in classes]
    return ", ".join(names) or "none"
