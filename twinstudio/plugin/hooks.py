"""The hooks, one a kind.

A plugin module implements those it has something for::

    from twinstudio.plugin.hooks import implements

    @implements
    def metrics() -> list[type[Metric]]:
        return [WorstJoint]

Hooks are called one by one, never all at once: one that raises loses nothing else.
"""

from typing import Any

import pluggy

from twinstudio.plugin import kinds

API = 1
PROJECT = "twinstudio"
implements = pluggy.HookimplMarker(PROJECT)
_specifies = pluggy.HookspecMarker(PROJECT)


class Hooks:
    """What a plugin module may implement; each returns its classes, in order of display."""

    @_specifies
    def bridges(self) -> "list[type[kinds.SourceBridge[Any]]]":
        """Source bridges: robots, cameras and sensors whose data they bring in."""
        raise NotImplementedError

    @_specifies
    def metrics(self) -> "list[type[kinds.Metric[Any]]]":
        """Metrics: figures from a pair of twin and cell."""
        raise NotImplementedError

    @_specifies
    def mechanisms(self) -> "list[type[kinds.Mechanism[Any]]]":
        """Mechanisms: physical effects in a joint's drive."""
        raise NotImplementedError

    @_specifies
    def randomizers(self) -> "list[type[kinds.Randomizer[Any]]]":
        """Randomizers: draws of what could differ."""
        raise NotImplementedError

    @_specifies
    def calibrators(self) -> "list[type[kinds.Calibrator[Any]]]":
        """Calibrators: fits of parameters to logs."""
        raise NotImplementedError

    @_specifies
    def residuals(self) -> "list[type[kinds.ResidualLearner[Any]]]":
        """Residual learners: what no parameter explains."""
        raise NotImplementedError

    @_specifies
    def suites(self) -> "list[type[kinds.HilSuite[Any]]]":
        """HIL suites: ready tests for cell and twin."""
        raise NotImplementedError

    @_specifies
    def commands(self) -> "list[type[kinds.Command[Any]]]":
        """Commands: anything else that runs as a job."""
        raise NotImplementedError


HOOK_OF = {
    "bridge": "bridges",
    "metric": "metrics",
    "mechanism": "mechanisms",
    "randomizer": "randomizers",
    "calibrator": "calibrators",
    "residual": "residuals",
    "hil": "suites",
    "command": "commands",
}
"""Kind of plugin -> its hook."""
