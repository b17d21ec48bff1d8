"""PyBullet prints to standard output, where our own figures go."""

import os
import sys


def keep_output_clean() -> None:
    """Let what the engine prints to descriptor 1 go to the error output instead.

    Call it once, before the engine is used. Standard output itself is for us:
    ``sys.stdout`` goes on to where descriptor 1 led before.
    """
    sys.stdout.flush()
    sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
