"""Plugins, jobs, runs and patches of a session, with a real job in a real process."""

import shutil
import time
from pathlib import Path

import pytest

from twinstudio.model.errors import JobError, ParamsError, PluginError
from twinstudio.model.patches import load_patched, patches_of
from twinstudio.model.scene import load_scene
from twinstudio.plugin.catalog import Places
from twinstudio.session.journal import Journal
from twinstudio.session.session import Session
from twinstudio.session.workshop import Workshop

PLUGIN = """
# /// twinstudio-plugin
# api = 1
# version = "1.0"
# [[plugins]]
# id = "here.gain"
# kind = "command"
# title = "Better gain"
# help = "Finds a position gain"
# ///
from typing import Annotated

from twinstudio.plugin import api


class Params(api.Params, frozen=True):
    gain: Annotated[float, api.si("1", low=0.0, high=5.0, about="What it finds")] = 0.3
    twice: Annotated[bool, api.about("Whether half of it is offered too")] = False


class Gain(api.Command[Params]):
    id = "here.gain"
    params = Params

    def run(self, context: api.JobContext, params: Params) -> api.Results:
        context.progress(0.5, "half way")
        change = api.Change(key="twin.position_gain", value=params.gain)
        draw = float(context.rng.normal())
        other = api.Change(key="twin.position_gain", value=0.5 * params.gain)
        twin = api.Patch(name="gain", changes=(other,), reason="half of it")
        return [
            api.Scalar(name="draw", value=draw, unit="1"),
            api.Patch(name="gain", changes=(change,), reason="it was asked for"),
            *([twin] if params.twice else []),
        ]


@api.implements
def commands() -> list[type[api.Command[Params]]]:
    return [Gain]
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "gain.py").write_text(PLUGIN)
    source = Path(load_scene("emps_axis").folder)
    shutil.copytree(source, tmp_path / "scene")
    scene = load_scene(tmp_path / "scene")
    workshop = Workshop(scene, Journal(), Places(folders=(str(folder),), installed=False))
    yield workshop
    workshop.close()


def finished(shop: Workshop, run: str, **values: object) -> str:
    deadline = time.monotonic() + 30.0
    while not next(job for job in shop.jobs() if job.id == run).over:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return next(job for job in shop.jobs() if job.id == run).state


def test_that_a_plugin_runs_as_a_job_and_leaves_a_run(shop: Workshop) -> None:
    assert [entry.state for entry in shop.plugins()] == ["unused"]
    run = shop.start("here.gain", {"gain": "0.4 1"}, seed=7)
    assert finished(shop, run) == "done"
    assert [head.id for head in shop.runs()] == [run]
    names = [result.name for result in shop.store.results(run)]
    assert names == ["draw", "gain"]


def test_that_the_same_seed_gives_the_same_figures(shop: Workshop) -> None:
    runs = [shop.start("here.gain", {}, seed=7) for _ in range(2)]
    for run in runs:
        assert finished(shop, run) == "done"
    first, second = (shop.store.results(run) for run in runs)
    assert first == second


def test_that_a_patch_is_promoted_and_taken_back(shop: Workshop) -> None:
    run = shop.start("here.gain", {"gain": 0.4}, seed=1)
    assert finished(shop, run) == "done"
    nominal = shop._scene.twin.position_gain
    shop.promote(run)
    assert load_patched(shop._scene.folder).twin.position_gain == 0.4
    (origin,) = shop.origins()
    assert (origin.nominal, origin.value, origin.run) == (nominal, 0.4, run)
    assert patches_of(shop._scene)[0].result == 2
    assert f"result 2 'gain' of {run} is applied" in [e.text for e in shop._journal.since(0)]
    shop.take_back()
    assert load_patched(shop._scene.folder).twin.position_gain == nominal


def test_that_patches_of_one_name_are_told_apart_by_number(shop: Workshop) -> None:
    run = shop.start("here.gain", {"gain": 0.4, "twice": True}, seed=1)
    assert finished(shop, run) == "done"
    with pytest.raises(JobError, match=r"2 patches .*: 2 gain, 3 gain; say which by its number"):
        shop.promote(run, "gain")
    with pytest.raises(JobError, match=r"has no patch 1; its patches: 2 gain, 3 gain"):
        shop.promote(run, result=1)
    shop.promote(run, result=3)
    assert load_patched(shop._scene.folder).twin.position_gain == 0.2
    assert patches_of(shop._scene)[0].result == 3


def test_that_a_run_without_a_patch_promotes_nothing(shop: Workshop) -> None:
    run = shop.start("here.gain", {}, seed=1)
    assert finished(shop, run) == "done"
    with pytest.raises(JobError, match="has no patch 'friction'; its patches: 2 gain"):
        shop.promote(run, "friction")


def test_that_wrong_parameters_are_refused_before_anything_is_queued(shop: Workshop) -> None:
    with pytest.raises(ParamsError, match=r"key .gain.: 9\.0 is out of range, allowed 0 to 5"):
        shop.start("here.gain", {"gain": 9.0}, seed=1)
    with pytest.raises(PluginError, match=r"here\.gains"):
        shop.start("here.gains", {}, seed=1)
    assert shop.jobs() == ()


def test_that_the_log_tells_how_a_job_ended(shop: Workshop) -> None:
    run = shop.start("here.gain", {}, seed=1)
    finished(shop, run)
    shop.poll()
    assert f"Better gain ({run}) is done" in [entry.text for entry in shop._journal.since(0)]


def test_that_a_failed_run_marks_its_plugin_before_anybody_polls(
    shop: Workshop, tmp_path: Path
) -> None:
    file = tmp_path / "plugins" / "gain.py"
    file.write_text(
        PLUGIN.replace(
            '        context.progress(0.5, "half way")\n',
            '        if params.gain == 0.0:\n            raise ValueError("no gain at all")\n',
        )
    )
    run = shop.start("here.gain", {"gain": 0.0}, seed=1)
    assert finished(shop, run) == "failed"
    (entry,) = shop.plugins()
    assert entry.state == "failed"
    assert "no gain at all" in entry.reason
    run = shop.start("here.gain", {"gain": 0.5}, seed=1)
    assert finished(shop, run) == "done"
    (entry,) = shop.plugins()
    assert (entry.state, entry.reason) == ("enabled", "")


def test_that_a_plugin_may_be_gone_when_its_run_has_failed(shop: Workshop, tmp_path: Path) -> None:
    file = tmp_path / "plugins" / "gain.py"
    file.write_text(
        PLUGIN.replace("draw = float", 'raise ValueError("no luck")\n        draw = float')
    )
    run = shop.start("here.gain", {"gain": 0.4}, seed=1)
    finished(shop, run)
    file.unlink()
    shop.catalog.refresh()
    shop.poll()
    assert f"({run}) is" in shop._journal.since(0)[-1].text


def test_that_installing_is_a_command_that_the_log_can_replay(tmp_path: Path) -> None:
    session = Session(load_scene("emps_axis"))
    try:
        with pytest.raises(PluginError, match="comes with Twinstudio"):
            session.run("plugin.uninstall", package="twinstudio-metrics", agreed=True)
        session.run("plugin.install", what=str(tmp_path / "none.whl"), agreed=True)
    finally:
        session.close()
    told = [entry.text for entry in session.entries(0)]
    assert "plugin.uninstall(package='twinstudio-metrics', agreed=True)" in told
    assert f"plugin.install(what={str(tmp_path / 'none.whl')!r}, agreed=True)" in told
    assert any("there is no such wheel or folder; nothing was changed" in text for text in told)
