"""A residual learner as a job: fitted on one part of a pair, scored on the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twinstudio.jobs.logs import LogReader
from twinstudio.jobs.spec import DEFAULT_SPLIT, HELD_OUT
from twinstudio.jobs.stored import FOLDER
from twinstudio.model.block import Stamps
from twinstudio.model.errors import JobError
from twinstudio.model.pair import Pair
from twinstudio.model.params import Params
from twinstudio.model.patches import load_patched
from twinstudio.model.provenance import sha256
from twinstudio.model.results import Result, Scalar, Table
from twinstudio.plugin.kinds import ResidualLearner

if TYPE_CHECKING:
    from twinstudio.jobs.execute import Execution

MODEL = f"{FOLDER}/model.bin"
BLOCKS = 5
"""Parts in time that held-out data is scored in: a mean alone would hide a drift."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What is learned from: features float64[n, k], target float64[n, m], stamps int64[n] ns.

    labels, units: of the columns of the target.
    """

    stamps: Stamps
    features: Floats
    target: Floats
    labels: tuple[str, ...]
    units: tuple[str, ...]

    def part(self, rows: slice) -> "Samples":
        """Some of the rows."""
        return Samples(
            self.stamps[rows], self.features[rows], self.target[rows], self.labels, self.units
        )


def learn(job: "Execution", plugin: ResidualLearner[Any], params: Params) -> None:
    """Fit `plugin`, keep the model as a file, and score it on data it has not seen.

    Raises JobError for logs without the signals asked for, and for what is no model
    or no prediction.
    """
    fitting, held_out = _samples(job, plugin)
    job.enter("running")
    model = plugin.fit(job.context, fitting.features.copy(), fitting.target.copy(), params)
    name = job.spec.plugin
    if not isinstance(model, bytes):
        raise JobError(f"{name}.fit returned a {type(model).__name__}, no bytes")
    job.context.checkpoint()
    job.enter("analysing")
    path = job.folder / MODEL
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model)
    job.files.append(MODEL)
    told = plugin.predict(model, held_out.features.copy())
    _check_prediction(told, held_out.target, f"{name}.predict")
    row = (MODEL, len(model), sha256(path))
    job.results.append(
        Table(name="model", columns=("file", "bytes", "sha256"), units=("", "", ""), rows=(row,))
    )
    job.results += scores(held_out, held_out.target - told)


def samples_of(pair: Pair, features: Sequence[str], target: str) -> Samples:
    """Features of the cell, and cell minus twin of `target`, where there is a reading of all.

    Raises JobError for a signal that the pair does not have.
    """
    absent = [name for name in (*features, target) if name not in pair.layout]
    if absent:
        raise JobError(
            f"twin and cell do not both have {', '.join(absent)}",
            hint=f"both have {', '.join(pair.layout.names)}",
        )
    columns = [pair.cell[:, pair.layout.span(name)] for name in features]
    inputs = np.hstack(columns) if columns else np.empty((len(pair), 0))
    signal, span = pair.layout.signal(target), pair.layout.span(target)
    left = pair.cell[:, span] - pair.twin[:, span]
    known = np.isfinite(inputs).all(axis=1) & np.isfinite(left).all(axis=1)
    return Samples(pair.stamps[known], inputs[known], left[known], signal.labels, signal.units)


def scores(data: Samples, after: Floats) -> list[Result]:
    """RMS of the residual before and after, of each column: as a whole, and in blocks of time."""
    found: list[Result] = []
    for k, (label, unit) in enumerate(zip(data.labels, data.units, strict=True)):
        for when, values in (("before", data.target), ("after", after)):
            found.append(
                Scalar(
                    name=f"rms {when} {label}", value=_rms(values[:, k]), unit=unit, note="held out"
                )
            )
    rows = []
    for part in np.array_split(np.arange(len(data.stamps)), BLOCKS):
        if len(part):
            ends = ((data.stamps[part[[0, -1]]] - data.stamps[0]) * 1e-9).tolist()
            pairs = zip(data.target[part].T, after[part].T, strict=True)
            rows.append((*ends, *(_rms(values) for both in pairs for values in both)))
    columns = [f"{when} {label}" for label in data.labels for when in ("before", "after")]
    units = [unit for unit in data.units for _ in range(2)]
    found.append(
        Table(
            name="held out by time",
            columns=("from", "to", *columns),
            units=("s", "s", *units),
            rows=tuple(rows),
        )
    )
    return found


def _samples(job: "Execution", plugin: ResidualLearner[Any]) -> tuple[Samples, Samples]:
    """What is fitted with, and what is kept from it."""
    spec = job.spec
    scene = load_patched(spec.scene) if spec.scene else None
    reader = LogReader(spec.inputs, job.note, job.context.progress)
    read = {}
    for name in (n for n in ("log", HELD_OUT) if n in spec.inputs):
        pair = reader.pair(name, scene, imposed=True)
        read[name] = samples_of(pair, plugin.features, plugin.target)
        lost = len(pair) - len(read[name].stamps)
        if lost:
            job.note(f"input '{name}': {lost} of {len(pair)} samples lack a reading, left out")
    fitting = read["log"]
    if HELD_OUT in read:
        held_out = read[HELD_OUT]
    else:
        share = DEFAULT_SPLIT if spec.split is None else spec.split
        cut = int(np.ceil(len(fitting.stamps) * share))
        job.note(f"fitted to the first {share:.4g} of the log, the rest is held out")
        fitting, held_out = fitting.part(slice(0, cut)), fitting.part(slice(cut, None))
    for what, part in (("to fit to", fitting), ("to score on", held_out)):
        if not len(part.stamps):
            raise JobError(f"there are no samples {what}", where=spec.plugin)
    return fitting, held_out


def _check_prediction(told: object, target: Floats, what: str) -> None:
    if not isinstance(told, np.ndarray) or told.shape != target.shape:
        shape = f"{list(told.shape)}" if isinstance(told, np.ndarray) else type(told).__name__
        raise JobError(f"{what} returned {shape}", hint=f"return float64{list(target.shape)}")
    if told.dtype.kind != "f" or not np.isfinite(told).all():
        raise JobError(f"{what} returned numbers that are not finite")


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))
