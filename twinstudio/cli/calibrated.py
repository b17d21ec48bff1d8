"""``demo --calibrate``: what a calibration does to the gap, without a window."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinstudio.session.calibrated import Demo


def calibrated(
    scene: str,
    *,
    seconds: float,
    out: Path | None,
    fits: Sequence[str],
    seed: int,
    as_json: bool,
) -> None:
    """Calibrate a copy of `scene` on its emulated cell, and print gap before and after.

    out: folder for all that is made, by default a new one among the user's reports.
    """
    from twinstudio.cli.runs import progress_line
    from twinstudio.model.scene import load_scene
    from twinstudio.physics.quiet import keep_output_clean
    from twinstudio.plugin.catalog import open_catalog
    from twinstudio.session.calibrated import Calibration
    from twinstudio.session.places import new_file, places, plugin_places

    keep_output_clean()
    folder = out or new_file(places()["reports"], "calibration", "")
    folder.mkdir(parents=True, exist_ok=True)
    with progress_line(shown=not as_json) as watch:
        demo = Calibration(
            load_scene(scene),
            folder,
            open_catalog(plugin_places()),
            seed=seed,
            seconds=seconds,
            tell=lambda text: print(text, file=sys.stderr),
            watch=watch,
        ).run(fits)
    if as_json:
        _tell_json(demo)
    else:
        _tell(demo)


def _tell(demo: "Demo") -> None:
    from twinstudio.cli import show

    for step in demo.steps:
        print(f"{step.plugin}: {'promoted' if step.promoted else 'NOT promoted'}; {step.words}")
    print("\nBefore, on a motion that no fit has seen:")
    show.gap_table(demo.before)
    print("\nAfter:")
    show.gap_table(demo.after)
    print(f"scene:  {demo.scene}; twinstudio scene patches {demo.scene}")
    print(f"report: {demo.report}")


def _tell_json(demo: "Demo") -> None:
    from twinstudio.cli import show
    from twinstudio.gap.table import as_json

    show.json(
        {
            "before": as_json(demo.before),
            "after": as_json(demo.after),
            "steps": demo.steps,
            "scene": str(demo.scene),
            "training": str(demo.training),
            "unseen": str(demo.unseen),
            "report": str(demo.report),
        }
    )
