"""Where a user's files go."""

import time
from pathlib import Path

import platformdirs

from twinstudio.model.errors import PluginError, RecordingError
from twinstudio.plugin.catalog import Places

APP = "twinstudio"


def places() -> dict[str, Path]:
    """Folders by purpose; they are made when first used."""
    data = platformdirs.user_data_path(APP, appauthor=False)
    return {
        "recordings": data / "recordings",
        "reports": data / "reports",
        "runs": data / "runs",
        "plugins": data / "plugins",
        "settings": platformdirs.user_config_path(APP, appauthor=False),
        "logs": platformdirs.user_log_path(APP, appauthor=False),
    }


def plugin_places(folder: Path | None = None, *, safe: bool = False) -> Places:
    """Where the plugins of this user are: installed, in the data folder, and in `folder`.

    Raises PluginError when `folder` is given but not there.
    """
    if folder is not None and not folder.is_dir():
        raise PluginError("there is no such folder", where=str(folder), hint="see --plugins-dir")
    known = places()
    folders = (known["plugins"],) if folder is None else (known["plugins"], folder.resolve())
    return Places(folders=tuple(map(str, folders)), settings=str(known["settings"]), safe=safe)


def new_file(folder: Path, stem: str, suffix: str) -> Path:
    """A path in `folder` that does not exist yet, named after `stem` and the time.

    Raises RecordingError when the folder is not there and cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(
            f"the folder cannot be made: {error.strerror or error}",
            where=str(folder),
            hint="name a folder that you may write to",
        ) from error
    base = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, k = folder / f"{base}{suffix}", 2
    while path.exists():
        path, k = folder / f"{base}-{k}{suffix}", k + 1
    return path
