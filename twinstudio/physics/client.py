"""One PyBullet simulation in this process, among others."""

from functools import partial
from typing import Any

from twinstudio.model.errors import PhysicsError
from twinstudio.physics.quiet import without_words

with without_words():  # it greets with the time it was built
    import pybullet


class Client:
    """One simulation without a window: every function of PyBullet, bound to it."""

    def __init__(self) -> None:
        self.id: int = pybullet.connect(pybullet.DIRECT)
        if self.id < 0:
            raise PhysicsError("PyBullet has no room for another simulation in this process")

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(pybullet, name), physicsClientId=self.id)

    def close(self) -> None:
        """Let go of the simulation; may be called again."""
        if self.id >= 0:
            pybullet.disconnect(self.id)
            self.id = -1
