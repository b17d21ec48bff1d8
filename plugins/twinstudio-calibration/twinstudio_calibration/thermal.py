"""Thermal network of each joint from a log of its temperature, current and speed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from twinstudio.plugin import api
from twinstudio_calibration import thermal_records as records
from twinstudio_calibration.thermal_model import (
    NAMES,
    NOTHING,
    RATES,
    Fit,
    Floats,
    Node,
    column,
    default_prior,
    fit,
    simulate,
    time_constants,
)
from twinstudio_calibration.thermal_records import Heating

NETWORK = "thermal network"
SWEEPS = 15
"""Rounds in which joints that heat each other settle; each moves them by far less than before."""
METHOD = "Laplace, noise scaled by its autocorrelation time"


class Params(api.Params, frozen=True):
    """What is known beside the log."""

    node: Annotated[
        Literal["auto", "winding", "case"],
        api.about("Where the sensor sits; auto takes what predicts the later half of the log best"),
    ] = "auto"
    ambient: Annotated[
        float, api.si("degC", low=-40.0, high=80.0, about="Temperature of the surroundings")
    ] = 23.0
    ambient_spread: Annotated[
        float,
        api.si("K", low=0.01, high=50.0, about="How well it is known, with constant heat inside"),
    ] = 20.0
    resistance: Annotated[
        float,
        api.si("ohm", low=0.0, about="Of each winding at 25 degC; 0 takes the scene's"),
    ] = 0.0
    step: Annotated[float, api.si("s", low=0.01, high=60.0, about="Width of a bin of the log")] = (
        1.0
    )


@dataclass(frozen=True, slots=True)
class Physical:
    """A figure in watts: a product of powers of rates, times the winding's resistance or by it."""

    name: str
    unit: str
    powers: Mapping[str, float]
    inverse: bool = False

    @property
    def gradient(self) -> Floats:
        """Of the figure's logarithm by those of the rates."""
        return np.array([self.powers.get(rate, 0.0) for rate in RATES])

    def value(self, theta: Floats, resistance: float) -> float:
        """In SI; `resistance` of the winding at 25 degC, ohm."""
        product = math.exp(float(self.gradient @ theta[: len(RATES)]))
        return product / resistance if self.inverse else product * resistance


C1 = Physical("winding capacity", "J/K", {"heat": -1.0})
C2 = Physical("case capacity", "J/K", {"heat": -1.0, "a": 1.0, "b": -1.0})
R12 = Physical("resistance winding to case", "K/W", {"heat": 1.0, "a": -1.0}, inverse=True)
R2A = Physical(
    "resistance case to ambient",
    "K/W",
    {"heat": 1.0, "a": -1.0, "b": 1.0, "c": -1.0},
    inverse=True,
)
FRICTION = Physical("friction heat", "N m", {"friction": 1.0, "heat": -1.0, "a": 1.0, "b": -1.0})


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """All joints of one log. end: stamp of its last bin, ns."""

    joints: tuple[str, ...]
    fits: tuple[Fit, ...]
    end: int


def fit_joints(heating: Heating, node: Node, ambient: float, spread: float) -> Network:
    """A network for every joint; its neighbours' temperatures are taken as measured."""
    around = records.arounds(heating, records.smooth(heating))
    fits = []
    for k in range(len(heating.joints)):
        record = heating.record(k, around[k])
        fits.append(fit(record, node, default_prior(record, ambient, spread)))
    end = heating.start + round(float(heating.time[-1]) * 1e9)
    return Network(heating.joints, tuple(fits), end)


def free_run(network: Network, heating: Heating) -> Floats:
    """Temperatures of the sensors, degC [n, joints], from the end of the fitted log alone.

    Currents and speeds of `heating` drive it; none of its temperatures is used. Joints
    heat each other as simulated.
    """
    behind = (heating.start - network.end) * 1e-9
    time = np.concatenate([[0.0], behind + heating.time])
    ends = np.array([item.end[column(item.node)] for item in network.fits])
    now = np.tile(ends, (len(time), 1))
    longer = replace(
        heating,
        time=time,
        square=np.vstack([heating.square[:1], heating.square]),
        speed=np.vstack([heating.speed[:1], heating.speed]),
        temperature=now,
    )
    for _ in range(SWEEPS):
        around = records.arounds(longer, now)
        now = np.column_stack(
            [
                simulate(np.concatenate([item.theta[:-2], item.end]), longer.record(k, around[k]))[
                    :, column(item.node)
                ]
                for k, item in enumerate(network.fits)
            ]
        )
    return now[1:]


