"""Template."""

from typing import Annotated

import numpy as np
from twinstudio.plugin import api


class Params(api.Params, frozen=True):
    signal: Annotated[str, api.about("Signal that is compared")] = "joint.position"


class AcmeTemplate(api.Metric[Params]):
    id = "acme.template"
    params = Params

    def measure(self, pair: api.Pair, params: Params) -> api.Results:
        columns = pair.layout.span(params.signal)
        gap = np.abs(pair.gap[:, columns])
        readings = gap[np.isfinite(gap)]
        if readings.size == 0:
            return []
        unit = pair.layout.units[columns.start]
        return [api.Scalar(name="largest gap", value=float(readings.max()), unit=unit)]


@api.implements
def metrics() -> list[type[api.Metric[Params]]]:
    return [AcmeTemplate]
