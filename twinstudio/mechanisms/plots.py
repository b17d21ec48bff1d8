"""The plots of the page on mechanisms, drawn from the laws themselves.

``python -m twinstudio.mechanisms.plots`` draws them anew beside the pages.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from twinstudio.mechanisms.drives import JointDrives
from twinstudio.mechanisms.friction import Law, maxwell_slip, presliding, sliding
from twinstudio.mechanisms.thermal import Network, heat_up
from twinstudio.mechanisms.transmission import play, wave
from twinstudio.model.drive import (
    Cable,
    CommandPath,
    Controller,
    Drive,
    Encoders,
    Friction,
    Motor,
    Transmission,
)

Floats = NDArray[np.float64]
Line = NDArray[np.floating[Any]]
DOCS = Path(__file__).parent.parent / "docs"
STEP = 1e-3


class Curve(NamedTuple):
    """One line of a plot."""

    name: str
    x: Line
    y: Line


class Plot(NamedTuple):
    """Lines in one pair of axes, with what the axes show and in which unit."""

    across: str
    up: str
    curves: list[Curve]


def run(drive: Drive, target: Floats, *, inertia: float = 0.4, load: float = 0.0) -> Floats:
    """Position, speed and effort float64[n, 3] of one joint under `drive`, from rest at 0."""
    drives = JointDrives(drive, 1, STEP, np.random.default_rng(4))
    felt = np.array([inertia + drives.armature[0]])
    q, v, bias = np.zeros(1), np.zeros(1), np.array([load])
    log = np.empty((len(target), 3))
    for k in range(len(target)):
        effort = drives.effort(round(k * STEP * 1e9), q, v, target[k : k + 1], bias, felt)
        v = v + STEP * (effort - bias) / felt
        q = q + STEP * v
        log[k] = q[0], v[0], effort[0]
    return log


def _followed(path: CommandPath, target: Floats) -> Floats:
    """Position that a drive follows, float64[n]."""
    drive = Drive(command=path, controller=Controller(stiffness=(0.0,)))
    drives = JointDrives(drive, 1, STEP, np.random.default_rng(4))
    one, seen = np.ones(1), np.empty(len(target))
    for k in range(len(target)):
        drives.effort(round(k * STEP * 1e9), one, one, target[k : k + 1], one, one)
        seen[k] = drives.tables.states["wanted"][0]
    return seen


def command() -> Plot:
    """A swinging command, and what arrives of it."""
    time = np.arange(250) * STEP
    target = np.sin(2.0 * np.pi * 4.0 * time)
    late = CommandPath(latency=(0.0203,))
    rough = CommandPath(latency=(0.0203,), jitter=0.006, jitter_kind="gamma")
    return Plot(
        "time [s]",
        "command [rad]",
        [
            Curve("sent", time, target),
            Curve("latency 20.3 ms", time, _followed(late, target)),
            Curve("with gamma jitter of 6 ms", time, _followed(rough, target)),
            Curve("hold of 20 ms", time, _followed(CommandPath(hold=0.02), target)),
        ],
    )


def controller() -> Plot:
    """Answers to a step: with limits, and with a rotor's inertia."""
    target = np.full(700, 0.4)
    gains = Controller(stiffness=(400.0,), damping=(20.0,))
    drives = {
        "stiffness and damping": Drive(controller=gains),
        "with armature": Drive(controller=gains, motor=Motor(armature=(0.8,))),
        "effort within 20 N m": Drive(controller=gains, motor=Motor(max_effort=(20.0,))),
        "speed within 1 rad/s": Drive(controller=gains, motor=Motor(max_speed=(1.0,))),
    }
    time = np.arange(len(target)) * STEP
    curves = [Curve(name, time, run(drive, target)[:, 0]) for name, drive in drives.items()]
    return Plot("time [s]", "position [rad]", curves)