def choose_node(heating: Heating, ambient: float, spread: float) -> tuple[Node, dict[Node, float]]:
    """The place of the sensor by which the first half of the log predicts the second best.

    Gives the error of both, K, root mean square over the joints.
    """
    half = len(heating.time) // 2
    first, second = _rows(heating, slice(0, half)), _rows(heating, slice(half, None))
    nodes: tuple[Node, Node] = ("winding", "case")
    errors = {
        node: float(
            np.sqrt(
                np.mean(rms(free_run(fit_joints(first, node, ambient, spread), second), second))
            )
        )
        for node in nodes
    }
    return min(nodes, key=lambda node: errors[node]), errors


def rms(predicted: Floats, heating: Heating) -> Floats:
    """Mean squared error of each joint, K^2, over what was read."""
    return np.asarray(np.nanmean((predicted - heating.temperature) ** 2, axis=0))


class ThermalNetwork(api.Calibrator[Params]):
    """Two thermal nodes a joint, with neighbours, and intervals of what can be told."""

    id = "twinstudio.thermal"
    params = Params

    def check(self, logs: api.Logs, scene: api.Scene, params: Params) -> Sequence[api.Finding]:
        """Whether a log has temperatures that move, and what heats them."""
        found = [block for block in logs.values() if records.TEMPERATURE in block.layout]
        if not found:
            text, hint = "no log has joint.temperature", "record the temperature of every joint"
            return [api.Finding(text, fatal=True, hint=hint)]
        findings = [finding for block in found[:1] for finding in records.defects(block)]
        if len(found) > 1:
            findings.append(api.Finding(f"{len(found)} logs: the first alone is fitted"))
        joints = found[0].layout.signal(records.TEMPERATURE).labels
        if joints != scene.robot.joints:
            text = (
                f"the log's joints {_list(joints)} are not the scene's {_list(scene.robot.joints)}"
            )
            findings.append(api.Finding(f"{text}: there will be no patch"))
        elif not _resistance(scene, params):
            text = "no resistance of the windings: capacities in J/K cannot be told, no patch"
            findings.append(api.Finding(text, hint="give resistance"))
        return findings

    def solve(
        self, context: api.JobContext, logs: api.Logs, scene: api.Scene, params: Params
    ) -> api.Results:
        """Time constants, capacities and resistances with intervals; the patch for them."""
        block = next(b for b in logs.values() if records.TEMPERATURE in b.layout)
        heating = records.heating(block, params.step)
        known = (params.ambient, params.ambient_spread)
        node: Node
        if params.node == "auto":
            node, errors = choose_node(heating, *known)
            told = ", ".join(f"{name} {error:.3f} K" for name, error in errors.items())
            context.log(f"sensor taken to be at the {node}: later half of the log off by {told}")
        else:
            node = params.node
        context.progress(0.5, "fitting every joint")
        network = fit_joints(heating, node, *known)
        resistance = _resistance(scene, params)
        results: list[api.Result] = [network_table(network)]
        for k, (joint, item) in enumerate(zip(network.joints, network.fits, strict=True)):
            results += scalars(joint, item, resistance[k] if resistance else 0.0)
        if resistance and network.joints == scene.robot.joints:
            results.append(patch(network, heating, resistance))
        return results

    def validate(self, logs: api.Logs, scene: api.Scene, solved: api.Results) -> api.Results:  # noqa: ARG002 - the network is all it takes
        """Error of the free run against holding the last temperature, K, each joint."""
        network = network_of(solved)
        results: list[api.Result] = []
        for name, block in logs.items():
            if records.TEMPERATURE in block.layout and len(block) > 1:
                results += score(name, network, records.heating(block, 1.0))
        return results


