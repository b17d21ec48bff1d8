"""Plugins for the tests of jobs; most of them misbehave, each in its own way."""

import ctypes
import faulthandler
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import numpy as np

from twinstudio.model.config import si
from twinstudio.model.params import Params, about
from twinstudio.model.results import Change, Image, Patch, Scalar, Series, Table
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.context import Cancelled
from twinstudio.plugin.kinds import (
    Calibrator,
    Command,
    Finding,
    HilSuite,
    Mechanism,
    Metric,
    Randomizer,
    ResidualLearner,
    SourceBridge,
)
from twinstudio.plugin.slots import InputSlot

ESCAPED = "import time; print(1); time.sleep(3600)"
PNG = b"\x89PNG\r\n\x1a\n and more"


class Nothing(Params):
    pass


class DiceParams(Params):
    count: Annotated[int, about("How many", low=1, high=1000)] = 10
    mass: Annotated[float, si("kg", low=0.0, high=5.0, about="A mass")] = 1.0


class Dice(Command[DiceParams]):
    id = "test.dice"
    params = DiceParams

    def run(self, context, params):
        context.log("rolling")
        print("printed")
        noise = context.rng.normal(size=params.count)
        context.progress(0.5, "half")
        curve = context.rng.normal(size=2000)
        return [
            Scalar(name="mean", value=noise.mean(), unit="m", low=-9.0, high=9.0),
            Scalar(name="mass", value=params.mass, unit="kg"),
            Series(name="curve", x=np.arange(2000.0), y=curve, x_unit="s", y_unit="m"),
            Table(name="rows", columns=("a", "b"), units=("m", ""), rows=((1.5, "x"), (None, "y"))),
            Image(name="picture", format="png", data=PNG),
            Patch(name="patch", changes=(Change(key="twin.behind", value=0.1),), reason="why not"),
        ]


class Reads(Command[Nothing]):
    id = "test.reads"
    params = Nothing
    inputs = (InputSlot("log", "What is read", kind="file"),)

    def run(self, context, params):
        size = len(context.inputs["log"].read_bytes())
        (context.scratch / "note").write_text("x")
        Path("here").write_text("also in the scratch folder")
        return [Scalar(name="size", value=float(size), unit="1")]


class Waits(Command[Nothing]):
    """Checks in until a file appears beside the run's input ``gate``."""

    id = "test.waits"
    params = Nothing
    inputs = (InputSlot("gate", "Where the file appears", kind="folder"),)

    def run(self, context, params):
        while not (context.inputs["gate"] / "open").exists():
            context.progress(0.25, "waiting")
            time.sleep(0.005)
        return []


class Deaf(Command[Nothing]):
    id = "test.deaf"
    params = Nothing

    def run(self, context, params):
        context.progress(0.25)
        while True:
            time.sleep(0.01)


class Stubborn(Command[Nothing]):
    id = "test.stubborn"
    params = Nothing

    def run(self, context, params):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        context.progress(0.25)
        while True:
            time.sleep(0.01)


class Swallows(Command[Nothing]):
    """Hides that it was cancelled and returns half a result."""

    id = "test.swallows"
    params = Nothing

    def run(self, context, params):
        try:
            while True:
                context.progress(0.25)
                time.sleep(0.005)
        except Cancelled:
            return [Scalar(name="half", value=1.0, unit="m")]


def square(x):
    return x * x


class Maps(Command[Nothing]):
    id = "test.maps"
    params = Nothing

    def run(self, context, params):
        one = context.map(square, range(20))
        two = context.map(square, range(20), workers=2)
        assert one == two
        return [Scalar(name="sum", value=float(sum(two)), unit="1")]


def forever(x):
    time.sleep(3600)


class MapsForever(Command[Nothing]):
    id = "test.maps_forever"
    params = Nothing

    def run(self, context, params):
        return context.map(forever, range(4), workers=2)


