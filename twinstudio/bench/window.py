"""How smoothly the window runs beside twin and cell at 1 kHz."""

import json
import subprocess
import sys
from typing import Any

from twinstudio.bench.display import display
from twinstudio.bench.row import Row

FPS, VIEW_FPS, CURVES = 30, 15, 24


def measure(seconds: float) -> list[Row]:
    """Frames of plots and 3D view, and how late the event loop is, over `seconds`."""
    with display() as environment:
        if environment is None:
            return [Row("window.fps", float("nan"), "1/s (no display)", f">= {FPS}", passed=False)]
        told = _trial(seconds, environment)
    stats = told["stats"]
    p99, worst = stats["delay_p99"] * 1e3, stats["delay_max"] * 1e3
    fps, view, curves = stats["fps"], told["view_fps"], told["curves"]
    return [
        Row("window.curves", curves, "curves shown", f">= {CURVES}", curves >= CURVES),
        Row("window.fps", fps, "plots, 1/s", f">= {FPS}", fps >= FPS),
        Row("window.view_fps", view, "3D view, 1/s", f">= {VIEW_FPS}", view >= VIEW_FPS),
        Row("window.delay_p99", p99, "ms, event loop", "< 20", p99 < 20.0),
        Row("window.delay_max", worst, "ms, event loop", "<= 100", worst <= 100.0),
    ]


def _trial(seconds: float, environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "twinstudio.bench.window_trial", f"{seconds:g}"],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=seconds + 90,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
