"""Files that are there whole or not at all."""

import os
from pathlib import Path

RESERVE = "reserve"
_RESERVED_BYTES = 65_536


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the file `path` by `data`; a failure leaves what was there before."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def reserve(folder: Path) -> None:
    """Take some room in `folder`, so that a failure can be recorded on a full disk."""
    (folder / RESERVE).write_bytes(os.urandom(_RESERVED_BYTES))


def release(folder: Path) -> None:
    """Give that room back."""
    (folder / RESERVE).unlink(missing_ok=True)
