"""What can be told of a plugin by running it on data without a robot."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from twinstudio.model.block import Block
from twinstudio.model.errors import PluginError, TwinstudioError
from twinstudio.model.pair import Pair
from twinstudio.model.params import Params, fields
from twinstudio.model.patches import Promoted, patched
from twinstudio.model.results import Image, Patch, Result, Scalar, Series, Table
from twinstudio.model.scene import Scene
from twinstudio.model.signals import Layout
from twinstudio.plugin import checks
from twinstudio.plugin.kinds import (
    Calibrator,
    Finding,
    HilSuite,
    Mechanism,
    Metric,
    Plugin,
    Randomizer,
    ResidualLearner,
    SourceBridge,
)

RESULTS = (Scalar, Series, Table, Image, Patch)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a plugin is tried on; `context` makes a fresh job context from a seed."""

    pair: Pair
    scene: Scene
    block: Block
    context: Callable[[int], AbstractContextManager[Any]]


def check(cls: type[Plugin[Any]], params: Params | None, data: Trial) -> list[Finding]:
    """All findings on class `cls`: of its definition, or else of its run."""
    kind = checks.kind_of(cls) if isinstance(cls, type) else ""
    if not kind:
        return [Finding("expected a subclass of a kind of plugin, e.g. Metric", fatal=True)]
    found = [Finding(text, fatal=True) for text in checks.problems(cls, kind)]
    if found:
        return found
    missing = [field.name for field in fields(cls.params) if field.required]
    if params is None and missing:
        hint = f"call check_plugin(cls, Params({missing[0]}=...))"
        return [Finding(f"not run: no default for {', '.join(missing)}", hint=hint)]
    given = cls.params() if params is None else params
    try:
        return [Finding(text, fatal=True) for text in _run(cls, given, data)]
    except RaisedError as error:
        return [Finding(error.what, fatal=True, hint=error.hint)]


