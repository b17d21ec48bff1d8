"""The next motion to record: the one that leaves the least doubt about an arm's parameters."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from twinstudio.model.scene import load_scene
from twinstudio.plugin import api
from twinstudio_calibration.fourier import Limits, Motion, at_rest, series, shrunk, within
from twinstudio_calibration.information import Floats, Sight, sight
from twinstudio_calibration.rigid_body import RigidBody, rigid_body

SEARCH, SAMPLES = 200, 50
"""Instants of a motion that is tried, and those at which its information is counted."""
CLEAR_EVERY = 0.02
"""s between the instants at which heights of the final motion are checked."""
GROWTH, DECAY = 1.5, 0.9
"""Steps grow after a success and shrink after a failure: one in four shall succeed."""
UNLIMITED = np.pi
"""Position limit that stands for none, rad."""
NUDGE = 0.3
"""rad or m by which joints are moved to see which frames they raise."""
SHRINK, LEAST_SCALE = 0.8, 0.02
LEAST_NOISE = 1e-3


class Params(api.Params, frozen=True):
    """What the motion may do, and what it is for."""

    scene: Annotated[str, api.about("Scene of the robot: its name, folder or scene.toml")] = (
        "panda_cell"
    )
    file: Annotated[str, api.about("CSV to write: t and a column for every joint")] = ""
    focus: Annotated[
        str,
        api.about("Parameters to learn, e.g. 'mass of link3, coulomb'; empty for the worst of all"),
    ] = ""
    criterion: Annotated[
        Literal["doubt", "condition"],
        api.about("Doubt that is left of the parameters, or condition number of the regressor"),
    ] = "doubt"
    period: Annotated[float, api.si("s", low=2.0, high=120.0, about="Duration of the motion")] = (
        20.0
    )
    rate: Annotated[float, api.si("Hz", low=10.0, high=1000.0, about="Rows a second")] = 100.0
    harmonics: Annotated[int, api.about("Harmonics of each joint", low=2, high=20)] = 8
    share: Annotated[
        float, api.si("1", low=0.05, high=1.0, about="Share of the limits that is used")
    ] = 0.8
    acceleration: Annotated[
        float, api.si("rad/s^2|m/s^2", low=0.01, high=100.0, about="Largest of every joint")
    ] = 4.0
    floor: Annotated[
        float, api.si("m", low=-10.0, high=10.0, about="Height in the world no frame goes below")
    ] = 0.05
    noise: Annotated[
        float, api.si("1", low=1e-5, high=1.0, about="Noise over largest effort of a joint")
    ] = 0.01
    tries: Annotated[int, api.about("Motions that are tried", low=10, high=20000)] = 400


class Excitation(api.Command[Params]):
    """Optimised Fourier excitation within limits and above the table."""

    id = "twinstudio.excitation"
    params = Params

    def run(self, context: api.JobContext, params: Params) -> api.Results:
        """The motion as table and file, and the doubt it leaves of every parameter."""
        scene = load_scene(params.scene)
        body = rigid_body(scene)
        limits, effort = limits_of(body, scene, params)
        noise = np.maximum(params.noise * effort, LEAST_NOISE)
        seeing = sight(body, limits, effort, noise, context.rng)
        wanted = focus(seeing, params.focus)
        design = Design(scene, body, limits, params)
        first, best = design.optimise(context, _cost(seeing, wanted, params), context.rng)
        if params.file:
            write_csv(Path(params.file), body.joints, best)
        return _results(seeing, wanted, first, best, params)


class Design:
    """Motions of one robot that keep its limits and its height."""

    def __init__(self, scene: api.Scene, body: RigidBody, limits: Limits, params: Params) -> None:
        self._scene, self._body, self._limits, self._params = scene, body, limits, params
        self._home = np.array(scene.robot.home, dtype=np.float64)
        self._fine = np.arange(round(params.period * params.rate) + 1) / params.rate
        self._coarse = np.linspace(0.0, params.period, SEARCH + 1)
        self._data: Any = body.model.createData()
        self._up = pin.rpy.rpyToMatrix(*scene.robot.base.rpy)[2]
        self._rising = self._which_rise()
        self._check()

    def motion(self, coefficients: Floats) -> Motion:
        """The motion of these coefficients, as large as limits and floor allow."""
        return self._clear(coefficients, self._fine, round(CLEAR_EVERY * self._params.rate))

    def sketch(self, coefficients: Floats) -> Motion:
        """The same on a coarse grid, for the search."""
        return self._clear(coefficients, self._coarse, SEARCH // SAMPLES)

    def _clear(self, coefficients: Floats, time: Floats, stride: int) -> Motion:
        given = series(at_rest(coefficients), self._home, self._params.period, time)
        motion = within(given, self._home, self._limits, self._params.share)
        scale = 1.0
        while scale > LEAST_SCALE and self._dips(motion.every(max(1, stride))):
            scale *= SHRINK
            motion = shrunk(motion, self._home, SHRINK)
        return motion if scale > LEAST_SCALE else shrunk(motion, self._home, 0.0)

    def _dips(self, motion: Motion) -> bool:
        return any(self.lowest(q) < self._params.floor for q in motion.position)

    def lowest(self, position: Floats) -> float:
        """Least height in the world of the frames that joints raise and lower, m."""
        return float(self._heights(position)[self._rising].min(initial=np.inf))

    def _heights(self, position: Floats) -> Floats:
        """Of every frame of joints, links and tools, m in the world."""
        model = self._body.model
        full = np.zeros(model.nq)
        full[self._body.order] = position
        pin.framesForwardKinematics(model, self._data, full)
        places = np.array([self._data.oMf[k].translation for k in range(model.nframes)])
        return np.asarray(places @ self._up + self._scene.robot.base.position[2])

    def _which_rise(self) -> NDArray[np.bool_]:
        """Frames whose height some joint changes."""
        joints = len(self._home)
        poses = [self._home, *(self._home + NUDGE * np.eye(joints))]
        poses += list(self._home + NUDGE * np.tri(joints))
        heights = np.array([self._heights(pose) for pose in poses])
        return np.asarray(np.ptp(heights, axis=0) > 1e-6)

    def optimise(
        self,
        context: api.JobContext,
        cost: Callable[[Motion], float],
        rng: np.random.Generator,
    ) -> tuple[Motion, Motion]:
        """The first motion tried, and the best: random starts, then an evolution strategy."""
        shape = (2, len(self._body.joints), self._params.harmonics)
        tried = [_unit(rng.normal(size=shape)) for _ in range(max(1, self._params.tries // 10))]
        costs = [cost(self.sketch(one)) for one in tried]
        best, least, step = tried[int(np.argmin(costs))], min(costs), 0.5
        for k in range(self._params.tries - len(tried)):
            context.progress(k / self._params.tries, f"cost {least:.4g}")
            other = _unit(best + step * rng.normal(size=shape) * (rng.random(shape) < 0.3))
            if (now := cost(self.sketch(other))) < least:
                best, least, step = other, now, min(step * GROWTH, 1.0)
            else:
                step = max(step * DECAY, 0.02)
        return self.motion(tried[0]), self.motion(best)

    def _check(self) -> None:
        outside = (self._home < self._limits.lower) | (self._home > self._limits.upper)
        if outside.any():
            joint = self._body.joints[int(np.argmax(outside))]
            raise api.PluginError(
                f"home of {joint} lies outside of its limits", hint="correct 'robot.home'"
            )
        if (height := self.lowest(self._home)) < self._params.floor:
            raise api.PluginError(
                f"at home a frame of the robot is {height:.3f} m high, below floor"
                f" {self._params.floor:g} m",
                hint="lower floor, or choose another home",
            )


def _unit(coefficients: Floats) -> Floats:
    """Coefficients at rest at both ends, of norm 1 a joint: limits decide how far it goes."""
    resting = at_rest(coefficients)
    norm = np.sqrt((resting**2).sum(axis=(0, 2), keepdims=True))
    return np.asarray(resting / np.maximum(norm, 1e-12))


def limits_of(body: RigidBody, scene: api.Scene, params: Params) -> tuple[Limits, Floats]:
    """Limits of the model, and the largest effort of each joint.

    Raises PluginError where the model has no speed or effort limit.
    """
    speed = np.array(body.model.velocityLimit)[body.order]
    effort = np.array(body.model.effortLimit)[body.order]
    if scene.robot.max_effort:
        effort = np.array(scene.robot.max_effort, dtype=np.float64)
    for what, values in (("speed", speed), ("effort", effort)):
        poor = ~np.isfinite(values) | (values <= 0.0) | (values > 1e9)
        if poor.any():
            raise api.PluginError(
                f"the model gives no {what} limit of {body.joints[int(np.argmax(poor))]}",
                hint="write it into the model's <limit>",
            )
    lower = np.where(np.abs(body.lower) < 1e6, body.lower, -UNLIMITED)
    upper = np.where(np.abs(body.upper) < 1e6, body.upper, UNLIMITED)
    return Limits(lower, upper, speed, np.full(len(speed), params.acceleration)), effort


def focus(seeing: Sight, words: str) -> NDArray[np.bool_]:
    """Which parameters `words` name: parts of names, divided by commas.

    All that any motion tells of if it is empty; raises PluginError for a word without
    one, and for parameters that no motion tells.
    """
    if not words.strip():
        return np.asarray(seeing.seen)
    wanted = np.zeros(len(seeing.names), dtype=bool)
    for word in (part.strip() for part in words.split(",")):
        found = np.array([word in name for name in seeing.names])
        if not found.any():
            hint = f"names are like {seeing.names[0]}, {seeing.names[-1]}"
            raise api.PluginError(f"there is no parameter '{word}'", hint=hint)
        if not (found & seeing.seen).any():
            hint = "only its sum with others can be told; a prior or CAD must tell it"
            raise api.PluginError(f"no motion of this arm tells '{word}' alone", hint=hint)
        wanted |= found & seeing.seen
    return wanted


def write_csv(path: Path, joints: tuple[str, ...], motion: Motion) -> None:
    """Header ``t,JOINT,...``, then s and rad (m) a row; raises PluginError if it cannot be."""
    rows = np.column_stack([motion.time, motion.position])
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            np.savetxt(
                file, rows, fmt="%.9g", delimiter=",", header=",".join(("t", *joints)), comments=""
            )
    except OSError as error:
        raise api.PluginError(f"cannot be written: {error.strerror}", where=str(path)) from error


def _cost(seeing: Sight, wanted: NDArray[np.bool_], params: Params) -> Callable[[Motion], float]:
    """What is made small; a motion that stands still leaves all doubt."""

    def cost(motion: Motion) -> float:
        some = motion.every(max(1, len(motion.time) // SAMPLES))
        if params.criterion == "condition":
            return float(np.log10(seeing.condition(some)))
        doubt = np.log(seeing.doubt(some)[wanted] + 1e-9)
        # The worst counts most; the mean tells apart motions whose worst is the same.
        return float(doubt.max() + 0.5 * doubt.mean())

    return cost


def _results(
    seeing: Sight, wanted: NDArray[np.bool_], first: Motion, best: Motion, params: Params
) -> list[api.Result]:
    stride = max(1, len(best.time) // SAMPLES)
    before, after = seeing.doubt(first.every(stride)), seeing.doubt(best.every(stride))
    worst = int(np.argmax(np.where(wanted, after, -1.0)))
    note = f"{seeing.names[worst]}; of a motion at random {before[worst]:.3g}"
    rows = tuple(
        (name, float(b), float(a), "" if seen else "no motion tells it alone")
        for name, b, a, seen in zip(seeing.names, before, after, seeing.seen, strict=True)
    )
    joints = seeing.body.joints
    units = ["rad" if turns else "m" for turns in seeing.body.revolute]
    trajectory = np.column_stack([best.time, best.position])
    conditions = [seeing.condition(motion.every(stride)) for motion in (best, first)]
    return [
        api.Scalar(
            name="doubt left of the worst parameter", value=float(after[worst]), unit="1", note=note
        ),
        api.Scalar(
            name="condition number of the base regressor",
            value=conditions[0],
            unit="1",
            note=f"of a motion at random {conditions[1]:.3g}; parameters in units of their prior",
        ),
        api.Table(
            name="doubt left of each parameter, of what motion can remove",
            columns=("parameter", "random motion", "this motion", "note"),
            units=("", "1", "1", ""),
            rows=rows,
        ),
        api.Table(
            name="trajectory" + (f", written to {params.file}" if params.file else ""),
            columns=("t", *joints),
            units=("s", *units),
            rows=tuple(tuple(map(float, row)) for row in trajectory),
        ),
    ]


@api.implements
def commands() -> list[type[api.Command[Params]]]:
    """The command of this module."""
    return [Excitation]
