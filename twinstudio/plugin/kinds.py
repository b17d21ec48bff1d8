"""The kinds of plugin: each a small typed class with parameters and one method.

A plugin subclasses one of these with its own `Params`, and keeps to three rules:
everything random comes from the generator it is given, nothing is drawn (results
are typed), and nothing is read but its arguments.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.block import Block, Stamps
from twinstudio.model.pair import Pair
from twinstudio.model.params import Params
from twinstudio.model.results import Patch, Result
from twinstudio.model.scene import Scene
from twinstudio.model.signals import Layout
from twinstudio.plugin.context import JobContext
from twinstudio.plugin.slots import InputSlot

P = TypeVar("P", bound=Params)
Floats = NDArray[np.float64]
Logs = Mapping[str, Block]
Results = Sequence[Result]
Samples = tuple[Stamps, Floats]


class Plugin(ABC, Generic[P]):
    """Base of all kinds.

    id: the id that the manifest gives this plugin, e.g. ``acme.worst_joint``.
    params: the parameter class. A plugin is made without arguments.
    inputs: what a job of it reads, by name; those of the kind unless it says otherwise.
    """

    id: ClassVar[str]
    params: ClassVar[type[Params]]
    inputs: ClassVar[tuple[InputSlot, ...]] = ()


class Metric(Plugin[P]):
    """Figures from a pair of twin and cell."""

    inputs = (InputSlot("log", "Log of the cell; without a twin in it, the scene's twin is run"),)

    @abstractmethod
    def measure(self, pair: Pair, params: P) -> Results:
        """Figures of `pair`; called on the sliding window, a run or a log."""


class SourceBridge(Plugin[P]):
    """Brings a robot's data in: the twin of a driver.

    As a job it records what it yields until it is cancelled or its duration is over.
    """

    @abstractmethod
    def layout(self, params: P) -> Layout:
        """What it will deliver; asked once, before `blocks`."""

    @abstractmethod
    def blocks(self, context: JobContext, params: P) -> Iterator[Samples]:
        """Yield (stamps ns int64[n], values float64[n, width]) until the job is cancelled."""


class Mechanism(Plugin[P]):
    """A physical effect in a joint's drive, with state."""

    @abstractmethod
    def start(self, joints: int, step: float, params: P) -> Any:
        """The state before the first step; `step` in s."""

    @abstractmethod
    def effort(self, state: Any, position: Floats, velocity: Floats, effort: Floats) -> Floats:
        """Effort that reaches the joints, N m or N, from the motors' `effort`; updates `state`."""


class Randomizer(Plugin[P]):
    """Draws what could differ, always from the nominal scene."""

    @abstractmethod
    def draw(self, scene: Scene, rng: np.random.Generator, params: P) -> Patch:
        """One draw as changes to `scene`, which is never changed itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. fatal: solving would make no sense; `hint` says what to do."""

    text: str
    fatal: bool = False
    hint: str = ""


class Calibrator(Plugin[P]):
    """Finds parameters that explain a log: check, solve, validate.

    `logs` hold the cell's samples of every input that is a log, under its name; the
    inputs of the slot ``held_out`` are for `validate` alone.
    """

    inputs: ClassVar[tuple[InputSlot, ...]] = (
        InputSlot("log", "Log of the cell to calibrate from", several=True),
        InputSlot(
            "held_out",
            "Log to validate on; without one the end of each log is kept for it",
            required=False,
            several=True,
        ),
    )

    @abstractmethod
    def check(self, logs: Logs, scene: Scene, params: P) -> Sequence[Finding]:
        """Whether the data can identify the parameters, before any solver runs."""

    @abstractmethod
    def solve(self, context: JobContext, logs: Logs, scene: Scene, params: P) -> Results:
        """Figures with intervals, and the patch that a person may promote."""

    @abstractmethod
    def validate(self, logs: Logs, scene: Scene, solved: Results) -> Results:
        """Scores on data the solver has not seen."""


class ResidualLearner(Plugin[P]):
    """Learns what no parameter explains: cell minus twin of one signal.

    features: signals of the cell that it learns from. target: the signal it explains.
    Twin and cell must both have all of them.
    """

    features: ClassVar[tuple[str, ...]] = ("joint.position", "joint.velocity")
    target: ClassVar[str] = "joint.effort"
    inputs = (
        InputSlot("log", "Log of the cell; without a twin in it, the scene's twin is run"),
        InputSlot(
            "held_out",
            "Log to score on; without one the end of the log is kept for it",
            required=False,
        ),
    )

    @abstractmethod
    def fit(self, context: JobContext, features: Floats, target: Floats, params: P) -> bytes:
        """A trained model as bytes, from features [n, k] and residual [n, m] in time order."""

    @abstractmethod
    def predict(self, model: bytes, features: Floats) -> Floats:
        """The residual for features [n, k], float64[n, m]."""


class HilSuite(Plugin[P]):
    """Ready tests for cell and twin.

    As a job each test is one row of the result. Its tests may use the fixtures
    ``job_context`` and ``suite_params``.
    """

    @abstractmethod
    def tests(self, params: P) -> Path:
        """Folder or file with the pytest tests."""


class Command(Plugin[P]):
    """Anything else worth a name: runs as a job and returns results."""

    @abstractmethod
    def run(self, context: JobContext, params: P) -> Results:
        """Do it."""


KINDS: dict[str, type[Plugin[Any]]] = {
    "bridge": SourceBridge,
    "metric": Metric,
    "mechanism": Mechanism,
    "randomizer": Randomizer,
    "calibrator": Calibrator,
    "residual": ResidualLearner,
    "hil": HilSuite,
    "command": Command,
}
