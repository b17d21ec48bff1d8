"""A calibrator for the tests of the workflow: it says what it is told to say."""

from typing import Annotated

import numpy as np

from twinstudio.model.params import Params, about
from twinstudio.model.results import Change, Patch, Scalar, Series, Table
from twinstudio.plugin.kinds import Calibrator, Finding


class TuneParams(Params):
    gain: Annotated[float, about("Position gain that it finds", low=0.0, high=1.0)] = 0.05
    key: Annotated[str, about("Key that the patch sets")] = "twin.position_gain"
    fatal: Annotated[bool, about("Whether the data is refused")] = False


class Tunes(Calibrator[TuneParams]):
    """Finds the position gain of the twin, or whatever it is told to find."""

    id = "test.tunes"
    params = TuneParams

    def check(self, logs, scene, params):
        findings = [Finding("little motion", hint="move faster")]
        return [*findings, Finding("nothing moves", fatal=True, hint="move")][: 1 + params.fatal]

    def solve(self, context, logs, scene, params):
        context.progress(0.5, "tuning")
        x = np.linspace(0.0, 1.0, 50)
        gain = params.gain
        return [
            Scalar(name="gain", value=gain, unit="1", low=0.9 * gain, high=1.1 * gain, note="told"),
            Scalar(name="damping", value=0.5, unit="1", note="by nobody"),
            Scalar(name="gain before", value=scene.twin.position_gain, unit="1"),
            Series(name="residual of axis", x=x, y=np.sin(9 * x), x_unit="s", y_unit="N"),
            Patch(
                name="gain",
                changes=(Change(key=params.key, value=gain),),
                reason="it follows better",
            ),
        ]

    def validate(self, logs, scene, solved):
        rows = tuple((name, len(block)) for name, block in logs.items())
        return [Table(name="scores", columns=("log", "samples"), units=("", ""), rows=rows)]
