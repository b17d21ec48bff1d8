"""First-party plugins stand on what every author has, and on the laws of the mechanisms."""

import ast
from pathlib import Path

import pytest

from twinstudio.plugin.validating import validate_path

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
ALLOWED = ("twinstudio.model", "twinstudio.plugin", "twinstudio.mechanisms")
MODULES = sorted(PLUGINS.glob("twinstudio-*/twinstudio_*/*.py"))


def imported(path: Path) -> set[str]:
    """Modules that the file names in its imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.partition(".")[0] == "twinstudio"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_that_a_first_party_plugin_reaches_no_further_than_an_author_may(path):
    wrong = [name for name in imported(path) if not name.startswith(ALLOWED)]
    assert wrong == []


def test_that_there_are_first_party_plugins():
    assert {path.parent.name for path in MODULES} == {
        "twinstudio_calibration",
        "twinstudio_metrics",
    }


@pytest.mark.parametrize("folder", ["twinstudio-metrics", "twinstudio-calibration"])
def test_that_a_first_party_distribution_has_no_findings(folder):
    verdicts = validate_path(PLUGINS / folder)
    assert len(verdicts) >= 3
    assert all(verdict.passed for verdict in verdicts), verdicts
