"""One trial of the window, in a process of its own; prints its figures as JSON.

``python -m twinstudio.bench.window_trial SECONDS``: the Panda and a finger make
eight joints, so 24 curves are shown; the cell is a synthetic source of 64 signals
at 1 kHz, the twin is the real one.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from twinstudio.bench.source import FINGER
from twinstudio.bench.streaming import synthetic
from twinstudio.gui.app import WindowReport, measure
from twinstudio.model.scene import FILE, find_scene, load_scene
from twinstudio.session.cast import CellChoice
from twinstudio.session.session import Session

CHANGES = (
    ('"panda_joint7",', f'"panda_joint7", "{FINGER}",'),
    ('"90 deg", "45 deg"]', '"90 deg", "45 deg", "20 mm"]'),
    ('panda_finger_joint1 = "20 mm", ', ""),
    ("12.0, 12.0, 12.0]", "12.0, 12.0, 12.0, 20.0]"),
    ('emulated = "cell.toml"', ""),
)


def trial(seconds: float) -> WindowReport:
    """The window's figures over `seconds`, after it has settled."""
    with tempfile.TemporaryDirectory() as folder, synthetic(1000, 10, "cell") as control:
        (Path(folder) / FILE).write_text(_eight_joints())
        session = Session(load_scene(folder), choice=CellChoice(endpoint=control))
        return measure(session, seconds, settle=8.0)


def _eight_joints() -> str:
    """The demo scene with a finger as an eighth joint and no cell of its own."""
    text = find_scene("panda_cell").read_text(encoding="utf-8")
    for old, new in CHANGES:
        if old not in text:
            raise ValueError(f"the demo scene has no {old!r} any more")
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    report = trial(float(sys.argv[1]))
    sys.stdout.write(json.dumps(asdict(report)) + "\n")
