"""Where a number comes from: versions, hashes, machine."""

import hashlib
import platform
import sys
from importlib import metadata
from pathlib import Path

import msgspec

import twinstudio

TRACKED = (
    "numpy", "scipy", "pybullet", "mujoco", "msgspec", "pyzmq", "mcap",
    "PySide6-Essentials", "pyqtgraph", "PyOpenGL", "pluggy", "trimesh",
)  # fmt: skip


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What produced a recording, a report or a run."""

    twinstudio: str
    python: str
    platform: str
    packages: dict[str, str]
    command: str
    seed: int | None = None
    inputs: dict[str, str] = {}


def provenance(*, seed: int | None = None, inputs: dict[str, str] | None = None) -> Provenance:
    """The provenance of whatever this process makes; `inputs` are name -> digest."""
    return Provenance(
        twinstudio=twinstudio.__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        packages=versions(),
        command=" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        seed=seed,
        inputs=inputs or {},
    )


def versions() -> dict[str, str]:
    """Installed versions of the packages that influence results."""
    found = {}
    for name in TRACKED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def digest(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their relative names."""
    total = hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if path.is_dir():
            total.update(str(file.relative_to(path)).encode())
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()
