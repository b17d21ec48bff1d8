"""The demo: gap before and after a calibration, on a motion that no fit has seen."""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from twinstudio.bench.row import Row
from twinstudio.model.gaps import Figures
from twinstudio.model.scene import load_scene
from twinstudio.plugin.catalog import open_catalog
from twinstudio.session.calibrated import Calibration
from twinstudio.session.places import plugin_places

SCENE = "panda_cell"
SECONDS = 20.0


def rows() -> list[Row]:
    """Gap after over gap before of each signal, and how long all of it took."""
    began = perf_counter()
    with TemporaryDirectory() as folder:
        demo = Calibration(
            load_scene(SCENE), Path(folder), open_catalog(plugin_places()), seconds=SECONDS
        ).run()
    took = perf_counter() - began
    found = []
    for kind in ("position", "velocity", "effort"):
        before: Figures | None = getattr(demo.before.overall, kind)
        after: Figures | None = getattr(demo.after.overall, kind)
        if before is not None and after is not None:
            ratio = after.rmse / before.rmse
            name = f"demo: {kind} gap after / before calibration, motion not seen"
            found.append(Row(name, ratio, "1", "< 1", ratio < 1.0))
    kept = sum(step.promoted for step in demo.steps)
    total = len(demo.steps)
    found.append(Row("demo: patches promoted", kept, f"of {total}", "all", kept == total))
    found.append(Row("demo: time", took, "s", "-", passed=True))
    return found
