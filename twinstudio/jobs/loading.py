"""From the source of a plugin to its class, and to a hash of its code."""

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from twinstudio.model.errors import PluginError
from twinstudio.plugin.kinds import KINDS, Plugin
from twinstudio.plugin.loading import code_hash

_FILE = re.compile(r"^(?P<path>.+\.py)(?::(?P<name>\w+))?$")
_MODULE = re.compile(r"^(?P<module>[A-Za-z_][\w.]*):(?P<name>\w+)$")
_PREFIX = "twinstudio_plugin_file_"


def load_class(source: str) -> type[Plugin[Any]]:
    """The plugin class at ``module:Class``, ``file.py:Class`` or ``file.py`` with only one.

    Raises PluginError, in one line, if it cannot be imported or is no plugin.
    """
    if match := _FILE.match(source):
        module = _from_file(Path(match["path"]), source)
    elif match := _MODULE.match(source):
        module = _imported(match["module"], source)
    else:
        raise PluginError(
            f"'{source}' names no plugin class", hint="write module:Class or file.py:Class"
        )
    name = match["name"] or _only_plugin(module, source)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise PluginError(f"has no plugin class '{name}'", where=source)
    return found


def kind_of(cls: type[Plugin[Any]]) -> str:
    """The kind of a plugin class, e.g. ``metric``; raises PluginError for none of them."""
    for name, base in KINDS.items():
        if issubclass(cls, base):
            return name
    raise PluginError(
        f"{cls.__qualname__} is of no known kind", hint=f"kinds are {', '.join(KINDS)}"
    )


def source_of(cls: type[Plugin[Any]]) -> str:
    """Where `cls` can be loaded from again: its module if that is importable, else its file."""
    if "." in cls.__qualname__:
        raise PluginError(
            f"{cls.__qualname__} is defined inside something else",
            hint="define it at the top of its module, so that another process can load it",
        )
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if _importable(cls.__module__, file):
        return f"{cls.__module__}:{cls.__qualname__}"
    if not file:
        raise PluginError(f"{cls.__qualname__} has no file", hint="save it in one")
    return f"{Path(file).resolve()}:{cls.__qualname__}"


def code_digest(source: str) -> str:
    """The hash of the plugin's code (`plugin.loading.code_hash`).

    That of its file, or of the package that its module is part of.
    """
    if match := _FILE.match(source):
        return code_hash(Path(match["path"]))
    name = source.partition(":")[0]
    spec = importlib.util.find_spec(name.partition(".")[0])
    if spec is None or spec.origin is None:
        spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise PluginError("its code has no file", where=source)
    origin = Path(spec.origin)
    return code_hash(origin.parent if spec.submodule_search_locations else origin)


def _importable(name: str, file: str | None) -> bool:
    """Whether an import finds module `name` at `file`; it may be known to this process alone."""
    if name == "__main__" or name.startswith(_PREFIX):
        return False
    parent, _, _ = name.rpartition(".")
    where = getattr(sys.modules.get(parent), "__path__", None) if parent else None
    for finder in sys.meta_path:
        spec = finder.find_spec(name, where)
        if spec is not None:
            return spec.origin == file
    return False


def _from_file(path: Path, source: str) -> ModuleType:
    """The file as a module of a name of its own, read afresh every time."""
    if not path.is_file():
        raise PluginError("there is no such file", where=source)
    tag = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"{_PREFIX}{path.stem}_{tag}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError("is no Python file", where=source)
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # typing looks names of annotations up here
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise _refused(error, source) from error
    return module


def _imported(name: str, source: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except BaseException as error:
        raise _refused(error, source) from error


def _refused(error: BaseException, source: str) -> BaseException:
    """What an import that raised is reported as; an interrupt by the user stays one."""
    if isinstance(error, KeyboardInterrupt):
        return error
    return PluginError(f"cannot be imported: {type(error).__name__}: {error}", where=source)


def _only_plugin(module: ModuleType, source: str) -> str:
    found = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Plugin)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    ]
    if len(found) != 1:
        raise PluginError(
            f"holds {len(found)} plugin classes",
            where=source,
            hint=f"say which: {source}:{found[0]}" if found else "it needs one",
        )
    return found[0]