class Draws(Randomizer[Nothing]):
    id = "test.draws"
    params = Nothing

    def draw(self, scene, rng, params):
        return Patch(
            name="draw",
            changes=(Change(key="twin.position_gain", value=float(rng.uniform())),),
            reason="could be",
        )


class DrawsNothing(Randomizer[Nothing]):
    id = "test.draws_nothing"
    params = Nothing

    def draw(self, scene, rng, params):
        return None


class FitParams(Params):
    fatal: Annotated[bool, about("Whether the data is refused")] = False
    breaks: Annotated[bool, about("Whether validation raises")] = False


class Fits(Calibrator[FitParams]):
    id = "test.fits"
    params = FitParams
    breaks = False

    def check(self, logs, scene, params):
        self.breaks = params.breaks
        return [
            Finding("it is slow"),
            Finding("nothing moves", fatal=params.fatal, hint="move the arm"),
        ][: 1 + params.fatal]

    def solve(self, context, logs, scene, params):
        print("solving")
        found = [Scalar(name="samples", value=float(len(logs["log"])), unit="1")]
        more = {name: log for name, log in logs.items() if name != "log"}
        found += [Scalar(name=name, value=float(len(log)), unit="1") for name, log in more.items()]
        return found

    def validate(self, logs, scene, solved):
        if self.breaks:
            raise ValueError("no score")
        count = sum(len(block) for block in logs.values())
        return [Scalar(name="held out", value=float(count), unit="1", note=" ".join(sorted(logs)))]


class ChecksOddly(Fits):
    id = "test.checks_oddly"

    def check(self, logs, scene, params):
        return "fine" if params.fatal else None


class SolvesOddly(Fits):
    id = "test.solves_oddly"

    def solve(self, context, logs, scene, params):
        if params.breaks:
            sys.exit(1)
        return [Scalar(name="gain", value=float("nan"), unit="1")]


class MeasuresOddly(Metric[Nothing]):
    id = "test.measures_oddly"
    params = Nothing

    def measure(self, pair, params):
        return {"gap": 1.0}


class Worst(Metric[Nothing]):
    id = "test.worst"
    params = Nothing

    def measure(self, pair, params):
        return [Scalar(name="worst", value=float(np.abs(pair.gap).max()), unit="rad")]


class Slips(Mechanism[Nothing]):
    id = "test.slips"
    params = Nothing

    def start(self, joints, step, params):
        return None

    def effort(self, state, position, velocity, effort):
        return effort


def command(name):
    """Make a command of a function of (context)."""

    def wrap(function):
        def run(self, context, params):
            return function(context)

        body = {"id": f"test.{name}", "params": Nothing, "__module__": __name__, "run": run}
        cls = type(name, (Command,), body)
        globals()[name] = cls
        return function

    return wrap


@command("Raises")
def _(context):
    raise ValueError("the data\nis odd")


