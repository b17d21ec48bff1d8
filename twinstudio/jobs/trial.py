"""The trial of a patch: the verdict on it, and the figures behind that."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from twinstudio.jobs.calibration import Outcome, Trial
from twinstudio.jobs.replaying import Replayer, SignalGap
from twinstudio.model.block import Block
from twinstudio.model.errors import TwinstudioError
from twinstudio.model.patches import Promoted, patched
from twinstudio.model.results import Patch, Result, Scalar, Series, Table
from twinstudio.model.scene import Scene
from twinstudio.report.numbers import number, shown

EQUAL = 0.005
"""A gap that changes by less than this share counts as the same."""
POINTS = 2000
"""Of a plotted curve, at most."""


def tried(
    patch: Patch,
    number: int,
    *,
    scene: Scene,
    under: tuple[Promoted, ...],
    logs: Mapping[str, Block],
    note: Callable[[str], None],
    progress: Callable[[float, str], None],
) -> tuple[Trial, list[Result]]:
    """Replay the held-out `logs` without and with `patch`: verdict and figures.

    scene: as written; under: patches in force, on both sides. progress may raise
    Cancelled. Whatever keeps a twin from being simulated is a verdict, not an error.
    """
    gaps: list[SignalGap] = []
    try:
        before = patched(scene, under)
        after = patched(scene, (*under, Promoted(patch=patch, run="of this run", when=0.0)))
        gaps = Replayer(logs, note, progress).compare(before, after)
    except TwinstudioError as error:
        words = f"the twin cannot be simulated with it: {' '.join(str(error).split())}"
        return Trial(patch=number, name=patch.name, outcome="not simulated", words=words), []
    if not gaps:
        words = "no held-out signal can be compared with the twin"
        return Trial(patch=number, name=patch.name, outcome="not compared", words=words), []
    ratio = _together([gap.ratio for gap in gaps])
    outcome = _outcome(ratio)
    words = f"{_WORDS[outcome]} on held-out data: {_figures(gaps)}"
    trial = Trial(patch=number, name=patch.name, outcome=outcome, words=words, ratio=_finite(ratio))
    return trial, _results(gaps, ratio, trial, several=len(logs) > 1)


_WORDS: dict[Outcome, str] = {
    "better": "the twin is better",
    "same": "the twin is neither better nor worse",
    "worse": "the twin is worse",
}


def _outcome(ratio: float) -> Outcome:
    if not math.isfinite(ratio) or ratio > 1.0 + EQUAL:
        return "worse"
    return "better" if ratio < 1.0 - EQUAL else "same"


def _together(ratios: Sequence[float]) -> float:
    """The geometric mean: half in one signal makes up for double in another."""
    if not all(map(math.isfinite, ratios)):
        return math.inf
    if min(ratios) <= 0.0:
        return 0.0
    return float(np.exp(np.mean(np.log(ratios))))


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None


def _figures(gaps: Sequence[SignalGap]) -> str:
    """The gap of each signal before and after, over all joints that share its unit."""
    parts = []
    for gap in gaps:
        kind = gap.signal.removeprefix("joint.")
        if len(set(gap.units)) == 1:
            unit, factor = shown(gap.units[0])
            before, after = (number(factor * _overall(x)) for x in (gap.before, gap.after))
            sizes = f"{before} to {after} {unit}"
        else:
            sizes = f"{gap.ratio:.3g} of what it was"
        parts.append(f"{kind} gap {sizes}" + (f" ({gap.log})" if _several(gaps) else ""))
    return ", ".join(parts)


def _several(gaps: Sequence[SignalGap]) -> bool:
    return len({gap.log for gap in gaps}) > 1


def _overall(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _results(
    gaps: Sequence[SignalGap], ratio: float, trial: Trial, *, several: bool
) -> list[Result]:
    found: list[Result] = []
    if math.isfinite(ratio):
        note = "all signals together, held out; below 1 is better"
        name = f"replay of {trial.name}: gap after / before"
        found.append(Scalar(name=name, value=ratio, unit="1", note=note))
    for gap in gaps:
        title = f"replay of {trial.name}, {gap.signal}" + (f" of {gap.log}" if several else "")
        found += _scalars(title, gap)
        found.append(_table(f"{title}: gap by joint", gap))
        found += _curves(f"{title}: twin minus cell, {gap.joints[gap.shown]}", gap)
    return found


def _scalars(title: str, gap: SignalGap) -> list[Result]:
    if len(set(gap.units)) > 1:
        return []
    return [
        Scalar(
            name=f"{title}: gap {when}",
            value=_overall(values),
            unit=gap.units[0],
            note="RMS over joints, held out",
        )
        for when, values in (("before", gap.before), ("after", gap.after))
    ]


def _table(title: str, gap: SignalGap) -> Table:
    """RMS before and after; joints of different units get a column for theirs."""
    one = gap.units[0] if len(set(gap.units)) == 1 else ""
    rows = []
    for k, joint in enumerate(gap.joints):
        before, after = float(gap.before[k]), float(gap.after[k])
        share = after / before if before > 0.0 else None
        rows.append((joint, before, after, share, *(() if one else (gap.units[k],))))
    more = () if one else ("unit (SI)",)
    return Table(
        name=title,
        columns=("joint", "before", "after", "after / before", *more),
        units=("", one, one, "1", *("" for _ in more)),
        rows=tuple(rows),
    )


def _curves(title: str, gap: SignalGap) -> list[Result]:
    """The gap over time without and with the patch, as curves of one plot."""
    step = max(1, -(-len(gap.time) // POINTS))
    x = tuple(gap.time[::step].tolist())
    return [
        Series(
            name=f"{title}: {name}",
            x=x,
            y=tuple(values[::step].tolist()),
            x_unit="s",
            y_unit=gap.units[gap.shown],
        )
        for name, values in (("without", gap.gap_before), ("with", gap.gap_after))
    ]
