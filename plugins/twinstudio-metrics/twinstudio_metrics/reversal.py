"""How much the gap depends on the direction of motion."""

import math
from typing import Annotated

import numpy as np

from twinstudio.plugin import api

AXES = ("rad", "m")


class Params(api.Params, frozen=True):
    """What counts as moving."""

    moving: Annotated[
        float, api.si("rad/s|m/s", low=0.0, about="Cell speed above which a joint moves")
    ] = 0.01
    samples: Annotated[int, api.about("Fewest samples in each direction", low=2)] = 20


class ReversalError(api.Metric[Params]):
    """Mean position gap while moving forward, minus that while moving backward.

    The idea of ISO 230-2: what friction, backlash and lag leave when the same
    place is approached from both sides, here over all places passed.
    """

    id = "twinstudio.reversal_error"
    params = Params

    def measure(self, pair: api.Pair, params: Params) -> api.Results:
        """Reversal error of each joint with its 95 % interval.

        The interval counts samples as independent, which smooth motion is not:
        it is too narrow rather than too wide. Joints that do not move both ways
        often enough are left out.
        """
        signal = pair.layout.signal("joint.position")
        gap = pair.gap[:, pair.layout.span("joint.position")]
        speed = pair.cell[:, pair.layout.span("joint.velocity")]
        results = []
        for k, (label, unit) in enumerate(zip(signal.labels, signal.units, strict=True)):
            read = np.isfinite(gap[:, k]) & np.isfinite(speed[:, k])
            forward = gap[read & (speed[:, k] > params.moving), k]
            backward = gap[read & (speed[:, k] < -params.moving), k]
            if min(forward.size, backward.size) < params.samples or unit not in AXES:
                continue
            error = float(forward.mean() - backward.mean())
            spread = 1.96 * math.sqrt(
                forward.var(ddof=1) / forward.size + backward.var(ddof=1) / backward.size
            )
            results.append(
                api.Scalar(
                    name=f"reversal error of {label}",
                    value=error,
                    unit=unit,
                    low=error - spread,
                    high=error + spread,
                    note=f"{forward.size} samples forward, {backward.size} backward",
                )
            )
        return results


@api.implements
def metrics() -> list[type[api.Metric[Params]]]:
    """The metric of this module."""
    return [ReversalError]
