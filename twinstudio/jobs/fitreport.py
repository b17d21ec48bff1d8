"""The report pages of a calibrator's run: what it was made from, found and changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from twinstudio.jobs.spec import DEFAULT_SPLIT, HELD_OUT, JobSpec
from twinstudio.jobs.stored import FOLDER, as_plain, worded
from twinstudio.model.errors import ReportError
from twinstudio.model.provenance import provenance
from twinstudio.model.results import Result
from twinstudio.report.fit import FitReport, write_fit

if TYPE_CHECKING:
    from twinstudio.jobs.calibrating import Calibrating

HTML, JSON = f"{FOLDER}/report.html", f"{FOLDER}/report.json"


def write_fit_report(fit: "Calibrating", error: str) -> list[str]:
    """Write both pages into the run's folder; names of those that are there.

    Without room for them, or with a curve that cannot be drawn, the run still counts,
    and a note says why a page is missing.
    """
    report = content(fit, error)
    made = []
    folder = fit.job.folder
    (folder / FOLDER).mkdir(exist_ok=True)
    try:
        (folder / JSON).write_bytes(msgspec.json.format(msgspec.json.encode(plain(report))))
        made.append(JSON)
        write_fit(folder / HTML, report)
        made.append(HTML)
    except (OSError, ReportError) as failure:
        fit.note(f"there is no report: {failure}")
    return made


def content(fit: "Calibrating", error: str) -> FitReport:
    """What there is to report of a calibrator at work."""
    spec, results = fit.job.spec, tuple(fit.job.results)
    scored = slice(fit.solved, fit.solved + fit.scored)
    digests = {name: given.digest for name, given in spec.inputs.items()}
    return FitReport(
        title=f"Calibration: {spec.title}",
        subtitle=f"{spec.plugin} {spec.version} on {Path(spec.scene).parent.name},"
        f" seed {spec.seed}, run {fit.job.folder.name}",
        error=error,
        inputs=tuple(
            (name, given.given, _use(spec, name), given.digest[:16])
            for name, given in spec.inputs.items()
        ),
        params=tuple((name, _text(value)) for name, value in spec.params.items()),
        findings=tuple(
            (found.text, found.hint, "fatal" if found.fatal else "warning")
            for found in fit.findings
        ),
        solved=results[: fit.solved],
        scores=results[scored],
        replays=results[scored.stop :],
        verdicts=tuple((trial.name, trial.words, trial.refused) for trial in fit.trials),
        notes=tuple(fit.notes),
        provenance=provenance(seed=spec.seed, inputs=digests),
    )


def plain(report: FitReport) -> dict[str, Any]:
    """`report` as plain data that JSON can hold; pictures by their size alone."""
    keys = ("title", "subtitle", "error", "notes")
    found: dict[str, Any] = {key: getattr(report, key) for key in keys}
    found["inputs"] = _rows(("name", "path", "use", "digest"), report.inputs)
    found["params"] = dict(report.params)
    found["findings"] = _rows(("text", "hint", "weight"), report.findings)
    found["verdicts"] = _rows(("patch", "words", "refused"), report.verdicts)
    for part in ("solved", "scores", "replays"):
        found[part] = [_result(one) for one in getattr(report, part)]
    found["provenance"] = msgspec.to_builtins(report.provenance)
    result: dict[str, Any] = worded(found)
    return result


def _use(spec: JobSpec, name: str) -> str:
    if name == HELD_OUT or name.startswith(f"{HELD_OUT}_"):
        return "validation alone"
    if any(given == HELD_OUT or given.startswith(f"{HELD_OUT}_") for given in spec.inputs):
        return "solving"
    share = DEFAULT_SPLIT if spec.split is None else spec.split
    return f"first {share:.4g} for solving, the rest for validation"


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def _rows(keys: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _result(result: Result) -> dict[str, Any]:
    found = as_plain(result)
    if "data" in found:
        found["bytes"] = len(found.pop("data"))
    return found
