"""One line of a measurement."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, the goal it is held to, and whether it meets it."""

    name: str
    figure: float
    unit: str
    goal: str
    passed: bool

    def as_json(self) -> dict[str, Any]:
        """The fixed shape others script against."""
        return {
            "name": self.name,
            "figure": self.figure,
            "unit": self.unit,
            "goal": self.goal,
            "pass": self.passed,
        }
