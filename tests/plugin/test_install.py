"""Plugins in and out of the environment, and what is said when that fails."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from plugin_helpers import distribute

from twinstudio.model.errors import PluginError
from twinstudio.plugin import install
from twinstudio.plugin.scaffold import write_project


def test_that_the_plan_names_what_will_change_and_changes_nothing(tmp_path: Path) -> None:
    project = write_project("acme-planned", "metric", tmp_path)
    changes = install.plan(str(project), offline=True)
    assert [str(change) for change in changes] == ["install acme-planned 0.1.0"]
    shown = subprocess.run(
        [sys.executable, "-m", "pip", "show", "acme-planned"], capture_output=True, check=False
    )
    assert shown.returncode != 0


def test_that_a_replacement_names_both_versions() -> None:
    change = install.PlannedChange(name="acme", version="2.0", before="1.0")
    assert str(change) == "replace acme 1.0 by 2.0"


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("./not_there.whl", r"\./not_there\.whl: there is no such wheel or folder"),
        ("--index-url=http://example.invalid", "no wheel, folder or package name"),
        ("", "no wheel, folder or package name"),
    ],
)
def test_that_what_is_no_package_is_refused_before_pip_runs(what: str, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        install.plan(what)


def test_that_a_broken_wheel_is_refused_in_one_line(tmp_path: Path) -> None:
    wheel = tmp_path / "acme_reach-1.0-py3-none-any.whl"
    wheel.write_bytes(b"no zip")
    with pytest.raises(PluginError, match="pip could not handle") as caught:
        install.plan(str(wheel), offline=True)
    assert "\n" not in str(caught.value)


def distributed(folder: Path, name: str, version: str, needs: str = "") -> str:
    """A wheel without code."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(wheel, "w") as out:
        out.writestr(f"{info}/METADATA", meta + (f"Requires-Dist: {needs}\n" if needs else ""))
        out.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        out.writestr(f"{info}/RECORD", "")
    return str(wheel)


@pytest.mark.parametrize("what", ["numpy 1.0", "twinstudio 0.0.1", "acme_old 1.0"])
def test_that_what_would_break_twinstudio_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    distributed(tmp_path, "numpy", "1.0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    name, version = what.split()
    wheel = distributed(tmp_path, name, version, "numpy==1.0" if name == "acme_old" else "")
    with pytest.raises(PluginError, match=r"go together with this Twinstudio; Cannot install .*"):
        install.plan(wheel, offline=True)


def test_that_a_build_that_fails_is_told_by_its_own_error(tmp_path: Path) -> None:
    project = write_project("acme-unbuilt", "metric", tmp_path)
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text().replace('name = "acme-unbuilt"', 'name = "Bad!"'))
    with pytest.raises(PluginError, match=r"pip could not handle .*; ValueError: .*project.name"):
        install.plan(str(project), offline=True)


def test_that_a_missing_build_tool_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    project = write_project("acme-unbuilt", "metric", tmp_path)
    settings = project / "pyproject.toml"
    text = settings.read_text().replace("hatchling.build", "acme_builder.build")
    settings.write_text(text.replace('"hatchling>=1.25"', ""))
    with pytest.raises(PluginError, match=r"there is no 'acme_builder' here; .* -m pip install"):
        install.plan(str(project), offline=True)


def test_that_what_is_there_already_is_not_told(tmp_path: Path) -> None:
    project = write_project("acme-quiet", "metric", tmp_path)
    lines: list[str] = []
    install.plan(str(project), lines.append, offline=True)
    assert any("acme-quiet" in line for line in lines)
    assert not any("already satisfied" in line for line in lines)


def test_that_an_index_that_does_not_answer_is_said_plainly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    with pytest.raises(PluginError, match="the package index cannot be reached; check the net"):
        install.plan("acme-from-afar")


def test_that_a_package_that_is_nowhere_is_said_plainly() -> None:
    with pytest.raises(PluginError, match="'acme-from-afar' or something it needs is not to be"):
        install.plan("acme-from-afar", offline=True)


def test_that_a_folder_is_not_mistaken_for_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme-reach").mkdir()
    with pytest.raises(PluginError, match=r"write '\./acme-reach' for the folder"):
        install.plan("acme-reach", offline=True)


def test_that_an_environment_of_the_operating_system_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    for attempt in (
        lambda: install.plan("acme"),
        lambda: install.install("acme", print),
        lambda: install.uninstall("acme", print),
    ):
        with pytest.raises(PluginError, match=r"managed by the operating system.*-m venv"):
            attempt()


def test_that_only_packages_with_plugins_are_uninstalled(site: Path) -> None:
    distribute(site, "acme-reach")
    assert str(install.plan_removal("acme-reach")) == "uninstall acme-reach 1.0"
    with pytest.raises(PluginError, match="package 'numpy' has no plugins"):
        install.uninstall("numpy", print)
    with pytest.raises(PluginError, match="no package 'acme-nowhere' is installed"):
        install.uninstall("acme-nowhere", print)
