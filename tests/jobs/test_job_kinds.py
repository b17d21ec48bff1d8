"""Jobs that go well: what each kind of plugin is given, and what is kept of it."""

from pathlib import Path

import numpy as np
import pytest
from record_helpers import SMALL, announced, block

from twinstudio.jobs.spec import specify
from twinstudio.model.errors import JobError, ParamsError, PluginError, SceneError
from twinstudio.model.results import Patch, Scalar, Series

SCENE = "emps_axis"


def recording(path: Path, *names: str, count: int = 100) -> Path:
    writer = announced(path, *names, layout=SMALL)
    for k, name in enumerate(names):
        writer.write(name, block(SMALL, count, seed=k))
    writer.close()
    return path


def test_that_a_run_keeps_all_it_was_made_from(run, store):
    view = run("Dice", {"count": 5, "mass": "500 g"}, title="A throw", version="1.2")
    assert (view.state, view.error, view.progress) == ("done", "", 1.0)
    kept = store.load(view.id)
    assert kept.spec.params == {"count": 5, "mass": 0.5}
    assert (kept.spec.seed, kept.spec.version, kept.who, kept.owner) == (7, "1.2", "tester", None)
    assert kept.provenance is not None
    assert kept.provenance.packages["numpy"] == np.__version__
    assert len(kept.plugin_digest) == 64
    assert set(kept.durations) == {"queued", "preparing", "running", "analysing"}
    assert kept.created <= kept.started <= kept.ended
    assert "rolling" in store.log(view.id)
    assert "printed" in store.log(view.id)
    assert sorted(p.name for p in store.path(view.id).iterdir()) == [
        "log.txt", "results", "run.json",
    ]  # fmt: skip


def test_that_results_come_back_typed_and_exact(run, store):
    view = run("Dice")
    rng = np.random.default_rng(7)
    mean, mass, curve, table, image, patch = store.results(view.id)
    assert mean == Scalar(name="mean", value=rng.normal(size=10).mean(), unit="m", low=-9, high=9)
    assert mass.low == -np.inf
    assert isinstance(curve, Series)
    assert curve.y == tuple(rng.normal(size=2000).tolist())
    assert table.rows == ((1.5, "x"), (None, "y"))
    assert image.data.startswith(b"\x89PNG")
    assert patch.changes[0].value == 0.1


def test_that_many_small_results_do_not_swell_the_record(run, store):
    view = run("Many")
    assert (store.path(view.id) / "run.json").stat().st_size < 20_000
    assert [r.value for r in store.results(view.id)] == [k / 7 for k in range(2000)]


def test_that_inputs_are_given_by_name_and_the_scratch_folder_goes(run, store, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"12345")
    view = run("Reads", inputs={"log": tmp_path / "a.bin"})
    assert view.state == "done", view.error
    assert store.results(view.id)[0].value == 5.0
    assert not (store.path(view.id) / "scratch").exists()


def test_that_draws_do_not_depend_on_how_many_there_are(run, store):
    three = store.results(run("Draws", scene=SCENE, draws=3).id)
    five = store.results(run("Draws", scene=SCENE, draws=5).id)
    assert all(isinstance(patch, Patch) for patch in five)
    assert three == five[:3]
    assert len({patch.changes[0].value for patch in five}) == 5


