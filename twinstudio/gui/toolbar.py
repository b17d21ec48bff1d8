"""The tool bar: scene, connect, record, replay and its transport, palette, theme."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QSizePolicy, QToolBar, QToolButton, QWidget

from twinstudio.gui.actions import Actions
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.docks.transport import Transport
from twinstudio.gui.icons import icon
from twinstudio.gui.theme import Theme
from twinstudio.model.scene import Scene

_NAME_WIDTH = 180


class ToolBar(QToolBar):
    """Mirrors the session: the record button is down while a recording runs."""

    def __init__(self, bridge: Bridge, actions: Actions, theme: Theme) -> None:
        super().__init__("Tool bar")
        self.setObjectName("toolbar")
        self.setMovable(False)
        self.setIconSize(QSize(16, 16))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._actions = actions
        self.scene = QLabel()
        self.scene.setProperty("role", "title")
        self.scene.setMaximumWidth(_NAME_WIDTH)
        self.scene.setContentsMargins(0, 0, 8, 0)
        self.addWidget(self.scene)
        self.addSeparator()
        for action in (actions.connect, actions.record, actions.replay):
            self.addAction(action)
            self._button(action).setAccessibleName(action.text().rstrip("…"))
            self._button(action).setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.addSeparator()
        self.transport = Transport(bridge, theme)
        self.transport.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(self.transport)
        self.addSeparator()
        self.theme = QAction("Theme", self)
        self.theme.setToolTip("Dark or light colours; menu View, Theme follows the system")
        self.addAction(self.theme)
        self._button(self.theme).setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self._button(self.theme).setAccessibleName("Dark or light")
        self._button(self.theme).setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.show_scene(bridge.session.scene)
        bridge.add(self, self.refresh, every=3)
        self.restyle(theme)

    def restyle(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._actions.connect.setIcon(icon("plug", theme.text))
        self._actions.record.setIcon(icon("disc", theme.alarm))
        self._actions.replay.setIcon(icon("log", theme.text))
        self.theme.setIcon(icon("half", theme.text))
        self.transport.restyle(theme)

    def show_scene(self, scene: Scene) -> None:
        """Name `scene`; a long name is shortened and whole in the tooltip."""
        text = self.scene.fontMetrics().elidedText(
            scene.name, Qt.TextElideMode.ElideMiddle, _NAME_WIDTH - 24
        )
        self.scene.setText(text)
        self.scene.setToolTip(
            "\n".join(filter(None, (scene.name, scene.description, scene.folder)))
        )
        self.scene.setAccessibleName(f"Scene {scene.name}")

    def refresh(self, frame: Frame) -> None:
        """Show whether a recording runs."""
        view = frame.snapshot.recording
        active = view is not None and view.active
        record = self._actions.record
        if record.isChecked() != active:
            record.setChecked(active)
        if view is not None and active:
            tip = f"Stop recording to {view.path} (record.stop, R)"
        else:
            tip = "Record twin and cell (record.start, R)"
        if record.toolTip() != tip:
            record.setToolTip(tip)

    def widget_of(self, action: QAction) -> QWidget:
        """The button of `action`, to open something beside it."""
        return self._button(action)

    def _button(self, action: QAction) -> QToolButton:
        button = self.widgetForAction(action)
        assert isinstance(button, QToolButton)
        return button
