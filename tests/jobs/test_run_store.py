"""Runs on disk: written, listed, compared, sent elsewhere; and zips that mean harm."""

import errno
import math
import stat
import tempfile
import time
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from twinstudio.jobs import bundle, stored
from twinstudio.jobs.record import Run, this_process
from twinstudio.jobs.spec import Input, JobSpec
from twinstudio.jobs.store import RunFilter, Store, encode_run, read_run
from twinstudio.model.errors import JobError
from twinstudio.model.provenance import provenance
from twinstudio.model.results import Change, Image, Patch, Scalar, Series, Table
from twinstudio.model.words import is_printable

finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=20)
units = st.sampled_from(["m", "rad", "s", "1", "N m"])
whole = st.integers(-(2**53), 2**53)
names = text.filter(is_printable).filter(bool)
scalars = st.builds(Scalar, name=names, value=finite, unit=units, note=text)
intervals = finite.map(lambda v: Scalar(name="i", value=v, unit="m", low=v, high=math.inf))
curves = st.lists(
    st.tuples(finite, st.floats(allow_infinity=False)), max_size=stored.INLINE_POINTS * 2
).map(
    lambda p: Series(
        name="c", x=tuple(a for a, _ in p), y=tuple(b for _, b in p), x_unit="s", y_unit="m"
    )
)
cells = st.one_of(st.floats(allow_nan=False), whole, text, st.none())
tables = st.lists(st.tuples(cells, cells), max_size=8).map(
    lambda rows: Table(name="t", columns=("a", "b"), units=("m", ""), rows=tuple(rows))
)
images = st.binary(max_size=64).map(lambda d: Image(name="i", format="svg", data=d))
changes = st.builds(Change, key=text, value=st.one_of(finite, whole, text, st.booleans()))
patches = st.builds(
    Patch, name=names, changes=st.lists(changes, max_size=4).map(tuple), reason=text
)
results = st.lists(st.one_of(scalars, intervals, curves, tables, images, patches), max_size=8).map(
    tuple
)
plain = st.recursive(
    st.one_of(st.floats(allow_nan=False), whole, text, st.booleans()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)
specs = st.builds(
    JobSpec,
    plugin=text, kind=st.just("command"), source=text, seed=st.integers(0, 2**63 - 1),
    params=st.dictionaries(text, plain, max_size=4), title=text, limit=finite,
    inputs=st.dictionaries(text, st.builds(Input, path=text, digest=text), max_size=3),
)  # fmt: skip


def example(number: int = 0, **more: object) -> Run:
    return Run(
        id=f"20260101-000000-{number:06x}",
        spec=JobSpec(plugin="a.b", kind="command", source="m:C", params={}, seed=1, title="one"),
        state="done",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        **more,
    )


def kept(store: Store, run: Run, given_results: tuple = ()) -> Run:
    store.path(run.id).mkdir(parents=True)
    made = stored.write(store.path(run.id), given_results)
    run = structs.replace(run, results=made.records, results_file=made.file, files=made.files)
    store.save(run)
    return run


@settings(max_examples=60, deadline=None)
@given(results)
def test_that_results_survive_the_disk_to_the_last_bit(values):
    with tempfile.TemporaryDirectory() as folder:
        checked = stored.check(list(values), "it")
        made = stored.write(Path(folder), checked)
        assert repr(stored.read(Path(folder), made)) == repr(values)


@settings(max_examples=60, deadline=None)
@given(specs)
def test_that_records_survive_the_disk(spec):
    run = structs.replace(example(), spec=spec, provenance=provenance(seed=1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_bytes(encode_run(run))
        assert repr(read_run(path)) == repr(run)


@settings(max_examples=20, deadline=None)
@given(results)
def test_that_exported_runs_come_back_whole(values):
    with tempfile.TemporaryDirectory() as folder:
        here, there = Store(Path(folder) / "here"), Store(Path(folder) / "there")
        run = kept(here, example(), values)
        (here.path(run.id) / "log.txt").write_text("what it said")
        there.import_(here.export(run.id, Path(folder) / "a.zip"))
        assert there.load(run.id) == run
        assert repr(there.results(run.id)) == repr(values)
        assert there.log(run.id) == "what it said"
        assert here.compare(run.id, run.id).results == ()


def test_that_runs_are_listed_newest_first_and_filtered(store):
    for k in range(5):
        kept(store, structs.replace(
            example(k), state="failed" if k == 3 else "done", who=f"user{k}",
            created=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=k),
        ))  # fmt: skip
    assert [head.who for head in store.list()] == [f"user{k}" for k in (4, 3, 2, 1, 0)]
    assert [head.who for head in store.list(RunFilter(state="failed"))] == ["user3"]
    assert len(store.list(RunFilter(text="USER2"))) == 1
    assert len(store.list(RunFilter(plugin="a.b", kind="command"))) == 5
    assert store.list(RunFilter(plugin="a")) == ()
    assert len(store.list(RunFilter(since=datetime(2026, 1, 4, tzinfo=UTC)))) == 2


def test_that_a_store_that_is_not_there_yet_is_empty(tmp_path):
    assert Store(tmp_path / "none").list() == ()


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b'{"id": 3}', b"\xff\xfe", b"null"])
def test_that_a_broken_record_is_listed_with_its_reason(store, data):
    kept(store, example(1))
    broken = store.path(example(2).id)
    broken.mkdir()
    (broken / "run.json").write_bytes(data)
    heads = {head.id: head for head in store.list()}
    assert heads[example(1).id].state == "done"
    assert heads[example(2).id].state == "failed"
    assert "cannot be read" in heads[example(2).id].error
    with pytest.raises(JobError, match="cannot be read"):
        store.load(example(2).id)
    store.delete(example(2).id)
    assert len(store.list()) == 1