class _RudeError(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


@command("RaisesRudely")
def _(context):
    raise _RudeError


@command("Exits")
def _(context):
    sys.exit(3)


@command("ExitsAtOnce")
def _(context):
    print("goodbye", flush=True)
    os._exit(0)


@command("Interrupts")
def _(context):
    raise KeyboardInterrupt


@command("CancelsItself")
def _(context):
    raise Cancelled


def _deep(n):
    return _deep(n + 1)


@command("Recurses")
def _(context):
    return _deep(0)


@command("EatsMemory")
def _(context):
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    return [bytearray(2**32)]


@command("Grows")
def _(context):
    kept = []
    while True:
        kept.append(np.ones(2**20))  # 8 MiB, touched
        context.checkpoint()
        time.sleep(0.002)


def grow(_):
    kept = np.ones(15 * 2**20)  # 120 MiB
    while len(kept):
        time.sleep(0.01)


@command("GrowsInChildren")
def _(context):
    return context.map(grow, range(2), workers=2)


@command("Shares")
def _(context):
    kept = np.ones(15 * 2**20)
    pids = [os.fork() for _ in range(4)]
    if 0 in pids:
        time.sleep(0.5 + 0.0 * kept[0])
        os._exit(0)
    for pid in pids:
        os.waitpid(pid, 0)
    return []


@command("Crashes")
def _(context):
    print("about to fall", flush=True)
    faulthandler._sigsegv()


@command("CrashesInC")
def _(context):
    print("about to fall", flush=True)
    ctypes.string_at(0)


@command("IsKilled")
def _(context):
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


@command("ReturnsNothing")
def _(context):
    return None


@command("ReturnsOne")
def _(context):
    return Scalar(name="alone", value=1.0, unit="m")


@command("ReturnsNumbers")
def _(context):
    return [1.0, 2.0]


@command("ReturnsText")
def _(context):
    return "fine"


@command("ReturnsNan")
def _(context):
    return [Scalar(name="figure", value=float("nan"), unit="m")]


@command("ReturnsNanRow")
def _(context):
    return [Table(name="t", columns=("a",), units=("m",), rows=((1.0,), (float("nan"),)))]


@command("ReturnsWords")
def _(context):
    return [Series(name="s", x=("a",), y=("b",), x_unit="s", y_unit="m")]


@command("ReturnsInfinitePatch")
def _(context):
    return [Patch(name="p", changes=(Change(key="a.b", value=float("inf")),), reason="")]


@command("ReturnsHalfACharacter")
def _(context):
    return [Table(name="t", columns=("a",), units=("",), rows=(("\ud800",),))]


@command("ReturnsAnOddName")
def _(context):
    return [Scalar(name="\x1b[2Jgap", value=1.0, unit="m")]


@command("ReturnsNoName")
def _(context):
    return [Scalar(name="", value=1.0, unit="m")]


@command("ReturnsAHugeCount")
def _(context):
    return [Table(name="t", columns=("a",), units=("",), rows=((10**40,),))]


@command("RaisesHalfACharacter")
def _(context):
    context.progress(0.1, "\ud800\x1b[2J")
    raise ValueError("\x1b[31m\ud800odd")


@command("MapsWhatFails")
def _(context):
    return context.map(int, ["1", "x"], workers=2)


@command("PutsOddStreams")
def _(context):
    class Broken:
        def flush(self):
            raise RuntimeError("no flush")

    sys.stdout, sys.stderr = None, Broken()
    return [Scalar(name="one", value=1.0, unit="1")]


@command("ReturnsNoPicture")
def _(context):
    return [Image(name="i", format="png", data=b"GIF89a")]


@command("ProgressesOddly")
def _(context):
    context.progress(float("nan"))


@command("Prints")
def _(context):
    print("the beginning")
    for _ in range(40):
        sys.stdout.write("x" * 99_999 + "\n")
    print("the end")
    return []


@command("PrintsBytes")
def _(context):
    os.write(1, b"\xff\xfe\x00 raw")
    os.system("echo from a shell; echo and its errors >&2")
    return []


@command("ClosesOutput")
def _(context):
    sys.stdout.close()
    os.close(2)
    return []


@command("Forks")
def _(context):
    pid = os.fork()
    if pid == 0:
        time.sleep(3600)
    print(f"left {pid} behind", flush=True)
    return []


@command("ForksAndBothReturn")
def _(context):
    os.fork()
    return [Scalar(name="one", value=1.0, unit="m")]


@command("LeavesThread")
def _(context):
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return []


@command("ReadsInput")
def _(context):
    return [Scalar(name="read", value=float(len(sys.stdin.read())), unit="1")]


@command("SpeaksOutOfTurn")
def _(context):
    for fd in range(3, 32):
        try:
            os.write(fd, b'{"say": "end", "state": "perfect"}\nnot json\n')
        except OSError:
            continue
    return [Scalar(name="one", value=1.0, unit="m")]


@command("FillsItsDisk")
def _(context):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    curve = tuple(float(k) for k in range(5000))
    return [Series(name="big", x=curve, y=curve, x_unit="s", y_unit="m")]


@command("FillsScratch")
def _(context):
    with (context.scratch / "big").open("wb") as stream:
        while True:
            stream.write(bytes(2**16))


@command("Many")
def _(context):
    return [Scalar(name=f"figure {k}", value=k / 7, unit="m") for k in range(2000)]


@command("RemovesItsRun")
def _(context):
    run = context.scratch.parent
    while run.exists():  # the record that tells of its start may be written meanwhile
        shutil.rmtree(run, ignore_errors=True)
    return []


@command("ClosesEverything")
def _(context):
    os.closerange(0, 64)
    return []


@command("Escapes")
def _(context):
    child = subprocess.Popen([sys.executable, "-c", ESCAPED], start_new_session=True)
    print(f"left {child.pid} behind", flush=True)
    return []


@command("Stops")
def _(context):
    context.progress(0.25)
    os.kill(os.getpid(), signal.SIGSTOP)
    return []


@command("SpoilsItsRecord")
def _(context):
    (context.scratch.parent / "run.json").write_text("mine now")
    return []


class BridgeParams(Params):
    fault: Annotated[str, about("What goes wrong")] = ""
    blocks: Annotated[int, about("How many blocks come; 0 for no end", low=0)] = 0


class Brings(SourceBridge[BridgeParams]):
    """Two samples a block from one pair of buffers, as a driver would fill them."""

    id = "test.brings"
    params = BridgeParams

    def layout(self, params):
        if params.fault == "layout":
            return ["joint.position"]
        return Layout(joint_signals(("a",), kinds=("joint.position",)))

    def blocks(self, context, params):
        stamps, values = np.zeros(2, dtype=np.int64), np.zeros((2, 1))
        k = 0
        try:
            while not params.blocks or k < params.blocks:
                context.checkpoint()
                stamps[:] = 1_000_000 * np.array([2 * k, 2 * k + 1])
                values[:] = [[2.0 * k], [2.0 * k + 1.0]]
                k += 1
                yield self.spoilt(k, stamps, values, params.fault)
                time.sleep(0.001)
        finally:
            context.log("the robot is let go")

    def spoilt(self, k, stamps, values, fault):
        if k < 3 or not fault:
            return stamps, values
        if fault == "raises":
            raise OSError("the robot hung up")
        if fault == "crashes":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "tuple":
            return values
        if fault == "shape":
            return stamps, values.T
        return stamps.astype(float), values


class Waiting(SourceBridge[Nothing]):
    """Delivers nothing and checks in all the time."""

    id = "test.waiting"
    params = Nothing

    def layout(self, params):
        return Layout(joint_signals(("a",), kinds=("joint.position",)))

    def blocks(self, context, params):
        while True:
            context.checkpoint()
            time.sleep(0.001)
            yield from ()


class LearnParams(Params):
    fault: Annotated[str, about("What goes wrong")] = ""


class Learns(ResidualLearner[LearnParams]):
    """A straight line through what is left."""

    id = "test.learns"
    params = LearnParams
    features = ("joint.position",)
    target = "joint.position"

    def fit(self, context, features, target, params):
        if params.fault == "text":
            return "a model"
        context.progress(0.5, "fitting")
        slope = float((features * target).sum() / (features * features).sum())
        return f"{slope!r} {params.fault}".encode()

    def predict(self, model, features):
        slope, _, fault = model.decode().partition(" ")
        told = float(slope) * features
        return {"": told, "shape": told.T, "nan": told * np.nan, "list": [1.0]}[fault]


class LearnsOther(Learns):
    id = "test.learns_other"
    features = ("joint.velocity",)


class SuiteParams(Params):
    folder: Annotated[str, about("Where the tests are")]
    limit: Annotated[float, si("N", low=0.0, about="A limit")] = 2.0


class Suite(HilSuite[SuiteParams]):
    id = "test.suite"
    params = SuiteParams

    def tests(self, params):
        return Path(params.folder)
