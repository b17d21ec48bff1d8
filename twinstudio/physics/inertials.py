"""Inertial parameters of a scene, `links` and `payload`, written into its model.

The model's text is rewritten before an engine reads it, not changed afterwards:
PyBullet's ``changeDynamics`` knows three moments in an inertial frame that it cannot
move, and ignores every change once it has cached the model. A full matrix goes in as
principal axes and moments: PyBullet's own diagonalisation stops at 1e-6 kg m^2.
"""

from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.drive import LinkInertia, Payload
from twinstudio.model.errors import SceneError
from twinstudio.model.rotations import matrix, quaternion_of_rpy, rpy_of
from twinstudio.model.scene import Scene

Floats = NDArray[np.float64]
_ENTRIES = {
    "ixx": (0, 0),
    "ixy": (0, 1),
    "ixz": (0, 2),
    "iyy": (1, 1),
    "iyz": (1, 2),
    "izz": (2, 2),
}
_ROUNDING = 1e-9
"""By this share a largest moment may exceed the sum of the others: that of a flat body."""


@dataclass(frozen=True, slots=True, eq=False)
class Inertial:
    """Mass [kg], centre of mass and inertia of one body, in the axes of its link's frame.

    centre: float64[3], m. inertia: float64[3, 3], kg m^2 about the centre.
    """

    mass: float
    centre: Floats
    inertia: Floats

    def with_(self, other: "Inertial") -> "Inertial":
        """Both as one rigid body (Steiner's theorem)."""
        mass = self.mass + other.mass
        if mass <= 0.0:
            return replace(self, inertia=self.inertia + other.inertia)
        centre = (self.mass * self.centre + other.mass * other.centre) / mass
        inertia = np.zeros((3, 3))
        for part in (self, other):
            arm = part.centre - centre
            inertia += part.inertia + part.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        return Inertial(mass, centre, inertia)


def payload_of(scene: Scene) -> Payload:
    """What hangs at the tool, nothing when it is switched off."""
    return Payload() if "payload" in scene.drive.off else scene.payload


def changes_inertials(scene: Scene) -> bool:
    """Whether `scene` says anything about inertial parameters."""
    return any(_is_inertial(link) for link in scene.links.values()) or (
        payload_of(scene) != Payload()
    )


def with_inertials(urdf: str, scene: Scene) -> str:
    """The text of the robot's model with the scene's links and payload; untouched without any.

    Raises SceneError for a link that the model does not have, which lists those it has,
    and for an inertia that no body can have.
    """
    where = f"{scene.folder}/scene.toml"
    if not (scene.links or changes_inertials(scene)):
        return urdf
    root = _parsed(urdf, where)
    links = {link.get("name", ""): link for link in root.iter("link")}
    for name, change in scene.links.items():
        if name not in links:
            raise SceneError(
                f"key 'links.{name}': the model has no link '{name}'",
                where=where,
                hint=f"it has {', '.join(links)}",
            )
        if _is_inertial(change):
            _write(links[name], changed(_read(links[name]), change), f"links.{name}", where)
    payload = payload_of(scene)
    if payload != Payload():
        tool = _tool(links, scene, where)
        hung = Inertial(payload.mass, np.array(payload.centre), _tensor(payload.inertia))
        _must_be_possible(hung, "payload", where)
        _write(tool, _read(tool).with_(hung), "payload", where)
    return ET.tostring(root, encoding="unicode") if changes_inertials(scene) else urdf


def changed(inertial: Inertial, change: LinkInertia) -> Inertial:
    """`inertial` with those parameters replaced that `change` gives."""
    return Inertial(
        inertial.mass if change.mass is None else change.mass,
        inertial.centre if change.centre is None else np.array(change.centre),
        _tensor(change.inertia) if change.inertia else inertial.inertia,
    )


def _is_inertial(link: LinkInertia) -> bool:
    return link.mass is not None or link.centre is not None or bool(link.inertia)


