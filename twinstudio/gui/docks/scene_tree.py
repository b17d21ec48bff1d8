"""The scene as a tree: robot with its links and joints, objects, settings."""

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from twinstudio.gui import format as fmt
from twinstudio.gui.bridge import Bridge, Frame
from twinstudio.gui.results import value_text
from twinstudio.gui.selection import Selection
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.geometry import ROBOT, SceneGeometry
from twinstudio.model.patches import Promoted, modified, patches_of
from twinstudio.model.scene import Object, Scene

_ID = Qt.ItemDataRole.UserRole


class SceneTree(QWidget):
    """Selecting a joint or an object here selects it everywhere."""

    def __init__(self, bridge: Bridge, selection: Selection) -> None:
        super().__init__()
        self._bridge = bridge
        self._selection = selection
        self._has_links = False
        self._patched: tuple[Promoted, ...] = ()
        self._patches_of = 0
        self.tree = QTreeWidget()
        self.tree.setAccessibleName("Scene")
        self.tree.setHeaderHidden(True)
        self.tree.setColumnCount(2)
        self.tree.header().setStretchLastSection(True)
        self.tree.header().resizeSection(0, 176)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.tree.setIndentation(14)
        self.tree.itemSelectionChanged.connect(self._picked)
        self.tree.itemDoubleClicked.connect(self._activate)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.tree)
        self.fill(bridge.session.scene, bridge.session.geometry)
        selection.changed.connect(self._mark)
        bridge.add(self, self.refresh, every=15)
        self._read_patches()

    def refresh(self, frame: Frame) -> None:
        """Show the links too, once the twin has told them."""
        del frame
        self._read_patches()
        if not self._has_links and (geometry := self._bridge.session.geometry) is not None:
            self.fill(self._bridge.session.scene, geometry)

    def fill(self, scene: Scene, geometry: SceneGeometry | None) -> None:
        """Show `scene`; links come from `geometry` when it is there."""
        self._has_links = geometry is not None
        with QSignalBlocker(self.tree):
            self.tree.clear()
            root = _item(None, scene.name, "", scene.description or scene.folder)
            self.tree.addTopLevelItem(root)
            robot = _item(root, "Robot", "", scene.robot.model, ("", ROBOT))
            for joint in scene.robot.joints:
                _item(robot, joint, "joint", joint, (joint, ROBOT))
            if geometry is not None:
                _add_links(robot, geometry)
            objects = _item(root, "Objects", str(len(scene.objects)), "Things beside the robot")
            for thing in scene.objects:
                _item(
                    objects, thing.name, _kind(thing), thing.model or thing.name, ("", thing.name)
                )
            _add_settings(root, scene)
            _add_patches(root, self._patched)
            for item in (root, robot, objects):
                item.setExpanded(True)
        self._mark()

    def _read_patches(self) -> None:
        """Show the patches in force anew when their file has changed, whoever changed it."""
        scene = self._bridge.session.scene
        changed = modified(scene)
        if changed == self._patches_of:
            return
        self._patches_of = changed
        try:
            self._patched = patches_of(scene)
        except TwinstudioError as error:
            self._bridge.notices.say("alarm", "patches", str(error))
        self.fill(scene, self._bridge.session.geometry)

    def _picked(self) -> None:
        for item in self.tree.selectedItems():
            found = item.data(0, _ID)
            if found:
                self._selection.select(*found)

    def _activate(self, item: QTreeWidgetItem) -> None:
        found = item.data(0, _ID)
        if found and found[0]:
            self._selection.activated.emit(found[0])

    def _mark(self) -> None:
        wanted = (self._selection.joint, self._selection.body)
        with QSignalBlocker(self.tree):
            self.tree.clearSelection()
            for item in _items(self.tree.topLevelItem(0)):
                if wanted != ("", "") and item.data(0, _ID) == wanted:
                    item.setSelected(True)
                    self.tree.scrollToItem(item)
                    break


def _item(
    parent: QTreeWidgetItem | None, name: str, detail: str, tip: str, target: object = None
) -> QTreeWidgetItem:
    item = QTreeWidgetItem([name, detail])
    item.setToolTip(0, tip or name)
    item.setToolTip(1, detail)
    item.setData(0, _ID, target)
    if parent is not None:
        parent.addChild(item)
    return item


def _items(item: QTreeWidgetItem | None) -> list[QTreeWidgetItem]:
    if item is None:
        return []
    below = [_items(item.child(k)) for k in range(item.childCount())]
    return [item, *(found for group in below for found in group)]


def _add_links(robot: QTreeWidgetItem, geometry: SceneGeometry) -> None:
    links = geometry.tree.links
    group = _item(robot, "Links", str(len(links)), "Rigid bodies of the robot")
    for link in links:
        joint = geometry.tree.joints[link.coordinate] if link.coordinate >= 0 else ""
        target = (joint, ROBOT) if joint else None
        detail = f"on {link.joint}" if link.joint else ""
        _item(
            group,
            link.name,
            "tool point" if link.name == geometry.tree.tip else detail,
            link.name,
            target,
        )


def _add_settings(root: QTreeWidgetItem, scene: Scene) -> None:
    group = _item(root, "Simulation", "", "How the twin is stepped")
    step, twin = scene.simulation.step, scene.twin
    for name, text in (
        ("Step", fmt.milliseconds(step)),
        ("Twin mode", twin.mode),
        ("Behind the cell", fmt.milliseconds(twin.behind)),
        ("Solver iterations", str(scene.simulation.solver_iterations)),
    ):
        _item(group, name, text, name)


def _add_patches(root: QTreeWidgetItem, patched: tuple[Promoted, ...]) -> None:
    """Patches in force, newest first, each with the run it came from and what it set."""
    if not patched:
        return
    group = _item(root, "Patches", str(len(patched)), "Lie on top of scene.toml; patch.undo")
    for promoted in reversed(patched):
        patch = promoted.patch
        about = f"{patch.reason}; from run {promoted.run}"
        one = _item(group, patch.name, f"of run {promoted.run}", about)
        for change in patch.changes:
            text = value_text(change.value)
            _item(one, change.key, text, f"{change.key} = {text} (SI)")
    group.setExpanded(True)


def _kind(thing: Object) -> str:
    if thing.shape is None:
        return "model"
    fixed = thing.fixed or thing.mass == 0.0
    return f"{type(thing.shape).__name__.lower()}{', fixed' if fixed else ''}"
