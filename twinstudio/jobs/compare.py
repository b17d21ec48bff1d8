"""What two runs differ in: what went in, what it ran on, what came out."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from twinstudio.jobs.record import Run
from twinstudio.model.provenance import Provenance
from twinstudio.model.results import Image, Patch, Result, Scalar, Series, Table

ABSENT = "absent"
TIMED = "duration"
"""A column of a table called so says how long something took, which no run gives again."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Something that differs; one, other: the two values, ``absent`` where there is none."""

    name: str
    one: Any
    other: Any


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of two runs by what they concern; all empty if there are none.

    params: also seed, plugin and kind. environment: versions, platform, hashes of
    plugin, scene and inputs. results: also the state.
    """

    one: str
    other: str
    params: tuple[Difference, ...] = ()
    environment: tuple[Difference, ...] = ()
    results: tuple[Difference, ...] = ()


def compared(
    one: Run, other: Run, one_results: Sequence[Result], other_results: Sequence[Result]
) -> Comparison:
    """What the runs `one` and `other` differ in."""
    results = differences({"state": one.state}, {"state": other.state})
    return Comparison(
        one=one.id,
        other=other.id,
        params=differences(_given(one), _given(other)),
        environment=differences(*comparable(environment(one), environment(other))),
        results=results + of_results(one_results, other_results),
    )


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Entries that differ, those of `one` first."""
    names = dict.fromkeys([*one, *other])
    pairs = ((name, one.get(name, ABSENT), other.get(name, ABSENT)) for name in names)
    return tuple(Difference(name=name, one=a, other=b) for name, a, b in pairs if not _equal(a, b))


def environment(run: Run) -> dict[str, str]:
    """All that a run's result depends on beside its parameters."""
    spec = run.spec
    found = versions(run.provenance) if run.provenance else {}
    found |= {"plugin version": spec.version, "plugin code": run.plugin_digest}
    found |= {"scene": spec.scene_digest, "hash rule": f"format {run.format}"}
    return found | {f"input {name}": given.digest for name, given in spec.inputs.items()}


def comparable(
    one: Mapping[str, str], other: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Two environments without their hashes where these follow two rules."""
    if one.get("hash rule") == other.get("hash rule"):
        return dict(one), dict(other)
    return _without_hashes(one), _without_hashes(other)


def _without_hashes(found: Mapping[str, str]) -> dict[str, str]:
    hashed = ("plugin code", "scene")
    return {k: v for k, v in found.items() if k not in hashed and not k.startswith("input ")}


def versions(where: Provenance) -> dict[str, str]:
    """Versions and platform by name."""
    return {
        "twinstudio": where.twinstudio,
        "python": where.python,
        "platform": where.platform,
        **where.packages,
    }


def of_results(one: Sequence[Result], other: Sequence[Result]) -> tuple[Difference, ...]:
    """Results that are not the same to the last bit, matched by name and order."""
    return differences(_figures(one), _figures(other))


def _given(run: Run) -> dict[str, Any]:
    spec = run.spec
    names = ("plugin", "kind", "seed", "draws", "split", "duration")
    fixed = {name: getattr(spec, name) for name in names}
    return fixed | {f"params.{k}" if k in fixed else k: v for k, v in spec.params.items()}


def _figures(results: Iterable[Result]) -> dict[str, Any]:
    """Every figure of `results` under a name of its own."""
    seen: Counter[str] = Counter()
    figures: dict[str, Any] = {}
    for result in results:
        seen[result.name] += 1
        again = f" ({seen[result.name]})" if seen[result.name] > 1 else ""
        for part, value in _parts(result).items():
            figures[f"{result.name}{again}{part}"] = value
    return figures


def _parts(result: Result) -> dict[str, Any]:
    if isinstance(result, Scalar):
        return {"": result.value, " low": result.low, " high": result.high, " unit": result.unit}
    if isinstance(result, Series):
        return {" x": _curve(result.x), " y": _curve(result.y)}
    if isinstance(result, Table):
        columns = _once_each(result.columns)
        return {
            f" row {k} {column}": cell
            for k, row in enumerate(result.rows)
            for column, cell in zip(columns, row, strict=True)
            if column != TIMED
        }
    if isinstance(result, Image):
        return {"": f"{result.format} {_hash(result.data)}"}
    return _changes(result)


def _changes(patch: Patch) -> dict[str, Any]:
    keys = _once_each([change.key for change in patch.changes])
    return {f" {key}": change.value for key, change in zip(keys, patch.changes, strict=True)}


def _once_each(names: Sequence[str]) -> list[str]:
    """`names`, the second of one name and so on with their number."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return found


def _curve(values: tuple[float, ...]) -> str:
    """A curve in words: enough to see that it differs, and roughly how."""
    array = np.array(values, dtype=float)
    known = array[np.isfinite(array)]
    span = f", {known.min():.9g} to {known.max():.9g}" if len(known) else ""
    return f"{len(array)} points{span}, {_hash(array.tobytes())}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _equal(a: Any, b: Any) -> bool:
    """Equal to the last bit; NaN equals NaN, and 0.0 is not -0.0."""
    return type(a) is type(b) and repr(a) == repr(b)
