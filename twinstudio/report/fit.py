"""A calibration report as one HTML page: data, check, parameters, scores, replay, patch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinstudio.model.provenance import Provenance
from twinstudio.model.results import Patch, Result, Scalar
from twinstudio.report.metrics import parts_of
from twinstudio.report.page import filled, written

UNKNOWN = "not identifiable"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FitReport:
    """A calibrator's run.

    error: why it failed, or "". inputs: name, file, what it was used for, hash.
    params: name and value in SI. findings: text, what to do, weight. solved, scores,
    replays: what solve, validate and the trial of the patch gave. verdicts: name of a
    patch, its verdict, and whether promoting it takes an explicit word.
    """

    title: str
    subtitle: str
    error: str = ""
    inputs: tuple[tuple[str, str, str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    findings: tuple[tuple[str, str, str], ...] = ()
    solved: tuple[Result, ...] = ()
    scores: tuple[Result, ...] = ()
    replays: tuple[Result, ...] = ()
    verdicts: tuple[tuple[str, str, bool], ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None


def write_fit(path: Path, report: FitReport) -> Path:
    """Write `report` to `path`; raises ReportError when it cannot be drawn or written."""
    return written(path, render_fit(report))


def render_fit(report: FitReport) -> str:
    """The whole page as HTML; all text is escaped."""
    return filled(
        "fit.html",
        report=report,
        cards=_cards(report),
        solved=parts_of(report.solved, "solved", unknown=UNKNOWN),
        scores=parts_of(report.scores, "score"),
        replays=parts_of(report.replays, "replay"),
    )


def identifiable(scalar: Scalar) -> bool:
    """Whether the data told this parameter: it has an interval with two ends."""
    return math.isfinite(scalar.low) and math.isfinite(scalar.high)


def _cards(report: FitReport) -> list[tuple[str, str]]:
    found = [one for one in report.solved if isinstance(one, Scalar)]
    known = sum(map(identifiable, found))
    cards = [("parameters identified", f"{known} of {len(found)}")] if found else []
    values = _changed(report.solved)
    if values:
        cards.append(("keys of the scene that the patch sets", str(values)))
    return cards + [
        (f"patch {name}", verdict.split(":")[0]) for name, verdict, _ in report.verdicts
    ]


def _changed(results: Sequence[Result]) -> int:
    return sum(len(one.changes) for one in results if isinstance(one, Patch))
