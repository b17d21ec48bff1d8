"""Figures, table and patch of a fitted arm, and the arm back from its table."""

import numpy as np
from numpy.typing import NDArray

from twinstudio.plugin import api
from twinstudio_calibration import joint_terms as terms
from twinstudio_calibration.arm_fit import Fitting
from twinstudio_calibration.arm_model import ArmModel, Source
from twinstudio_calibration.regression import quantile
from twinstudio_calibration.rigid_body import (
    PER_LINK,
    RigidBody,
    centre_and_inertia,
    pseudo_inertia,
)

Floats = NDArray[np.float64]
MODEL = "identified model"
METHOD = "95 % by the jackknife over blocks of time, Student's t"
UNKNOWN = "not identifiable from these logs: the prior says as much as they do"
HELD = "held at 0: the data would have it negative"
UNITS = {
    terms.COULOMB: ("N m", "N"),
    terms.OFFSET: ("N m", "N"),
    terms.VISCOUS: ("N m s/rad", "N s/m"),
    terms.QUADRATIC: ("1", "1"),
    terms.ARMATURE: ("kg m^2", "kg"),
    terms.LOAD: ("1", "1"),
    terms.BALANCE: ("1", "1"),
}
INERTIAL = ("mass", "mx", "my", "mz", "ixx", "ixy", "iyy", "ixz", "iyz", "izz")


def figures(fitting: Fitting, model: ArmModel) -> list[api.Scalar]:
    """Every identified parameter with its interval."""
    spread = fitting.spread()
    known = fitting.identifiable(spread)
    half = quantile(fitting.evidence.blocks) * np.sqrt(np.maximum(np.diag(spread), 0.0))
    body = fitting.body
    found = []
    for j, (joint, own) in enumerate(zip(body.joints, model.own, strict=True)):
        for name, value in own.items():
            place = fitting.place(j, name)
            unit = UNITS[name][not body.revolute[j]]
            sure = bool(known[place]) and not (value == 0.0 and name not in terms.SIGNED)
            found.append(_figure(f"{name} of {joint}", value, unit, float(half[place]), sure))
    for k, link in enumerate(body.links):
        place = PER_LINK * k
        value = float(model.inertial[place])
        found.append(
            _figure(f"mass of {link}", value, "kg", float(half[place]), bool(known[place]))
        )
    return [*found, *_gains(fitting, half, known), *_choices(body, model)]


def _figure(name: str, value: float, unit: str, half: float, known: bool) -> api.Scalar:
    if not known:
        return api.Scalar(name=name, value=value, unit=unit, note=HELD if value == 0.0 else UNKNOWN)
    return api.Scalar(
        name=name, value=value, unit=unit, low=value - half, high=value + half, note=METHOD
    )


def _gains(fitting: Fitting, half: Floats, known: NDArray[np.bool_]) -> list[api.Scalar]:
    if fitting.source != "current" or fitting.known_gain:
        return []
    found = []
    n = fitting.joints
    for j, joint in enumerate(fitting.body.joints):
        value, place = 1.0 / float(fitting.gain[j]), len(half) - n + j
        name = f"drive gain of {joint}"
        unit = "N m/A" if fitting.body.revolute[j] else "N/A"
        if not known[place]:
            found.append(api.Scalar(name=name, value=value, unit=unit, note=UNKNOWN))
            continue
        factor = float(np.exp(half[place]))
        note = f"{METHOD}; its scale rests on the masses of the model"
        found.append(
            api.Scalar(
                name=name,
                value=value,
                unit=unit,
                low=value / factor,
                high=value * factor,
                note=note,
            )
        )
    return found


def _choices(body: RigidBody, model: ArmModel) -> list[api.Scalar]:
    """Delay and travel: chosen from a grid, so that they have no interval here."""
    note = "chosen by cross-validation among values; no interval"
    found = []
    for j, joint in enumerate(body.joints):
        delay = float(model.delay[j])
        found.append(api.Scalar(name=f"delay of {joint}", value=delay, unit="s", note=note))
        unit = "rad" if body.revolute[j] else "m"
        travel = model.contact[j].travel
        found.append(api.Scalar(name=f"presliding of {joint}", value=travel, unit=unit, note=note))
    return found


def table_of(body: RigidBody, model: ArmModel) -> api.Table:
    """The whole model, one number a row, from which `model_from` makes it again."""
    rows: list[tuple[str, str, float]] = [
        ("", "motion_cutoff", model.motion_cutoff),
        ("", "score_cutoff", model.score_cutoff),
        ("", model.source, 1.0),
    ]
    for k, link in enumerate(body.links):
        values = model.inertial[PER_LINK * k : PER_LINK * (k + 1)]
        rows += [(link, name, float(v)) for name, v in zip(INERTIAL, values, strict=True)]
    for j, joint in enumerate(body.joints):
        rows += [(joint, f"term {name}", value) for name, value in model.own[j].items()]
        rows += [
            (joint, "gain", float(model.gain[j])),
            (joint, "delay", float(model.delay[j])),
            (joint, "travel", model.contact[j].travel),
            (joint, "creep rate", 1.0 / model.contact[j].creep),
        ]
    rows += [("payload", n, float(v)) for n, v in zip(INERTIAL, model.payload, strict=True)]
    if model.payload_gain is not None:
        gains = zip(body.joints, model.payload_gain, strict=True)
        rows += [(joint, "payload gain", float(gain)) for joint, gain in gains]
    return api.Table(
        name=MODEL, columns=("of", "parameter", "value"), units=("", "", ""), rows=tuple(rows)
    )


