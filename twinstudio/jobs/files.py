"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RESERVE = "reserve"
_RESERVED_BYTES = 65_536


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the file `path` by `data`; a failure leaves what was there before.

    durable: wait until it would outlive a power cut.
    """
    with replacing(path) as part, part.open("wb") as stream:
        stream.write(data)
        if durable:
            stream.flush()
            os.fsync(stream.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to; it takes that name unless something is raised."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    except BaseException:
        with suppress(OSError):  # what was raised matters more
            part.unlink()
        raise


def reserve(folder: Path) -> None:
    """Take some room in `folder`, so that a failure can be recorded on a full disk."""
    (folder / RESERVE).write_bytes(os.urandom(_RESERVED_BYTES))


def release(folder: Path) -> None:
    """Give that room back."""
    (folder / RESERVE).unlink(missing_ok=True)
