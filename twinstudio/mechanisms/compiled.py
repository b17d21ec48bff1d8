"""Compilation of the laws: fast, kept on disk, and never stale.

numba keeps compiled code beside the source, or in the user's cache folder where an
installation is read-only. By itself it compiles a function anew only if the
function's own file has changed, not if a law in another file has; here all files of
the package count.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])
HERE = Path(__file__).parent


@cache
def package_stamp() -> bytes:
    """Hash over every source file of this package; b"" where none can be read."""
    digest = hashlib.sha256()
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


class _PackageCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, with the whole package as its source."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), package_stamp()),
        )


def compiled(function: F) -> F:
    """`function` compiled without the interpreter, its code kept on disk where that is possible.

    For laws of mechanisms and for loops that call them. Division by zero gives infinity,
    as in numpy.
    """
    dispatcher = njit(error_model="numpy")(function)
    try:
        dispatcher._cache = _PackageCache(function)  # noqa: SLF001 - numba has no public place
    except RuntimeError:
        # No folder can be written: compiled anew in every process.
        return dispatcher  # type: ignore[no-any-return]
    return dispatcher  # type: ignore[no-any-return]
