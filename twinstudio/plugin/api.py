"""All that a plugin needs, in one import: ``from twinstudio.plugin import api``."""

from twinstudio.model.block import Block, Stamps
from twinstudio.model.config import si
from twinstudio.model.errors import PluginError
from twinstudio.model.pair import Pair
from twinstudio.model.params import Params, about
from twinstudio.model.results import Change, Image, Patch, Result, Scalar, Series, Table
from twinstudio.model.scene import Scene
from twinstudio.model.signals import Layout, Signal, joint_signals, pose_signal
from twinstudio.plugin.context import Cancelled, JobContext
from twinstudio.plugin.hooks import API, implements
from twinstudio.plugin.kinds import (
    Calibrator,
    Command,
    Finding,
    Floats,
    HilSuite,
    Logs,
    Mechanism,
    Metric,
    Randomizer,
    ResidualLearner,
    Results,
    Samples,
    SourceBridge,
)
from twinstudio.plugin.slots import InputSlot

__all__ = [
    "API",
    "Block",
    "Calibrator",
    "Cancelled",
    "Change",
    "Command",
    "Finding",
    "Floats",
    "HilSuite",
    "Image",
    "InputSlot",
    "JobContext",
    "Layout",
    "Logs",
    "Mechanism",
    "Metric",
    "Pair",
    "Params",
    "Patch",
    "PluginError",
    "Randomizer",
    "ResidualLearner",
    "Result",
    "Results",
    "Samples",
    "Scalar",
    "Scene",
    "Series",
    "Signal",
    "SourceBridge",
    "Stamps",
    "Table",
    "about",
    "implements",
    "joint_signals",
    "pose_signal",
    "si",
]
