"""Fitters on known truths and on logs of real robots: figure, goal, published figure."""

import json
import subprocess
import sys
from importlib import import_module

from twinstudio.bench.row import Row
from twinstudio.jobs.child import environment

AREAS = ("rigid", "thermal", "backlash", "drift", "demo", "friction", "arm")
"""Modules here with a function ``rows``."""


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - the logs have their own length
    """Rows of every area, measured in processes of one thread as jobs are.

    Those that need real logs are left out where there are none.
    """
    rows: list[Row] = []
    for name in AREAS:
        command = [sys.executable, "-m", __name__, name]
        told = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=True)
        rows += [Row(**row) for row in json.loads(told.stdout.splitlines()[-1])]
    return rows


def rows_of(area: str) -> list[Row]:
    """Rows of one area, measured here."""
    rows: list[Row] = import_module(f"{__name__}.{area}").rows()
    return rows
