"""A prior on inertial parameters that only real bodies satisfy.

The log-det divergence of each link's pseudo-inertia J from its prior J0,
tr(J0^-1 J) - log det(J0^-1 J) - 4, is convex in the parameters, does not depend on the
frame, and grows without bound where J stops being positive definite, so that every
fit has masses and inertias of real bodies (Lee, Wensing, Park, IEEE T-RO 2020).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinstudio_calibration.rigid_body import PER_LINK, parameters_of, pseudo_inertia

Floats = NDArray[np.float64]
ITERATIONS = 30
CLOSE = 1e-6
BASIS = np.stack([pseudo_inertia(row) for row in np.eye(PER_LINK)])
"""The pseudo-inertia is linear in the parameters: these are its derivatives."""


def divergence(parameters: Floats, prior: Floats) -> float:
    """Sum over links of the divergence from `prior`, float64[10 links]; infinite outside."""
    j, inverse = pseudo_inertias(parameters), np.linalg.inv(pseudo_inertias(prior))
    if np.linalg.eigvalsh(j).min() <= 0.0:
        return float("inf")
    relative = inverse @ j
    logarithms = np.linalg.slogdet(relative)[1]
    return float(np.einsum("kii->", relative) - logarithms.sum() - 4.0 * len(j))


def pseudo_inertias(parameters: Floats) -> Floats:
    """Of every link, float64[links, 4, 4]."""
    result: Floats = np.einsum("kn,nij->kij", _links(parameters), BASIS)
    return result


def slope_and_curvature(parameters: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """First and second derivative of `divergence`."""
    size = len(parameters)
    inverse = np.linalg.inv(pseudo_inertias(parameters))
    before = np.linalg.inv(pseudo_inertias(prior))
    slope = np.einsum("kij,nji->kn", before - inverse, BASIS).ravel()
    turned = np.einsum("kij,njl->knil", inverse, BASIS)
    blocks = np.einsum("knij,kmji->knm", turned, turned)
    curvature = np.zeros((size, size))
    for k, block in enumerate(blocks):
        part = slice(PER_LINK * k, PER_LINK * (k + 1))
        curvature[part, part] = block
    return slope, curvature


def minimise(
    a: Floats,
    b: Floats,
    prior: Floats,
    strength: float,
    start: Floats,
    positive: NDArray[np.bool_],
) -> Floats:
    """Parameters that minimise half p' a p - b' p + strength divergence, by Newton's method.

    The first ``len(prior)`` parameters are inertial; `start` must be real bodies. Those
    that should be `positive` and are not are set to 0, and the others solved again.
    """
    free = np.ones(len(b), dtype=bool)
    result = np.array(start)
    while True:
        result[~free] = 0.0
        part = np.ix_(free, free)
        result[free] = _newton(a[part], b[free], prior, strength, result[free])
        wrong = positive & free & (result < 0.0)
        if not wrong.any():
            return result
        free &= ~wrong


def _newton(a: Floats, b: Floats, prior: Floats, strength: float, start: Floats) -> Floats:
    """As `minimise`, without a bound on signs."""
    size = len(prior)

    def cost(p: Floats) -> float:
        return float(0.5 * p @ a @ p - b @ p) + strength * divergence(p[:size], prior)

    p: Floats = start.copy()
    value = cost(p)
    for _ in range(ITERATIONS):
        slope, curvature = slope_and_curvature(p[:size], prior)
        gradient, hessian = a @ p - b, a.copy()
        gradient[:size] += strength * slope
        hessian[:size, :size] += strength * curvature
        step = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        decrement = float(gradient @ step)
        if decrement < CLOSE * max(1.0, abs(value)):
            break
        lower, new = _descend(cost, p, value, step, decrement)
        if new >= value:
            break
        p, value = np.asarray(lower, dtype=np.float64), new
    return p


def _descend(
    cost: Callable[[Floats], float], p: Floats, value: float, step: Floats, decrement: float
) -> tuple[Floats, float]:
    """As far along the step as the cost falls in earnest (Armijo)."""
    length = 1.0
    while length > 1e-6:
        candidate = p - length * step
        new = cost(candidate)
        if new < value - 0.1 * length * decrement:
            return candidate, new
        length *= 0.5
    return p, value


def nearest_real(parameters: Floats, least: float) -> Floats:
    """Ten parameters with mass and centre as given and an inertia that a body can have.

    The second moments about the centre get eigenvalues of at least mass times `least`^2
    (m): what inverse dynamics tells of a payload's inertia is mostly noise.
    """
    mass, centre = float(parameters[0]), parameters[1:4] / parameters[0]
    homogeneous = np.append(centre, 1.0)
    about = pseudo_inertia(parameters)[:3, :3] - mass * np.outer(centre, centre)
    values, vectors = np.linalg.eigh(about)
    pseudo = mass * np.outer(homogeneous, homogeneous)
    pseudo[:3, :3] += vectors @ np.diag(np.maximum(values, mass * least**2)) @ vectors.T
    return parameters_of(pseudo)


def plausible(parameters: Floats, lengths: Floats, absurd: list[bool]) -> Floats:
    """A prior of real bodies from a model's parameters, float64[10 links].

    A link that is `absurd` keeps mass and centre, and gets the inertia of a ball whose
    radius of gyration is a third of its length [m]; all get at least a twentieth.
    """
    result = []
    for own, length, wrong in zip(_links(parameters), lengths, absurd, strict=True):
        mass = max(own[0], 0.1)
        centre = own[1:4] / max(own[0], 1e-9) if own[0] > 1e-6 else np.zeros(3)
        homogeneous = np.append(centre, 1.0)
        j = pseudo_inertia(own)
        about = j[:3, :3] - mass * np.outer(centre, centre)
        least = mass * (length / 20.0) ** 2
        if wrong:
            about = mass * (length / 3.0) ** 2 / 2.0 * np.eye(3)
        values, vectors = np.linalg.eigh(about)
        about = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
        j = mass * np.outer(homogeneous, homogeneous)
        j[:3, :3] += about
        result.append(parameters_of(j))
    return np.concatenate(result)


def _links(parameters: Floats) -> Floats:
    return parameters.reshape(-1, PER_LINK)
