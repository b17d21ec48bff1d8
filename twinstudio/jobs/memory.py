"""How much memory a job's processes use.

The limit is on what is used, not on addresses (RLIMIT_AS): numpy's BLAS, compilers
and engines reserve far more addresses than they ever use, each process of a job has
a limit of its own there, and where it is reached compiled code aborts without a word.
"""

import contextlib
import os

import psutil

CHECK_SECONDS = 0.1
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def used(group: int) -> int:
    """Bytes that the processes of process group `group` use together.

    Pages that several share count once in all (proportional set size).
    """
    total = 0
    for process in _members(group):
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            total += process.memory_full_info().pss
    return total


def exceeds(group: int, limit: int) -> int:
    """What `used` gives if that is more than `limit`, else 0; cheap while far from it."""
    resident = 0
    for process in _members(group):
        with contextlib.suppress(psutil.Error):
            resident += process.memory_info().rss
    if resident <= limit:
        return 0  # what is shared is only counted more often here
    exact = used(group)
    return exact if exact > limit else 0


def in_words(size: int) -> str:
    """`size` bytes as people say it, with decimal prefixes."""
    return f"{size / 1e9:.3g} GB" if size >= 10**9 else f"{size / 1e6:.3g} MB"


def parsed(text: str) -> int:
    """Bytes from text such as ``500M`` or ``2 GB``; raises ValueError."""
    word = text.strip().lower().removesuffix("b").strip()
    number, unit = (word[:-1], word[-1:]) if word[-1:] in _UNITS else (word, "")
    size = float(number) * _UNITS[unit]
    if not 0.0 <= size < 2.0**63:
        raise ValueError(f"{text!r} is no size")
    return int(size)


def _members(group: int) -> list[psutil.Process]:
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getpgid(pid) == group:
                found.append(psutil.Process(pid))
    return found
