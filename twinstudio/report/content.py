"""What a report says, before it is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from twinstudio.model.gaps import GapTable
from twinstudio.model.health import Health
from twinstudio.model.measured import Measured
from twinstudio.model.provenance import Provenance
from twinstudio.model.signals import Layout

Floats = NDArray[np.float64]
Series = tuple[Floats, Floats]

# Okabe and Ito's palette, safe for colour-blind eyes.
_COLOURS = {"twin": "#0072B2", "cell": "#E69F00"}
_OTHERS = ("#009E73", "#CC79A7", "#56B4E9", "#D55E00")


def colour(name: str, order: int) -> str:
    """The colour of a trace: blue for the twin, orange for the cell, else by order."""
    return _COLOURS.get(name, _OTHERS[order % len(_OTHERS)])


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One plot. Times float64[n] in s, values float64[n] in `unit`, NaN: no reading.

    unit: SI; angles are drawn in degrees and lengths in millimetres.
    traces: name -> (time, values); ``twin`` and ``cell`` have colours of their own.
    gap: twin minus cell, drawn in a strip beneath; None leaves the strip out.
    """

    title: str
    unit: str
    traces: Mapping[str, Series]
    gap: Series | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report:
    """A gap report of one run or log.

    layout: of the pair behind the table; it tells the units.
    created: when, as text; empty leaves it out.
    health: name of a source -> how its link did.
    metrics: what metrics of plugins said of the same pair.
    """

    title: str
    table: GapTable
    layout: Layout
    subtitle: str = ""
    created: str = ""
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    health: Mapping[str, Health] = field(default_factory=dict)
    metrics: tuple[Measured, ...] = ()
    provenance: Provenance | None = None
