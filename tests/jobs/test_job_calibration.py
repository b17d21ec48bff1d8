"""A patch on trial: replayed through the twin before anybody may promote it."""

import json
from pathlib import Path

import numpy as np
import pytest
from fit_helpers import LAYOUT, TRUE_GAIN, axis_log, axis_scene, cell_of

from twinstudio.jobs import calibration, promoting
from twinstudio.jobs.fitreport import HTML, JSON
from twinstudio.jobs.replaying import Replayer, with_effort
from twinstudio.jobs.spec import specify
from twinstudio.jobs.trial import tried
from twinstudio.model.block import Block
from twinstudio.model.errors import JobError
from twinstudio.model.patches import load_patched, patches_of
from twinstudio.model.results import Change, Patch, Scalar, Table
from twinstudio.model.scene import load_scene
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.context import Cancelled

FITS = Path(__file__).parent / "fits_at_work.py"


@pytest.fixture
def folder(tmp_path):
    return axis_scene(tmp_path / "axis")


@pytest.fixture
def log(folder, tmp_path):
    return axis_log(folder, tmp_path / "axis.mcap")


@pytest.fixture
def tune(runner, folder, log):
    """Run the calibrator that finds what it is told to."""

    def go(**params):
        spec = specify(f"{FITS}:Tunes", params, seed=1, scene=folder, inputs={"log": log})
        return runner.submit(spec).wait(60.0)

    return go


def trial_of(store, view):
    found = calibration.read(store, view.id)
    assert found is not None
    return found.trials[0]


def test_that_a_patch_near_the_truth_makes_the_twin_better(tune, store):
    view = tune(gain=TRUE_GAIN)
    assert (view.state, view.error) == ("done", "")
    trial = trial_of(store, view)
    assert (trial.outcome, trial.patch, trial.name) == ("better", 5, "gain")
    assert trial.ratio < 0.1
    assert trial.words.startswith("the twin is better on held-out data: position gap ")
    results = store.results(view.id)
    ratio = next(one for one in results if one.name == "replay of gain: gap after / before")
    assert isinstance(ratio, Scalar)
    assert ratio.value == trial.ratio
    table = next(one for one in results if one.name.endswith("joint.position: gap by joint"))
    assert isinstance(table, Table)
    ((joint, before, after, share),) = table.rows
    assert joint == "axis"
    assert table.units == ("", "m", "m", "1")
    assert share == pytest.approx(after / before)


def test_that_the_replay_uses_the_held_out_part_alone(tune, store):
    view = tune(gain=TRUE_GAIN)
    curve = next(r for r in store.results(view.id) if r.name.endswith("axis: without"))
    # A quarter of 2 s is held out.
    assert 0.45 < curve.x[-1] - curve.x[0] < 0.5
    assert any("the twin ran commanded" in note for note in store.load(view.id).notes)


def test_that_a_patch_that_makes_the_twin_worse_is_kept_and_refused(tune, store, folder):
    view = tune(gain=0.002)
    assert view.state == "done"
    trial = trial_of(store, view)
    assert (trial.outcome, trial.refused) == ("worse", True)
    scene = load_scene(folder)
    with pytest.raises(JobError, match=r"is not better: the twin is worse .*position gap .* say"):
        promoting.promote(store, view.id, scene, say="say so")
    assert patches_of(scene) == ()
    promoting.promote(store, view.id, scene, force=True)
    assert load_patched(folder).twin.position_gain == 0.002


def test_that_a_patch_that_changes_nothing_is_the_same_and_may_be_promoted(tune, store, folder):
    view = tune(gain=load_scene(folder).twin.position_gain)
    trial = trial_of(store, view)
    assert (trial.outcome, trial.ratio) == ("same", 1.0)
    promoting.promote(store, view.id, load_scene(folder))
    assert len(patches_of(load_scene(folder))) == 1


def test_that_a_patch_that_does_not_fit_the_scene_is_told_and_refused(tune, store, folder):
    view = tune(key="twin.colour")
    assert view.state == "done"
    trial = trial_of(store, view)
    assert trial.outcome == "not simulated"
    assert "the scene has no 'twin.colour'" in trial.words
    with pytest.raises(JobError, match="cannot be simulated"):
        promoting.promote(store, view.id, load_scene(folder))


def test_that_a_fit_starts_from_the_patches_in_force_and_is_tried_on_top_of_them(
    tune, store, folder
):
    first = tune(gain=TRUE_GAIN)
    promoting.promote(store, first.id, load_scene(folder))
    second = tune(gain=TRUE_GAIN)
    assert trial_of(store, second).outcome == "same"
    found = calibration.read(store, second.id)
    assert found is not None
    assert found.under == (first.id,)
    began = next(one for one in store.results(second.id) if one.name == "gain before")
    assert began.value == TRUE_GAIN
    assert store.load(first.id).spec.scene_digest != store.load(second.id).spec.scene_digest


def test_that_findings_are_kept_also_where_they_end_the_job(tune, store):
    view = tune(fatal=True)
    assert view.state == "failed"
    found = calibration.read(store, view.id)
    assert found is not None
    assert [(f.text, f.hint, f.fatal) for f in found.findings] == [
        ("little motion", "move faster", False), ("nothing moves", "move", True),
    ]  # fmt: skip
    assert "nothing moves" in (store.path(view.id) / HTML).read_text("utf-8")