def _parsed(urdf: str, where: str) -> ET.Element:
    try:
        return ET.fromstring(urdf)  # noqa: S314 - a file of the user's own
    except ET.ParseError as error:
        raise SceneError(
            f"'links' and 'payload' need a model that is valid XML, and this is not: {error}",
            where=where,
        ) from error


def _tool(links: dict[str, ET.Element], scene: Scene, where: str) -> ET.Element:
    if scene.robot.tcp not in links:
        raise SceneError(
            f"key 'robot.tcp': the model has no link '{scene.robot.tcp}'",
            where=where,
            hint=f"it has {', '.join(links)}",
        )
    return links[scene.robot.tcp]


def _tensor(entries: tuple[float, ...]) -> Floats:
    """The matrix of xx, xy, xz, yy, yz, zz; zeros without any."""
    tensor = np.zeros((3, 3))
    for value, (row, column) in zip(entries, _ENTRIES.values(), strict=bool(entries)):
        tensor[row, column] = tensor[column, row] = value
    return tensor


def _read(link: ET.Element) -> Inertial:
    """What the model says of `link`; a link without inertial parameters weighs nothing."""
    inertial = link.find("inertial")
    if inertial is None:
        return Inertial(0.0, np.zeros(3), np.zeros((3, 3)))
    x, y, z = _triple(inertial.find("origin"), "xyz")
    turn = matrix(np.array([x, y, z, *quaternion_of_rpy(_triple(inertial.find("origin"), "rpy"))]))
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    given = {} if inertia is None else inertia.attrib
    tensor = _tensor(tuple(float(given.get(name, 0.0)) for name in _ENTRIES))
    axes = turn[:3, :3]
    return Inertial(
        0.0 if mass is None else float(mass.get("value", 0.0)),
        np.array([x, y, z]),
        axes @ tensor @ axes.T,
    )


def _triple(element: ET.Element | None, name: str) -> tuple[float, float, float]:
    text = "0 0 0" if element is None else element.get(name, "0 0 0")
    x, y, z = (float(part) for part in text.split())
    return x, y, z


def _write(link: ET.Element, inertial: Inertial, key: str, where: str) -> None:
    """Put `inertial` into `link`, by its principal axes and moments."""
    moments, axes = _must_be_possible(inertial, key, where)
    for old in link.findall("inertial"):
        link.remove(old)
    element = ET.SubElement(link, "inertial")
    ET.SubElement(element, "origin", xyz=_text(inertial.centre), rpy=_text(rpy_of(axes)))
    ET.SubElement(element, "mass", value=repr(float(inertial.mass)))
    ixx, iyy, izz = (repr(float(moment)) for moment in moments)
    ET.SubElement(element, "inertia", ixx=ixx, iyy=iyy, izz=izz, ixy="0", ixz="0", iyz="0")


def _must_be_possible(inertial: Inertial, key: str, where: str) -> tuple[Floats, Floats]:
    """Principal moments float64[3], rising, and axes float64[3, 3] of a body that can be."""
    tensor = inertial.inertia
    if not (np.diag(tensor) == tensor).all():
        moments, axes = np.linalg.eigh(tensor)
        axes = axes * np.linalg.det(axes)
    else:
        moments, axes = np.diag(tensor).copy(), np.eye(3)
    largest = int(np.argmax(moments))
    others = float(moments.sum() - moments[largest])
    slack = _ROUNDING * float(np.abs(moments).max())
    if moments.min() < -slack or moments[largest] > others + slack:
        shown = ", ".join(f"{moment:.4g}" for moment in np.sort(moments))
        raise SceneError(
            f"key '{key}.inertia': no body has principal moments of {shown} kg m^2",
            where=where,
            hint="each must be 0 or more, and none larger than the sum of the other two",
        )
    moments = np.maximum(moments, 0.0)
    rest = [moments[k] for k in range(3) if k != largest]
    # PyBullet drops the inertia of a flat body whose largest moment is too large by rounding.
    moments[largest] = min(moments[largest], rest[0] + rest[1])
    return moments, axes


def _text(values: Floats) -> str:
    return " ".join(repr(float(value)) for value in values)
