"""The main window: docks around a twin view, arranged to watch."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSettings, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QMainWindow,
    QTabWidget,
)

from twinstudio.gui import settings as remembered
from twinstudio.gui import theme as look
from twinstudio.gui.actions import Actions
from twinstudio.gui.bridge import Bridge
from twinstudio.gui.docks.gaps import GapDock
from twinstudio.gui.docks.help import WINDOW_PAGE, HelpDock, pages
from twinstudio.gui.docks.log import LogDock
from twinstudio.gui.docks.scene_tree import SceneTree
from twinstudio.gui.docks.sources import SourcesDock
from twinstudio.gui.docks.viewer import ViewerDock
from twinstudio.gui.docks.workbench import Workbench
from twinstudio.gui.palette import Palette
from twinstudio.gui.plots.stack import PlotStack
from twinstudio.gui.popover import Ask
from twinstudio.gui.selection import Selection
from twinstudio.gui.statusbar import StatusBar
from twinstudio.gui.toolbar import ToolBar
from twinstudio.model.errors import TwinstudioError
from twinstudio.session.places import places

if TYPE_CHECKING:
    from twinstudio.session.session import Session

LAST = "_last"
_SIZE = (1600, 960)
_SPACE_PRESSED = (QEvent.Type.KeyPress, Qt.Key.Key_Space)


class Window(QMainWindow):
    """One face of a session. Closing it closes the session.

    closed: everything is down.
    """

    closed = Signal()

    def __init__(self, session: "Session", settings: QSettings) -> None:
        super().__init__()
        self._settings = settings
        self._down = False
        self.failure = ""
        self.bridge = Bridge(session, self)
        self.selection = Selection(self)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self._app = app
        self._choice = "system"
        theme = look.chosen(app)
        self.setWindowTitle(f"{session.scene.name} – Twinstudio")
        self._make_docks(theme)
        self.actions_ = Actions(self)
        self.actions_.fill_menus()
        self.toolbar = ToolBar(self.bridge, self.actions_, theme)
        self.addToolBar(self.toolbar)
        self.status = StatusBar(self.bridge, theme)
        self.setStatusBar(self.status)
        self._make_popovers()
        self._wire()
        self._restore()

    def _make_docks(self, theme: look.Theme) -> None:
        self.viewer = ViewerDock(self.bridge, self.selection)
        self.plots = PlotStack(self.bridge, self.selection, theme)
        self.gaps = GapDock(self.bridge, self.selection, theme)
        self.tree = SceneTree(self.bridge, self.selection)
        self.sources = SourcesDock(self.bridge, theme)
        self.log = LogDock(self.bridge, theme)
        self.workbench = Workbench(self.bridge, theme)
        self.help = HelpDock()
        self.docks: dict[str, QDockWidget] = {}
        for name, title, widget in (
            ("scene", "Scene", self.tree),
            ("sources", "Sources", self.sources),
            ("viewer", "Twin and cell", self.viewer),
            ("gaps", "Gap", self.gaps),
            ("plots", "Plots", self.plots),
            ("log", "Log", self.log),
            *self.workbench.panels,
            ("help", "Help", self.help),
        ):
            dock = QDockWidget(title, self)
            dock.setObjectName(name)
            dock.setWidget(widget)
            for button in dock.findChildren(
                QAbstractButton, options=Qt.FindChildOption.FindDirectChildrenOnly
            ):
                what = f"{button.accessibleName()} panel {title}"
                button.setToolTip(what)
                button.setAccessibleName(what)
            self.docks[name] = dock
        self.setDockNestingEnabled(True)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)

    def _make_popovers(self) -> None:
        self.endpoint = Ask(self, "Cell at", "Connect", "tcp://host:port")
        self.layout_name = Ask(self, "Layout name", "Save", "e.g. wide screen")
        self.palette_ = Palette(self, self.bridge, lambda: self.actions_.all)

    def _wire(self) -> None:
        runner = self.bridge.runner
        self.endpoint.answered.connect(lambda text: runner.run("cell.connect", endpoint=text))
        self.layout_name.answered.connect(self._save_layout)
        self.selection.activated.connect(self.plots.bar.only)
        self.status.log_wanted.connect(self._show_log)
        self.toolbar.theme.triggered.connect(lambda _on: self._flip_theme())
        for part in (self.plots, self.gaps, self.sources):
            part.empty.offer(
                "Connect to a cell…", self.actions_.connect.toolTip(), self.ask_endpoint
            )
        self.viewer.empty.offer("Restart twin", "twin.restart", lambda: runner.run("twin.restart"))
        self.viewer.failed.connect(lambda text: self.bridge.notices.say("warning", "window", text))
        self._app.styleHints().colorSchemeChanged.connect(self._scheme_changed)
        for view in self.findChildren(QAbstractItemView):
            view.installEventFilter(self)
        for box in self.findChildren(QComboBox):
            box.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    # Looks and layouts

    def restyle(self) -> None:
        """Take the colours that are in force."""
        theme = look.chosen(self._app, self._choice)
        look.apply(self._app, theme)
        parts = (self.plots, self.gaps, self.sources, self.log, self.workbench)
        for part in (*parts, self.toolbar, self.status):
            part.restyle(theme)

    def choose_theme(self, choice: str) -> None:
        """Follow the system, or hold ``light`` or ``dark``; remembered."""
        self._choice = choice
        self._settings.setValue("theme", choice)
        self.actions_.mark_theme(choice)
        self.restyle()

    def set_degrees(self) -> None:
        """Show angles in degrees or in rad, as the action says; remembered."""
        on = self.actions_.degrees.isChecked()
        self._settings.setValue("degrees", on)
        self.plots.set_degrees(on=on)
        self.gaps.set_degrees(on=on)

    def arrange_watch(self) -> None:
        """The default arrangement, which shows where twin and cell disagree."""
        docks = self.docks
        for dock in docks.values():
            dock.setFloating(False)
            self.removeDockWidget(dock)
        top, bottom = Qt.DockWidgetArea.TopDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        self.addDockWidget(top, docks["scene"])
        self.splitDockWidget(docks["scene"], docks["viewer"], Qt.Orientation.Horizontal)
        self.splitDockWidget(docks["viewer"], docks["gaps"], Qt.Orientation.Horizontal)
        self.tabifyDockWidget(docks["scene"], docks["sources"])
        self.tabifyDockWidget(docks["gaps"], docks["help"])
        self.addDockWidget(bottom, docks["plots"])
        self.splitDockWidget(docks["plots"], docks["log"], Qt.Orientation.Vertical)
        self.workbench.tabify(self, docks, "log")
        for name, dock in docks.items():
            dock.setVisible(name != "help")
        self._size_watch()
        # Once more when the docks have their places: sizes asked for earlier are hints.
        QTimer.singleShot(0, self._size_watch)

    def _size_watch(self) -> None:
        docks, width, height = self.docks, self.width(), self.height()
        docks["sources"].raise_()
        docks["gaps"].raise_()
        docks["log"].raise_()
        left, right = (
            min(320, width * 24 // 100),
            min(self.gaps.sizeHint().width() + 24, width * 2 // 5),
        )
        self.resizeDocks(
            [docks["scene"], docks["viewer"], docks["gaps"]],
            [left, width - left - right, right],
            Qt.Orientation.Horizontal,
        )
        rest = height - 110
        self.resizeDocks(
            [docks["viewer"], docks["plots"], docks["log"]],
            [rest * 44 // 100, rest * 41 // 100, rest * 15 // 100],
            Qt.Orientation.Vertical,
        )

    def use_layout(self, name: str) -> None:
        """Arrange as saved under `name`."""
        if not remembered.restore_layout(self._settings, name, self):
            self.bridge.notices.say("warning", "window", f"layout '{name}' cannot be restored")

    def ask_layout(self) -> None:
        """Ask under which name to remember this arrangement."""
        self.layout_name.open(self.toolbar)

    def _save_layout(self, name: str) -> None:
        clean = name.replace("/", "-").lstrip("_")
        remembered.save_layout(self._settings, clean, self)
        self.actions_.fill_layouts(remembered.layouts(self._settings))

    def _restore(self) -> None:
        area = self.screen().availableGeometry()
        self.resize(min(_SIZE[0], area.width()), min(_SIZE[1], area.height()))
        geometry = self._settings.value("geometry")
        if geometry is not None:
            self.restoreGeometry(geometry)
        self.arrange_watch()
        remembered.restore_layout(self._settings, LAST, self)
        self.actions_.fill_layouts(remembered.layouts(self._settings))
        choice = str(self._settings.value("theme", "system"))
        self.choose_theme(choice if choice in look.CHOICES else "system")
        if self._settings.value("degrees", defaultValue=False, type=bool):
            self.actions_.degrees.setChecked(True)
            self.set_degrees()

    def _scheme_changed(self) -> None:
        if not self._down:
            self.restyle()

    def _flip_theme(self) -> None:
        dark = look.chosen(self._app, self._choice).dark
        self.choose_theme("light" if dark else "dark")

    # What one can do

    def ask_endpoint(self) -> None:
        """Ask for the endpoint of a running cell."""
        self.endpoint.open(
            self.toolbar.widget_of(self.actions_.connect), self.bridge.session.scene.cell.endpoint
        )

    def ask_recording(self) -> None:
        """Let the user pick a recording to replay as the cell."""
        folder = str(self._settings.value("recordings", str(places()["recordings"])))
        dialog = QFileDialog(
            self, "Replay a recording", folder, "Recordings (*.mcap);;All files (*)"
        )
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.replay)
        dialog.open()

    def replay(self, log: str) -> None:
        """Use the recording `log` as the cell."""
        self._settings.setValue("recordings", str(Path(log).parent))
        self.bridge.runner.run("cell.replay", log=log)

    def toggle_record(self) -> None:
        """Start recording, or stop the one that runs."""
        view = self.bridge.session.snapshot().recording
        active = view is not None and view.active
        # The button shows what is, not what was asked for; the next frame tells.
        self.actions_.record.setChecked(active)
        self.bridge.runner.run("record.stop" if active else "record.start")

    def step_time(self, direction: int) -> None:
        """Look back (-1) or forward (+1) by a tenth of the window."""
        timeline = self.bridge.timeline
        age = timeline.age - direction * timeline.window / 10
        if age <= 0:
            timeline.resume()
        else:
            timeline.look_back(age)

    def open_palette(self) -> None:
        """Offer every command."""
        for popover in (self.endpoint, self.layout_name):
            popover.hide()
        self.palette_.open()

    def toggle_fullscreen(self) -> None:
        """Use the whole screen, or no longer."""
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def show_help(self, text: str | None) -> None:
        """Show Markdown `text`, or the first page."""
        found = pages()
        first = found.get(WINDOW_PAGE, "# Help\n\nThere are no help pages in this build.")
        self.help.show_page(first if text is None else text)
        self.docks["help"].show()
        self.docks["help"].raise_()

    def _show_log(self) -> None:
        self.docks["log"].show()
        self.docks["log"].raise_()
        self.bridge.notices.read()

    # Coming and going

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Lists leave Space to the window, which pauses."""
        if isinstance(event, QKeyEvent) and (event.type(), event.key()) == _SPACE_PRESSED:
            event.ignore()
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space that no focused control wanted pauses, or goes live."""
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self.bridge.timeline.toggle()
        else:
            super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        """The ticks begin when there is something to see."""
        super().showEvent(event)
        remembered.rescue(self)
        if not self._down:
            self.bridge.start()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the arrangement, then stop everything and wait for it."""
        if not self._down:
            self._down = True
            self._settings.setValue("geometry", self.saveGeometry())
            remembered.save_layout(self._settings, LAST, self)
            self._settings.sync()
            self.hide()
            self.bridge.stop()
            self.workbench.stop()
            self.gaps.stop()
            self.viewer.stop()
            try:
                self.bridge.session.close()
            except TwinstudioError as error:
                self.failure = str(error)
            self.closed.emit()
        event.accept()
