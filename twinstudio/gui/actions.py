"""Everything the window can do, as named actions: for menus, keys and the palette."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from twinstudio.gui.docks.help import pages

if TYPE_CHECKING:
    from twinstudio.gui.window import Window

TWIN_MODES = {
    "commanded": "The twin's own drives follow the cell's commands",
    "following": "The twin is set to the cell's measured joints",
    "resynchronised": "Commanded, and set to the cell when a joint is too far off",
}


def with_key(tip: str, key: str) -> str:
    """`tip` and its shortcut: ``Use a running cell (cell.connect, Ctrl+K)``."""
    if not key:
        return tip
    return f"{tip[:-1]}, {key})" if tip.endswith(")") else f"{tip} ({key})"


class Actions:
    """The window's actions; `all` lists them for the palette."""

    def __init__(self, window: "Window") -> None:
        self._window = window
        self.all: list[QAction] = []
        run, timeline = window.bridge.runner.run, window.bridge.timeline
        make = self._make
        self.connect = make(
            "Connect…", window.ask_endpoint, "Ctrl+K", "Use a running cell (cell.connect)"
        )
        self.record = make(
            "Record",
            window.toggle_record,
            "R",
            "Start or stop recording (record.start, record.stop)",
            checkable=True,
        )
        self.replay = make(
            "Replay…", window.ask_recording, "Ctrl+O", "Use a recording as the cell (cell.replay)"
        )
        self.restart_twin = make("Restart twin", lambda: run("twin.restart"), "", "twin.restart")
        self.restart_cell = make("Restart cell", lambda: run("cell.restart"), "", "cell.restart")
        self.reset_gap = make("Reset gap of the run", lambda: run("gap.reset"), "", "gap.reset")
        self.palette = make(
            "Command palette…",
            window.open_palette,
            "Ctrl+Shift+P",
            "Every command by a few letters",
        )
        self.quit = make("Quit", window.close, "Ctrl+Q", "Close the window and stop everything")
        # Space is handled by the window, so that it still presses a focused button.
        self.pause = make(
            "Pause or go live\tSpace",
            timeline.toggle,
            "",
            "Hold what is shown, or show the newest data (Space)",
        )
        self.back = make(
            "Back in time", lambda: window.step_time(-1), "[", "Look back by a tenth of the window"
        )
        self.forward = make(
            "Forward in time",
            lambda: window.step_time(1),
            "]",
            "Look forward by a tenth of the window",
        )
        self.longer = make(
            "Show more time",
            lambda: timeline.set_window(timeline.window * 2),
            "-",
            "Twice as much time in the plots",
        )
        self.shorter = make(
            "Show less time",
            lambda: timeline.set_window(timeline.window / 2),
            "+",
            "Half as much time in the plots",
        )
        self.cursors = make(
            "A/B cursors", window.plots.bar.cursors.toggle, "C", "Two cursors with differences"
        )
        self.ghost = make(
            "Cell ghost", window.viewer.ghost.toggle, "G", "Show the cell as a translucent ghost"
        )
        self.fit = make("Fit view", window.viewer.fit_scene, "F", "Show the whole scene")
        self.degrees = make(
            "Angles in degrees",
            window.set_degrees,
            "D",
            "Degrees instead of rad and mrad",
            checkable=True,
        )
        self.fullscreen = make(
            "Full screen", window.toggle_fullscreen, "F11", "Use the whole screen"
        )
        self.help = make("Help", lambda: window.show_help(None), "F1", "The first help page")
        self.save_layout = make(
            "Save layout…", window.ask_layout, "", "Remember this arrangement under a name"
        )
        self.watch = make(
            "Watch", window.arrange_watch, "", "The arrangement Twinstudio starts with"
        )
        work = window.workbench
        for name, what in (
            ("plugins", "Plugins, their state, and the form that runs one"),
            ("jobs", "The queue of jobs and their progress"),
            ("runs", "Runs with results, log and provenance; compare two"),
        ):
            make(f"Show {name}", partial(work.show, name), "", what)
        make(
            "Install plugin…",
            work.ask_install,
            "",
            "Install a wheel, a folder or a package; shows first what will change",
        )
        self._theme_actions = self._themes()
        self._layout_menu: QMenu | None = None

    def fill_menus(self) -> None:
        """Build the menu bar."""
        bar = self._window.menuBar()
        session = bar.addMenu("&Session")
        for action in (self.connect, self.record, self.replay):
            session.addAction(action)
        session.addSeparator()
        self._mode_menu(session)
        for action in (self.restart_twin, self.restart_cell, self.reset_gap):
            session.addAction(action)
        session.addSeparator()
        for action in (self.palette, self.quit):
            session.addAction(action)
        view = bar.addMenu("&View")
        for action in (self.pause, self.back, self.forward, self.longer, self.shorter):
            view.addAction(action)
        view.addSeparator()
        for action in (self.cursors, self.ghost, self.fit, self.degrees):
            view.addAction(action)
        view.addSeparator()
        theme = view.addMenu("Theme")
        theme.addActions(self._theme_actions)
        view.addAction(self.fullscreen)
        panels = bar.addMenu("&Panels")
        panels.addActions([dock.toggleViewAction() for dock in self._window.docks.values()])
        self._layout_menu = bar.addMenu("&Layout")
        self.fill_layouts([])
        self._help_menu(bar.addMenu("&Help"))

    def fill_layouts(self, names: list[str]) -> None:
        """Offer the saved layouts `names` beside our own."""
        menu = self._layout_menu
        if menu is None:
            return
        menu.clear()
        menu.addAction(self.watch)
        for name in names:
            menu.addAction(name).triggered.connect(self._restorer(name))
        menu.addSeparator()
        menu.addAction(self.save_layout)

    def _restorer(self, name: str) -> Callable[[], None]:
        return lambda: self._window.use_layout(name)

    def _mode_menu(self, parent: QMenu) -> None:
        menu = parent.addMenu("Twin mode")
        for mode, tip in TWIN_MODES.items():
            menu.addAction(self._mode_action(mode, tip))

    def _mode_action(self, mode: str, tip: str) -> QAction:
        run = self._window.bridge.runner.run
        action = self._make(f"Twin {mode}", lambda: run("twin.mode", mode=mode), "", tip)
        action.setText(f"Twin {mode}")
        return action

    def _help_menu(self, menu: QMenu) -> None:
        menu.addAction(self.help)
        menu.addSeparator()
        for title, text in pages().items():
            menu.addAction(title).triggered.connect(self._opener(text))

    def _opener(self, text: str) -> Callable[[], None]:
        return lambda: self._window.show_help(text)

    def _themes(self) -> list[QAction]:
        group = QActionGroup(self._window)
        made = []
        for choice in ("system", "light", "dark"):
            action = self._make(
                f"Theme: {choice}", self._chooser(choice), "", f"Colours: {choice}", checkable=True
            )
            group.addAction(action)
            action.setData(choice)
            made.append(action)
        return made

    def mark_theme(self, choice: str) -> None:
        """Tick the theme in force."""
        for action in self._theme_actions:
            action.setChecked(action.data() == choice)

    def _chooser(self, choice: str) -> Callable[[], None]:
        return lambda: self._window.choose_theme(choice)

    def _make(
        self, text: str, call: Callable[[], object], key: str, tip: str, *, checkable: bool = False
    ) -> QAction:
        action = QAction(text, self._window)
        action.setCheckable(checkable)
        if key:
            action.setShortcut(QKeySequence(key))
        action.setToolTip(with_key(tip, key))
        action.triggered.connect(lambda _checked=False: call())
        self._window.addAction(action)
        self.all.append(action)
        return action
