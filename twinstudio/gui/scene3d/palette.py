"""Colours of the 3D view: Okabe-Ito for sources, cividis for errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyqtgraph import colormap

RGB = tuple[float, float, float]

TWIN: RGB = (0x00 / 255, 0x72 / 255, 0xB2 / 255)
CELL: RGB = (0xE6 / 255, 0x9F / 255, 0x00 / 255)
AXES: tuple[RGB, RGB, RGB] = ((0.84, 0.27, 0.22), (0.26, 0.65, 0.33), (0.25, 0.45, 0.87))


@dataclass(frozen=True, slots=True)
class Look:
    """Colours of the surroundings, red, green, blue in 0..1.

    zenith, horizon, ground: the gradient behind everything.
    grid: lines on the floor. ink: text over the picture.
    """

    zenith: RGB
    horizon: RGB
    ground: RGB
    grid: RGB
    ink: RGB


LIGHT = Look(
    zenith=(0.80, 0.84, 0.89),
    horizon=(0.955, 0.962, 0.97),
    ground=(0.90, 0.905, 0.915),
    grid=(0.45, 0.48, 0.53),
    ink=(0.13, 0.14, 0.16),
)
DARK = Look(
    zenith=(0.085, 0.10, 0.125),
    horizon=(0.20, 0.22, 0.25),
    ground=(0.125, 0.135, 0.155),
    grid=(0.42, 0.45, 0.50),
    ink=(0.90, 0.91, 0.93),
)


def look_for(window: RGB) -> Look:
    """The look that suits a window background: dark if its luma is under one half."""
    luma = 0.2126 * window[0] + 0.7152 * window[1] + 0.0722 * window[2]
    return DARK if luma < 0.5 else LIGHT


class ErrorScale:
    """The perceptual scale on which links are coloured by their error."""

    def __init__(self, steps: int = 256) -> None:
        scale: Any = colormap.get("cividis")
        table = np.asarray(scale.getLookupTable(nPts=steps, alpha=False), dtype=np.float32)
        self._table: NDArray[np.float32] = table[:, :3] / np.float32(255.0)

    def color(self, error: float) -> RGB:
        """Colour of a relative error; over 1 looks like 1, so does under 0 like 0."""
        last = len(self._table) - 1
        red, green, blue = self._table[round(min(max(error, 0.0), 1.0) * last)]
        return float(red), float(green), float(blue)