def model_from(solved: api.Results, body: RigidBody) -> ArmModel:
    """The model that `table_of` put into `solved`; raises PluginError if it is not there."""
    tables = [r for r in solved if isinstance(r, api.Table) and r.name == MODEL]
    if not tables:
        raise api.PluginError(f"the solved results have no table '{MODEL}'")
    of = {(str(row[0]), str(row[1])): float(row[2] or 0.0) for row in tables[0].rows}
    source: Source = "current" if ("", "current") in of else "effort"
    own: list[dict[str, float]] = []
    contacts = []
    for joint in body.joints:
        own.append({n: of[joint, f"term {n}"] for n in terms.ALL if (joint, f"term {n}") in of})
        rate = of[joint, "creep rate"]
        creep = 1.0 / rate if rate > 0.0 else float("inf")
        contacts.append(terms.Contact(of[joint, "travel"], creep))
    return ArmModel(
        source=source,
        inertial=np.array([of[link, name] for link in body.links for name in INERTIAL]),
        gain=np.array([of[joint, "gain"] for joint in body.joints]),
        own=tuple(own),
        contact=tuple(contacts),
        delay=np.array([of[joint, "delay"] for joint in body.joints]),
        motion_cutoff=of["", "motion_cutoff"],
        score_cutoff=of["", "score_cutoff"],
        payload=np.array([of["payload", name] for name in INERTIAL]),
        payload_gain=np.array([of[joint, "payload gain"] for joint in body.joints])
        if (body.joints[0], "payload gain") in of
        else None,
    )


def patch_of(body: RigidBody, model: ArmModel, reason: str) -> api.Patch:
    """Changes to the scene: links, friction, armature and, from a current, drive gains."""
    changes = []
    for k, link in enumerate(body.links):
        part = slice(PER_LINK * k, PER_LINK * (k + 1))
        own = model.inertial[part] - body.welded[part]
        if np.linalg.eigvalsh(pseudo_inertia(own)).min() <= 0.0:
            continue  # what is welded to the link would leave no body; `unpatched` says so
        mass, centre, inertia = centre_and_inertia(own)
        changes += [
            api.Change(key=f"links.{link}.mass", value=mass),
            api.Change(key=f"links.{link}.centre", value=tuple(centre.tolist())),
            api.Change(key=f"links.{link}.inertia", value=tuple(inertia.tolist())),
        ]
    keys = {
        "drive.friction.coulomb": terms.COULOMB,
        "drive.friction.viscous": terms.VISCOUS,
        "drive.friction.offset": terms.OFFSET,
        "drive.motor.armature": terms.ARMATURE,
        "drive.friction.load_motor": terms.LOAD,
    }
    for key, name in keys.items():
        values = tuple(own.get(name, 0.0) for own in model.own)
        if any(values):
            changes.append(api.Change(key=key, value=values))
    quadratic = tuple(own.get(terms.QUADRATIC, 0.0) for own in model.own)
    if any(quadratic) and min(quadratic) >= 0.0:
        changes.append(api.Change(key="drive.friction.quadratic", value=quadratic))
    travel = tuple(c.travel if c.travel > terms.RIGID else 0.0 for c in model.contact)
    changes.append(api.Change(key="drive.friction.presliding", value=travel))
    if model.source == "current":
        gains = tuple(float(v) for v in 1.0 / model.gain)
        changes.append(api.Change(key="drive.motor.drive_gain", value=gains))
    return api.Patch(name="identified arm", changes=tuple(changes), reason=reason)


def unpatched(body: RigidBody, model: ArmModel) -> list[str]:
    """What was identified and the scene has no key for, in words."""
    found = []
    for k, link in enumerate(body.links):
        part = slice(PER_LINK * k, PER_LINK * (k + 1))
        if np.linalg.eigvalsh(pseudo_inertia(model.inertial[part] - body.welded[part])).min() <= 0:
            found.append(f"{link} stays as it is: what the model welds to it is heavier than both")
    if any(own.get(terms.QUADRATIC, 0.0) < 0.0 for own in model.own):
        found.append("friction that levels off with speed is not in the patch: no key allows it")
    if any(own.get(terms.BALANCE) for own in model.own):
        found.append("the counterbalance is not in the patch: the scene has no key for it")
    return found