def result_problems(given: object) -> list[str]:
    """What is wrong with what a plugin returned as its results; [] if nothing is."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        return [f"must return a list of results, got {type(given).__name__}"]
    found = [
        f"result {k} is {type(one).__name__}, expected Scalar, Series, Table, Image or Patch"
        for k, one in enumerate(given)
        if not isinstance(one, RESULTS)
    ]
    names = [one.name for one in given if isinstance(one, RESULTS)]
    twice = sorted({name for name in names if names.count(name) > 1})
    return found + [f"two results are named '{name}'" for name in twice]


class RaisedError(PluginError):
    """The plugin raised while it was tried."""


def _call(work: Callable[..., Any], *arguments: Any) -> Any:
    """`work` called; whatever it raises becomes one line with its place."""
    try:
        return work(*arguments)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        name = getattr(work, "__name__", "plugin")
        raise RaisedError(
            f"{name} raised {type(error).__name__}: {error}", hint=f"{last.filename}:{last.lineno}"
        ) from error


def _run(cls: type[Plugin[Any]], params: Params, data: Trial) -> list[str]:
    plugin = _call(cls)
    for kind, trial in _TRIALS:
        if isinstance(plugin, kind):
            return trial(plugin, params, data)
    return []  # a command may do anything: it is for its own tests to run it


def _metric(plugin: Metric[Any], params: Params, data: Trial) -> list[str]:
    first, again = (_call(plugin.measure, data.pair, params) for _ in range(2))
    if found := [f"measure {text}" for text in result_problems(first)]:
        return found
    if _encoded(first) != _encoded(again):
        return ["measure gave two answers for one pair"]
    nothing = np.full((len(data.pair), data.pair.layout.width), np.nan)
    without = Pair(data.pair.layout, data.pair.stamps, nothing, nothing.copy())
    empty = Pair(data.pair.layout, data.pair.stamps[:0], nothing[:0], nothing[:0].copy())
    for what, pair in (("without a reading", without), ("without a sample", empty)):
        try:
            given = plugin.measure(pair, params)
        except TwinstudioError:
            continue  # saying that there is nothing to measure is fine
        except Exception as error:  # noqa: BLE001 - a stranger's code may raise anything
            found.append(f"measure raised {type(error).__name__} on a pair {what}: {error}")
        else:
            found += [f"measure, on a pair {what}, {text}" for text in result_problems(given)]
    return found


def _randomizer(plugin: Randomizer[Any], params: Params, data: Trial) -> list[str]:
    before = msgspec.json.encode(data.scene)
    first, again = (
        _call(plugin.draw, data.scene, np.random.default_rng(1), params) for _ in range(2)
    )
    if not isinstance(first, Patch):
        return [f"draw must return a Patch, got {type(first).__name__}"]
    if _encoded(first) != _encoded(again):
        return ["draw gave two patches for one seed: all randomness must come from rng"]
    if msgspec.json.encode(data.scene) != before:
        return ["draw changed the scene it was given"]
    try:
        patched(data.scene, (Promoted(patch=first, run="trial", when=0.0),))
    except TwinstudioError as error:
        return [f"draw gave a patch that does not fit the scene: {error}"]
    return []


def _mechanism(plugin: Mechanism[Any], params: Params, __: Trial) -> list[str]:
    state = _call(plugin.start, 2, 0.001, params)
    zero, motor = np.zeros(2), np.array([1.0, -1.0])
    for _ in range(3):
        left = _call(plugin.effort, state, zero, np.array([0.1, -0.1]), motor.copy())
        if not isinstance(left, np.ndarray) or left.shape != (2,):
            return [f"effort must return float64[joints], got {_shape(left)}"]
        if not np.isfinite(left).all():
            return [f"effort returned {left}, no finite numbers"]
    return []


def _residual(plugin: ResidualLearner[Any], params: Params, data: Trial) -> list[str]:
    if any(name not in data.block.layout for name in (*plugin.features, plugin.target)):
        return []  # the synthetic motion lacks them: it is for its own tests to run it
    features = np.hstack([data.block.of(name) for name in plugin.features])
    target = data.block.of(plugin.target) + 0.01
    with data.context(1) as context:
        model = _call(plugin.fit, context, features, target, params)
    if not isinstance(model, bytes):
        return [f"fit must return bytes, got {type(model).__name__}"]
    told = _call(plugin.predict, model, features)
    if not isinstance(told, np.ndarray) or told.shape != target.shape:
        return [f"predict must return float64{list(target.shape)}, got {_shape(told)}"]
    return [] if np.isfinite(told).all() else ["predict returned numbers that are not finite"]


def _calibrator(plugin: Calibrator[Any], params: Params, data: Trial) -> list[str]:
    """The check alone: whether the synthetic motion suits the solver nobody knows."""
    for logs in ({}, {"log": data.block}):
        given = _call(plugin.check, logs, data.scene, params)
        if not isinstance(given, Sequence) or not all(isinstance(f, Finding) for f in given):
            return [f"check must return a list of Finding, got {given!r:.60}"]
    return []


def _bridge(plugin: SourceBridge[Any], params: Params, _: Trial) -> list[str]:
    """The layout alone: blocks need the robot."""
    layout = _call(plugin.layout, params)
    if isinstance(layout, Layout):
        return []
    return [f"layout must return a Layout, got {type(layout).__name__}"]


def _suite(plugin: HilSuite[Any], params: Params, _: Trial) -> list[str]:
    path = _call(plugin.tests, params)
    if isinstance(path, Path) and path.exists():
        return []
    return [f"tests must return a path that exists, got {path}"]


_TRIALS: tuple[tuple[type[Plugin[Any]], Callable[[Any, Params, Trial], list[str]]], ...] = (
    (Metric, _metric),
    (Randomizer, _randomizer),
    (Mechanism, _mechanism),
    (ResidualLearner, _residual),
    (SourceBridge, _bridge),
    (Calibrator, _calibrator),
    (HilSuite, _suite),
)


def _encoded(results: Sequence[Result] | Patch) -> bytes:
    return msgspec.json.encode(results)


def _shape(thing: object) -> str:
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype}{list(thing.shape)}"
    return type(thing).__name__