def score(name: str, network: Network, heating: Heating) -> list[api.Result]:
    """Table of errors, and one curve a joint: measured minus predicted.

    A log that does not follow the fitted one begins at its own first temperature.
    """
    note = "free run from the end of the fitted log"
    if not 0 < heating.start - network.end < records.LEAST_SECONDS * 1e9:
        network, note = _restarted(network, heating), "free run from the first temperature"
    ran = free_run(network, heating)
    last = np.array([item.end[column(item.node)] for item in network.fits])
    held = np.sqrt(rms(np.tile(last, (len(ran), 1)), heating))
    rows = tuple(
        (joint, float(before), float(after))
        for joint, before, after in zip(
            network.joints, held, np.sqrt(rms(ran, heating)), strict=True
        )
    )
    columns = ("joint", "held last", "network")
    table = api.Table(
        name=f"temperature error on {name} ({note})",
        columns=columns,
        units=("", "K", "K"),
        rows=rows,
    )
    gap = heating.temperature - ran
    time = tuple(map(float, heating.time))
    curves = [
        api.Series(
            name=f"temperature of {joint} on {name}: measured minus predicted",
            x=time,
            y=tuple(map(float, gap[:, k])),
            x_unit="s",
            y_unit="K",
        )
        for k, joint in enumerate(network.joints)
    ]
    return [table, *curves]


def scalars(joint: str, item: Fit, resistance: float) -> Iterable[api.Scalar]:
    """Time constants, and what follows from the winding's resistance [ohm], 0 if unknown."""
    weights = _time_constant_gradients(item.theta)
    for label, tau, gradient in zip(
        ("fast", "slow"), time_constants(item.theta), weights, strict=True
    ):
        told = bool(item.told[0] if label == "fast" else item.told[2] or item.told[3])
        yield _scalar(f"{label} time constant of {joint}", float(tau), "s", gradient, item, told)
    ambient, spread = item.theta[6], 1.96 * math.sqrt(item.covariance[6, 6])
    yield api.Scalar(
        name=f"surroundings of {joint}",
        value=float(ambient),
        unit="degC",
        low=float(ambient - spread) if item.told[6] else -math.inf,
        high=float(ambient + spread) if item.told[6] else math.inf,
        note=f"{METHOD}; with what heats the joint all the time",
    )
    if resistance:
        for one in (C1, C2, R12, R2A, FRICTION):
            told = all(bool(item.told[RATES.index(rate)]) for rate in one.powers)
            value = one.value(item.theta, resistance)
            yield _scalar(f"{one.name} of {joint}", value, one.unit, one.gradient, item, told)


def patch(network: Network, heating: Heating, resistance: Sequence[float]) -> api.Patch:
    """Changes to ``drive.thermal``; neighbours count as surroundings, as warm as they were."""
    pairs = list(zip(network.fits, resistance, strict=True))
    share = [_share_beside(item) for item in network.fits]
    around = [float(x.mean()) for x in records.arounds(heating, records.smooth(heating))]
    ambient = [
        float(item.theta[6]) if s == 0.0 else (1.0 - s) * float(item.theta[6]) + s * beside
        for item, s, beside in zip(network.fits, share, around, strict=True)
    ]
    values = {
        "resistance": tuple(resistance),
        "winding_capacity": tuple(C1.value(item.theta, r) for item, r in pairs),
        "case_capacity": tuple(C2.value(item.theta, r) for item, r in pairs),
        "winding_to_case": tuple(R12.value(item.theta, r) for item, r in pairs),
        "case_to_ambient": tuple(
            R2A.value(item.theta, r) * (1.0 - s) for (item, r), s in zip(pairs, share, strict=True)
        ),
        "start": tuple(float(item.theta[8]) for item in network.fits),
    }
    changes = [api.Change(key=f"drive.thermal.{key}", value=v) for key, v in values.items()]
    changes.append(api.Change(key="drive.thermal.ambient", value=float(np.mean(ambient))))
    reason = "fitted to the temperatures of the log; see the errors of the free run"
    if (differ := float(np.ptp(ambient))) > 1.0:
        reason += f"; the surroundings of the joints differ by {differ:.1f} K, their mean is taken"
    return api.Patch(name="thermal network", changes=tuple(changes), reason=reason)


