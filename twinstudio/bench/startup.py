"""How soon the window is there."""

import subprocess
import sys

from twinstudio.bench.display import display
from twinstudio.bench.row import Row

IMPORTS = """
import time
start = time.perf_counter()
import twinstudio.gui.window
print(time.perf_counter() - start)
"""
REPEATS = 3


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - takes as long as it takes
    """Import time of the window's modules, and time to the first frame; best of three.

    The best, because the first run reads the disk and others share the machine.
    """
    with display() as environment:
        if environment is None:
            return [
                Row("start.first_frame", float("nan"), "s (no display)", "< 3", passed=False),
            ]
        imports = min(
            _seconds([sys.executable, "-c", IMPORTS], environment) for _ in range(REPEATS)
        )
        command = [sys.executable, "-m", "twinstudio.bench.first_frame"]
        frame = min(_seconds(command, environment) for _ in range(REPEATS))
    return [
        Row("start.imports", imports, "s", "< 1", imports < 1.0),
        Row("start.first_frame", frame, "s", "< 3", frame < 3.0),
    ]


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    """The number a child prints."""
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return float(done.stdout.split()[-1])
