"""What the metric of a plugin said of a pair, and who said it."""

from typing import Any

import msgspec

from twinstudio.model.results import Result


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one metric, or why there are none.

    plugin, version: who measured; version "" where it has none.
    params: plain values in SI, after checks. error: one line, "" if all went well;
    then `results` is empty. trace: of the error, or "".
    """

    plugin: str
    version: str
    title: str
    params: dict[str, Any] = {}
    results: tuple[Result, ...] = ()
    error: str = ""
    trace: str = ""

    @property
    def name(self) -> str:
        """Id and version, as people read them."""
        return f"{self.plugin} {self.version}".rstrip()
