"""Where a user's files go."""

import time
from pathlib import Path

import platformdirs

APP = "twinstudio"


def places() -> dict[str, Path]:
    """Folders by purpose; they are made when first used."""
    data = platformdirs.user_data_path(APP, appauthor=False)
    return {
        "recordings": data / "recordings",
        "reports": data / "reports",
        "settings": platformdirs.user_config_path(APP, appauthor=False),
        "logs": platformdirs.user_log_path(APP, appauthor=False),
    }


def new_file(folder: Path, stem: str, suffix: str) -> Path:
    """A path in `folder` that does not exist yet, named after `stem` and the time."""
    folder.mkdir(parents=True, exist_ok=True)
    base = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, k = folder / f"{base}{suffix}", 2
    while path.exists():
        path, k = folder / f"{base}-{k}{suffix}", k + 1
    return path
