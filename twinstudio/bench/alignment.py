"""Recovers a known delay and a known clock offset."""

import numpy as np
from numpy.typing import NDArray

from twinstudio.bench.row import Row
from twinstudio.flow.clock import ClockEstimator, ClockModel
from twinstudio.gap.timing import NoLag, lag, on_grid, uniform_grid

TRIALS = 40
SECONDS = 20.0
PERIOD = 1_000_000
VELOCITY_NOISE = 5e-3  # rad/s, what a good drive's velocity signal shows at rest
Floats = NDArray[np.float64]


def measure(seconds: float) -> list[Row]:  # noqa: ARG001 - the trials have their own length
    """Delays of 0 to 80 ms on clocks off by up to a day and 100 ppm, forty trials."""
    rng = np.random.default_rng(20)
    clean, noisy, offsets = [], [], []
    for _ in range(TRIALS):
        delay = float(rng.uniform(0.0, 0.08))
        truth = _Truth(int(rng.integers(-(10**14), 10**14)), float(rng.uniform(-1e-4, 1e-4)))
        model = _synchronised(truth, rng)
        offsets.append(_worst_ratio(model, truth))
        clean.append(abs(_recovered(delay, truth, model, rng, 0.0) - delay) * 1e9 / PERIOD)
        noisy.append(abs(_recovered(delay, truth, model, rng, VELOCITY_NOISE) - delay) * 1e3)
    return [
        _row("alignment.delay", max(clean), "samples, no noise", 0.1),
        _row("alignment.delay_noisy", max(noisy), "ms, realistic noise", 0.5),
        _row("alignment.offset", max(offsets), "of its stated bound", 1.0),
    ]


class _Truth:
    """The source's clock as it really is: shift [ns] and skew against the local clock."""

    def __init__(self, shift: int, skew: float) -> None:
        self.shift, self.skew = shift, skew

    def source(self, local: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source stamps of local ones."""
        return np.asarray(
            local + self.shift + np.rint(local * self.skew).astype(np.int64), dtype=np.int64
        )


def _synchronised(truth: _Truth, rng: np.random.Generator) -> ClockModel:
    """Pings four times a second, each way delayed by 30 us and an exponential 100 us."""
    estimator = ClockEstimator()
    for sent in range(0, int(SECONDS * 1e9), 250_000_000):
        there, back = (int(30_000 + rng.exponential(100_000)) for _ in range(2))
        arrival = np.array([sent + there, sent + there + 20_000], dtype=np.int64)
        received, replied = truth.source(arrival)
        estimator.add(sent, int(received), int(replied), sent + there + 20_000 + back)
    model = estimator.model()
    assert model is not None
    return model


def _worst_ratio(model: ClockModel, truth: _Truth) -> float:
    """Largest error of a mapped stamp over the bound stated for it."""
    local = np.arange(0, int(SECONDS * 1e9), 100_000_000, dtype=np.int64)
    stamps = truth.source(local)
    error = np.abs(model.to_local(stamps) - local) / 1e9
    return float(np.max(error / model.uncertainty(stamps)))


def _recovered(
    delay: float, truth: _Truth, model: ClockModel, rng: np.random.Generator, noise: float
) -> float:
    """The delay [s] found between a command and a response stamped by the other clock."""
    tones = rng.uniform(0.1, 5.0, 8), rng.uniform(0.0, 2 * np.pi, 8), rng.normal(size=8) / 4
    local = np.arange(0, int(SECONDS * 1e9), PERIOD, dtype=np.int64)
    command = _sum(local / 1e9, *tones)
    response = _sum(local / 1e9 - delay, *tones) + noise * rng.normal(size=len(local))
    mapped = model.to_local(truth.source(local))
    grid = uniform_grid(0, int(local[-1]), PERIOD / 1e9)
    found = lag(
        on_grid(local, command[:, None], grid)[:, 0],
        on_grid(mapped, response[:, None], grid)[:, 0],
        PERIOD / 1e9,
    )
    if isinstance(found, NoLag):
        return float("inf")
    return found.seconds


def _sum(time: Floats, frequencies: Floats, phases: Floats, amplitudes: Floats) -> Floats:
    waves = np.sin(2 * np.pi * frequencies * time[:, None] + phases)
    return np.asarray(waves @ amplitudes, dtype=np.float64)


def _row(name: str, figure: float, unit: str, goal: float) -> Row:
    return Row(name, figure, unit, f"<= {goal:g}", figure <= goal)
