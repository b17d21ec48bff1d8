"""Where a number comes from: versions, hashes, machine."""

import errno
import hashlib
import os
import platform
import sys
from collections.abc import Iterable
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


def sha256(file: Path) -> str:
    """SHA-256 of a file's content, as ``sha256sum`` prints it.

    Raises OSError, also for a pipe or a device, which might never end.
    """
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "Is no regular file", str(file))
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file (see `sha256`), or of a folder with all files in it (see `tree_digest`)."""
    if not path.is_dir():
        return sha256(path)
    return tree_digest((p for p in path.rglob("*") if p.is_file()), path)


def tree_digest(files: Iterable[Path], folder: Path) -> str:
    r"""SHA-256 of the listing that ``sha256sum`` prints of `files`, run in `folder`.

    A line a file, ``HASH  NAME``, in the order of the bytes of the names, so that
    ``find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum |
    sha256sum`` gives the same for a whole folder.
    """
    named = sorted((os.fsencode(file.relative_to(folder).as_posix()), file) for file in files)
    lines = (sha256(file).encode() + b"  " + name + b"\n" for name, file in named)
    return hashlib.sha256(b"".join(lines)).hexdigest()