def friction() -> Plot:
    """Sliding friction over speed, rung by rung."""
    speed = np.linspace(-1.0, 1.0, 801)
    plain = Law(coulomb=1.0, breakaway=1.0, viscous=0.6)
    rungs = {
        "Coulomb and viscous": plain,
        "with Stribeck": plain._replace(breakaway=1.7, stribeck=0.12),
        "asymmetric": plain._replace(asymmetry=0.3),
        "with offset": plain._replace(offset=0.4),
    }
    curves = [Curve(name, speed, sliding(speed, law)) for name, law in rungs.items()]
    return Plot("speed [rad/s]", "friction [N m]", curves)


def load() -> Plot:
    """Friction of a loaded gear over speed, after BAM M6."""
    speed = np.linspace(0.01, 8.0, 400)
    law = Law(
        coulomb=3.259,
        breakaway=3.5794,
        viscous=1.403,
        stribeck=2.83,
        stribeck_exponent=1.786,
        load_motor=0.03566,
        load_external=0.000843,
        stribeck_load_motor=0.003771,
        stribeck_load_external=0.04144,
    )
    curves = [
        Curve(f"motor {motor:.0f} N m", speed, sliding(speed, law, motor, -motor))
        for motor in (0.0, 20.0, 40.0)
    ]
    return Plot("speed [rad/s]", "friction [N m]", curves)


def contacts() -> Plot:
    """Friction over position while a joint swings ever wider."""
    phase = np.linspace(0.0, 1.0, 4000)
    position = 1.5e-3 * phase * np.sin(2.0 * np.pi * 4.0 * phase)
    mrad = 1e3 * position
    return Plot(
        "position [mrad]",
        "friction over its level",
        [
            Curve("one element", mrad, presliding(position, 5e-4)),
            Curve("four elements", mrad, maxwell_slip(position, 5e-4, 4)),
        ],
    )


def temperature() -> Plot:
    """Coulomb and viscous friction of a joint that coasts, cold and warm."""
    speed = np.linspace(0.0, 3.0, 300)
    curves = []
    for case in (5.0, 25.0, 60.0):
        level, thin = 1.0 - 0.005 * (case - 25.0), np.exp(-(case - 25.0) / 30.0)
        law = Law(coulomb=level, breakaway=level, viscous=0.6 * thin)
        curves.append(Curve(f"{case:.0f} degC", speed[1:], sliding(speed[1:], law)))
    return Plot("speed [rad/s]", "friction [N m]", curves)


def backlash() -> Plot:
    """Link over motor, which swings: wide and narrow play."""
    motor = 5.0 * np.sin(np.linspace(0.0, 2.25 * np.pi, 1200))
    curves = [
        Curve(f"play of {width:g} mrad", motor, play(motor, 0.5 * width, 0.0))
        for width in (2.0, 0.5)
    ]
    return Plot("motor [mrad]", "link [mrad]", curves)


def compliance() -> Plot:
    """A step of effort through an elastic gear."""
    gains = Controller(stiffness=(2000.0,), damping=(60.0,))
    motor, target = Motor(armature=(0.3,)), np.full(600, 0.01)
    rigid = Drive(controller=gains, motor=motor)
    drives = {"rigid gear": rigid}
    for name, damping in (("elastic, 2000 N m/rad", 1.0), ("with more damping", 8.0)):
        gear = Transmission(stiffness=(2000.0,), damping=(damping,))
        drives[name] = structs.replace(rigid, transmission=gear)
    time = np.arange(len(target)) * STEP
    curves = [Curve(name, time, run(drive, target)[:, 0]) for name, drive in drives.items()]
    return Plot("time [s]", "link [rad]", curves)


def ripple() -> Plot:
    """Ripple of effort, or error of position, over a part of a turn."""
    position = np.linspace(0.0, 0.5, 600)
    return Plot(
        "position [rad]",
        "ripple [N m], error [mrad]",
        [
            Curve("ripple 0.3 N m, order 80", position, wave(position, 0.3, 80.0, 0.0)),
            Curve("error 0.2 mrad, order 50", position, wave(position, 0.2, 50.0, 1.0)),
        ],
    )


