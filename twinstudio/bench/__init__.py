"""The measurements behind every number we state; ``twinstudio bench`` runs them.

Each module measures one thing and returns rows; figures are taken in one run,
as ratios where the machine's mood matters.
"""

from collections.abc import Sequence
from importlib import import_module

from twinstudio.bench.row import Row
from twinstudio.model.errors import TwinstudioError

MEASUREMENTS = (
    "alignment",
    "real_logs",
    "twin_rate",
    "drive",
    "twin_drive",
    "twin_real_time",
    "streaming",
    "memory",
    "catalog",
    "jobs",
    "calibration",
    "startup",
    "window",
)


class BenchError(TwinstudioError):
    """There is no such measurement."""


def run(names: Sequence[str], *, seconds: float) -> list[Row]:
    """Rows of the measurements `names`, of all without any; `seconds` for streaming ones.

    Raises BenchError for an unknown name.
    """
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        raise BenchError(
            f"no measurement '{unknown[0]}'", hint=f"there are {', '.join(MEASUREMENTS)}"
        )
    rows: list[Row] = []
    for name in names or MEASUREMENTS:
        rows += import_module(f"twinstudio.bench.{name}").measure(seconds)
    return rows
