"""A run once more: the same numbers, or what has changed."""

import json

import pytest

from twinstudio.jobs.reproduce import changed_since, reproduce
from twinstudio.jobs.spec import specify
from twinstudio.model.errors import JobError

PLUGIN = """
from pathlib import Path
from twinstudio.model.params import Params
from twinstudio.model.results import Scalar
from twinstudio.plugin.kinds import Command
from twinstudio.plugin.slots import InputSlot

class Sum(Command[Params]):
    params = Params
    inputs = (InputSlot("log", "What is read"),)
    def run(self, context, params):
        size = len(context.inputs["log"].read_bytes())
        return [Scalar(name="sum", value=context.rng.uniform() + size, unit="m")]
"""
WAIT = 60.0


@pytest.fixture
def plugin(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture
def original(runner, plugin, tmp_path):
    (tmp_path / "log.bin").write_bytes(b"12345")
    made = specify(str(plugin), {}, seed=4, inputs={"log": tmp_path / "log.bin"})
    view = runner.submit(made).wait(WAIT)
    assert view.state == "done", view.error
    return view.id


def test_that_an_unchanged_run_gives_the_same_numbers(runner, store, original):
    seen = []
    outcome = reproduce(original, runner, watch=seen.append)
    assert outcome.same
    assert (outcome.changed, outcome.results, outcome.error) == ((), (), "")
    assert store.load(outcome.run).of == original
    assert store.results(outcome.run) == store.results(original)


def test_that_every_result_type_is_reproduced(runner, run):
    assert reproduce(run("Dice").id, runner).same


def test_that_draws_are_reproduced(runner, run):
    assert reproduce(run("Draws", scene="emps_axis", draws=4).id, runner).same


def test_that_a_changed_input_is_named_and_so_are_its_results(runner, original, tmp_path):
    (tmp_path / "log.bin").write_bytes(b"123456")
    outcome = reproduce(original, runner)
    assert not outcome.same
    assert [d.name for d in outcome.changed] == ["input log"]
    assert [d.name for d in outcome.results] == ["sum"]
    assert outcome.results[0].other == outcome.results[0].one + 1.0


def test_that_a_changed_plugin_is_named_even_if_the_numbers_are_the_same(runner, plugin, original):
    plugin.write_text(PLUGIN + "\n# a remark\n")
    outcome = reproduce(original, runner)
    assert outcome.same
    assert [d.name for d in outcome.changed] == ["plugin code"]


def test_that_a_missing_input_is_told_before_anything_runs(runner, store, original, tmp_path):
    (tmp_path / "log.bin").unlink()
    changed = changed_since(store.load(original), store.path(original))
    assert [(d.name, d.other) for d in changed] == [("input log", "absent")]
    with pytest.raises(JobError, match="input 'log' is missing"):
        reproduce(original, runner)
    assert len(store.list()) == 1


def test_that_a_plugin_that_is_gone_is_named_with_its_version(runner, store, original, plugin):
    plugin.unlink()
    with pytest.raises(JobError, match=r"its plugin .* cannot be loaded: .*no such file; install"):
        reproduce(original, runner)
    assert len(store.list()) == 1


def test_that_other_versions_are_named(runner, store, original):
    from msgspec import structs

    run = store.load(original)
    packages = {**run.provenance.packages, "numpy": "1.0"}
    run = structs.replace(run, provenance=structs.replace(run.provenance, packages=packages))
    assert [d.name for d in changed_since(run, store.path(run.id))] == ["numpy"]


def test_that_a_failure_is_not_the_same(runner, run):
    outcome = reproduce(run("Raises").id, runner)
    assert (outcome.same, outcome.state) == (False, "failed")
    assert "the data is odd" in outcome.error


def test_that_an_unknown_run_cannot_be_reproduced(runner):
    with pytest.raises(JobError, match="there is no run"):
        reproduce("20260101-000000-000000", runner)


def test_that_a_run_of_the_first_format_is_listed_and_reproduced(runner, store, original):
    from msgspec import structs

    run = store.load(original)
    inputs = {"log": structs.replace(run.spec.inputs["log"], digest="0" * 64)}
    spec = structs.replace(run.spec, inputs=inputs)
    store.save(structs.replace(run, spec=spec, format=1, plugin_digest="1" * 64))
    file = store.path(original) / "run.json"
    plain = json.loads(file.read_text())
    for key in ("split", "duration", "memory"):  # it had no word for these
        del plain["spec"][key]
    file.write_text(json.dumps(plain))
    assert [head.state for head in store.list()] == ["done"]
    outcome = reproduce(original, runner)
    assert outcome.same
    # Hashes of two rules are not held against each other.
    assert [(d.name, d.one, d.other) for d in outcome.changed] == [
        ("hash rule", "format 1", "format 2"),
    ]  # fmt: skip
    names = [d.name for d in store.compare(original, outcome.run).environment]
    assert names == ["hash rule"]
    with pytest.raises(JobError, match="format 1, whose hashes cannot be checked"):
        store.export(original, store.folder / "a.zip", with_inputs=True)


def test_that_a_run_and_the_catalog_tell_one_hash_of_a_plugin(runner, store, tmp_path, monkeypatch):
    from plugin_helpers import distribute, single_file

    from twinstudio.jobs.loading import code_digest
    from twinstudio.plugin.catalog import Places, open_catalog

    file = single_file(tmp_path / "single", "one", "acme.one")
    catalog = open_catalog(Places(folders=(str(file.parent),), installed=False))
    assert catalog.digest("acme.one") == code_digest(f"{file}:AcmeReach")
    package = distribute(tmp_path / "site", "acme-reach")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = open_catalog(Places()).digest("acme.reach")
    assert found == code_digest("acme_reach.plugin:AcmeReach")