def thermal() -> Plot:
    """Winding and case under a constant loss, and after it."""
    time = np.linspace(0.0, 7200.0, 721)
    losses = np.stack([np.where(time < 3600.0, 9.0, 0.0), np.zeros(721)], axis=1)
    nodes = heat_up(time, losses, Network(16.3, 512.2, 1.070, 1.941), 21.0, np.full(2, 21.0))
    hours = time / 3600.0
    curves = [Curve("winding", hours, nodes[:, 0]), Curve("case", hours, nodes[:, 1])]
    return Plot("time [h]", "temperature [degC]", curves)


def cable() -> Plot:
    """Effort of a cable over position."""
    position = np.linspace(-1.0, 1.0, 41)
    drive = Drive(
        controller=Controller(stiffness=(0.0,)),
        cable=Cable(stiffness=(2.0,), rest=(0.2,), pull=(0.5,)),
    )
    drives = JointDrives(drive, 1, STEP, np.random.default_rng(0))
    none, one = np.zeros(1), np.ones(1)
    effort = [
        drives.effort(0, position[k : k + 1], none, none, none, one)[0]
        for k in range(len(position))
    ]
    return Plot("position [rad]", "effort [N m]", [Curve("cable", position, np.array(effort))])


def encoders() -> Plot:
    """What an encoder of few counts tells of a slow motion."""
    time = np.linspace(0.0, 1.0, 300)
    truth = np.sin(2.0 * np.pi * time)
    drive = Drive(encoders=Encoders(resolution=(0.2,), offset=(0.1,), velocity_noise=(0.3,)))
    drives = JointDrives(drive, 1, STEP, np.random.default_rng(4))
    told = [
        drives.measured(truth[k : k + 1], truth[k : k + 1], truth[:1])[0][0] for k in range(300)
    ]
    curves = [Curve("true", time, truth), Curve("told", time, np.array(told))]
    return Plot("time [s]", "position [mrad]", curves)


def stick_slip() -> Plot:
    """A joint that is drawn slowly: rigid contact, elastic contact, LuGre."""
    target = np.linspace(0.0, 0.06, 3000)
    gains = Controller(stiffness=(60.0,), damping=(2.0,))
    time = np.arange(len(target)) * STEP
    curves = [Curve("command", time, target)]
    base = Friction(coulomb=(1.0,), breakaway=(1.6,), stribeck=(0.03,), presliding=(2e-3,))
    for kind in ("rigid", "maxwell", "lugre"):
        rubbed = structs.replace(base, contact=kind)
        log = run(Drive(controller=gains, friction=rubbed), target)
        curves.append(Curve(kind, time, log[:, 0]))
    return Plot("time [s]", "position [rad]", curves)


PLOTS: dict[str, Callable[[], Plot]] = {
    plot.__name__: plot
    for plot in (
        command, controller, friction, load, contacts, stick_slip, temperature,
        backlash, compliance, ripple, thermal, cable, encoders,
    )
}  # fmt: skip


def path_of(name: str, folder: Path = DOCS) -> Path:
    """File of the plot `name`."""
    return folder / f"mechanisms-{name.replace('_', '-')}.svg"


def draw(plot: Plot, path: Path) -> None:
    """Draw `plot` into the SVG file `path`; the same plot gives the same file."""
    # Only who draws pays for matplotlib.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9.0}):
        figure = Figure(figsize=(5.2, 2.6), layout="constrained")
        axes = figure.add_subplot()
        colours = ("#0072B2", "#E69F00", "#009E73", "#D55E00")
        styles = ("-", "--", "-.", ":")
        for curve, colour, style in zip(plot.curves, colours, styles, strict=False):
            axes.plot(curve.x, curve.y, style, color=colour, lw=1.2, label=curve.name)
        axes.set_xlabel(plot.across)
        axes.set_ylabel(plot.up)
        axes.grid(visible=True, color="#dddddd", lw=0.5)
        axes.legend(frameon=False, fontsize=8.0)
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(path, metadata={"Date": None})


if __name__ == "__main__":
    target_folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    for key, make in PLOTS.items():
        draw(make(), path_of(key, target_folder))