def test_that_the_report_tells_data_findings_parameters_scores_and_patch(tune, store):
    view = tune(gain=TRUE_GAIN)
    page = (store.path(view.id) / HTML).read_text("utf-8")
    for words in (
        "first 0.75 for solving, the rest for validation", "little motion", "move faster",
        "not identifiable", "0.0450 to 0.0550", "residual of axis", "scores",
        "the twin is better", "twin.position_gain", "gap by joint", "1 of 3", "<svg",
    ):  # fmt: skip
        assert words in page
    told = json.loads((store.path(view.id) / JSON).read_text("utf-8"))
    assert [one["type"] for one in told["solved"]] == [
        "scalar",
        "scalar",
        "scalar",
        "series",
        "patch",
    ]
    assert [one["name"] for one in told["scores"]] == ["scores"]
    assert told["verdicts"][0]["refused"] is False
    assert told["provenance"]["seed"] == 1


def test_that_a_run_goes_elsewhere_with_its_trial_and_report(tune, store, tmp_path):
    from twinstudio.jobs.store import Store

    view = tune(gain=0.002)
    other = Store(tmp_path / "other")
    run = other.import_(store.export(view.id, tmp_path / "run.zip"))
    assert calibration.read(other, run) == calibration.read(store, run)
    assert (other.path(run) / HTML).is_file()
    (other.path(run) / calibration.FILE).write_text("{}")
    with pytest.raises(JobError, match="not what the run wrote"):
        calibration.read(other, run)


def patch(key="twin.position_gain", value=0.05):
    return Patch(name="p", changes=(Change(key=key, value=value),), reason="r")


def nobody(fraction, text):
    pass


def try_on(folder, logs, *, progress=None, what=None, notes=None):
    return tried(
        what or patch(),
        1,
        scene=load_scene(folder),
        under=(),
        logs=logs,
        note=(notes if notes is not None else []).append,
        progress=progress or nobody,
    )


def test_that_a_replay_can_be_cancelled(folder):
    cell = cell_of(load_scene(folder), 3.0)
    told = []

    def stop(fraction, text):
        told.append((fraction, text))
        if fraction > 0.2:
            raise Cancelled

    with pytest.raises(Cancelled):
        try_on(folder, {"held_out": cell}, progress=stop)
    assert "replaying held_out through the twin, without the patch" in told[0][1]


def test_that_logs_without_the_joints_are_left_out_and_told(folder):
    layout = Layout(joint_signals(("other",), kinds=("joint.position",)))
    log = Block(layout, np.arange(5, dtype=np.int64), np.zeros((5, 1)))
    notes = []
    trial, figures = try_on(folder, {"held_out": log}, notes=notes)
    assert (trial.outcome, trial.refused, figures) == ("not compared", False, [])
    assert notes == ["held_out is not replayed: it has no position of axis"]


def test_that_several_logs_are_told_apart(folder):
    scene = load_scene(folder)
    logs = {"a": cell_of(scene, 0.5), "b": cell_of(scene, 0.5, phase=1.0)}
    trial, figures = try_on(folder, logs)
    assert trial.outcome == "better"
    names = [one.name for one in figures if isinstance(one, Table)]
    assert len(names) == 6
    assert sum(" of a: " in name for name in names) == 3


def test_that_a_long_log_is_replayed_in_part_and_a_note_says_so(folder):
    cell = cell_of(load_scene(folder), 0.2)
    slow = Block(cell.layout, cell.stamps * 1000, cell.values)
    notes = []
    with pytest.raises(Cancelled):
        Replayer({"a": slow}, notes.append, stop_at_once).compare(*2 * (load_scene(folder),))
    assert notes == ["a: the first 120 s are replayed"]


def stop_at_once(fraction, text):
    raise Cancelled


def test_that_without_commands_efforts_along_the_motion_are_compared(folder):
    cell = cell_of(load_scene(folder), 1.0).select(
        ("joint.position", "joint.velocity", "joint.effort")
    )
    heavier = patch("payload.mass", 50.0)
    trial, figures = try_on(folder, {"held_out": cell}, what=heavier)
    assert [one.name for one in figures if isinstance(one, Table)] == [
        "replay of p, joint.effort: gap by joint"
    ]
    assert trial.outcome == "worse"


def test_that_a_measured_current_is_compared_through_the_drive_gain(folder):
    scene = load_scene(folder)
    cell = cell_of(scene, 1.0)
    (current,) = joint_signals(("axis",), ("axis",), kinds=("joint.current",))
    motion = cell.select(("joint.position", "joint.velocity"))
    measured = Block(
        Layout((*motion.layout.signals, current)),
        cell.stamps,
        np.hstack([motion.values, cell.of("joint.effort") / 35.0]),
    )
    gained = Patch(
        name="p", changes=(Change(key="drive.motor.drive_gain", value=(35.0,)),), reason="r"
    )
    trial, figures = try_on(folder, {"held_out": measured}, what=gained)
    (table,) = [one for one in figures if isinstance(one, Table)]
    assert table.name == "replay of p, joint.current: gap by joint"
    assert table.units[1] == "A"
    # The twin without the patch knows no gain, and is judged by that of the patch.
    assert trial.outcome == "same"


def test_that_the_controllers_own_model_stands_in_for_efforts():
    layout = Layout(joint_signals(("axis",), kinds=("joint.position", "model.effort")))
    block = Block(layout, np.arange(3, dtype=np.int64), np.ones((3, 2)))
    notes = []
    lent = with_effort(block, notes.append)
    assert lent.layout.names == ("joint.position", "joint.effort")
    assert "stands in" in notes[0]
    plain = Block(LAYOUT, np.arange(3, dtype=np.int64), np.ones((3, 2)))
    assert with_effort(plain, notes.append) is plain