def test_that_a_record_of_a_later_format_is_not_misread(store):
    kept(store, structs.replace(example(), format=3))
    with pytest.raises(JobError, match="format 3, this version reads up to 2"):
        store.load(example().id)


def test_that_a_run_of_a_dead_process_is_failed_and_of_a_living_one_is_not(store):
    living = this_process()
    kept(store, structs.replace(example(1), state="running", owner=living))
    kept(store, structs.replace(
        example(2), state="running", owner=structs.replace(living, born=living.born - 60.0)
    ))  # fmt: skip
    assert [head.state for head in store.list()] == ["failed", "running"]


def test_that_a_result_that_changed_on_disk_is_not_passed_off(store):
    curve = Series(name="c", x=tuple(range(900)), y=(0.0,) * 900, x_unit="s", y_unit="m")
    run = kept(store, example(), stored.check([curve], "it"))
    path = store.path(run.id) / "results" / "0.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(JobError, match=r"results/0\.npy is not what the run wrote"):
        store.results(run.id)
    path.unlink()
    with pytest.raises(JobError, match="is gone"):
        store.results(run.id)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "results/../../x", "run.json"])
def test_that_a_record_cannot_point_outside_its_folder(store, name):
    run = kept(store, example(), (Image(name="i", format="svg", data=b"<svg/>"),))
    store.save(structs.replace(run, results=[{**run.results[0], "file": name}]))
    with pytest.raises(JobError, match="no file of the run"):
        store.results(run.id)
    store.save(structs.replace(run, files={name: "0" * 64}))
    with pytest.raises(JobError, match="no file of a result"):
        store.results(run.id)


@pytest.mark.parametrize("identity", ["..", "../x", "", "a", "20260101-000000-00000g", "/etc"])
def test_that_an_id_cannot_be_a_path(store, identity):
    for call in (store.load, store.delete, store.log, store.results):
        with pytest.raises(JobError, match="no id of a run"):
            call(identity)


def packed(path: Path, parts: dict[str, bytes], manifest: dict[str, str] | None = None) -> Path:
    from hashlib import sha256

    known = {name: sha256(data).hexdigest() for name, data in parts.items()}
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("manifest.json", msgspec.json.encode(known if manifest is None else manifest))
        for name, data in parts.items():
            out.writestr(name, data)
    return path


RUN = encode_run(example())
DEEP = b'"params": {"a": ' + b"[" * 900 + b"]" * 900 + b"}"
ODD = {"type": "scalar", "name": "\x1b[2Jgap", "value": 1.0, "unit": "m"}


def record(**changes: object) -> bytes:
    return encode_run(structs.replace(example(), **changes))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"run.json": RUN, "../evil": b""}, "is no part of a run"),
        ({"run.json": RUN, "/tmp/evil": b""}, "is no part of a run"),
        ({"run.json": RUN, "results/../../evil": b""}, "is no part of a run"),
        ({"run.json": RUN, "results/..": b""}, "is no part of a run"),
        ({"run.json": RUN, "results\\evil": b""}, "is no part of a run"),
        ({"run.json": RUN, "results/": b""}, "is no part of a run"),
        ({"log.txt": b""}, "does not list"),
        ({"run.json": b"{}"}, "cannot be read"),
        ({"run.json": encode_run(structs.replace(example(), state="running"))}, "has ended"),
        ({"run.json": record(id="../evil")}, "is no id of a run"),
        ({"run.json": record(id=f"{example().id}\n")}, "is no id of a run"),
        ({"run.json": record(error="\x1b[2J")}, "holds control characters"),
        ({"run.json": record(notes=("a\nb",))}, "holds control characters"),
        ({"run.json": record(results=[ODD])}, "result '.*gap': a name has 1 to 300 characters"),
        ({"run.json": RUN.replace(b'"params": {}', DEEP)}, "record cannot be read: .*recursion"),
        ({"run.json": RUN, "results/a\n": b""}, "is no part of a run"),
        ({"run.json": RUN, "results/" + "a" * 300: b""}, "aaa cannot be taken in: File name too"),
    ],
)  # fmt: skip
def test_that_a_zip_that_means_harm_is_refused_whole(store, tmp_path, parts, words):
    path = packed(tmp_path / "a.zip", parts)
    with pytest.raises(JobError, match=words) as caught:
        store.import_(path)
    assert str(caught.value).startswith(f"{path}: ")  # the place where it was unpacked is gone
    assert list(store.folder.iterdir()) == []