def test_that_a_calibrator_solves_and_validates_on_data_kept_from_it(run, store, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    view = run("Fits", scene=SCENE, inputs={"log": log})
    assert view.state == "done", view.error
    assert [(r.name, r.value) for r in store.results(view.id)] == [
        ("samples", 75.0), ("held out", 25.0),
    ]  # fmt: skip
    notes = " | ".join(store.load(view.id).notes)
    assert "check: it is slow" in notes
    assert "the first 0.75 of each log" in notes


def test_that_a_log_named_held_out_is_for_validation_alone(run, store, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    other = recording(tmp_path / "b.mcap", "cell", count=40)
    view = run("Fits", scene=SCENE, inputs={"log": log, "held_out": other})
    assert [r.value for r in store.results(view.id)] == [100.0, 40.0]


def test_that_a_fatal_finding_ends_a_calibration_before_it_solves(run, store, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    view = run("Fits", {"fatal": True}, scene=SCENE, inputs={"log": log})
    assert view.state == "failed"
    assert "nothing moves; move the arm" in view.error
    assert "solving" not in store.log(view.id)


def test_that_what_was_solved_is_kept_when_validation_fails(run, store, tmp_path):
    log = recording(tmp_path / "a.mcap", "cell")
    view = run("Fits", {"breaks": True}, scene=SCENE, inputs={"log": log})
    assert view.state == "failed"
    assert "ValueError: no score" in view.error
    assert [r.name for r in store.results(view.id)] == ["samples"]
    assert "no score" in store.load(view.id).trace


def test_that_a_metric_measures_a_recorded_pair(run, store, tmp_path):
    log = recording(tmp_path / "a.mcap", "twin", "cell")
    view = run("Worst", inputs={"log": log})
    assert view.state == "done", view.error
    gap = block(SMALL, 100, seed=0).values - block(SMALL, 100, seed=1).values
    assert store.results(view.id)[0].value == pytest.approx(np.abs(gap).max())


def test_that_a_metric_without_a_twin_says_what_is_missing(run, spec, tmp_path):
    view = run("Worst", inputs={"log": recording(tmp_path / "a.mcap", "cell")})
    assert view.state == "failed"
    assert "holds no twin" in view.error
    with pytest.raises(
        JobError, match=r"test\.worst: the input 'log' is missing \(Log of the cell"
    ):
        spec("Worst")


def test_that_tasks_are_mapped_in_order_here_and_in_processes(run, store):
    view = run("Maps")
    assert view.state == "done", view.error
    assert store.results(view.id)[0].value == sum(k * k for k in range(20))


@pytest.mark.parametrize("seed", [None, True, -1, 1.5, 2**64])
def test_that_a_job_needs_a_seed(spec, seed):
    with pytest.raises(JobError, match="seed"):
        spec("Dice", seed=seed)


def test_that_a_seed_of_none_is_refused_in_plain_words(spec):
    with pytest.raises(JobError, match=r"^test\.dice: a job needs a seed; give a whole number"):
        spec("Dice", seed=None)


def test_that_bad_parameters_are_refused_before_anything_runs(spec):
    with pytest.raises(ParamsError, match=r"mass.*0 to 5 kg"):
        spec("Dice", {"mass": 9.0})
    with pytest.raises(ParamsError, match="count"):
        spec("Dice", {"count": "many"})
    with pytest.raises(ParamsError, match="'weight'"):
        spec("Dice", {"weight": 1.0})


@pytest.mark.parametrize(
    "value", [None, [1.0], {}, "heavy", "5 m", float("nan"), float("inf"), -1e-9, "9 kg"]
)
def test_that_a_parameter_of_the_wrong_type_or_range_is_named(spec, value):
    with pytest.raises(ParamsError, match="mass") as caught:
        spec("Dice", {"mass": value})
    assert "\n" not in str(caught.value)


def test_that_a_kind_that_does_not_run_as_a_job_says_so(spec):
    with pytest.raises(
        JobError, match=r"kind mechanism does not run as a job; .*plugins validate'"
    ):
        spec("Slips")


def test_that_what_is_missing_is_refused(spec, tmp_path):
    with pytest.raises(JobError, match="input 'log' is missing"):
        spec("Reads", inputs={"log": tmp_path / "none"})
    with pytest.raises(JobError, match="needs a scene"):
        spec("Draws")
    with pytest.raises(SceneError, match="no scene"):
        spec("Draws", scene="nowhere")
    with pytest.raises(JobError, match="draws is 0"):
        spec("Draws", scene=SCENE, draws=0)
    with pytest.raises(JobError, match="2 draws have no use: a command draws nothing"):
        spec("Dice", draws=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('no luck')", "cannot be imported: RuntimeError: no luck"),
        ("def (", "SyntaxError"),
        ("import sys; sys.exit(1)", "SystemExit"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("x = 1", "holds 0 plugin classes"),
    ],
)
def test_that_a_plugin_that_cannot_be_imported_is_refused(tmp_path, text, words):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(PluginError, match=words):
        specify(str(tmp_path / "bad.py"), {}, seed=1)


@pytest.mark.parametrize("source", ["nonsense", "no.such.module:Thing", "twinstudio.model:Thing"])
def test_that_a_source_that_names_no_plugin_is_refused(source):
    with pytest.raises(PluginError):
        specify(source, {}, seed=1)


def test_that_patches_of_the_scene_count_for_the_kinds_that_use_them(spec, tmp_path):
    from shutil import copytree

    from twinstudio.model.patches import promote
    from twinstudio.model.results import Change
    from twinstudio.model.scene import load_scene, scenes_folder

    scene = tmp_path / "scene"
    copytree(scenes_folder() / SCENE, scene)
    log = recording(tmp_path / "a.mcap", "twin", "cell")

    def digests() -> tuple[str, str]:
        metric = spec("Worst", scene=scene, inputs={"log": log})
        return metric.scene_digest, spec("Draws", scene=scene).scene_digest

    measured, drawn = digests()
    change = Change(key="twin.position_gain", value=0.25)
    promote(load_scene(scene), Patch(name="p", changes=(change,), reason="r"), run="r1")
    now = digests()
    assert now[0] != measured
    assert now[1] == drawn
