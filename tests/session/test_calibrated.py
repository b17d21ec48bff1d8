"""The demo of a calibration, on the axis: quick, and its gain can be known."""

from pathlib import Path

import numpy as np
import pytest
from plugin_helpers import single_file

from twinstudio.flow.record import read_recording
from twinstudio.model.errors import JobError
from twinstudio.model.patches import patches_of
from twinstudio.model.scene import load_scene
from twinstudio.plugin.catalog import Catalog, Places, open_catalog
from twinstudio.session.calibrated import Calibration

FITS = Path(__file__).parents[1] / "jobs" / "fits_at_work.py"
HOOK = """

from twinstudio.plugin import api


@api.implements
def calibrators():
    return [Tunes]
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    file = single_file(tmp_path / "plugins", "tunes", "test.tunes", FITS.read_text() + HOOK)
    file.write_text(file.read_text().replace('kind = "metric"', 'kind = "calibrator"'))
    return open_catalog(Places(folders=(str(file.parent),), installed=False))


def test_that_the_gap_is_told_before_and_after_on_a_motion_that_was_not_fitted(
    tmp_path: Path, catalog: Catalog
) -> None:
    scene = load_scene("emps_axis")
    out = tmp_path / "out"
    out.mkdir()
    told: list[str] = []
    demo = Calibration(scene, out, catalog, seconds=2.0, tell=told.append).run(["tunes"])
    (step,) = demo.steps
    assert step.promoted == ("the twin is worse" not in step.words)
    assert len(patches_of(load_scene(demo.scene))) == step.promoted
    assert patches_of(scene) == ()
    assert demo.before.samples == demo.after.samples
    assert demo.before.overall.position is not None
    assert (demo.before == demo.after) != step.promoted
    assert demo.report.is_file()
    assert told[0].startswith("recording training.mcap")
    motions = [
        read_recording(path).sources["cell"].block.of("command.position")
        for path in (demo.training, demo.unseen)
    ]
    assert not np.allclose(motions[0], motions[1])


def test_that_a_scene_that_is_there_is_not_written_over(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "emps_axis").mkdir()
    (tmp_path / "emps_axis" / "scene.toml").write_text("mine")
    with pytest.raises(JobError, match="holds a scene already"):
        Calibration(load_scene("emps_axis"), tmp_path, catalog).run(["tunes"])


def test_that_without_calibrators_there_is_no_demo(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(JobError, match=r"inverse_dynamics, .* is installed"):
        Calibration(load_scene("emps_axis"), tmp_path, catalog).run()
