"""Two hundred installed plugins are listed quickly, and none of them is imported."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from twinstudio.bench.row import Row
from twinstudio.plugin.catalog import Catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.manifest import Installed

PLUGINS = 200
TRIALS = 5
LIMIT = 0.1
PREFIX = "listed_plugin_"


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - a listing takes as long as it takes
    """Median over fresh processes of the first listing, beside all that is installed here."""
    with tempfile.TemporaryDirectory(prefix="twinstudio-catalog-") as folder:
        lay_out(Path(folder), PLUGINS)
        command = [sys.executable, "-m", "twinstudio.bench.catalog", folder]
        outputs = [
            subprocess.run(command, capture_output=True, check=True).stdout for _ in range(TRIALS)
        ]
    trials = [json.loads(output) for output in outputs]
    taken = sorted(trial["seconds"] for trial in trials)[TRIALS // 2]
    listed = min(trial["listed"] for trial in trials)
    imported = max(trial["imported"] for trial in trials)
    return [
        Row("catalog.listing", taken * 1e3, "ms for 200 plugins", "<= 100", taken <= LIMIT),
        Row("catalog.listed", listed, "of them found", "200", listed == PLUGINS),
        Row("catalog.imported", imported, "of them imported", "0", imported == 0),
    ]


def lay_out(site: Path, count: int) -> None:
    """Lay `count` distributions with one plugin each into `site`, as an installer would."""
    for k in range(count):
        package = f"{PREFIX}{k:03}"
        folder, info = site / package, site / f"{package}-1.0.dist-info"
        folder.mkdir()
        info.mkdir()
        (folder / "__init__.py").write_text("raise ImportError('imported by a listing')\n")
        (folder / "twinstudio-plugin.toml").write_text(
            f'api = 1\n[[plugins]]\nid = "listed.plugin_{k:03}"\nkind = "metric"\n'
            f'title = "Plugin {k}"\nhelp = "One of many"\nmodule = "{package}"\n'
        )
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[twinstudio.plugins]\n{package} = {package}\n")


def list_once(site: str) -> dict[str, float]:
    """Seconds of the first listing in this process, and what it imported."""
    sys.path.append(site)
    start = time.perf_counter()
    entries = Catalog([Installed()], Choices()).entries()
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "listed": sum(e.id.startswith("listed.") and e.state == "unused" for e in entries),
        "imported": sum(name.startswith(PREFIX) for name in sys.modules),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list_once(sys.argv[1])))
