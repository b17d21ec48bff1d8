"""Projects written by ``plugins new``: short, typed, found, sound."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import twinstudio
from twinstudio.model.errors import PluginError
from twinstudio.plugin.catalog import Catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.scaffold import HELP, names_of, write_project
from twinstudio.plugin.testing import check_plugin
from twinstudio.plugin.validating import validate_path

TEMPLATE = Path(twinstudio.__file__).parents[1] / "plugins" / "template"


@pytest.mark.parametrize("kind", KINDS)
def test_that_the_shortest_plugin_has_at_most_twenty_lines(kind: str, tmp_path: Path) -> None:
    project = write_project(f"acme-{kind}", kind, tmp_path)
    lines = (project / f"acme_{kind}" / "plugin.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 20
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("kind", KINDS)
def test_that_a_new_plugin_of_each_kind_has_no_findings(kind: str, site: Path) -> None:
    (verdict,) = validate_path(write_project(f"acme-{kind}", kind, site))
    assert verdict.findings == ()
    assert verdict.passed
    assert verdict.id == f"acme.{kind}"


@pytest.mark.timeout(240)
def test_that_new_plugins_pass_mypy_strict(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    files = []
    for kind in KINDS:
        project = write_project(f"acme-{kind}", kind, tmp_path)
        files += [
            str(project / f"acme_{kind}" / "plugin.py"),
            *map(str, project.glob("tests/*.py")),
        ]
    kept = pytestconfig.cache  # a warm start takes a tenth of the time
    cache = kept.mkdir("mypy-of-templates") if kept is not None else tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *files],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": os.pathsep.join(str(p) for p in tmp_path.glob("acme-*"))},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("owner", ["acme", "zeta"])
def test_that_new_projects_need_no_formatting(owner: str, tmp_path: Path) -> None:
    for kind in KINDS:
        write_project(f"{owner}-{kind}", kind, tmp_path)
    for command in (["check", "--select", "E,F,I,W", "--no-cache"], ["format", "--check"]):
        done = subprocess.run(
            ["ruff", *command, "."],
            cwd=tmp_path,
            env=os.environ
            | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_that_the_test_of_a_new_project_runs(tmp_path: Path) -> None:
    project = write_project("acme-reach", "metric", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_that_the_template_in_the_tree_is_what_is_written_today(tmp_path: Path) -> None:
    project = write_project("acme-template", "metric", tmp_path)
    written = {
        file.relative_to(project): file.read_text() for file in project.rglob("*") if file.is_file()
    }
    assert len(written) == 6
    for name, text in written.items():
        assert (TEMPLATE / name).read_text() == text, name


def test_that_there_is_a_template_for_every_kind() -> None:
    assert list(HELP) == list(KINDS)


def test_that_names_follow_the_project() -> None:
    words = names_of("acme-worst-joint", "metric")
    assert words["package"] == "acme_worst_joint"
    assert words["id"] == "acme.worst_joint"
    assert words["cls"] == "AcmeWorstJoint"
    assert names_of("reach", "metric")["id"] == "reach.metric"


@pytest.mark.parametrize(
    ("name", "kind", "complaint"),
    [
        ("Acme", "metric", "'Acme' is no name for a project"),
        ("../up", "metric", "no name"),
        ("class", "metric", "'class' is a word of Python"),
        ("acme-reach", "metrik", "there is no kind 'metrik'; kinds are bridge, metric"),
        ("acme-there", "metric", "exists already"),
    ],
)
def test_that_a_wrong_name_is_refused(tmp_path: Path, name: str, kind: str, complaint: str) -> None:
    (tmp_path / "acme-there").mkdir()
    with pytest.raises(PluginError, match=complaint):
        write_project(name, kind, tmp_path)


def test_that_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PluginError, match=r"acme-reach: cannot be written"):
        write_project("acme-reach", "metric", tmp_path / "file")


def test_that_an_empty_catalog_is_fine() -> None:
    assert Catalog([], Choices()).entries() == ()
    assert check_plugin(object)[0].fatal  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("project", "complaint"),
    [
        ("", r"pyproject.toml: \[project\] is malformed: .*`name`"),
        ("[project]\nname = 3", r"\[project\] is malformed: Expected `str`, got `int`"),
        ("project = 5", r"\[project\] is malformed"),
        ("[project]\nname = 'a'\nentry-points = 3", r"\[project\] is malformed"),
        ("[project]\nname = 'a'", r"announces no plugins"),
        (f"a = {'[' * 9999}", r"is no valid TOML: it is nested too deeply"),
    ],
)
def test_that_a_wrong_project_is_told_in_one_line(
    tmp_path: Path, project: str, complaint: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(project)
    with pytest.raises(PluginError, match=complaint) as caught:
        validate_path(tmp_path)
    assert "\n" not in str(caught.value)
