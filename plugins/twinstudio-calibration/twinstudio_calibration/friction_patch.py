"""The patch of a friction fit: the laws as far as a scene can express them."""

from collections.abc import Callable, Sequence

import numpy as np

from twinstudio.plugin import api
from twinstudio_calibration import friction_fit as fitting
from twinstudio_calibration.friction_axes import whole_mass
from twinstudio_calibration.friction_fit import Fitted
from twinstudio_calibration.friction_law import Axis, Rung
from twinstudio_calibration.rigid_body import RigidBody

BEYOND: tuple[Rung, ...] = ("asymmetric", "smooth")
"""Rungs that a scene has no words for; the patch is fitted anew without them."""
Value = Callable[[Fitted], float]


def patch_of(
    fits: Sequence[Fitted], axes: Sequence[Axis], body: RigidBody, scene: api.Scene
) -> api.Patch:
    """Changes to ``drive.friction``, to the ripple, and to the mass or the armature."""
    plain = [_expressible(fitted, axis) for fitted, axis in zip(fits, axes, strict=True)]
    changes = [
        _each("drive.friction.coulomb", plain, lambda f: max(f.value("coulomb"), 0.0)),
        _each("drive.friction.viscous", plain, lambda f: max(f.value("viscous"), 0.0)),
        _each("drive.friction.offset", plain, lambda f: f.value("offset")),
    ]
    taken = {rung for fitted in plain for rung in fitted.law.rungs}
    for rung, make in _RUNGS.items():
        if rung in taken:
            changes += make(plain)
    changes += _inertia(plain, body, scene)
    left = sorted({rung for f in fits for rung in f.law.rungs if rung in BEYOND})
    reason = "friction ladder, chosen by held-out time, speed and load"
    if left:
        reason += f"; fitted anew without what a scene cannot say: {', '.join(left)}"
    return api.Patch(name="friction", changes=tuple(changes), reason=reason)


def _expressible(fitted: Fitted, axis: Axis) -> Fitted:
    law = fitted.law
    for rung in BEYOND:
        law = law.without(rung)
    return fitted if law == fitted.law else fitting.solve(law, axis, fitted.load)


def _each(key: str, fits: Sequence[Fitted], value: Value) -> api.Change:
    return api.Change(key=key, value=tuple(float(value(fitted)) for fitted in fits))


def _stribeck(fits: Sequence[Fitted]) -> list[api.Change]:
    def has(fitted: Fitted) -> bool:
        return "Stribeck" in fitted.law.rungs

    return [
        _each(
            "drive.friction.breakaway",
            fits,
            lambda f: max(f.value("coulomb") + f.value("extra"), 0.0),
        ),
        _each("drive.friction.stribeck", fits, lambda f: f.law.shape.stribeck if has(f) else 1.0),
        _each(
            "drive.friction.stribeck_exponent",
            fits,
            lambda f: f.law.shape.exponent if has(f) else 2.0,
        ),
    ]


def _presliding(fits: Sequence[Fitted]) -> list[api.Change]:
    return [
        api.Change(key="drive.friction.contact", value="maxwell"),
        _each(
            "drive.friction.presliding",
            fits,
            lambda f: f.law.shape.travel if "presliding" in f.law.rungs else 0.0,
        ),
    ]


def _ripple(fits: Sequence[Fitted]) -> list[api.Change]:
    def wave(fitted: Fitted) -> complex:
        # The scene's ripple adds to the motor's effort; the fit's must be overcome by it.
        return complex(-fitted.value("ripple_sine"), -fitted.value("ripple_cosine"))

    return [
        _each("drive.transmission.ripple", fits, lambda f: abs(wave(f))),
        _each("drive.transmission.ripple_order", fits, lambda f: f.law.shape.order),
        _each("drive.transmission.ripple_phase", fits, lambda f: float(np.angle(wave(f)))),
    ]


def _temperature(fits: Sequence[Fitted]) -> list[api.Change]:
    def relative(fitted: Fitted) -> float:
        level = fitted.value("coulomb")
        return fitted.value("temperature") / level if level > 0.0 else 0.0

    return [_each("drive.friction.temperature", fits, relative)]


_RUNGS: dict[Rung, Callable[[Sequence[Fitted]], list[api.Change]]] = {
    "Stribeck": _stribeck,
    "presliding": _presliding,
    "load": lambda fits: [_each("drive.friction.load_motor", fits, lambda f: f.value("load"))],
    "Stribeck load": lambda fits: [
        _each("drive.friction.stribeck_load_external", fits, lambda f: f.value("extra_load"))
    ],
    "temperature": _temperature,
    "quadratic": lambda fits: [
        _each("drive.friction.quadratic", fits, lambda f: f.value("quadratic"))
    ],
    "ripple": _ripple,
}


def _inertia(fits: Sequence[Fitted], body: RigidBody, scene: api.Scene) -> list[api.Change]:
    """The mass of a single prismatic axis; of others the armature that the model lacks."""
    found = [fitted.value("mass") for fitted in fits]
    if whole_mass(body):
        armature = scene.drive.motor.armature
        mass = found[0] - (armature[0] if armature else 0.0)
        return [api.Change(key=f"links.{body.links[0]}.mass", value=float(mass))]
    if min(found) < 0.0:
        return []
    return [api.Change(key="drive.motor.armature", value=tuple(map(float, found)))]
