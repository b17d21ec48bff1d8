"""Plugins, jobs and runs: three docks, and the ways between them."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow

from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.jobs import JobsDock
from twinstudio.gui.docks.plugins import PluginsDock
from twinstudio.gui.docks.rows import Panel
from twinstudio.gui.docks.runs import RunsDock
from twinstudio.gui.theme import Theme

_ROOM = 320


class Workbench:
    """Makes the three, and shows one when another leads there. They read nothing while hidden."""

    def __init__(self, bridge: Bridge, theme: Theme) -> None:
        self._bridge = bridge
        self._installation = 0
        self.plugins = PluginsDock(bridge, theme)
        self.jobs = JobsDock(bridge, theme)
        self.runs = RunsDock(bridge, theme)
        self._docks: dict[str, QDockWidget] = {}
        self._window: QMainWindow | None = None
        self.plugins.form_shown.connect(lambda: self.show("plugins"))
        self.plugins.started.connect(self._started)
        self.jobs.run_wanted.connect(self.show_run)
        self.jobs.plugins_wanted.connect(lambda: self.show("plugins"))
        self.runs.plugins_wanted.connect(lambda: self.show("plugins"))
        self.runs.reload_wanted.connect(self._reload)

    @property
    def panels(self) -> tuple[tuple[str, str, Panel], ...]:
        """Name, title and content of each dock."""
        return (
            ("plugins", "Plugins", self.plugins),
            ("jobs", "Jobs", self.jobs),
            ("runs", "Runs", self.runs),
        )

    def tabify(self, window: QMainWindow, docks: dict[str, QDockWidget], beside: str) -> None:
        """Put the three behind the dock `beside`."""
        fresh, self._docks, self._window = not self._docks, docks, window
        for name, _, panel in self.panels:
            window.tabifyDockWidget(docks[beside], docks[name])
            if fresh:
                docks[name].visibilityChanged.connect(panel.look)
        if fresh:
            self._bridge.add(window, self._notice, every=12)
        docks[beside].raise_()

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.plugins.restyle(theme)
        self.jobs.restyle(theme)
        self.runs.restyle(theme)

    def stop(self) -> None:
        """Read nothing more."""
        self.plugins.stop()
        self.runs.reader.close()

    def show(self, name: str) -> None:
        """Bring one of the three to the front, with room enough to work in it."""
        dock, window = self._docks.get(name), self._window
        if dock is None or window is None:
            return
        dock.show()
        dock.raise_()
        room = min(_ROOM, window.height() * 2 // 5)
        if not dock.isFloating() and dock.height() < room:
            window.resizeDocks([dock], [room], Qt.Orientation.Vertical)

    def ask_install(self) -> None:
        """Ask which plugins to install."""
        self.show("plugins")
        self.plugins.ask_install()

    def show_run(self, run: str) -> None:
        """Show a run."""
        self.show("runs")
        self.runs.show_run(run)

    def _notice(self, _frame: Frame) -> None:
        """A plan that waits for agreement is shown, wherever the command came from."""
        view = self._bridge.session.workshop.installing.view()
        if view is not None and view.number != self._installation and not view.over:
            self._installation = view.number
            self.show("plugins")

    def _started(self, run: str) -> None:
        self.show("jobs")
        self.jobs.select(run)

    def _reload(self, plugin: str, run: str) -> None:
        self.show("plugins")
        self.plugins.open_form(plugin, run)
