"""What a plugin gives back: typed, so that window, report and run record can show it.

No plugin draws; it returns these, and `msgspec` writes them into the run's folder.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from twinstudio.model.errors import QuantityError
from twinstudio.model.quantity import unit as known_unit


class _Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str


class Scalar(_Result, frozen=True, tag="scalar", tag_field="type"):
    """One figure in SI. low, high: 95 % interval; infinite where it cannot be told."""

    value: float
    unit: str
    low: float = -math.inf
    high: float = math.inf
    note: str = ""

    def __post_init__(self) -> None:
        known_unit(self.unit)
        if not math.isfinite(self.value):
            raise QuantityError(f"result '{self.name}' is {self.value}, no figure")
        if not self.low <= self.value <= self.high:
            raise QuantityError(
                f"result '{self.name}': {self.value} lies outside its interval"
                f" {self.low} to {self.high}"
            )


class Series(_Result, frozen=True, tag="series", tag_field="type"):
    """A curve: x and y of equal length, SI; NaN in y where there is no reading."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    x_unit: str
    y_unit: str

    def __post_init__(self) -> None:
        known_unit(self.x_unit)
        known_unit(self.y_unit)
        if len(self.x) != len(self.y):
            raise QuantityError(f"series '{self.name}': {len(self.x)} x but {len(self.y)} y")


class Table(_Result, frozen=True, tag="table", tag_field="type"):
    """Rows under named columns; numbers in the SI unit of their column ("" for text)."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[tuple[float | int | str | None, ...], ...]

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.units):
            raise QuantityError(
                f"table '{self.name}': {len(self.columns)} columns but {len(self.units)} units"
            )
        for k, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise QuantityError(f"table '{self.name}': row {k} has {len(row)} cells")


class Image(_Result, frozen=True, tag="image", tag_field="type"):
    """A picture that a run keeps as a file beside its record."""

    format: Literal["png", "svg"]
    data: bytes


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One key of the scene and its new value, SI; e.g. ``twin.position_gain``."""

    key: str
    value: float | int | str | bool | tuple[float, ...]


class Patch(_Result, frozen=True, tag="patch", tag_field="type"):
    """Changes to a scene that a person may promote; `reason` says why they are better."""

    changes: tuple[Change, ...]
    reason: str


Result = Scalar | Series | Table | Image | Patch


def grouped(results: Sequence[Result]) -> list[tuple[str, tuple[Result, ...]]]:
    """`results` in order, curves that belong in one plot together, under a common title.

    These follow each other, are called ``TITLE: NAME``, and have the same units. Every
    other result stands alone under its name.
    """
    groups: list[tuple[str, tuple[Result, ...]]] = []
    for result in results:
        title, colon, _ = result.name.rpartition(": ")
        before = groups[-1][1][-1] if groups else None
        if (
            isinstance(result, Series)
            and isinstance(before, Series)
            and colon
            and before.name.rpartition(": ")[0] == title
            and (before.x_unit, before.y_unit) == (result.x_unit, result.y_unit)
        ):
            groups[-1] = (title, (*groups[-1][1], result))
        else:
            groups.append((result.name, (result,)))
    return groups


def name_in(name: str, title: str) -> str:
    """What a curve is called within the group `title`."""
    return name.removeprefix(f"{title}: ")
