"""MATLAB files of any version as one flat table of named numeric arrays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io
from numpy.typing import NDArray

from twinstudio.model.errors import LogError

Array = NDArray[np.float64]


def read(path: Path) -> dict[str, Array]:
    """All real numeric variables, ``struct.field`` for those in structs, as float64.

    MATLAB's dimensions order is kept for every version. Raises LogError for a
    file that is missing, damaged or no MATLAB file.
    """
    version = _version(path)
    try:
        return dict(_from_hdf5(path) if version == "7.3" else _from_scipy(path))
    except Exception as error:
        # The readers raise anything on damage, from OSError to IndexError.
        raise LogError(
            f"is damaged: {type(error).__name__}: {error}",
            where=str(path),
            hint="is the file complete?",
        ) from error


def _version(path: Path) -> str:
    """``7.3`` or ``5`` (which serves 5 to 7.2), from the text at the start of the file."""
    try:
        with path.open("rb") as stream:
            head = stream.read(128)
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not head:
        raise LogError("is empty", where=str(path), hint="is the log complete?")
    if not head.startswith(b"MATLAB"):
        raise LogError("is no MATLAB file", where=str(path), hint="check the format")
    return "7.3" if head.startswith(b"MATLAB 7.3") else "5"


def _from_scipy(path: Path) -> Iterator[tuple[str, Array]]:
    content = scipy.io.loadmat(path, squeeze_me=False, struct_as_record=False)
    for name, value in content.items():
        if not name.startswith("__"):
            yield from _flat(name, value)


def _flat(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        value = value.flat[0]
    if (fields := getattr(value, "_fieldnames", None)) is not None:
        for field in fields:
            yield from _flat(f"{name}.{field}", getattr(value, field))
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        yield name, value.astype(np.float64)


def _from_hdf5(path: Path) -> list[tuple[str, Array]]:
    found: list[tuple[str, Array]] = []

    def visit(name: str, item: Any) -> None:
        numeric = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub"
        if numeric and not name.startswith("#refs#"):
            # HDF5 stores MATLAB's column-major arrays with dimensions reversed.
            found.append((name.replace("/", "."), np.asarray(item[()], dtype=np.float64).T))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def shape_text(variables: dict[str, Array]) -> str:
    """``name [r x c]`` of every variable, for messages."""
    return ", ".join(
        f"{name} [{' x '.join(str(n) for n in array.shape)}]" for name, array in variables.items()
    )
