"""Gap tables in the one shape that scripts read."""

from typing import Any

from twinstudio.gap.metrics import KINDS
from twinstudio.model.gaps import Figures, GapTable, JointGap, Lag

FIGURES = {"rmse": "rmse", "max": "maximum", "bias": "bias", "relative": "relative", "n": "n"}


def as_json(table: GapTable) -> dict[str, Any]:
    """A table as JSON: ``overall``, ``joints`` and what holds for both.

    Every key is always there; null where twin or cell has no such signal or
    reading. Per joint: ``<kind>_rmse``, ``_max``, ``_bias`` (SI), ``_relative``,
    ``_n`` (readings) and ``_floor`` (SI) for position, velocity, effort and
    current; ``command_to_motion_ms`` and ``twin_command_to_motion_ms`` with the
    correlation and the signal they rest on.
    """
    return {
        "overall": _joint(table.overall),
        "joints": [_joint(joint) for joint in table.joints],
        "samples": table.samples,
        "seconds": (table.end - table.start) / 1e9,
        "tcp_rmse_mm": _scaled(table.tcp, "rmse"),
        "tcp_max_mm": _scaled(table.tcp, "maximum"),
        "tcp_mean_mm": _scaled(table.tcp, "bias"),
        "transport_p50_ms": 1e3 * table.transport.p50 if table.transport else None,
        "transport_p99_ms": 1e3 * table.transport.p99 if table.transport else None,
        "notes": list(table.notes),
    }


def _joint(joint: JointGap) -> dict[str, Any]:
    out: dict[str, Any] = {"name": joint.name}
    for kind in KINDS:
        figures: Figures | None = getattr(joint, kind)
        for key, field in FIGURES.items():
            out[f"{kind}_{key}"] = getattr(figures, field) if figures else None
        out[f"{kind}_floor"] = joint.floor.get(kind)
    for prefix, lag in (("", joint.command_to_motion), ("twin_", joint.twin_command_to_motion)):
        out |= _lag(f"{prefix}command_to_motion", lag)
    return out


def _lag(name: str, lag: Lag | None) -> dict[str, Any]:
    return {
        f"{name}_ms": 1e3 * lag.seconds if lag else None,
        f"{name}_correlation": lag.correlation if lag else None,
        f"{name}_signal": lag.signal if lag else None,
    }


def _scaled(figures: Figures | None, field: str) -> float | None:
    """A length in mm."""
    return 1e3 * float(getattr(figures, field)) if figures else None