def test_that_a_record_or_a_log_that_nobody_can_read_is_refused(store, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "LARGEST_TEXT", 1000)
    with pytest.raises(JobError, match=r"'log\.txt' has more than"):
        store.import_(packed(tmp_path / "a.zip", {"run.json": RUN, "log.txt": b" " * 1001}))


def test_that_no_room_for_an_import_is_said(store, tmp_path, monkeypatch):
    def full(source, info, to):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bundle, "_extract", full)
    with pytest.raises(JobError, match=r"run\.json cannot be taken in: No space left.*; make room"):
        store.import_(packed(tmp_path / "a.zip", {"run.json": RUN}))
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01"])
def test_that_a_record_of_no_time_is_listed_with_its_reason(store, moment):
    kept(store, example(1))
    text = (store.path(example(1).id) / "run.json").read_text()
    other = store.folder / "99999999-999999-000000"  # which is no time either
    other.mkdir()
    (other / "run.json").write_text(text.replace("2026-01-01T00:00:00Z", moment))
    sound, broken = sorted(store.list(), key=lambda head: head.state)
    assert (sound.state, broken.id) == ("done", other.name)
    assert "cannot be read" in broken.error


def test_that_a_zip_whose_parts_changed_is_refused(store, tmp_path):
    for manifest in ({"run.json": "0" * 64}, {}, {"run.json": "0" * 64, "log.txt": ""}):
        with pytest.raises(JobError, match=r"hash|manifest"):
            store.import_(packed(tmp_path / "a.zip", {"run.json": RUN}, manifest))
    assert list(store.folder.iterdir()) == []


def test_that_links_and_doubles_in_a_zip_are_refused(store, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        link = zipfile.ZipInfo("results/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        out.writestr(link, "/etc/passwd")
    with pytest.raises(JobError, match="no file"):
        store.import_(path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 and nothing", b"no zip at all"])
def test_that_what_is_no_zip_is_refused(store, tmp_path, data):
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(JobError, match="no sound zip"):
        store.import_(tmp_path / "a.zip")
    with pytest.raises(JobError, match="cannot be read"):
        store.import_(tmp_path / "none.zip")


def test_that_a_run_is_imported_once(store, tmp_path):
    path = packed(tmp_path / "a.zip", {"run.json": RUN})
    assert store.import_(path) == example().id
    assert store.path(example().id).stat().st_mode & 0o777 == 0o755
    with pytest.raises(JobError, match="is here already"):
        store.import_(path)
    assert [p.name for p in store.folder.iterdir()] == [example().id]


def test_that_an_export_that_cannot_be_written_says_so(store, tmp_path):
    run = kept(store, example())
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="cannot be written"):
        store.export(run.id, tmp_path / "file" / "a.zip")


def test_that_runs_are_compared_by_what_concerns_them(store):
    one = kept(store, structs.replace(
        example(1), provenance=provenance(seed=1),
        spec=structs.replace(example().spec, params={"mass": 1.0, "old": 2}),
    ), (Scalar(name="gap", value=1.0, unit="m"),
        Scalar(name="same", value=2.0, unit="m")))  # fmt: skip
    other = kept(store, structs.replace(
        example(2), plugin_digest="f" * 64, provenance=provenance(seed=1),
        spec=structs.replace(example().spec, params={"mass": 1.5}, seed=2),
    ), (Scalar(name="gap", value=math.nextafter(1.0, 2.0), unit="m", low=0.5),
        Scalar(name="same", value=2.0, unit="m")))  # fmt: skip
    found = store.compare(one.id, other.id)
    assert [(d.name, d.one, d.other) for d in found.params] == [
        ("seed", 1, 2), ("mass", 1.0, 1.5), ("old", 2, "absent"),
    ]  # fmt: skip
    assert [d.name for d in found.environment] == ["plugin code"]
    assert [d.name for d in found.results] == ["gap", "gap low"]


def test_that_figures_and_parameters_of_one_name_are_told_apart(store):
    def rows(second):
        return (Table(name="t", columns=("a", "a"), units=("", ""), rows=((second, 1.0),)),)

    seeded = structs.replace(example().spec, params={"seed": 5})
    one = kept(store, structs.replace(example(1), spec=seeded), rows(1.0))
    other = kept(
        store, structs.replace(example(2), spec=structs.replace(seeded, seed=2)), rows(2.0)
    )
    found = store.compare(one.id, other.id)
    assert [(d.name, d.one, d.other) for d in found.params] == [("seed", 1, 2)]
    assert [(d.name, d.one, d.other) for d in found.results] == [("t row 0 a", 1.0, 2.0)]


def test_that_a_thousand_runs_do_not_make_a_list_wrong(store):
    for k in range(1000):
        path = store.path(example(k).id)
        path.mkdir(parents=True)
        (path / "run.json").write_bytes(encode_run(example(k)))
    before = time.perf_counter()
    assert [head.id for head in store.list()] == [example(k).id for k in reversed(range(1000))]
    print(f"listed in {time.perf_counter() - before:.3f} s")
