"""The band that holds most of the gap."""

from typing import Annotated

import numpy as np

from twinstudio.plugin import api


class Params(api.Params, frozen=True):
    """What is compared, and how much of it the band holds."""

    signal: Annotated[str, api.about("Signal that is compared")] = "joint.position"
    share: Annotated[
        float, api.si("%", low=0.01, high=0.999, about="Share of samples inside the band")
    ] = 0.95


class ErrorBand(api.Metric[Params]):
    """Percentiles of twin minus cell, symmetric in probability about the median."""

    id = "twinstudio.error_band"
    params = Params

    def measure(self, pair: api.Pair, params: Params) -> api.Results:
        """Median and bounds of each component; the interval of a figure is the band.

        Percentiles are interpolated linearly between samples.
        Components without a common reading are left out.
        """
        signal = pair.layout.signal(params.signal)
        gap = pair.gap[:, pair.layout.span(params.signal)]
        outside = (1.0 - params.share) / 2.0
        results = []
        for label, unit, column in zip(signal.labels, signal.units, gap.T, strict=True):
            readings = column[np.isfinite(column)]
            if readings.size == 0:
                continue
            low, middle, high = np.quantile(readings, (outside, 0.5, 1.0 - outside))
            note = f"median; the interval holds {params.share:.1%} of {readings.size} samples"
            results.append(
                api.Scalar(
                    name=f"gap of {label}",
                    value=float(middle),
                    unit=unit,
                    low=float(low),
                    high=float(high),
                    note=note,
                )
            )
        return results


@api.implements
def metrics() -> list[type[api.Metric[Params]]]:
    """The metric of this module."""
    return [ErrorBand]
