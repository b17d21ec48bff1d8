"""Fitters on known truths and on logs of real robots: figure, goal, published figure."""

from importlib import import_module

from twinstudio.bench.row import Row

AREAS = ("rigid", "thermal", "backlash", "drift", "demo", "friction", "arm")
"""Modules here with a function ``rows``."""


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - the logs have their own length
    """Rows of every area; those that need real logs are left out where there are none."""
    rows: list[Row] = []
    for name in AREAS:
        rows += import_module(f"{__name__}.{name}").rows()
    return rows
