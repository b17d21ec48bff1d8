"""Exported runs that bring their inputs along."""

import shutil
import zipfile
from pathlib import Path

import msgspec
import pytest
from jobs.test_job_logs import emps

from twinstudio.jobs.reproduce import reproduce
from twinstudio.jobs.runner import Runner
from twinstudio.jobs.store import Store
from twinstudio.model.errors import JobError


@pytest.fixture
def elsewhere(tmp_path: Path) -> Store:
    return Store(tmp_path / "elsewhere")


@pytest.fixture
def moved(run, store, tmp_path, elsewhere):
    """A run that was exported with its inputs, which are gone since, and imported elsewhere."""
    (tmp_path / "log").mkdir()
    emps(tmp_path / "log" / "DATA_EMPS.mat")
    shutil.copy(emps(tmp_path / "b.mat", 200), tmp_path / "DATA_EMPS.mat")
    inputs = {"log": tmp_path / "log", "held_out": f"emps:{tmp_path / 'DATA_EMPS.mat'}"}
    view = run("Fits", scene="emps_axis", inputs=inputs)
    assert view.state == "done", view.error
    store.export(view.id, tmp_path / "a.zip", with_inputs=True)
    shutil.rmtree(tmp_path / "log")
    (tmp_path / "DATA_EMPS.mat").unlink()
    return elsewhere.import_(tmp_path / "a.zip")


def test_that_a_run_is_reproduced_from_the_inputs_it_brought(moved, elsewhere, tmp_path):
    kept = elsewhere.path(moved) / "inputs"
    assert sorted(p.relative_to(kept).as_posix() for p in kept.rglob("*.mat")) == [
        "held_out/DATA_EMPS.mat", "log/log/DATA_EMPS.mat",
    ]  # fmt: skip
    with Runner(elsewhere) as runner:
        outcome = reproduce(moved, runner)
    assert outcome.same, outcome
    assert outcome.changed == ()
    again = elsewhere.load(outcome.run).spec.inputs["held_out"]
    assert again.given == f"emps:{kept / 'held_out' / 'DATA_EMPS.mat'}"


def test_that_an_imported_run_brings_its_inputs_along_again(moved, elsewhere, tmp_path):
    elsewhere.export(moved, tmp_path / "b.zip", with_inputs=True)
    third = Store(tmp_path / "third")
    third.import_(tmp_path / "b.zip")
    assert (third.path(moved) / "inputs" / "log" / "log" / "DATA_EMPS.mat").is_file()


def test_that_a_copy_that_changed_is_not_used(moved, elsewhere):
    copy = elsewhere.path(moved) / "inputs" / "held_out" / "DATA_EMPS.mat"
    copy.write_bytes(copy.read_bytes() + b"x")
    with Runner(elsewhere) as runner, pytest.raises(JobError, match="copy of input 'held_out' is"):
        reproduce(moved, runner)
    assert len(elsewhere.list()) == 1


def test_that_inputs_that_changed_are_not_exported(run, store, tmp_path):
    log = tmp_path / "a.bin"
    log.write_bytes(b"12345")
    identity = run("Reads", inputs={"log": log}).id
    log.write_bytes(b"54321")
    with pytest.raises(JobError, match=r"input 'log' is not what the run read.*without the inputs"):
        store.export(identity, tmp_path / "a.zip", with_inputs=True)
    log.unlink()
    with pytest.raises(JobError, match="input 'log' is gone"):
        store.export(identity, tmp_path / "a.zip", with_inputs=True)
    assert not (tmp_path / "a.zip").exists()
    store.export(identity, tmp_path / "a.zip")
    assert not any("inputs" in name for name in zipfile.ZipFile(tmp_path / "a.zip").namelist())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inputs/log/../../../evil", "is no part of a run"),
        ("inputs/log/..", "is no part of a run"),
        ("inputs/../evil/a", "is no part of a run"),
        ("inputs//a", "is no part of a run"),
        ("inputs/log", "is no part of a run"),
        ("inputs/log/a\\..\\b", "is no part of a run"),
        ("inputs/log/a.bin", "copy of input 'log' is not what the run read"),
        ("inputs/other/a.bin", "an input 'other' that the run did not read"),
    ],
)
def test_that_a_zip_cannot_bring_what_was_not_read(run, store, tmp_path, elsewhere, name, words):
    from hashlib import sha256

    (tmp_path / "a.bin").write_bytes(b"12345")
    identity = run("Reads", inputs={"log": tmp_path / "a.bin"}).id
    parts = {"run.json": (store.path(identity) / "run.json").read_bytes(), name: b"evil"}
    manifest = {part: sha256(data).hexdigest() for part, data in parts.items()}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("manifest.json", msgspec.json.encode(manifest))
        for part, data in parts.items():
            out.writestr(part, data)
    with pytest.raises(JobError, match=words):
        elsewhere.import_(tmp_path / "a.zip")
    assert list(elsewhere.folder.iterdir()) == []
    assert not list(tmp_path.rglob("evil"))
