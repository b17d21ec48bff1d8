"""Which plugins the user switched off, kept in a small file of the settings folder."""

import os
import tempfile
import threading
from pathlib import Path

import msgspec

from twinstudio.model import config
from twinstudio.model.errors import PluginError, SceneError

FILE = "plugins.toml"


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    disabled: tuple[str, ...] = ()


class Choices:
    """The ids that are switched off; without a `folder` they are forgotten at the end.

    Raises PluginError where the file cannot be read or written: a wrong file is
    never taken for an empty one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / FILE if folder is not None else None
        self._lock = threading.Lock()
        self._disabled = self._read()

    @property
    def disabled(self) -> frozenset[str]:
        """Ids of the plugins that are switched off."""
        return self._disabled

    def switch(self, plugin: str, *, enabled: bool) -> None:
        """Remember `plugin` as switched on or off; other programs' changes are kept."""
        with self._lock:
            stored = self._read() if self._path else self._disabled
            changed = stored - {plugin} if enabled else stored | {plugin}
            self._write(changed)
            self._disabled = changed

    def _read(self) -> frozenset[str]:
        if self._path is None or not self._path.exists():
            return frozenset()
        try:
            return frozenset(config.load(self._path, _Stored).disabled)
        except SceneError as error:
            hint = "correct or delete the file"
            raise PluginError(error.what, where=error.where, hint=hint) from error

    def _write(self, disabled: frozenset[str]) -> None:
        if self._path is None:
            return
        names = ", ".join(msgspec.json.encode(name).decode() for name in sorted(disabled))
        text = f"# Plugins that are switched off.\ndisabled = [{names}]\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=FILE)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                Path(name).replace(self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise PluginError(
                f"cannot be written: {error.strerror}", where=str(self._path)
            ) from error
