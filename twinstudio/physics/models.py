"""Robot model files (URDF, SDF, MJCF) made ready for an engine.

Engines know neither ``package://`` folders of a scene nor ``${VARIABLES}``, and
say little about a mesh that is missing. So every mesh a model refers to is
found here first, and the engine gets a copy of the model with absolute paths.
"""

import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, unescape

from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.scene import Scene, resolve

ModelKind = Literal["urdf", "sdf", "mjcf"]
_SUFFIXES: dict[str, ModelKind] = {
    ".urdf": "urdf",
    ".sdf": "sdf",
    ".world": "sdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
}
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REFERENCES = {
    "urdf": re.compile(r"""(<(?:mesh|texture)\b[^>]*?\bfilename\s*=\s*["'])([^"']+)(["'])"""),
    "sdf": re.compile(r"""(<uri>\s*)([^<]+?)(\s*</uri>)"""),
    "mjcf": re.compile(r"""(<(?:mesh|hfield|texture)\b[^>]*?\bfile\s*=\s*["'])([^"']+)(["'])"""),
}
_MESH_FOLDER = re.compile(r"""<compiler\b[^>]*?\bmeshdir\s*=\s*["']([^"']*)["']""")
_LINK = re.compile(r"<link\b([^>]*?)(?:/>|(?<!/)>(.*?)</link>)", re.DOTALL)
_NOTHING = (
    '<inertial><mass value="0"/>'
    '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
)
_QUOTED = {'"': "&quot;", "'": "&apos;"}
_UNQUOTED = {text: sign for sign, text in _QUOTED.items()}
_SCHEME = re.compile(r"^(?:package|model|file)://")
_UPWARDS = 5


def model_kind(path: Path) -> ModelKind:
    """Which language the model file `path` is written in, by its suffix.

    Raises PhysicsError listing the suffixes that are known.
    """
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        raise PhysicsError(
            "this is no robot model",
            where=str(path),
            hint=f"use a file that ends in {', '.join(_SUFFIXES)}",
        ) from None


@contextmanager
def engine_copy(
    scene: Scene, reference: str, change: Callable[[str], str] | None = None
) -> Iterator[Path]:
    """The model that `reference` of `scene` points to, in a form an engine can load.

    change: makes the text that is loaded of the model's own. Yields a file in which
    every path is absolute; it is gone afterwards. Raises SceneError if the model is
    missing, PhysicsError naming model and mesh if a mesh is.
    """
    path = scene.path(reference)
    text = rewritten(path, scene)
    if change is not None:
        text = change(text)
    with tempfile.TemporaryDirectory(prefix="twinstudio-") as folder:
        copy = Path(folder) / path.name
        copy.write_text(text, encoding="utf-8")
        yield copy


def rewritten(path: Path, scene: Scene) -> str:
    """The text of the model file `path` with absolute paths and without comments.

    Raises PhysicsError naming the model and what it refers to, if that is missing,
    or what is wrong with its tree of links.
    """
    kind = model_kind(path)
    try:
        text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PhysicsError(f"cannot be read: {error}", where=str(path)) from error
    folder = path.parent
    if kind == "mjcf" and (match := _MESH_FOLDER.search(text)):
        folder = folder / match.group(1)

    def absolute(match: re.Match[str]) -> str:
        before, named, after = match.groups()
        if kind == "sdf" and not Path(named).suffix:
            return match.group(0)  # another model or a material, no mesh
        found = _found(unescape(named, _UNQUOTED), folder, scene, path)
        return f"{before}{escape(found.as_posix(), _QUOTED)}{after}"

    text = _REFERENCES[kind].sub(absolute, text)
    if kind == "urdf" and (problem := tree_problem(text) or inertia_problem(text)):
        raise PhysicsError(problem, where=str(path))
    return _massless(text) if kind == "urdf" else text


def xml_problem(text: str) -> str:
    """Why `text` is no XML; empty if it is."""
    try:
        ET.fromstring(text)  # noqa: S314 - a file of the user's own
    except ET.ParseError as error:
        return str(error)
    return ""


def tree_problem(urdf: str) -> str:
    """Why the links of `urdf` are no tree, which would crash PyBullet; empty if they are.

    Text that is no XML is left to PyBullet, which forgives more than we would.
    """
    try:
        root = ET.fromstring(urdf)  # noqa: S314 - a file of the user's own
    except ET.ParseError:
        return ""
    above: dict[str, str] = {}
    for joint in root.findall("joint"):
        ends = [joint.find(end) for end in ("parent", "child")]
        parent, child = ("" if end is None else end.get("link", "") for end in ends)
        if child in above:
            return f"link '{child}' has two parents, '{above[child]}' and '{parent}'"
        above[child] = parent
    for start in above:
        link, steps = start, 0
        while link in above:
            link, steps = above[link], steps + 1
            if steps > len(above):
                return f"link '{start}' hangs on itself: its joints form a ring"
    return ""


def inertia_problem(urdf: str) -> str:
    """Which link of `urdf` has a mass or a moment of inertia no body can have; else empty."""
    try:
        root = ET.fromstring(urdf)  # noqa: S314 - a file of the user's own
    except ET.ParseError:
        return ""
    for link in root.findall("link"):
        for part, names in (("mass", ("value",)), ("inertia", ("ixx", "iyy", "izz"))):
            found = link.find(f"inertial/{part}")
            for name in names if found is not None else ():
                text = found.get(name, "0") if found is not None else "0"
                if not _is_possible(text):
                    return (
                        f"link '{link.get('name')}': {part} {name}='{text}';"
                        " expected a finite number that is not negative"
                    )
    return ""


def _is_possible(text: str) -> bool:
    try:
        return 0.0 <= float(text) < math.inf
    except ValueError:
        return False


def _massless(urdf: str) -> str:
    """`urdf` with a mass of zero in every link that names none.

    That is what URDF means by it; PyBullet would give each 1 kg and 1 kg m^2,
    for instance to a frame that only marks the tool.
    """

    def completed(match: re.Match[str]) -> str:
        attributes, content = match.group(1), match.group(2) or ""
        return f"<link{attributes}>{'' if '<inertial' in content else _NOTHING}{content}</link>"

    return _LINK.sub(completed, urdf)


def _found(named: str, folder: Path, scene: Scene, model: Path) -> Path:
    """The existing file a model's reference `named` means."""
    missing = ""
    try:
        return resolve(named.removeprefix("file://"), _base(named, folder, scene), scene.packages)
    except SceneError as error:
        missing = f"{error.what}; {error.hint}" if error.hint else error.what
    if _SCHEME.match(named):
        # Simulators and ROS workspaces alike look for the package among the
        # folders above the model, with its name and without.
        rest = _SCHEME.sub("", named)
        inner = rest.partition("/")[2]
        for above in [folder, *folder.parents][:_UPWARDS]:
            for candidate in (above / rest, above / inner):
                if inner and candidate.is_file():
                    return candidate.resolve()
    raise PhysicsError(f"refers to mesh {missing}", where=str(model))


def _base(named: str, folder: Path, scene: Scene) -> Path:
    """What a relative path is relative to: packages to the scene, files to the model."""
    return Path(scene.folder) if named.startswith("package://") else folder
