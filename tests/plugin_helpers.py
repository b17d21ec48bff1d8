"""Plugins to find, whole or broken, for tests of the catalog and of the command line."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from twinstudio.plugin.scaffold import filled, names_of

COMMAND = "from twinstudio.cli.main import main\nmain()\n"
HEADER = """\
# /// twinstudio-plugin
# api = 1
# [[plugins]]
# id = "{id}"
# kind = "metric"
# title = "A title"
# help = "A help"
# ///
"""


def metric_code(plugin: str = "acme.reach") -> str:
    """The shortest metric as source, with id `plugin`."""
    return filled("metric.py", names_of("acme-reach", "metric") | {"id": plugin})


def manifest(
    package: str, *plugins: str, api: int = 1, kind: str = "metric", module: str = ""
) -> str:
    """A manifest of `package` that declares `plugins`, all in one module."""
    text = f"api = {api}\n"
    for plugin in plugins:
        text += (
            f'[[plugins]]\nid = "{plugin}"\nkind = "{kind}"\ntitle = "A title"\n'
            f'help = "A help"\nmodule = "{module or package + ".plugin"}"\n'
        )
    return text


def distribute(
    site: Path,
    name: str,
    *,
    code: str | None = None,
    toml: str | None = None,
    version: str = "1.0",
    value: str | None = None,
) -> Path:
    """Lay a distribution `name` into folder `site` as pip would; returns its package."""
    package = site / name.replace("-", "_")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(metric_code() if code is None else code)
    if toml is None:
        toml = manifest(package.name, "acme.reach")
    (package / "twinstudio-plugin.toml").write_text(toml)
    info = site / f"{package.name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(
        f"[twinstudio.plugins]\n{package.name} = {value or package.name}\n"
    )
    return package


def single_file(folder: Path, name: str, plugin: str, code: str | None = None) -> Path:
    """A single-file plugin ``name.py`` with id `plugin`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(
        HEADER.format(id=plugin) + "\n" + (metric_code(plugin) if code is None else code)
    )
    return file


def home_of(folder: Path) -> dict[str, str]:
    """Environment in which a user's files lie in `folder` and pip asks nobody."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "PIP_", "PYTEST_"))}
    return kept | {
        "HOME": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as "no isolation"
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def twinstudio(
    *arguments: str, home: Path, python: str = sys.executable, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command line in a process of its own."""
    return subprocess.run(
        [python, "-c", COMMAND, *arguments],
        env=home_of(home),
        cwd=cwd or home,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def clean_environment(folder: Path) -> Path:
    """A virtual environment in which only Twinstudio is known; returns its folder of programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / version / "site-packages"
    ours = sysconfig.get_path("purelib")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    program = programs / "twinstudio"
    program.write_text(f"#!{programs / 'python'}\n{COMMAND}")
    program.chmod(0o755)
    return programs
