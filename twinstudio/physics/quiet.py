"""PyBullet prints to standard output, where our own figures go."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def keep_output_clean() -> None:
    """Let what the engine prints to descriptor 1 go to the error output instead.

    Call it once, before the engine is used. Standard output itself is for us:
    ``sys.stdout`` goes on to where descriptor 1 led before.
    """
    sys.stdout.flush()
    sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)


def end_line() -> None:
    """End the line the engine may have left open, so that ours stands alone."""
    ctypes.CDLL(None).fflush(None)
    os.write(1, b"\n")


@contextmanager
def without_words() -> Iterator[None]:
    """Nothing that is printed to descriptors 1 and 2 meanwhile gets anywhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = {number: os.dup(number) for number in (1, 2)}
    for number in kept:
        os.dup2(nowhere, number)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what the engine's own buffer holds would come later
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
