"""A program: runs an installed plugin from its form and prints the run's seed and results as JSON.

Started by `test_installed_form.py` in an environment into which the plugin was installed.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from gui.fake_session import AnsweringSession
from gui.test_plugin_docks import Bench, pick
from PySide6.QtWidgets import QApplication

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.workbench import Workbench
from twinstudio.gui.theme import LIGHT
from twinstudio.model.scene import load_scene
from twinstudio.plugin.catalog import Places
from twinstudio.session.journal import Journal
from twinstudio.session.workshop import Workshop

PATIENCE = 60.0


def main(plugin: str, field: str, value: str) -> None:
    """Fill in one `field` of the form of `plugin`, run it, and print its results."""
    application = QApplication([])
    session = AnsweringSession()
    shop = Workshop(load_scene("panda_cell"), Journal(), Places())
    session.workshop = shop

    def start(plugin: str, params: dict[str, Any], **more: Any) -> str:
        return shop.start(plugin, params, **more)

    session.answers = {"job.start": start}
    bridge = Bridge(session)
    bench = Bench(session, bridge, Workbench(bridge, LIGHT))

    def until(what: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < deadline, "nothing came of it"
            bench.ticks(1)
            application.processEvents()

    try:
        run_from_form(bench, until, (plugin, field, value))
        (job,) = shop.jobs()
        assert job.state == "done", job.error
        seed = shop.store.load(job.id).spec.seed
        results = msgspec.to_builtins(shop.store.results(job.id))
    finally:
        bench.docks.stop()
        shop.close()
    sys.stdout.write(json.dumps({"seed": seed, "results": results}))


def run_from_form(
    bench: Bench, until: Callable[[Callable[[], Any]], None], what: tuple[str, str, str]
) -> None:
    """Click through plugins dock and form, and wait for the end of the job."""
    plugin, field, value = what
    docks = bench.docks
    docks.plugins.show()
    until(lambda: docks.plugins.model.rows)
    pick(bench, plugin)
    docks.plugins.details.run.click()
    until(lambda: docks.plugins.form is not None)
    form = docks.plugins.form
    assert form is not None
    form.params.editors[field].line.setText(value)  # type: ignore[attr-defined]
    until(form.run.isEnabled)
    form.run.click()
    shop = bench.session.workshop
    until(lambda: any(job.over for job in shop.jobs()))


if __name__ == "__main__":
    main(*sys.argv[1:])