def _share_beside(item: Fit) -> float:
    """Share of the case's loss that goes to its neighbours."""
    c, d = np.exp(item.theta[2:4])
    return float(d / (c + d)) if item.theta[3] > 0.5 * NOTHING else 0.0


def network_table(network: Network) -> api.Table:
    """The network with all that `network_of` needs."""
    units = ("1/s", "1/s", "1/s", "1/s", "K/(s A^2)", "K/(s rad/s)", "degC", "degC", "degC")
    rows: list[tuple[float | int | str | None, ...]] = []
    for joint, item in zip(network.joints, network.fits, strict=True):
        values = [*np.exp(item.theta[: len(RATES)]), *item.theta[len(RATES) :], *item.end]
        rows.append((joint, item.node, network.end, *map(float, values)))
    return api.Table(
        name=NETWORK,
        columns=("joint", "sensor", "end stamp", *NAMES, "winding_end", "case_end"),
        units=("", "", "ns", *units, "degC", "degC"),
        rows=tuple(rows),
    )


def network_of(solved: api.Results) -> Network:
    """The network that `network_table` wrote; raises PluginError without one."""
    table = next((r for r in solved if isinstance(r, api.Table) and r.name == NETWORK), None)
    if table is None:
        raise api.PluginError(f"the results hold no table '{NETWORK}'")
    joints, fits, end = [], [], 0
    for row in table.rows:
        values = np.array(row[3:], dtype=np.float64)
        theta = np.concatenate([np.log(values[: len(RATES)]), values[len(RATES) : len(NAMES)]])
        none = np.zeros(0)
        node: Node = "winding" if row[1] == "winding" else "case"
        told = np.ones(len(NAMES), dtype=bool)
        fits.append(Fit(node, theta, np.zeros((0, 0)), told, none, values[len(NAMES) :]))
        joints.append(str(row[0]))
        end = int(row[2] or 0)
    return Network(tuple(joints), tuple(fits), end)


def _scalar(
    name: str, value: float, unit: str, gradient: Floats, item: Fit, told: bool
) -> api.Scalar:
    """A positive figure: `gradient` of its logarithm by those of the rates."""
    size = len(gradient)
    factor = math.exp(1.96 * math.sqrt(gradient @ item.covariance[:size, :size] @ gradient))
    return api.Scalar(
        name=name,
        value=value,
        unit=unit,
        low=value / factor if told else -math.inf,
        high=value * factor if told else math.inf,
        note=METHOD if told else "not identifiable from this log",
    )


def _time_constant_gradients(theta: Floats) -> Floats:
    """Derivatives of the logarithms of both time constants by those of the rates, [2, 4]."""
    step = 1e-5
    columns = []
    for k in range(4):
        up, down = theta.copy(), theta.copy()
        up[k] += step
        down[k] -= step
        columns.append(np.log(time_constants(up) / time_constants(down)) / (2.0 * step))
    return np.column_stack(columns)


def _restarted(network: Network, heating: Heating) -> Network:
    """`network` at rest at the first temperatures of `heating`."""
    fits = []
    for k, item in enumerate(network.fits):
        read = heating.temperature[:, k]
        first = float(read[np.isfinite(read)][0])
        fits.append(replace(item, end=np.array([first, first])))
    return Network(network.joints, tuple(fits), heating.start - 1)


def _rows(heating: Heating, rows: slice) -> Heating:
    """Some bins as a log of their own."""
    time = heating.time[rows]
    start = heating.start + round(float(time[0]) * 1e9)
    return Heating(
        heating.joints,
        start,
        time - time[0],
        heating.square[rows],
        heating.speed[rows],
        heating.temperature[rows],
    )


def _resistance(scene: api.Scene, params: Params) -> tuple[float, ...]:
    """Of each winding at 25 degC, ohm; empty if unknown."""
    joints = len(scene.robot.joints)
    if params.resistance:
        return (params.resistance,) * joints
    given = scene.drive.thermal.resistance
    return tuple(given) * joints if len(given) == 1 else tuple(given)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


@api.implements
def calibrators() -> list[type[api.Calibrator[Params]]]:
    """The calibrator of this module."""
    return [ThermalNetwork]
