"""What authors test with: finds what is wrong, and is right itself."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from twinstudio.model.errors import JobError
from twinstudio.plugin import api
from twinstudio.plugin.testing import FakeContext, check_plugin, make_block, make_pair, make_scene


class Params(api.Params, frozen=True):
    gain: Annotated[float, api.si("1", low=0.0, about="A factor")] = 1.0


class Needs(api.Params, frozen=True):
    mass: Annotated[float, api.si("kg", about="A mass")]


def metric_that(measure: Any, kind: type[api.Params] = Params) -> Any:
    class Reach(api.Metric[Params]):
        id = "acme.reach"
        params = kind

        def measure(self, pair: api.Pair, params: Params) -> api.Results:
            return measure(pair)

    return Reach


def one(value: float) -> list[api.Result]:
    return [api.Scalar(name="one", value=value, unit="1")]


COUNTER = iter(range(10**6))


@pytest.mark.parametrize(
    ("measure", "complaint"),
    [
        (lambda _: 3.0, "measure must return a list of results, got float"),
        (lambda _: [3.0], "measure result 0 is float, expected Scalar"),
        (lambda _: one(1.0) + one(2.0), "measure two results are named 'one'"),
        (lambda _: one(float("nan")), "raised QuantityError: result 'one' is nan"),
        (lambda _: one(next(COUNTER)), "measure gave two answers for one pair"),
        (lambda pair: one(float(pair.gap[0, 0])), "IndexError on a pair without a sample"),
        (lambda pair: pair.cell.fill(0.0), "raised ValueError: assignment destination is read-on"),
    ],
)
def test_that_a_faulty_metric_is_found(measure: Any, complaint: str) -> None:
    findings = check_plugin(metric_that(measure))
    assert any(complaint in finding.text for finding in findings), findings
    assert all(finding.fatal for finding in findings)


def test_that_parameters_without_default_must_be_given() -> None:
    cls = metric_that(lambda _: [], Needs)
    (finding,) = check_plugin(cls)
    assert (finding.text, finding.fatal) == ("not run: no default for mass", False)
    assert check_plugin(cls, Needs(mass=1.0)) == []


class Draws(api.Randomizer[Params]):
    id = "acme.draws"
    params = Params
    change = api.Change(key="objects.cube.friction", value=0.4)

    def draw(self, scene: api.Scene, rng: np.random.Generator, params: Params) -> api.Patch:
        return api.Patch(name="p", changes=(self.change,), reason="r")


class OfItsOwn(Draws):
    def draw(self, scene: api.Scene, rng: np.random.Generator, params: Params) -> api.Patch:
        drawn = float(np.random.default_rng().uniform())
        change = api.Change(key="objects.cube.friction", value=drawn)
        return api.Patch(name="p", changes=(change,), reason="r")


class Unknown(Draws):
    change = api.Change(key="objects.ball.friction", value=0.4)


class Negative(Draws):
    change = api.Change(key="objects.cube.mass", value=-1.0)


@pytest.mark.parametrize(
    ("cls", "complaint"),
    [
        (OfItsOwn, "two patches for one seed"),
        (Unknown, "does not fit the scene"),
        (Negative, "does not fit the scene"),
    ],
)
def test_that_a_faulty_randomizer_is_found(cls: type[Draws], complaint: str) -> None:
    assert complaint in check_plugin(cls)[0].text
    assert check_plugin(Draws) == []


class Thickens(api.Mechanism[Params]):
    id = "acme.thickens"
    params = Params
    answer: Any = None

    def start(self, joints: int, step: float, params: Params) -> Params:
        return params

    def effort(
        self, state: Params, position: api.Floats, velocity: api.Floats, effort: api.Floats
    ) -> api.Floats:
        return effort if self.answer is None else self.answer


class Scalars(Thickens):
    answer = 1.0


class Nans(Thickens):
    answer = np.array([np.nan, 0.0])


def test_that_a_faulty_mechanism_is_found() -> None:
    assert check_plugin(Thickens) == []
    assert "must return float64[joints], got float" in check_plugin(Scalars)[0].text
    assert "no finite numbers" in check_plugin(Nans)[0].text


class Suite(api.HilSuite[Params]):
    id = "acme.suite"
    params = Params

    def tests(self, params: Params) -> Path:
        return Path("/nowhere/at/all")


def test_that_a_suite_without_files_is_found() -> None:
    assert "must return a path that exists" in check_plugin(Suite)[0].text


def test_that_the_gap_of_a_pair_is_what_was_asked_for() -> None:
    pair = make_pair(joints=3, offsets=(0.0, 0.01, -0.02))
    gap = pair.gap[:, pair.layout.span("joint.position")]
    assert np.allclose(gap, [0.0, 0.01, -0.02])
    others = pair.gap[:, pair.layout.span("joint.velocity")]
    assert not others.any()


def test_that_a_late_twin_is_late() -> None:
    pair = make_pair(joints=1, late=0.02, rate=500.0)
    assert np.allclose(pair.twin[10:, 0], pair.cell[:-10, 0])


def test_that_velocity_is_the_slope_of_position() -> None:
    block = make_block(joints=2, rate=1000.0)
    slope = np.gradient(block.of("joint.position"), 1e-3, axis=0)
    assert np.allclose(slope[1:-1], block.of("joint.velocity")[1:-1], atol=1e-4)


def test_that_the_scene_is_complete() -> None:
    scene = make_scene()
    assert scene.path(scene.robot.model).is_file()
    assert [thing.name for thing in scene.objects] == ["cube"]


def test_that_a_context_remembers_and_cancels() -> None:
    with FakeContext(3, cancel_after=2) as context:
        context.progress(0.5, "half")
        context.checkpoint()
        context.log("a line")
        with pytest.raises(api.Cancelled):
            context.checkpoint()
        scratch = context.scratch
        (scratch / "file").write_text("x")
    assert not scratch.exists()
    assert context.said == [(0.5, "half")]
    assert context.lines == ["a line"]
    assert context.rng.random() == np.random.default_rng(3).random()


def test_that_a_context_is_a_job_context() -> None:
    context: api.JobContext = FakeContext()
    assert context.map(lambda x: x * x, range(4)) == [0, 1, 4, 9]
    with pytest.raises(JobError, match=r"progress is 2\.0; it goes from 0 to 1"):
        context.progress(2.0)


PROJECT_TEST = """
import sys

def test_that_nothing_is_imported_before_it_is_used():
    assert not [name for name in sys.modules if name.startswith("twinstudio.model")]
    assert "numpy" not in sys.modules

def test_that_fixtures_are_known(pair, job_context, no_installed_plugins):
    from twinstudio.plugin.catalog import Catalog
    from twinstudio.plugin.choices import Choices
    from twinstudio.plugin.manifest import Installed
    assert len(pair) == 1000
    assert job_context.scratch.is_dir()
    assert Catalog([Installed()], Choices()).entries() == ()
"""


def test_that_pytest_of_a_plugin_knows_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PROJECT_TEST)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "twinstudio.plugin.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
