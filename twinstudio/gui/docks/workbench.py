"""Plugins, jobs and runs: three docks, and the ways between them."""

from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.jobs import JobsDock
from twinstudio.gui.docks.plugins import PluginsDock
from twinstudio.gui.docks.runs import RunsDock
from twinstudio.gui.theme import Theme


class Workbench:
    """Makes the three, and shows one when another leads there. They read nothing while hidden."""

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        self.plugins = PluginsDock(bridge, theme)
        self.jobs = JobsDock(bridge, theme)
        self.runs = RunsDock(bridge, theme)
        self._docks: dict[str, QDockWidget] = {}
        self.plugins.started.connect(self._started)
        self.jobs.run_wanted.connect(self.show_run)
        self.jobs.plugins_wanted.connect(lambda: self.show("plugins"))
        self.runs.plugins_wanted.connect(lambda: self.show("plugins"))
        self.runs.reload_wanted.connect(self._reload)

    @property
    def panels(self) -> tuple[tuple[str, str, QWidget], ...]:
        """Name, title and content of each dock."""
        return (
            ("plugins", "Plugins", self.plugins),
            ("jobs", "Jobs", self.jobs),
            ("runs", "Runs", self.runs),
        )

    def tabify(self, window: QMainWindow, docks: dict[str, QDockWidget], beside: str) -> None:
        """Put the three behind the dock `beside`."""
        self._docks = docks
        for name, _, _ in self.panels:
            window.tabifyDockWidget(docks[beside], docks[name])
        docks[beside].raise_()

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.plugins.restyle(theme)
        self.jobs.restyle(theme)
        self.runs.restyle(theme)

    def stop(self) -> None:
        """Read nothing more."""
        self.plugins.reader.close()
        self.runs.reader.close()

    def show(self, name: str) -> None:
        """Bring one of the three to the front."""
        dock = self._docks.get(name)
        if dock is not None:
            dock.show()
            dock.raise_()

    def show_run(self, run: str) -> None:
        """Show a run."""
        self.show("runs")
        self.runs.show_run(run)

    def _started(self, run: str) -> None:
        self.show("jobs")
        self.jobs.select(run)

    def _reload(self, plugin: str, run: str) -> None:
        self.show("plugins")
        self.plugins.open_form(plugin, run)
