"""Where one signal differs most, and when."""

from typing import Annotated

import numpy as np

from twinstudio.plugin import api


class Params(api.Params, frozen=True):
    """What is compared."""

    signal: Annotated[str, api.about("Signal that is compared")] = "joint.position"


class WorstJoint(api.Metric[Params]):
    """Largest absolute gap of every component of a signal, and its time."""

    id = "twinstudio.worst_joint"
    params = Params

    def measure(self, pair: api.Pair, params: Params) -> api.Results:
        """The largest gap over all components, and a table with one row each.

        Components without a common reading are left out; no results without any.
        """
        signal = pair.layout.signal(params.signal)
        gap = np.abs(pair.gap[:, pair.layout.span(params.signal)])
        rows = []
        for label, unit, column in zip(signal.labels, signal.units, gap.T, strict=True):
            if np.isfinite(column).any():
                row = int(np.nanargmax(column))
                after = float(pair.stamps[row] - pair.stamps[0]) * 1e-9
                rows.append((label, unit, float(column[row]), after))
        if not rows:
            return []
        label, unit, value, after = max(rows, key=lambda row: row[2])
        note = f"{label}, {after:.3f} s after the start"
        return [
            api.Scalar(name="largest gap", value=value, unit=unit, note=note),
            api.Table(
                name="largest gap by component",
                columns=("component", "unit", "largest gap", "time"),
                units=("", "", "", "s"),
                rows=tuple(rows),
            ),
        ]


@api.implements
def metrics() -> list[type[api.Metric[Params]]]:
    """The metric of this module."""
    return [WorstJoint]
